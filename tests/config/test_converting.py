"""From every format to every other, and back: the flows stay the same, and references stay references."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from heliograph.config import Deployment
from heliograph.config.read.formats import read_all
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.deployment import assemble
from heliograph.config.show.convert import CONNECT, FORMATS, PROPERTIES, STRIMZI, convert
from heliograph.model.flow import ConnectOffsets, Flow

ENDINGS = {PROPERTIES: "properties", CONNECT: "json", STRIMZI: "yaml"}
ENV = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
LEAST = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
"""
FULL = rf"""
clusters = eu.west, eu, us
bootstrap.servers = all:1
eu.bootstrap.servers = e1:1, e2:2
us.bootstrap.servers = u:3
client.id = everybody
us.client.id = uncle
eu.request.timeout.ms = 5000
us.producer.request.timeout.ms = 6000
eu->us.source.consumer.client.id = reader
us.producer.max.request.size = 2000000
eu.consumer.fetch.max.bytes = 1000
eu->us.consumer.fetch.max.bytes = 2000
eu->us.producer.override.batch.size = 4096
us.admin.request.timeout.ms = 7000
eu->us.enabled = true
eu.west->us.enabled = true
us->eu.enabled = true
us->eu.heliograph.parts = source, checkpoint
us->eu.emit.heartbeats.enabled = false
topics = orders.*, ca\\.sh
eu->us.topics.exclude = .*\\.tmp
groups = shop
us->eu.groups.exclude = none
tasks.max = ${{env:TASKS}}
config.providers = env
config.providers.env.class = {ENV}
replication.policy.separator = _
replication.policy.internal.topic.separator.enabled = false
replication.factor = -1
sync.group.offsets.enabled = true
refresh.topics.interval.seconds = 30
emit.heartbeats.interval.seconds = 5
offset-syncs.topic.location = target
eu->us.use.defaults.from = source
us->eu.sync.topic.acls.enabled = false
config.properties.blacklist = x
heliograph.partitions = 7
heliograph.offsets = preserve
heliograph.on.data.loss = fail
us.offset.flush.interval.ms = 1000
offset.storage.replication.factor = 1
listeners = http://:8083
us.group.id = mirrors
reconnect.backoff.ms = 70
retry.backoff.max.ms = 700
eu.send.buffer.bytes = 100000
eu.admin.connections.max.idle.ms = 60000
eu->us.producer.override.receive.buffer.bytes = 200000
eu->us.source.consumer.metadata.max.age.ms = 30000
"""
ONE_PART = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A->B.heliograph.parts = {}
A->B.groups = g
A->B.replication.factor = 5
A->B.emit.heartbeats.interval.seconds = 8
emit.heartbeats.enabled = true
B->A.emit.heartbeats.enabled = false
"""
JAAS = 'sasl.jaas.config = x.PlainLoginModule required username="{}" password="${{env:TASKS}}";'
SECURED = f"""\
{LEAST}B->A.emit.heartbeats.enabled = false
config.providers = env
security.protocol = SASL_SSL
B.ssl.enabled.protocols = TLSv1.2
sasl.mechanism = PLAIN
A.ssl.truststore.location = /a.jks
{JAAS.format("all")}
B.{JAAS.format("b")}
A.consumer.{JAAS.format("consumer")}
A.admin.{JAAS.format("admin")}
B.producer.{JAAS.format("producer")}
A->B.producer.override.ssl.protocol = TLSv1.2
A->B.source.admin.ssl.protocol = TLSv1.2
A->B.consumer.{JAAS.format("lost")}
A->B.admin.{JAAS.format("lost")}
A->B.source.cluster.{JAAS.format("lost")}
A->B.target.cluster.ssl.cipher.suites = X
A->B.admin.ssl.cipher.suites = Y
"""
FILES = {
    "least": LEAST,
    "secured": SECURED,
    "full": FULL,
    "quiet": LEAST + "emit.heartbeats.enabled = false\n",
    "no aliases": LEAST + "source.cluster.alias =\ntarget.cluster.alias =\nreplication.policy.separator =\n",
    "other aliases": LEAST + "A.alias = left\nA->B.target.cluster.alias = right\nB.alias = lost\n",
    "checkpoints of another policy": LEAST
    + "replication.policy.class = IdentityReplicationPolicy\nA->B.heliograph.checkpoints.replication.policy.class = "
    "IdentityReplicationPolicy\nA->B.heliograph.checkpoints.replication.policy.separator = _\n",
    "identity": LEAST + "replication.policy.class = IdentityReplicationPolicy\nreplication.policy.separator =\n",
    **{f"only {part}": ONE_PART.format(part) for part in ("source", "checkpoint", "heartbeat", "source, checkpoint")},
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKS", "9")


def read(path: Path) -> tuple[Settings, Deployment]:
    document = read_all([path])
    return document, assemble(document)


def written(tmp_path: Path, path: Path, form: str, name: str) -> Path:
    document, deployment = read(path)
    new = tmp_path / f"{name}.{ENDINGS[form]}"
    new.write_text(convert(document, deployment, form).text, encoding="latin-1" if form == PROPERTIES else "utf-8")
    return new


def plain(flows: tuple[Flow, ...]) -> list[Flow]:
    """In order, and without what is for Connect's workers: connectors have no place for it, and Strimzi's newer form
    must name Connect's topic."""
    without = [replace(flow, connect_offsets=ConnectOffsets(), flush_offsets_every=60.0) for flow in flows]
    return sorted(without, key=lambda flow: flow.name)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("first", FORMATS)
