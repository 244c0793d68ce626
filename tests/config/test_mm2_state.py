"""Where MirrorMaker 2 stores its state, and how it is seen to run: in dedicated mode, on Connect, and with Strimzi."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heliograph.cli import app
from heliograph.config import ConfigError, Deployment, load_all
from heliograph.config.resolve.posted import connector, flow_of
from heliograph.model.connect_records import connector_states, status_key
from heliograph.model.flow import ConnectOffsets

from .files import flow

SOURCE = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}
WORKER = """\
bootstrap.servers = b:9092
group.id = connect
offset.storage.topic = connect-offsets
config.storage.topic = connect-configs
status.storage.topic = connect-status
key.converter = org.apache.kafka.connect.converters.ByteArrayConverter
producer.max.request.size = 1234567
config.providers = vault
config.providers.vault.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
"""
RESOURCE = """\
apiVersion: {version}
kind: KafkaMirrorMaker2
metadata:
  name: mirror
spec:
  connectCluster: {connect}
  clusters:
    - alias: A
      bootstrapServers: a:9092
    - alias: B
      bootstrapServers: b:9092
      config: {config}
    - alias: workers
      bootstrapServers: b:9092
      config:
        group.id: others
  mirrors:
    - sourceCluster: A
      targetCluster: B
      sourceConnector: {{}}
"""
V1 = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata:
  name: {source}
spec:
  target:
    alias: B
    bootstrapServers: b:9092
    groupId: {source}-group
    configStorageTopic: {source}-configs
    offsetStorageTopic: {source}-offsets
    statusStorageTopic: {source}-states
  mirrors:
    - source:
        alias: {source}
        bootstrapServers: {source}:9092
      sourceConnector: {{}}
"""


def files(tmp_path: Path, **contents: str) -> list[Path]:
    """Each `name__ending`, in order."""
    paths = []
    for name, content in contents.items():
        paths.append(tmp_path / name.replace("__", "."))
        paths[-1].write_text(content)
    return paths


def read(tmp_path: Path, **contents: str) -> Deployment:
    return load_all(files(tmp_path, **contents))


def offsets(deployment: Deployment) -> ConnectOffsets:
    (only,) = deployment.flows
    return only.connect_offsets


def test_dedicated_mode_has_its_own_names() -> None:
    assert flow().connect_offsets == ConnectOffsets("", "MirrorSourceConnector", "", "")
    own = "B.group.id = g\noffset.storage.topic = o\n"
    assert flow(own).connect_offsets == ConnectOffsets("o", "MirrorSourceConnector", "g", "")
    of_flow = "A->B.heliograph.mm2.group = h\nheliograph.mm2.offsets.topic = p\nheliograph.mm2.status.topic = s\n"
    assert flow(own + of_flow).connect_offsets == ConnectOffsets("p", "MirrorSourceConnector", "h", "s")


@pytest.mark.parametrize(
    "version", ["kafka.strimzi.io/v1beta2", "kafka.strimzi.io/v1alpha1", "eventstreams.ibm.com/v1beta2"]
)
def test_strimzi_has_defaults_of_its_own(tmp_path: Path, version: str) -> None:
    deployment = read(tmp_path, mirror__yaml=RESOURCE.format(version=version, connect="B", config="{}"))
    assert offsets(deployment) == ConnectOffsets(
        "mirrormaker2-cluster-offsets",
        "A->B.MirrorSourceConnector",
        "mirrormaker2-cluster",
        "mirrormaker2-cluster-status",
    )


def test_the_workers_config_is_that_of_the_cluster_where_they_store_their_state(tmp_path: Path) -> None:
    config = "{group.id: g, offset.storage.topic: o, status.storage.topic: s}"
    version = "kafka.strimzi.io/v1beta2"
    text = RESOURCE.format(version=version, connect="B", config=config)
    assert offsets(read(tmp_path, b__yaml=text)) == ConnectOffsets("o", "A->B.MirrorSourceConnector", "g", "s")
    text = RESOURCE.format(version=version, connect="workers", config="{}")
    assert offsets(read(tmp_path, w__yaml=text)).group == "others"


def test_two_resources_with_the_same_target_have_workers_of_their_own(tmp_path: Path) -> None:
    deployment = read(tmp_path, one__yaml=V1.format(source="A"), two__yaml=V1.format(source="C"))
    assert {flow.name: flow.connect_offsets for flow in deployment.flows} == {
        f"{source}->B": ConnectOffsets(
            f"{source}-offsets", f"{source}->B.MirrorSourceConnector", f"{source}-group", f"{source}-states"
        )
        for source in ("A", "C")
    }


