"""What is said about a file is true for MirrorMaker 2 and for Heliograph, and says what to act on."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from heliograph.cli import app
from heliograph.config import Deployment
from heliograph.config.messages import ConfigNotice, Consequence, shown_notes

from .files import MINIMAL, deployment, warnings
from .test_connectors import connector, read, three


def by_consequence(read: Deployment, consequence: Consequence) -> list[str]:
    return [note.text for note in read.notes if note.consequence is consequence]


def said(notices: tuple[ConfigNotice, ...]) -> list[str]:
    return [notice.text for notice in notices]


def test_clusters_in_a_connector_are_no_mistake(tmp_path: Path) -> None:
    deployed = read(tmp_path, three(clusters="A,B"))
    assert deployed.warnings == ()
    (note,) = {note.text.partition(": ")[2] for note in deployed.notes}
    assert note.startswith("clusters has no effect: it is for MM2's own driver")
    assert not list(shown_notes(deployed.notes, verbose=True))


def test_a_setting_of_a_worker_in_a_connector_says_where_it_belongs(tmp_path: Path) -> None:
    (warning,) = read(tmp_path, connector("Source", listeners="http://:1")).warnings
    assert warning.text.endswith(
        "'listeners' has no effect in a connector: it is for an mm2.properties or a worker's file"
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("auto.create.topics.enable = true", "it is a setting of brokers; mirrors are created in any case"),
        ("A.auto.create.topics.enable = true", "it is a setting of brokers"),
        ("A->B.producer.override.message.max.bytes = 1", "it is a setting of brokers; `max.request.size`"),
        ("A->B.source.cluster.message.max.bytes = 1", "it is a setting of brokers; `max.request.size`"),
        ("offset-syncs.topic.retention.ms = 1", "MM2 has no such setting; the topic is compacted"),
        ("A->B.checkpoints.topic.retention.ms = 1", "MM2 has no such setting; the topic is compacted"),
    ],
)
def test_a_name_that_is_no_setting_is_noted_with_the_truth(line: str, says: str) -> None:
    read = deployment(f"{MINIMAL}{line}\n")
    assert read.warnings == ()
    (text,) = by_consequence(read, Consequence.NO_EFFECT)
    assert text.startswith(f"{line.partition(' ')[0]} is ignored: {says}")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("max.tasks = 3", "unknown setting 'max.tasks': did you mean 'tasks.max'?"),
        ("A->B.refresh.topics.interval = 5", "did you mean 'A->B.refresh.topics.interval.seconds'?"),
        ("refresh.topics.interval.ms = 5", "did you mean 'refresh.topics.interval.seconds'? (in seconds)"),
        (
            "A.checkpoints.replication.factor = 5",
            "did you mean 'checkpoints.topic.replication.factor'? (it is about a topic)",
        ),
        ("A->B.consumer.override.max.poll.record = 5", "it is ignored"),
        ("db.timezone = UTC", "unknown setting 'db.timezone': it is ignored"),
    ],
)
def test_only_what_was_probably_meant_is_suggested(line: str, says: str) -> None:
    (warning,) = warnings(line + "\n")
    assert warning.endswith(says)


def test_a_wrong_name_is_no_warning_if_the_right_one_is_there_too() -> None:
    read = deployment(f"{MINIMAL}A.checkpoints.replication.factor = 1\ncheckpoints.topic.replication.factor = 3\n")
    assert read.warnings == ()
    assert by_consequence(read, Consequence.NO_EFFECT) == [
        "unknown setting 'A.checkpoints.replication.factor': did you mean 'checkpoints.topic.replication.factor'? "
        "(it is about a topic)"
    ]


def test_a_setting_of_a_client_that_is_written_for_a_cluster_says_where_it_acts(tmp_path: Path) -> None:
    given = {f"{side}_cluster_max_partition_fetch_bytes": "33" for side in ("source", "target")}
    deployed = read(tmp_path, connector("Source", **given))
    sentence = "max.partition.fetch.bytes is read from 'source.consumer.max.partition.fetch.bytes' or 'consumer.max."
    (warning,) = said(deployed.warnings)
    assert f"'source.cluster.max.partition.fetch.bytes' has no effect, in MM2 neither: {sentence}" in warning
    (note,) = by_consequence(deployed, Consequence.NO_EFFECT)
    assert f"'target.cluster.max.partition.fetch.bytes' has no effect, in MM2 neither: {sentence}" in note


def test_it_is_no_warning_if_the_client_has_it_too(tmp_path: Path) -> None:
    given = {"source_cluster_batch_size": "33", "producer_override_batch_size": "44"}
    deployed = read(tmp_path, connector("Source", **given))
    assert deployed.warnings == ()
    (note,) = by_consequence(deployed, Consequence.NO_EFFECT)
    assert note.endswith("'source.cluster.batch.size' has no effect, in MM2 neither: batch.size is read from "
                         "'producer.override.batch.size'")  # fmt: skip


def test_an_ignored_setting_of_the_wrong_client_says_that_mm2_ignores_it_too() -> None:
    (text,) = by_consequence(deployment(f"{MINIMAL}A.max.poll.records = 9\n"), Consequence.NO_EFFECT)
    assert text.startswith("A.max.poll.records is ignored: whole batches are read")
    assert text.endswith("(and MM2 reads it only as 'A->B.source.consumer.max.poll.records', "
                         "'A.consumer.max.poll.records' or 'A->B.consumer.max.poll.records')")  # fmt: skip


@pytest.mark.parametrize("kind", ["Source", "Checkpoint", "Heartbeat"])
def test_a_misspelt_setting_of_any_connector_is_recognised(tmp_path: Path, kind: str) -> None:
    connectors = three()
    for each in connectors:
        if each["name"] == f"my-{kind.lower()}":
            each["config"]["sync.group.offests.enabled"] = "true"
    deployed = read(tmp_path, connectors)
    assert said(deployed.warnings) == [
        f"connector my-{kind.lower()}: unknown setting 'sync.group.offests.enabled': did you mean "
        "'sync.group.offsets.enabled'?"
    ]
    assert deployed.notes == ()


def test_converters_of_every_connector_are_not_mentioned_at_bytes(tmp_path: Path) -> None:
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    deployed = read(tmp_path, [connector("Source"), connector("Checkpoint", key_converter=converter)])
    assert not list(shown_notes(deployed.notes, verbose=True))
    deployed = read(tmp_path, [connector("Source"), connector("Checkpoint", key_converter="org.example.Json")])
    (text,) = shown_notes(deployed.notes, verbose=True)
    assert text.endswith("connector my-checkpoint: key.converter is ignored: records are copied as bytes, "
                         "without conversion")  # fmt: skip


def test_the_address_of_a_producer_is_compared_with_the_target(tmp_path: Path) -> None:
    same = connector("Checkpoint", producer_override_bootstrap_servers="b:9092")
    deployed = read(tmp_path, [connector("Source"), same])
    assert deployed.warnings == ()
    assert by_consequence(deployed, Consequence.NONE) == [
        "connector my-checkpoint: producer.override.bootstrap.servers repeats the address of B"
    ]
    other = connector("Checkpoint", producer_override_bootstrap_servers="c:9092")
    assert said(read(tmp_path, [connector("Source"), other]).warnings) == [
        "connector my-checkpoint: producer.override.bootstrap.servers is 'c:9092', but the address of B is 'b:9092' "
        "(target.cluster.bootstrap.servers): Connect would write the records to that address; Heliograph uses that "
        "of B"
    ]


@pytest.mark.parametrize(
    ("name", "same", "says"),
    [
        ("consumer.override", "a:9092", "no client of MM2 gets it; Heliograph uses that of A"),
        ("source.consumer", "a:9092", "MM2 would read from that address; Heliograph uses that of A"),
        ("consumer", "a:9092", "MM2 would read from that address; Heliograph uses that of A"),
        ("target.admin", "b:9092", "MM2 would create topics at that address; Heliograph uses that of B"),
    ],
)
def test_the_address_of_a_client_is_compared_with_its_cluster(name: str, same: str, says: str) -> None:
    assert warnings(f"A->B.{name}.bootstrap.servers = {same}\n") == []
    (warning,) = warnings(f"A->B.{name}.bootstrap.servers = c:1, {same}\n")
    assert warning.endswith(says)


def test_the_address_of_a_clusters_consumer_is_compared_too() -> None:
    assert warnings("A.consumer.bootstrap.servers = x:1\n") == [
        "mm2.properties:5: A.consumer.bootstrap.servers is 'x:1', but the address of A is 'a:9092' "
        "(A.bootstrap.servers): MM2 would read from that address; Heliograph uses that of A"
    ]
    assert warnings("A.consumer.bootstrap.servers = a:9092\n") == []


def test_an_empty_setting_of_tls_asks_for_nothing() -> None:
    assert warnings("A.ssl.endpoint.identification.algorithm =\n") == []
    assert len(warnings("A.ssl.endpoint.identification.algorithm = https\n")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "B.offset.storage.replication.factor = 1",
        "config.storage.topic = mine",
        "B.plugin.path = /plugins",
        "B.key.converter = org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter = ByteArrayConverter",
        "B.producer.acks = all",
        "B.producer.enable.idempotence = true",
        "A.consumer.group.id = mirror",
        "A.consumer.max.poll.records = 500",
        "A->B.consumer.override.auto.offset.reset = earliest",
    ],
)
def test_nothing_is_shown_about_what_nobody_misses(line: str) -> None:
    read = deployment(f"{MINIMAL}{line}\n")
    assert read.warnings == ()
    assert [note.line for note in read.notes] == [5]
    assert not list(shown_notes(read.notes, verbose=True))


def test_the_same_with_another_value_than_the_default_is_counted() -> None:
    read = deployment(f"{MINIMAL}B.producer.acks = 1\nA.consumer.max.poll.records = 9\nB.producer.linger.ms = 9\n")
    assert list(shown_notes(read.notes, verbose=False)) == [
        "3 settings have no effect here: --verbose says which, and why"
    ]
    assert [line.partition(": ")[0] for line in shown_notes(read.notes, verbose=True)] == [
        f"mm2.properties:{line}" for line in (5, 6, 7)
    ]
    read = deployment(f"{MINIMAL}B.producer.acks = 1\n")
    assert list(shown_notes(read.notes, verbose=False)) == [
        "1 setting has no effect here: --verbose says which, and why"
    ]


def test_settings_of_a_flow_that_the_file_disables_are_not_counted() -> None:
    assert not list(shown_notes(deployment(f"{MINIMAL}B->A.enabled = false\nB->A.topics = x\n").notes, verbose=True))
    assert list(shown_notes(deployment(f"{MINIMAL}B->A.topics = x\n").notes, verbose=True))


def test_what_is_to_be_done_is_always_shown() -> None:
    (shown,) = shown_notes(deployment(f"{MINIMAL}topics = a\\.b\n").notes, verbose=False)
    assert shown.endswith("the file format drops single backslashes, write them twice")


def test_no_note_repeats_a_warning_and_no_key_is_left_out(tmp_path: Path) -> None:
    given = {"key_converter": "X", "max_tasks": "2", "clusters": "A", "producer_override_acks": "1", "zzz": "1"}
    deployed = read(tmp_path, connector("Source"), connector("Heartbeat", **given))
    keys = [notice.text.replace("'", "").split(": ")[1] for notice in (*deployed.warnings, *deployed.notes)]
    assert sorted(key.removeprefix("unknown setting ").split()[0] for key in keys) == [
        *("clusters", "key.converter", "max.tasks", "producer.override.acks", "zzz")
    ]


RESOURCE = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
spec:
  version: 3.9.0
  replicas: 2
  resources: {}
  metricsConfig: {}
  connectCluster: B
  clusters:
    - {alias: A, bootstrapServers: "a:9092"}
    - alias: B
      bootstrapServers: b:9092
      tls:
        trustedCertificates: [{secretName: b-ca, certificate: ca.crt}]
  mirrors:
    - {sourceCluster: A, targetCluster: B, sourceConnector: {}}
"""


def test_fields_about_pods_are_not_shown_and_missing_secrets_are_shown_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mirror.yaml"
    file.write_text(RESOURCE)
    monkeypatch.delenv("HELIOGRAPH_SECRETS_DIR", raising=False)
    monkeypatch.delenv("B_CA", raising=False)
    command = CliRunner().invoke(app, ["config", str(file)])
    secret, counted = command.stderr.replace(f"{tmp_path}/", "").splitlines()
    assert secret.startswith("note: mirror.yaml:14: spec.clusters[1].tls.trustedCertificates: the content of a secret")
    assert counted == "note: 1 setting has no effect here: --verbose says which, and why"
    monkeypatch.setenv("B_CA", "certificate")
    command = CliRunner().invoke(app, ["config", str(file), "-v"])
    (metrics,) = command.stderr.splitlines()
    assert "spec.metricsConfig is ignored: Heliograph serves its metrics" in metrics
