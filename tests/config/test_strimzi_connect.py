"""Strimzi's `KafkaConnector` and `KafkaConnect`, in one file or in several."""

from __future__ import annotations

from pathlib import Path

import pytest

from heliograph.config import ConfigError, Deployment, load
from heliograph.config.read.formats import read_all
from heliograph.model.connect_records import PAUSED, STOPPED
from heliograph.model.flow import CHECKPOINT, SOURCE, ConnectOffsets

CONNECT = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnect
metadata:
  name: workers
  annotations:
    strimzi.io/use-connector-resources: "true"
spec:
  replicas: 2
  bootstrapServers: b:9092
  config:
    group.id: g
    offset.storage.topic: o
    config.storage.topic: c
    status.storage.topic: s
    producer.max.request.size: 1234567
"""
CONNECTOR = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaConnector
metadata:
  name: {name}
  labels:
    strimzi.io/cluster: workers
spec:
  class: org.apache.kafka.connect.mirror.Mirror{part}Connector
  tasksMax: 3
  config:
    source.cluster.alias: A
    target.cluster.alias: B
    source.cluster.bootstrap.servers: a:9092
    target.cluster.bootstrap.servers: b:9092
    topics: orders
"""
SOURCE_CONNECTOR = CONNECTOR.format(name="copy", part="Source")
CHECKPOINT_CONNECTOR = CONNECTOR.format(name="groups", part="Checkpoint")


def read(tmp_path: Path, *texts: str) -> Deployment:
    """Each text is a file of a directory."""
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.yaml").write_text(text)
    return load(tmp_path)


@pytest.mark.parametrize("separator", ["---\n", None])
def test_connectors_and_their_workers_may_be_in_one_file_or_in_several(tmp_path: Path, separator: str | None) -> None:
    texts = [SOURCE_CONNECTOR, CONNECT, CHECKPOINT_CONNECTOR]
    deployment = read(tmp_path, *([separator.join(texts)] if separator else texts))
    (flow,) = deployment.flows
    assert (flow.name, flow.tasks_max) == ("A->B", 3)
    assert flow.parts == {SOURCE, CHECKPOINT}
    assert flow.connect_offsets == ConnectOffsets("o", "copy", "g", "s")
    assert flow.writing.max_request_size == 1234567
    assert deployment.warnings == ()
    assert [note.text for note in deployment.notes if "replicas" not in note.text] == []
    names = read_all([tmp_path]).names
    assert names == {("A", "B", SOURCE): "copy", ("A", "B", CHECKPOINT): "groups"}


def test_workers_have_strimzis_defaults(tmp_path: Path) -> None:
    bare = CONNECT[: CONNECT.index("  config:")]
    (flow,) = read(tmp_path, bare, SOURCE_CONNECTOR).flows
    assert flow.connect_offsets == ConnectOffsets(
        "connect-cluster-offsets", "copy", "connect-cluster", "connect-cluster-status"
    )


def test_workers_of_v1_have_fields_for_their_state(tmp_path: Path) -> None:
    fields = "  groupId: g1\n  offsetStorageTopic: o1\n  statusStorageTopic: s1\n  configStorageTopic: c1\n"
    new = CONNECT[: CONNECT.index("  config:")].replace("v1beta2", "v1") + fields
    (flow,) = read(tmp_path, new, SOURCE_CONNECTOR).flows
    assert flow.connect_offsets == ConnectOffsets("o1", "copy", "g1", "s1")


def test_the_security_of_workers_is_that_of_the_producer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKERS_PASSWORD", "hush")
    login = """\
  authentication:
    type: scram-sha-512
    username: me
    passwordSecret: {secretName: mine, password: password}
"""
    (flow,) = read(tmp_path, CONNECT + login, SOURCE_CONNECTOR).flows
    assert flow.target.security.sasl is None
    assert flow.writer is not None
    assert flow.writer.security.sasl is not None
    assert flow.writer.security.sasl.mechanism == "SCRAM-SHA-512"


def test_a_connector_without_its_workers_says_what_is_missing(tmp_path: Path) -> None:
    deployment = read(tmp_path, SOURCE_CONNECTOR)
    assert deployment.flows[0].connect_offsets == ConnectOffsets()
    assert [note.text for note in deployment.notes] == [
        "connector copy: the KafkaConnect workers is not in these files: give it, too, to take over mirrors of "
        "MirrorMaker 2"
    ]


@pytest.mark.parametrize(
    ("field", "state"), [("pause: true", PAUSED), ("state: paused", PAUSED), ("state: stopped", STOPPED)]
)
def test_states_of_connectors(tmp_path: Path, field: str, state: str) -> None:
    deployment = read(tmp_path, SOURCE_CONNECTOR + f"  {field}\n", CHECKPOINT_CONNECTOR)
    assert deployment.states == {("A", "B", SOURCE): state}
    assert [flow.parts for flow in deployment.running_flows] == [{CHECKPOINT}]


def test_workers_without_replicas_run_no_connector(tmp_path: Path) -> None:
    deployment = read(tmp_path, CONNECT.replace("replicas: 2", "replicas: 0"), SOURCE_CONNECTOR)
    assert deployment.states == {("A", "B", SOURCE): STOPPED}
    assert deployment.running_flows == ()
    assert [str(notice) for notice in deployment.stopped] == [
        f"{tmp_path}/0.yaml:8: spec.replicas is 0, which is Strimzi's way to stop: nothing of this resource runs; to "
        "run it with Heliograph, set it to 1 or more here"
    ]


def test_other_connectors_are_ignored_with_a_warning(tmp_path: Path) -> None:
    other = SOURCE_CONNECTOR.replace("mirror.MirrorSourceConnector", "file.FileStreamSink").replace("copy", "sink")
    (warning,) = read(tmp_path, SOURCE_CONNECTOR, other).warnings
    assert "sink: 'org.apache.kafka.connect.file.FileStreamSink' is not one of MirrorMaker 2's" in str(warning)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("tasksMax: 3", "tasksMax: many", "1.yaml:9: connector copy: spec.tasksMax: 'many' is not a whole number"),
        ("topics: orders", "topics: '['", "1.yaml:15: connector copy: spec.config.topics: '['"),
        ("name: copy", "label: copy", "1.yaml:1: no metadata.name"),
        ("v1beta2", "v7", "1.yaml:1: apiVersion: 'kafka.strimzi.io/v7' is not one of"),
    ],
)
def test_errors_name_file_line_and_field(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, CONNECT, SOURCE_CONNECTOR.replace(old, new))
    assert says in str(raised.value)


def test_a_directory_without_connectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        read(tmp_path, CONNECT)
    assert "there is none of MirrorMaker 2's connectors in it" in str(raised.value)
