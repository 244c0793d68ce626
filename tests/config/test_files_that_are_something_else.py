"""Placeholders, templates, and files of Kafka that are no `mm2.properties`: the message says what they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.config import ConfigError, load

from .files import CLUSTERS, MINIMAL, deployment
from .test_connectors import connector, read

PROVIDER = "config.providers = env\n"


def errors(text: str) -> list[str]:
    with pytest.raises(ConfigError) as raised:
        deployment(text)
    return list(raised.value.errors)


def refused(path: Path, text: str) -> str:
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(path)
    return str(raised.value).replace(f"{path.parent}/", "")


def test_an_unset_variable_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    with pytest.raises(ConfigError) as raised:
        deployment(f"{PROVIDER}{MINIMAL}A.bootstrap.servers = ${{env:NOT_SET}}:9092\n")
    assert raised.value.errors == (
        "mm2.properties:6: A.bootstrap.servers: ${env:NOT_SET} is not resolved: the environment variable NOT_SET is "
        "not set",
    )
    assert "not resolved" not in "".join(map(str, raised.value.warnings))


def test_a_variable_that_is_not_allowed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "4")
    allowed = "config.providers.env.param.allowlist.pattern = X.*\n"
    assert errors(f"{PROVIDER}{allowed}{MINIMAL}tasks.max = ${{env:MINE}}\n") == [
        "mm2.properties:7: tasks.max: ${env:MINE} is not resolved: allowlist.pattern does not allow the environment "
        "variable MINE"
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "A.bootstrap.servers = ${SOURCE}",
            "'${SOURCE}' is a placeholder that nothing replaces: write the value itself, or '${env:SOURCE}' and "
            "'config.providers = env'",
        ),
        ("A.bootstrap.servers = ${SOURCE}:9092", "has ${SOURCE}, a placeholder that nothing replaces"),
        ("A.bootstrap.servers = $SOURCE:9092", "has $SOURCE, a placeholder that nothing replaces: write the value "
         "itself, or '${env:SOURCE}'"),
        ("A.bootstrap.servers = <broker>:9092", "has <broker>, a placeholder that nothing replaces: write the value"),
        ("A.bootstrap.servers = {SOURCE CLUSTER ADDRESS}", "is a placeholder that nothing replaces"),
        ("A.bootstrap.servers = :BOOTSTRAP_SERVERS:", "is a placeholder that nothing replaces"),
        ("A.bootstrap.servers = {{ source }}:9092", "has {{ source }}, a variable of a template: render the template"),
        ("tasks.max = {{ .Values.tasks }}", "'{{ .Values.tasks }}' is a variable of a template"),
        ("A->B.topics = {{ topics }}", "is a variable of a template"),
        ("tasks.max = ${TASKS}", "is a placeholder that nothing replaces"),
    ],
)  # fmt: skip
def test_a_placeholder_is_named(line: str, says: str) -> None:
    (error,) = errors(f"{MINIMAL}{line}\n")
    assert error.startswith("mm2.properties:5: ")
    assert says in error


def test_a_placeholder_in_a_secret_is_not_quoted() -> None:
    (error,) = errors(f"{MINIMAL}heliograph.notify.webhook = $HUSH\n")
    assert "HUSH" not in error


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('A.bootstrap.servers = "a:1"', "(the quotes are part of the value: write it without)"),
        ('A->B.enabled = "true"', "is neither true nor false (the quotes are part of the value: write it without)"),
        ("A.bootstrap.servers = a:1 b:2", "has no comma between addresses: write for example 'broker1:9092, broker2:"),
        ("A.bootstrap.servers = a:1; b:2", "has no comma between addresses"),
        ('clusters = "A", "B"', "(the quotes are part of the value: write it without)"),
        ("clusters = A B", "has a space: put commas between aliases, as in 'A, B'"),
    ],
)
def test_quotes_and_missing_commas_are_named(line: str, says: str) -> None:
    (error,) = errors(f"{MINIMAL}{line}\n")
    assert says in error


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("helm.yaml", "kind: KafkaMirrorMaker2\nspec:\n  {{- if .Values.on }}\n  replicas: 1\n  {{- end }}\n"),
        ("flow.yaml", "kind: KafkaMirrorMaker2\nspec:\n  replicas: {{ replicas }}\n"),
        ("connector.json", '{\n"name": "x",\n"tasks.max": {{ tasks }}\n}\n'),
        ("jinja.json", '{\n"name": "x",\n{% if tls %}\n}\n'),
    ],
)
def test_a_template_is_no_syntax_error(name: str, text: str, tmp_path: Path) -> None:
    message = refused(tmp_path / name, text)
    assert message.startswith(f"{name}:3: this is a template, with '{{")
    assert "render it first" in message


def test_a_syntax_error_is_none_of_a_template(tmp_path: Path) -> None:
    assert "this is not YAML" in refused(tmp_path / "x.yaml", "a: [\n")
    assert "this is not JSON" in refused(tmp_path / "x.json", "{")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "bootstrap.servers=h:1\ngroup.id=connect\nkey.converter=X\noffset.storage.topic=connect-offsets\n",
            "this is the file of a Connect worker, without flows: `heliograph serve` runs with it",
        ),
        (
            "bootstrap.servers=h:1\nkey.converter=X\nvalue.converter=X\n",
            "this is the file of a Connect worker, without flows: `heliograph serve` runs with it",
        ),
        (
            "bootstrap.servers=h:1\nkey.converter=X\nvalue.converter=X\noffset.storage.file.filename=/tmp/offsets\n",
            "this is the file of a standalone Connect worker, without flows: give the files of its connectors",
        ),
        (
            "bootstrap.servers=h:1\ngroup.id=mirror\nauto.offset.reset=earliest\n",
            "this is the file of a client, as MirrorMaker 1 (kafka-mirror-maker.sh) has",
        ),
        ("bootstrap.servers=h:1\nacks=all\nlinger.ms=5\n", "this is the file of a client, as MirrorMaker 1"),
        ("zookeeper.connect=h:1\ngroup.id=mirror\n", "this is the file of a client, as MirrorMaker 1"),
        ("broker.id=1\nlog.dirs=/tmp\nzookeeper.connect=h:1\n", "this is the file of a broker"),
        ("source.cluster.alias=A\n", "this is a connector without connector.class"),
        ("A.bootstrap.servers=h:1\n", "no clusters: write for example 'clusters = A, B'"),
    ],
)
def test_a_properties_file_without_clusters_is_said_to_be_what_it_is(text: str, says: str, tmp_path: Path) -> None:
    assert refused(tmp_path / "some.properties", text).startswith(f"some.properties: {says}")


def test_a_connector_of_a_standalone_worker_is_read(tmp_path: Path) -> None:
    path = tmp_path / "source.properties"
    config = connector("Source")["config"]
    path.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
    assert [flow.name for flow in load(path).flows] == ["A->B"]


def test_errors_of_keys_values_and_addresses_are_reported_together() -> None:
    text = CLUSTERS.replace("A, B", "A, B, C") + "A->X.enabled = true\nA->B.enabled = true\ntasks.max = many\n"
    found = errors(f"{text}replication.policy.separator = /\nB.bootstrap.servers = b\n")
    assert found == [
        "mm2.properties:4: A->X.enabled: X is not in 'clusters' (A, B, C)",
        "mm2.properties:6: tasks.max: 'many' is not a whole number",
        "mm2.properties:7: replication.policy.separator: '/' cannot be part of a topic name (allowed are letters, "
        "digits, '.', '_' and '-')",
        "mm2.properties:8: B.bootstrap.servers: 'b' has an address without a port: write 'b:9092' if it is Kafka's "
        "usual one",
        "mm2.properties: no C.bootstrap.servers: the cluster C is listed in 'clusters' (line 1) but has no address",
    ]


def test_errors_of_several_connectors_and_files_are_reported_together(tmp_path: Path) -> None:
    nameless = connector("Heartbeat")
    del nameless["config"]["source.cluster.alias"]
    lonely = connector("Checkpoint", target_cluster_alias="C", emit_checkpoints_interval_seconds="x")
    del lonely["config"]["target.cluster.bootstrap.servers"]
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, [connector("Source", tasks_max="x"), nameless], lonely, "no connector")
    assert [error.replace(f"{tmp_path}/", "").split(": ", 1)[1] for error in raised.value.errors] == [
        "connector my-heartbeat: no source.cluster.alias",
        "a connector is an object with 'name' and 'config', or a list of such objects",
        "connector my-checkpoint: no target.cluster.bootstrap.servers",
        "connector my-source: tasks.max: 'x' is not a whole number",
        "connector my-checkpoint: emit.checkpoints.interval.seconds: 'x' is not a whole number",
    ]
