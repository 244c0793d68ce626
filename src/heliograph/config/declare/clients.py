"""Declarations: the settings of Kafka's consumer, producer and admin client (those of Kafka 4.x).

The defaults are the ones MirrorMaker 2's clients end up with: for the producer those that Connect gives its data
producer.
"""

from __future__ import annotations

from heliograph.config.declare import locations
from heliograph.config.declare.kinds import INT_MAX, LONG_MAX, Bool, Choice, Kind, Names, Text, Whole
from heliograph.config.declare.setting import Setting, SettingGroup

_CLASS = Text("class")
_INT = Whole(0, INT_MAX)
_LONG = Whole(0, LONG_MAX)
_BUFFER = Whole(-1, INT_MAX)
_BYTES = "org.apache.kafka.common.serialization.ByteArray"

CLIENT_ID = Setting(
    "client.id",
    Text(),
    "heliograph",
    "The name by which brokers know us in logs and quotas. (MM2 makes one from flow, connector and role.)",
    locations.CLIENT_CLUSTER,
    supported=True,
)
REQUEST_TIMEOUT = Setting(
    "request.timeout.ms",
    Whole(1, INT_MAX),
    "30000",
    "How long to wait for a broker's answer.",
    locations.CLIENT_CLUSTER,
    supported=True,
)
FETCH_MAX_BYTES = Setting(
    "fetch.max.bytes",
    _INT,
    "52428800",
    "How much one answer of a source broker may hold.",
    locations.CONSUMER,
    supported=True,
)
MAX_PARTITION_FETCH_BYTES = Setting(
    "max.partition.fetch.bytes",
    _INT,
    "1048576",
    "How much of it may come from one partition.",
    locations.CONSUMER,
    supported=True,
)
FETCH_MIN_BYTES = Setting(
    "fetch.min.bytes", _INT, "1", "How much a broker gathers before it answers.", locations.CONSUMER, supported=True
)
FETCH_MAX_WAIT = Setting(
    "fetch.max.wait.ms", _INT, "500", "How long it gathers at most.", locations.CONSUMER, supported=True
)
ISOLATION_LEVEL = Setting(
    "isolation.level",
    Choice(("read_uncommitted", "read_committed")),
    "read_committed",
    "Whether records of aborted transactions are left out, and those of open ones waited for (MM2's own default is "
    "`read_uncommitted`).",
    locations.CONSUMER,
    supported=True,
)
AUTO_OFFSET_RESET = Setting(
    "auto.offset.reset",
    Choice(("earliest", "latest", "none")),
    "earliest",
    "Where a new mirror begins: with everything that the source topic has, or with `latest` at its end. What is "
    "deleted before it is copied is a matter of `heliograph.on.data.loss`.",
    locations.CONSUMER,
    supported=True,
)
BATCH_SIZE = Setting(
    "batch.size",
    _INT,
    "131072",
    "How large a batch may grow when thin ones are joined; others stay as they are. 0: they are not joined. (MM2's own "
    "default is 16384.)",
    locations.PRODUCER,
    supported=True,
)
MAX_REQUEST_SIZE = Setting(
    "max.request.size",
    Whole(1, INT_MAX),
    "1048576",
    "How much one request to a target broker may hold.",
    locations.PRODUCER,
    supported=True,
)


def _consumer(
    name: str, kind: Kind[object], default: str | None, about: str, ignored_because: str = ""
) -> Setting[object]:
    return Setting(name, kind, default, about, locations.CONSUMER, ignored_because=ignored_because)


def _producer(
    name: str, kind: Kind[object], default: str | None, about: str, ignored_because: str = ""
) -> Setting[object]:
    return Setting(name, kind, default, about, locations.PRODUCER, ignored_because=ignored_because)


def _client(name: str, kind: Kind[object], default: str | None, about: str) -> Setting[object]:
    return Setting(name, kind, default, about, locations.CLIENT)