def test_a_setting_of_the_connector_wins(tmp_path: Path) -> None:
    text = V1.format(source="A").replace(
        "sourceConnector: {}", "sourceConnector: {config: {heliograph.mm2.group: old, heliograph.mm2.connector: x}}"
    )
    assert offsets(read(tmp_path, mirror__yaml=text)) == ConnectOffsets("A-offsets", "x", "old", "A-states")


@pytest.mark.parametrize("worker_first", [True, False])
def test_a_workers_file_says_where_connect_stores_its_state(tmp_path: Path, worker_first: bool) -> None:
    contents = {"worker__properties": WORKER, "source__json": json.dumps({"name": "src", "config": SOURCE})}
    deployment = read(tmp_path, **(contents if worker_first else dict(reversed(contents.items()))))
    assert offsets(deployment) == ConnectOffsets("connect-offsets", "src", "connect", "connect-status")
    assert deployment.flows[0].writing.max_request_size == 1234567
    assert (deployment.warnings, deployment.notes) == ((), ())


def test_connectors_without_a_worker_are_as_in_dedicated_mode(tmp_path: Path) -> None:
    assert offsets(read(tmp_path, source__json=json.dumps(SOURCE))) == ConnectOffsets()


def test_a_workers_providers_are_those_of_its_connectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANTED", "orders")
    source = json.dumps(SOURCE | {"topics": "${vault:WANTED}"})
    (only,) = read(tmp_path, worker__properties=WORKER, source__json=source).flows
    assert only.selects("orders")
    assert not only.selects("payments")


def test_only_one_workers_file_can_be_given(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, one__properties=WORKER, two__properties=WORKER, source__json=json.dumps(SOURCE))
    assert f"two.properties: this is the file of a Connect worker, as {tmp_path}/one.properties is" in str(raised.value)


def test_a_worker_of_another_cluster_is_warned_about(tmp_path: Path) -> None:
    worker = WORKER.replace("b:9092", "x:9092, y:9092")
    (warning,) = read(tmp_path, worker__properties=worker, source__json=json.dumps(SOURCE)).warnings
    assert "target.cluster.bootstrap.servers: the worker" in warning.text
    same = WORKER.replace("b:9092", "x:9092,b:9092")
    assert read(tmp_path, worker__properties=same, source__json=json.dumps(SOURCE)).warnings == ()


def test_the_offsets_of_a_standalone_worker_are_not_read(tmp_path: Path) -> None:
    worker = "bootstrap.servers = b:9092\noffset.storage.file.filename = /tmp/offsets\n"
    deployment = read(tmp_path, worker__properties=worker, source__json=json.dumps(SOURCE))
    assert offsets(deployment) == ConnectOffsets()
    (warning,) = deployment.warnings
    assert str(warning) == (
        f"{tmp_path}/worker.properties:2: offset.storage.file.filename: the offsets of a standalone worker are not "
        "read: its mirrors are not taken over"
    )


@pytest.mark.parametrize("option", [["--worker"], []])
def test_the_command_takes_a_workers_file(tmp_path: Path, option: list[str]) -> None:
    source, worker = files(tmp_path, source__json=json.dumps(SOURCE), worker__properties=WORKER)
    arguments = ["config", str(source), *option, str(worker), "--explain", "heliograph.mm2.group"]
    shown = CliRunner().invoke(app, arguments)
    assert shown.exit_code == 0, shown.output
    assert f"A->B: connect\n    from {worker}:2, group.id" in shown.output


def test_another_file_is_no_workers_file(tmp_path: Path) -> None:
    (source,) = files(tmp_path, source__json=json.dumps(SOURCE))
    for other in (source, tmp_path / "none.properties"):
        refused = CliRunner().invoke(app, ["status", str(source), "--worker", str(other)])
        assert refused.exit_code == 2
        assert "--worker" in refused.output
        assert str(other) in refused.output


def test_a_posted_connectors_own_settings_win_over_its_workers() -> None:
    config = SOURCE | {"heliograph.mm2.connector": "old"}
    made = flow_of([connector("s", config)], {}, ConnectOffsets("o", "s", "g"))
    assert made.flow is not None
    assert made.flow.connect_offsets == ConnectOffsets("o", "old", "g")


def test_states_of_a_connector_and_its_tasks() -> None:
    records = {
        status_key("x"): b'{"state":"PAUSED"}',
        status_key("x", 0): b'{"state":"RUNNING"}',
        status_key("x", 12): b'{"state":"FAILED"}',
        status_key("x", 2): None,
        status_key("x-y", 0): b'{"state":"UNASSIGNED"}',
        status_key("z"): b"not JSON",
    }
    assert connector_states(records, "x") == ("PAUSED", {"RUNNING", "FAILED"})
    assert connector_states(records, "z") == ("", set())
    assert connector_states(records, "other") == ("", set())
