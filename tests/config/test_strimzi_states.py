"""Strimzi's ways to stop: replicas, and the states of connectors; and what `autoRestart` means."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from heliograph.cli import app
from heliograph.config import Deployment, load
from heliograph.config.read.formats import read_all
from heliograph.config.show.convert import CONNECT, PROPERTIES, STRIMZI, convert
from heliograph.model.connect_records import PAUSED, STOPPED
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE

RESOURCE = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: mirror
spec:
  replicas: {replicas}
  connectCluster: B
  clusters:
    - {{alias: A, bootstrapServers: "a:9092"}}
    - {{alias: B, bootstrapServers: "b:9092"}}
  mirrors:
    - sourceCluster: A
      targetCluster: B
      sourceConnector: {source}
      checkpointConnector: {{}}
      heartbeatConnector: {heartbeat}
"""
ENDINGS = {PROPERTIES: "properties", CONNECT: "json", STRIMZI: "yaml"}


def written(tmp_path: Path, replicas: str = "1", source: str = "{}", heartbeat: str = "{}") -> Path:
    file = tmp_path / "mirror.yaml"
    file.write_text(RESOURCE.format(replicas=replicas, source=source, heartbeat=heartbeat))
    return file


def read(tmp_path: Path, replicas: str = "1", source: str = "{}", heartbeat: str = "{}") -> Deployment:
    return load(written(tmp_path, replicas, source, heartbeat))


def command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("field", "state"),
    [
        ("pause: true", PAUSED),
        ("state: paused", PAUSED),
        ("state: stopped", STOPPED),
        ("pause: true, state: stopped", STOPPED),
    ],
)
def test_a_connector_that_is_paused_or_stopped_does_not_run(tmp_path: Path, field: str, state: str) -> None:
    deployment = read(tmp_path, source=f"{{{field}}}")
    assert deployment.states == {("A", "B", SOURCE): state}
    assert deployment.flows[0].parts == {SOURCE, CHECKPOINT, HEARTBEAT}
    assert [flow.parts for flow in deployment.running_flows] == [{CHECKPOINT, HEARTBEAT}]
    text = f"spec.mirrors[0].sourceConnector is {state.lower()}: it does not run"
    assert text in [note.text for note in deployment.notes]


@pytest.mark.parametrize("field", ["", "pause: false", "state: running", "pause: true, state: running"])
def test_other_connectors_run(tmp_path: Path, field: str) -> None:
    assert read(tmp_path, source=f"{{{field}}}").states == {}


def test_a_resource_without_replicas_does_not_run(tmp_path: Path) -> None:
    deployment = read(tmp_path, "0", source="{state: paused}")
    assert set(deployment.states.values()) == {STOPPED}
    assert len(deployment.states) == 3
    assert deployment.running_flows == ()
    assert [str(warning) for warning in deployment.warnings] == [
        f"{tmp_path}/mirror.yaml:6: spec.replicas is 0, which is Strimzi's way to stop: nothing of this resource runs; "
        "to run it with Heliograph, set it to 1 or more here"
    ]
    assert not [note for note in deployment.notes if "spec.replicas" in note.text]


def test_run_refuses_a_resource_without_replicas_and_other_commands_do_not(tmp_path: Path) -> None:
    file = written(tmp_path, "0")
    refused = command("run", file)
    assert refused.exit_code == 2
    assert f"heliograph: {file}: nothing is to run: spec.replicas is 0" in refused.output
    shown = command("config", file)
    assert shown.exit_code == 0
    assert "A->B: copies records (not now: paused or stopped), translates" in shown.output
    assert command("acls", file, "--principal", "User:me").exit_code == 0


@pytest.mark.parametrize("form", ENDINGS)
@pytest.mark.parametrize(("replicas", "source"), [("1", "{state: paused}"), ("0", "{}")])
def test_what_does_not_run_does_not_run_in_another_format(
    tmp_path: Path, form: str, replicas: str, source: str
) -> None:
    document = read_all([written(tmp_path, replicas, source)])
    deployment = load(tmp_path / "mirror.yaml")
    converted = tmp_path / f"other.{ENDINGS[form]}"
    text = convert(document, deployment, form).text
    converted.write_text(text)
    if form == PROPERTIES and not deployment.running_flows:
        assert "A->B.enabled = false" in text
        return
    again = load(converted)
    assert [(flow.name, flow.parts) for flow in again.running_flows] == [
        (flow.name, flow.parts) for flow in deployment.running_flows
    ]
    if form != PROPERTIES:
        assert again.states == deployment.states


@pytest.mark.parametrize("field", ["", "autoRestart: {}", "autoRestart: {enabled: true}"])
def test_auto_restart_is_what_heliograph_does(tmp_path: Path, field: str) -> None:
    texts = [notice.text for notice in read(tmp_path, source=f"{{{field}}}").notes]
    assert not [text for text in texts if "autoRestart" in text]


@pytest.mark.parametrize("option", ["enabled: false", "maxRestarts: 3"])
def test_a_limit_of_restarts_has_no_effect(tmp_path: Path, option: str) -> None:
    deployment = read(tmp_path, source=f"{{autoRestart: {{{option}}}}}")
    path = "spec.mirrors[0].sourceConnector"
    assert (
        f"{path}.autoRestart.{option.partition(':')[0]} has no effect: what fails is always tried again, a stopped "
        f"partition with every lease; write '{path}.state: stopped' to keep the connector from running"
    ) in [notice.text for notice in deployment.notes]


def test_an_unknown_option_of_auto_restart_is_warned_about(tmp_path: Path) -> None:
    (warning,) = read(tmp_path, source="{autoRestart: {maxRestart: 3}}").warnings
    assert "did you mean 'spec.mirrors[0].sourceConnector.autoRestart.maxRestarts'?" in warning.text