@pytest.mark.parametrize("second", FORMATS)
def test_the_flows_stay_the_same_from_any_format_to_any_other(
    tmp_path: Path, name: str, first: str, second: str
) -> None:
    original = tmp_path / "mm2.properties"
    original.write_text(FILES[name])
    _, wanted = read(original)
    once = written(tmp_path, original, first, "once")
    twice = written(tmp_path, once, second, "twice")
    for path in (once, twice):
        _, deployment = read(path)
        assert plain(deployment.flows) == plain(wanted.flows)
        assert plain(deployment.heartbeat_only_flows) == plain(wanted.heartbeat_only_flows)
        assert "${env:TASKS}" in path.read_text() or name != "full"
        expected = ("is an old name", "loses to")
        assert [
            notice.text for notice in deployment.warnings if not any(words in notice.text for words in expected)
        ] == []


def test_a_flow_has_three_connectors_and_a_pair_that_only_writes_heartbeats_has_one(
    tmp_path: Path,
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(LEAST)
    listed = json.loads(convert(*read(file), CONNECT).text)
    assert [connector["name"] for connector in listed] == [
        "A->B.MirrorSourceConnector",
        "A->B.MirrorCheckpointConnector",
        "A->B.MirrorHeartbeatConnector",
        "B->A.MirrorHeartbeatConnector",
    ]
    assert listed[0]["config"] == {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "a:9092",
        "target.cluster.bootstrap.servers": "b:9092",
    }


def test_settings_without_a_place_in_a_format_are_named(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FULL)
    left_out = [text.rpartition("/mm2")[2] for text in convert(*read(file), CONNECT).left_out]
    assert left_out == [
        ".properties:41: us.offset.flush.interval.ms is left out: it is for Connect's workers: set it there",
        ".properties:42: offset.storage.replication.factor is left out: it is for Connect's workers: set it there",
        ".properties:43: listeners is left out: no connector reads it",
        ".properties:44: us.group.id is left out: it is for Connect's workers: set it there",
    ]
    (only,) = convert(*read(file), STRIMZI).left_out
    assert only.endswith("mm2.properties:43: listeners is left out: no connector reads it")
    assert convert(*read(file), PROPERTIES).left_out == ()
    file.write_text(
        LEAST + "emit.heartbeats.enabled = false\nB->A.topics = x\nA.producer.acks = 1\nzzz = 1\nconsumer.x = 1\n"
    )
    assert [text.rpartition("/mm2")[2] for text in convert(*read(file), CONNECT).left_out] == [
        ".properties:6: B->A.topics is left out: B->A does not run",
        ".properties:8: zzz is left out: it is not a setting",
        ".properties:9: consumer.x is left out: it is not a setting",
    ]


def test_strimzis_version_depends_on_heartbeats(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILES["full"])
    first, second, _beats = yaml.safe_load_all(convert(*read(file), STRIMZI).text)
    assert first["apiVersion"] == "kafka.strimzi.io/v1beta2"
    assert [cluster["alias"] for cluster in first["spec"]["clusters"]] == ["eu.west", "eu", "us"]
    assert second["spec"]["connectCluster"] == "eu"
    file.write_text(FILES["only source, checkpoint"])
    (only,) = yaml.safe_load_all(convert(*read(file), STRIMZI).text)
    assert only["apiVersion"] == "kafka.strimzi.io/v1"
    assert only["spec"]["target"]["groupId"] == "mirrormaker2-cluster"
    assert only["spec"]["mirrors"][0]["groupsPattern"] == "g"


def test_unusual_characters_survive_in_properties(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        LEAST + "A->B.topics = \\u00e9\\\\.x\\ty, \\ud83d\\ude00#!\nA.client.id = \\u0020=:\n", encoding="latin-1"
    )
    document, deployment = read(file)
    file.write_text(convert(document, deployment, PROPERTIES).text, encoding="latin-1")
    assert read(file)[1].flows == deployment.flows