_CONSUMER = (
    FETCH_MAX_BYTES,
    MAX_PARTITION_FETCH_BYTES,
    FETCH_MIN_BYTES,
    FETCH_MAX_WAIT,
    ISOLATION_LEVEL,
    AUTO_OFFSET_RESET,
    _consumer(
        "enable.auto.commit",
        Bool(),
        "false",
        "Whether positions are committed by themselves; MM2 always switches it off.",
    ),
    _consumer("auto.commit.interval.ms", _INT, "5000", "How often, if so."),
    _consumer(
        "max.poll.records",
        Whole(1, INT_MAX),
        "500",
        "Records handed out by one poll.",
        "whole batches are read, limited by `fetch.max.bytes` and `max.partition.fetch.bytes`",
    ),
    _consumer(
        "max.poll.interval.ms",
        Whole(1, INT_MAX),
        "300000",
        "Time between two polls before the consumer counts as stuck.",
        "there is no group to be thrown out of",
    ),
    _consumer("check.crcs", Bool(), "true", "Whether checksums are compared.", "checksums are always compared"),
    _consumer("client.rack", Text(), "", "Where this client stands, for reading from a near replica."),
    _consumer("allow.auto.create.topics", Bool(), "true", "Whether asking for a topic may create it."),
    _consumer("exclude.internal.topics", Bool(), "true", "Whether patterns pass over Kafka's internal topics."),
    _consumer(
        "key.deserializer", _CLASS, f"{_BYTES}Deserializer", "Class that reads keys; MM2 takes bytes as they are."
    ),
    _consumer(
        "value.deserializer", _CLASS, f"{_BYTES}Deserializer", "Class that reads values; MM2 takes bytes as they are."
    ),
    _consumer(
        "partition.assignment.strategy",
        Names(),
        "org.apache.kafka.clients.consumer.RangeAssignor, org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        "How a group shares partitions.",
    ),
    _consumer("group.id", Text(), None, "Consumer group to join."),
    _consumer("group.instance.id", Text(), None, "Fixed name of this member of the group."),
    _consumer("group.protocol", Choice(("classic", "consumer")), "classic", "Which group protocol to speak."),
    _consumer("group.remote.assignor", Text(), None, "Which assignor the broker shall use."),
    _consumer("session.timeout.ms", Whole(), "45000", "Silence after which a member counts as gone."),
    _consumer("heartbeat.interval.ms", Whole(), "3000", "How often a member shows it is there."),
    _consumer("share.acknowledgement.mode", Text(), "implicit", "How members of a share group acknowledge records."),
    _consumer("share.acquire.mode", Text(), "BATCH_OPTIMIZED", "How a share group hands out records."),
)
_PRODUCER = (
    MAX_REQUEST_SIZE,
    _producer(
        "acks",
        Choice(("all", "-1", "0", "1")),
        "all",
        "How many replicas must have a record.",
        "every batch waits for all in-sync replicas",
    ),
    BATCH_SIZE,
    _producer(
        "buffer.memory",
        _LONG,
        "33554432",
        "Memory for records not sent yet.",
        "`heliograph.buffer.memory` bounds what a lease holds",
    ),
    _producer(
        "compression.type",
        Choice(("none", "gzip", "snappy", "lz4", "zstd")),
        "none",
        "How new batches are compressed.",
        "batches keep the compression that they have",
    ),
    _producer(
        "compression.gzip.level",
        Whole(-1, 9, but_not=0),
        "-1",
        "How hard gzip tries.",
        "batches keep the compression that they have",
    ),
    _producer(
        "compression.lz4.level", Whole(1, 17), "9", "How hard lz4 tries.", "batches keep the compression that they have"
    ),
    _producer(
        "compression.zstd.level",
        Whole(-131072, 22),
        "3",
        "How hard zstd tries.",
        "batches keep the compression that they have",
    ),
    _producer(
        "delivery.timeout.ms",
        _INT,
        "2147483647",
        "How long a record may take in all (Kafka's own default: 120000).",
        "a batch is tried until it is appended or refused",
    ),
    _producer(
        "enable.idempotence",
        Bool(),
        "false",
        "Whether the broker drops repeated batches (Kafka's own default: true).",
        "appends are always exactly once",
    ),
    _producer(
        "linger.ms",
        _LONG,
        "5",
        "How long a batch waits for more records.",
        "nothing waits to be sent: batches come as they are, and thin ones are joined with what came with them",
    ),
    _producer(
        "max.block.ms", _LONG, "9223372036854775807", "How long sending may wait for room (Kafka's own default: 60000)."
    ),
    _producer(
        "max.in.flight.requests.per.connection",
        Whole(1, INT_MAX),
        "1",
        "Requests on the way at once (Kafka's own default: 5).",
        "up to five batches of a partition are always on their way, in order",
    ),
    _producer("metadata.max.idle.ms", Whole(5000, LONG_MAX), "300000", "How long an unused topic is remembered."),
    _producer("key.serializer", _CLASS, f"{_BYTES}Serializer", "Class that writes keys."),
    _producer("value.serializer", _CLASS, f"{_BYTES}Serializer", "Class that writes values."),
    _producer(
        "partitioner.class",
        _CLASS,
        None,
        "Class that picks partitions; MM2 keeps the source's partition.",
        "a record keeps its partition",
    ),
    _producer("partitioner.adaptive.partitioning.enable", Bool(), "true", "Whether slow brokers get fewer records."),
    _producer("partitioner.availability.timeout.ms", _LONG, "0", "When a partition counts as unavailable; 0 is never."),
    _producer("partitioner.ignore.keys", Bool(), "false", "Whether keys have no say in the partition."),
    _producer("transaction.timeout.ms", Whole(), "60000", "How long a transaction may stay open."),
    _producer(
        "transaction.two.phase.commit.enable", Bool(), "false", "Whether transactions may be prepared from outside."
    ),
    _producer("transactional.id", Text(), None, "Name of the transactional producer."),
)
_COMMON = (
    CLIENT_ID,
    REQUEST_TIMEOUT,
    _client(
        "client.dns.lookup",
        Choice(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")),
        "use_all_dns_ips",
        "How host names become addresses.",
    ),
    _client("metadata.max.age.ms", _LONG, "300000", "How often what is known of the cluster is read again."),
    _client(
        "metadata.recovery.strategy",
        Choice(("rebootstrap", "none")),
        "rebootstrap",
        "What to do if no known broker answers.",
    ),
    _client("metadata.recovery.rebootstrap.trigger.ms", _LONG, "300000", "After how long to do it."),
    _client("reconnect.backoff.ms", _LONG, "50", "Pause before a lost connection is opened again."),
    _client("reconnect.backoff.max.ms", _LONG, "1000", "The longest such pause."),
    _client("retry.backoff.ms", _LONG, "100", "Pause before a failed request is sent again."),
    _client("retry.backoff.max.ms", _LONG, "1000", "The longest such pause."),
    _client("send.buffer.bytes", _BUFFER, "131072", "Size of the socket's send buffer; -1 is the system's own."),
    _client("socket.connection.setup.timeout.ms", _LONG, "10000", "How long opening a connection may take."),
    _client("socket.connection.setup.timeout.max.ms", _LONG, "30000", "The longest that time becomes after failures."),
    _client("metrics.num.samples", Whole(1, INT_MAX), "2", "Samples kept for each metric."),
    _client("metrics.recording.level", Choice(("INFO", "DEBUG", "TRACE")), "INFO", "How fine metrics are."),
    _client("metrics.sample.window.ms", _LONG, "30000", "How long a sample lasts."),
    _client("security.providers", Names(), None, "Java classes that add security algorithms."),
    _client("auto.include.jmx.reporter", Bool(), "true", "Kafka 3.x: whether metrics go to JMX in any case."),
    Setting(
        "metric.reporters",
        Names(),
        "org.apache.kafka.common.metrics.JmxReporter",
        "Classes that metrics are given to.",
        locations.CLIENT_FLOW,
    ),
    Setting("default.api.timeout.ms", _INT, "60000", "How long a call may take in all.", locations.CONSUMER_ADMIN),
    Setting("retries", _INT, "2147483647", "How often a failed request is sent again.", locations.PRODUCER_ADMIN),
    Setting("interceptor.classes", Names(), "", "Classes that see every record.", locations.CONSUMER_PRODUCER),
    Setting("receive.buffer.bytes", _BUFFER, "65536", "Size of the socket's receive buffer.", locations.CONSUMER_ADMIN),
    Setting("receive.buffer.bytes", _BUFFER, "32768", "The same for producer and worker.", locations.PRODUCER_WORKER),
    Setting(
        "connections.max.idle.ms",
        Whole(),
        "540000",
        "When an unused connection is closed.",
        locations.CONSUMER_PRODUCER_WORKER,
    ),
    Setting("connections.max.idle.ms", Whole(), "300000", "The same for the admin client.", locations.ADMIN),
    Setting(
        "enable.metrics.push",
        Bool(),
        "true",
        "Whether brokers may collect this client's metrics.",
        locations.CONSUMER_PRODUCER,
    ),
    Setting("enable.metrics.push", Bool(), "false", "The same for the admin client.", locations.ADMIN),
    Setting("bootstrap.controllers", Names(), "", "Controllers to talk to instead of brokers.", locations.ADMIN),
)

GROUPS = (
    SettingGroup(
        "Every client",
        "Names and limits that consumer, producer and admin client share.",
        _COMMON,
        "Heliograph's own connections know no such setting",
    ),
    SettingGroup("Consumer", "Reading from the source.", _CONSUMER, "Heliograph reads without Kafka's consumer"),
    SettingGroup("Producer", "Writing to the target.", _PRODUCER, "Heliograph writes without Kafka's producer"),
)
