"""The declared settings against what MirrorMaker 2 and Kafka's clients declare."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from heliograph.config.declare.catalogue import find, groups, settings
from heliograph.config.declare.locations import Scope
from heliograph.config.declare.supported import SUPPORTED

from . import kafka_clients
from .files import flow

# MirrorMaker 2's connectors, as read from a flow. None: no default.
CONNECTORS: dict[str, str | None] = {
    "name": None,
    "connector.class": None,
    "tasks.max": "1",
    "tasks.max.enforce": "true",
    "transforms": "",
    "predicates": "",
    "config.action.reload": "restart",
    "errors.retry.timeout": "0",
    "errors.retry.delay.max.ms": "60000",
    "errors.tolerance": "none",
    "errors.log.enable": "false",
    "errors.log.include.messages": "false",
    "enabled": "false",
    "source.cluster.alias": None,
    "target.cluster.alias": None,  # MM2's driver sets it
    "admin.timeout.ms": "60000",
    "replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    "replication.policy.separator": ".",
    "replication.policy.internal.topic.separator.enabled": "true",
    "forwarding.admin.class": "org.apache.kafka.clients.admin.ForwardingAdmin",
    "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
    "security.protocol": "PLAINTEXT",
    "topics": ".*",
    "topics.exclude": r".*[\-\.]internal, .*\.replica, __.*",
    "topics.blacklist": r".*[\-\.]internal, .*\.replica, __.*",
    "config.properties.exclude": (
        r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
        r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.type, unclean\.leader\.election\.enable, "
        r"min\.insync\.replicas"
    ),
    "use.defaults.from": "target",
    "topic.filter.class": "org.apache.kafka.connect.mirror.DefaultTopicFilter",
    "config.property.filter.class": "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
    "consumer.poll.timeout.ms": "1000",
    "refresh.topics.enabled": "true",
    "refresh.topics.interval.seconds": "600",
    "sync.topic.configs.enabled": "true",
    "sync.topic.configs.interval.seconds": "600",
    "sync.topic.acls.enabled": "true",
    "sync.topic.acls.interval.seconds": "600",
    "replication.factor": "2",
    "offset-syncs.topic.replication.factor": "3",
    "offset-syncs.topic.location": "source",
    "emit.offset-syncs.enabled": "true",
    "offset.lag.max": "100",
    "heartbeats.replication.enabled": "true",
    "use.incremental.alter.configs": "requested",
    "add.source.alias.to.metrics": "false",
    "exactly.once.support": "requested",
    "transaction.boundary": "poll",
    "transaction.boundary.interval.ms": None,
    "offsets.storage.topic": None,
    "task.assigned.partitions": None,
    "task.index": None,
    "task.class": None,
    "groups": ".*",
    "groups.exclude": "console-consumer-.*, connect-.*, __.*",
    "groups.blacklist": "console-consumer-.*, connect-.*, __.*",
    "group.filter.class": "org.apache.kafka.connect.mirror.DefaultGroupFilter",
    "refresh.groups.enabled": "true",
    "refresh.groups.interval.seconds": "600",
    "emit.checkpoints.enabled": "true",
    "emit.checkpoints.interval.seconds": "60",
    "sync.group.offsets.enabled": "false",
    "sync.group.offsets.interval.seconds": "60",
    "checkpoints.topic.replication.factor": "3",
    "task.assigned.groups": None,
    "emit.heartbeats.enabled": "true",
    "emit.heartbeats.interval.seconds": "1",
    "heartbeats.topic.replication.factor": "3",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "header.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
}
# Its driver, read from the top level.
DRIVER: dict[str, str | None] = {
    "clusters": None,
    "dedicated.mode.enable.internal.rest": "false",
    "config.providers": "",
    "listeners": None,  # MM2 has http://:8083, for calls between its processes
    "rest.advertised.host.name": None,
    "rest.advertised.port": None,
    "rest.advertised.listener": None,
    "access.control.allow.origin": "",
    "access.control.allow.methods": "",
    "response.http.headers.config": "",
    "ssl.client.auth": "none",
    "offset.storage.replication.factor": "3",
    "config.storage.replication.factor": "3",
    "status.storage.replication.factor": "3",
}
# The Connect workers it starts, read with the alias of the target; `A` is the source.
WORKER: dict[str, str | None] = {
    "offset.flush.interval.ms": "60000",
    "offset.flush.timeout.ms": "5000",
    "exactly.once.source.support": "disabled",
    "group.id": "A-mm2",
    "session.timeout.ms": "10000",
    "heartbeat.interval.ms": "500",  # Connect: 3000, too long for a handover within two seconds
    "rebalance.timeout.ms": "60000",
    "scheduled.rebalance.max.delay.ms": "0",  # Connect: 300000, a pause of five minutes for each lost worker
    "connect.protocol": "sessioned",
    "worker.sync.timeout.ms": "3000",
    "worker.unsync.backoff.ms": "300000",
    "task.shutdown.graceful.timeout.ms": "5000",
    "inter.worker.key.generation.algorithm": "HmacSHA256",
    "inter.worker.key.size": None,
    "inter.worker.key.ttl.ms": "3600000",
    "inter.worker.signature.algorithm": "HmacSHA256",
    "inter.worker.verification.algorithms": "HmacSHA256",
    "topic.tracking.enable": "true",
    "topic.tracking.allow.reset": "true",
    "topic.creation.enable": "true",
    "connector.client.config.override.policy": "All",
    "metrics.sample.window.ms": "30000",
    "metrics.num.samples": "2",
    "metrics.recording.level": "INFO",
    "plugin.path": None,
    "plugin.discovery": "hybrid_warn",
    "admin.listeners": None,
    "rest.extension.classes": "",
    "offset.storage.topic": "mm2-offsets.A.internal",
    "offset.storage.partitions": "25",
    "config.storage.topic": "mm2-configs.A.internal",
    "status.storage.topic": "mm2-status.A.internal",
    "status.storage.partitions": "5",
    "receive.buffer.bytes": "-1",  # MM2 has 32768, and 131072 to send
    "send.buffer.bytes": "-1",
    "connections.max.idle.ms": "540000",
    "metadata.max.age.ms": "300000",
}
# Where MM2 and Connect set a client up differently from what Kafka's clients do by themselves, and where we do.
_OUR_OWN = {
    "client.id": "heliograph",
    "send.buffer.bytes": "-1",
    "receive.buffer.bytes": "-1",
    "socket.connection.setup.timeout.ms": "5000",
    "socket.connection.setup.timeout.max.ms": None,
    "retry.backoff.max.ms": "5000",
    "connections.max.idle.ms": "540000",
}
DIFFERENT = {
    "consumer.auto.offset.reset": "earliest",
    "consumer.enable.auto.commit": "false",
    "consumer.key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    "consumer.value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    "producer.key.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
    "producer.value.serializer": "org.apache.kafka.common.serialization.ByteArraySerializer",
    "producer.batch.size": "900000",
    "producer.compression.type": None,  # each batch keeps its own
    "producer.delivery.timeout.ms": "2147483647",
    "producer.enable.idempotence": "false",
    "producer.max.block.ms": "9223372036854775807",
    "producer.max.in.flight.requests.per.connection": "1",
    "producer.max.request.size": "4194304",
    "consumer.isolation.level": "read_committed",
    "consumer.max.partition.fetch.bytes": "4194304",
    "admin.bootstrap.servers": None,
    **{f"{kind}.{name}": default for kind in ("consumer", "producer", "admin") for name, default in _OUR_OWN.items()},
}
CLIENTS = {
    f"{kind}.{name}": DIFFERENT.get(f"{kind}.{name}", default)
    for kind, text in {
        "consumer": kafka_clients.CONSUMER,
        "producer": kafka_clients.PRODUCER,
        "admin": kafka_clients.ADMIN,
    }.items()
    for name, default in (kafka_clients.table(text) | kafka_clients.table(kafka_clients.SECURITY)).items()
}
EXPECTED = [
    *((Scope.FLOW, name, default) for name, default in CONNECTORS.items()),
    *((Scope.TOP, name, default) for name, default in DRIVER.items()),
    *((Scope.CLUSTER, name, default) for name, default in WORKER.items()),
    *((Scope.CLUSTER, name, default) for name, default in CLIENTS.items()),
    *((Scope.CLUSTER, name, default) for name, default in kafka_clients.table(kafka_clients.SECURITY).items()),
]


@pytest.mark.parametrize(("scope", "name", "default"), EXPECTED)
def test_every_default_is_mm2s(scope: Scope, name: str, default: str | None) -> None:
    hit = find(scope, name)
    assert hit is not None, "not declared"
    assert hit.setting.default == default


def test_every_default_of_a_supported_setting_is_a_value_of_its_kind() -> None:
    for setting in settings():
        if setting.supported and setting.default is not None:
            setting.kind.parse(setting.default)


def test_the_defaults_of_a_flow_are_those_that_are_declared() -> None:
    read = flow()
    bare = type(read)(read.source, read.target)
    for field in fields(bare):
        assert getattr(read, field.name) == getattr(bare, field.name)


def test_exactly_these_settings_are_supported() -> None:
    assert sorted({setting.name for setting in settings() if setting.supported}) == [
        "access.control.allow.methods",
        "access.control.allow.origin",
        "alias",
        "auto.offset.reset",
        "batch.size",
        "bootstrap.servers",
        "checkpoints.topic.replication.factor",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "clusters",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "config.action.reload",
        "config.properties.exclude",
        "config.property.filter.class",
        "config.providers",
        "config.providers.*",
        "connections.max.idle.ms",
        "emit.checkpoints.enabled",
        "emit.checkpoints.interval.seconds",
        "emit.heartbeats.enabled",
        "emit.heartbeats.interval.seconds",
        "emit.offset-syncs.enabled",
        "enabled",
        "errors.tolerance",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "group.filter.class",
        "group.id",
        "groups",
        "groups.exclude",
        "heartbeat.interval.ms",
        "heartbeats.replication.enabled",
        "heartbeats.topic.replication.factor",
        "heliograph.buffer.memory",
        "heliograph.checkpoints.replication.policy.class",
        "heliograph.checkpoints.replication.policy.internal.topic.separator.enabled",
        "heliograph.checkpoints.replication.policy.separator",
        "heliograph.compiled.code",
        "heliograph.ignore.transforms",
        "heliograph.join",
        "heliograph.lease.seconds",
        "heliograph.max.bytes.per.second",
        "heliograph.membership",
        "heliograph.mm2.connector",
        "heliograph.mm2.group",
        "heliograph.mm2.offsets.topic",
        "heliograph.mm2.status.topic",
        "heliograph.notify.webhook",
        "heliograph.offsets",
        "heliograph.on.data.loss",
        "heliograph.on.foreign.writer",
        "heliograph.on.recreated.topic",
        "heliograph.on.refused.record",
        "heliograph.partitions",
        "heliograph.parts",
        "heliograph.preserve.max.fill",
        "heliograph.preserve.max.gap",
        "heliograph.preserve.topics",
        "heliograph.raise.mirror.limits",
        "heliograph.rest.allow",
        "heliograph.rest.jwks.audience",
        "heliograph.rest.jwks.ca",
        "heliograph.rest.jwks.issuer",
        "heliograph.rest.jwks.role.claim",
        "heliograph.rest.jwks.url",
        "heliograph.rest.open",
        "heliograph.rest.requests.per.second",
        "heliograph.rest.roles",
        "heliograph.rest.tokens",
        "heliograph.rest.users",
        "heliograph.secrets.dir",
        "heliograph.secrets.refresh.seconds",
        "heliograph.spark.secure",
        "heliograph.spark.warm",
        "heliograph.sync.group.deletes",
        "heliograph.topics.paused",
        "isolation.level",
        "listeners",
        "listeners.*",
        "max.partition.fetch.bytes",
        "max.request.size",
        "metadata.max.age.ms",
        "offset-syncs.topic.location",
        "offset-syncs.topic.replication.factor",
        "offset.flush.interval.ms",
        "offset.lag.max",
        "offset.storage.topic",
        "rebalance.timeout.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "refresh.groups.enabled",
        "refresh.groups.interval.seconds",
        "refresh.topics.enabled",
        "refresh.topics.interval.seconds",
        "replication.factor",
        "replication.policy.class",
        "replication.policy.internal.topic.separator.enabled",
        "replication.policy.separator",
        "request.timeout.ms",
        "rest.extension.classes",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "sasl.client.callback.handler.class",
        "sasl.jaas.config",
        "sasl.kerberos.service.name",
        "sasl.login.callback.handler.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.window.factor",
        "sasl.mechanism",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "scheduled.rebalance.max.delay.ms",
        "security.protocol",
        "send.buffer.bytes",
        "session.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.protocol",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "sync.group.offsets.enabled",
        "sync.group.offsets.interval.seconds",
        "sync.topic.acls.enabled",
        "sync.topic.acls.interval.seconds",
        "sync.topic.configs.enabled",
        "sync.topic.configs.interval.seconds",
        "tasks.max",
        "topic.filter.class",
        "topics",
        "topics.exclude",
        "transforms",
        "use.defaults.from",
    ]


def test_every_setting_has_a_sentence() -> None:
    for group in groups():
        for setting, sentence in group.settings:
            assert sentence.endswith((".", ".)")), setting.name


def test_every_supported_setting_is_explained_once() -> None:
    explained = [setting.name for setting in settings() if setting.supported]
    assert sorted(explained) == sorted(SUPPORTED)
    assert {setting.name for setting in settings() if SUPPORTED.get(setting.name) is setting} == set(SUPPORTED)


def test_a_file_of_supported_settings_is_read_without_the_sentences() -> None:
    code = (
        "from heliograph.config.declare import catalogue; from config.files import MINIMAL, deployment; "
        "deployment(MINIMAL + 'tasks.max = 4\\nA.consumer.fetch.max.bytes = 5\\n'); "
        "assert catalogue.groups.cache_info().misses == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent.parent)
