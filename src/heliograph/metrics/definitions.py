"""Heliograph's own metrics: name, kind, labels, meaning. `make docs` writes docs/metrics.md from this and `mbeans`."""

from dataclasses import dataclass

GAUGE, COUNTER = "gauge", "counter"


@dataclass(frozen=True, slots=True)
class MBean:
    """One kind of MBean of Kafka: `kafka.connect:type=connector-task-metrics,connector=…,task=…`."""

    domain: str
    type: str
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.domain}:type={self.type}" + "".join(f",{key}=…" for key in self.keys)


@dataclass(frozen=True, slots=True)
class Metric:
    """`mbean` is where Kafka has it in JMX, as `attribute`; None for Heliograph's own."""

    name: str
    labels: tuple[str, ...]
    meaning: str
    kind: str = GAUGE
    mbean: MBean | None = None
    attribute: str = ""


def _own(name: str, labels: tuple[str, ...], meaning: str, kind: str = GAUGE) -> Metric:
    return Metric(f"heliograph_{name}", labels, meaning, kind)


_FLOW = ("flow",)
_TOPIC = ("flow", "topic")
BUILD = _own("build_info", ("version", "python"), "Always 1; the labels hold the versions.")
SPARK_UP = _own("spark_up", (), "1 if Spark has started and its JVM is alive.")
FLOW_STATE = _own(
    "flow_state", ("flow", "state"), "1 for the current state of a flow: `running`, `starting`, `paused` or `failed`."
)
MIRRORS = _own("mirrors", _FLOW, "Topics that are mirrored.")
TOPICS_FAILED = _own("topics_failed", _FLOW, "Selected topics that cannot be mirrored.")
DRIFT = _own(
    "drift",
    ("flow", "what"),
    "Differences between source and target that cannot be removed: mirrors with more `partitions` than their topics, "
    "topics whose `settings` cannot be copied, `access rules` that the target rejects.",
)
PARTITIONS = _own(
    "partitions",
    ("flow", "state"),
    "Partitions by state: `starting`, `aligning`, `copying`, `caught-up`, `waiting`, `stopped`, `paused`.",
)
REFUSALS = _own(
    "refusals",
    ("flow", "reason", "final"),
    "Partitions that are not copied, by reason. `final` is `true` for stopped and `false` for waiting partitions.",
)
COPIED_RECORDS = _own("copied_records_total", _FLOW, "Records appended to mirrors.", COUNTER)
COPIED_BYTES = _own("copied_bytes_total", _FLOW, "Bytes of the batches appended to mirrors.", COUNTER)
CODEC_BATCHES = _own(
    "codec_batches_total",
    ("flow", "codec"),
    "Batches appended to mirrors, by their compression: `none`, `gzip`, `snappy`, `lz4`, `zstd`.",
    COUNTER,
)
CODEC_BYTES = _own("codec_bytes_total", ("flow", "codec"), "Bytes of these batches, compressed as stored.", COUNTER)
_HOW = ("flow", "how")
ENCODED_BATCHES = _own(
    "encoded_batches_total",
    _HOW,
    "Batches appended to mirrors: `as-it-is`, or the reason why they were re-encoded. `thin`: joined with other "
    "batches; `holes`: compacted; `overlap`: begins before the position; `stamped`: has LogAppendTime; `old-format`: "
    "older than Kafka 0.11; `too-large`: split; `no-zstd`: the target does not support zstd; `compression`: "
    "`compression.type` asks for another one; `refused`: split to find the records that the target rejects. With "
    "several reasons, the first counts.",
    COUNTER,
)
ENCODED_RECORDS = _own("encoded_records_total", _HOW, "Records of these batches.", COUNTER)
ENCODED_BYTES = _own("encoded_bytes_total", _HOW, "Bytes of these batches.", COUNTER)
THROTTLED = _own(
    "throttled_seconds_total",
    ("flow", "side"),
    "Seconds in which brokers of the `source` or the `target` throttled a lease because of a quota. Several brokers at "
    "the same time count once; leases count separately.",
    COUNTER,
)
LAG_RECORDS = _own("lag_records", _FLOW, "Records that can be read on the source and are not copied yet.")
LAG_BYTES = _own("lag_bytes", _FLOW, "The same in bytes, estimated from the mean size of the copied records.")
LAG_SECONDS = _own(
    "lag_seconds",
    _FLOW,
    "An upper bound of the age of the oldest record that is not copied, in the worst partition: the time since there "
    "is such a record, or the age of the last copied record. 0 if everything is copied.",
)
MARGIN = _own(
    "retention_margin_records",
    _FLOW,
    "Offsets between the start of a source partition and its position: the smallest value among the partitions that "
    "are a minute or more behind. At 0, retention deletes records that are not copied yet. Absent while no partition "
    "is that late.",
)
OPEN_SECONDS = _own(
    "open_transaction_seconds",
    _FLOW,
    "The longest time for which the last stable offset of a source partition has not moved although records follow it: "
    "a transaction is open, and read_committed consumers wait for it. 0 if there is none.",
)
OPEN_PARTITIONS = _own(
    "open_transaction_partitions",
    _FLOW,
    "Partitions where this has lasted for a minute. The lag does not include them.",
)
OPEN_RECORDS = _own("open_transaction_records", _FLOW, "Offsets in these partitions that wait behind the transactions.")
SINCE_COPY = _own("seconds_since_last_copy", _FLOW, "Seconds since the last copied batch.")
NOTICES = _own(
    "notices_total", ("flow", "kind"), "Problems after which copying of the partition continued, by kind.", COUNTER
)
NOTICE_RECORDS = _own(
    "notice_records_total",
    ("flow", "kind"),
    "Records concerned: lost (`data-loss`), in the dead-letter topic (`parked`), of other writers (`foreign-writer`).",
    COUNTER,
)
LEASES = _own("leases", _FLOW, "Running leases; leases that wait for a slot in Spark do not count.")
LEASES_WANTED = _own("leases_wanted", _FLOW, "Leases that should run.")
LEASE_AGE = _own("lease_age_seconds", _FLOW, "Age of the oldest lease, renewals included.")
LEASE_FAILURES = _own("lease_failures_total", _FLOW, "Leases that failed and were restarted.", COUNTER)
LEASE_RENEWALS = _own("lease_renewals_total", _FLOW, "Renewals of leases.", COUNTER)
HEARTBEAT_AGE = _own(
    "heartbeat_age_seconds",
    _TOPIC,
    "The age of the newest copied heartbeat, from its first write. `topic` is the source's.",
)
GROUPS = _own("groups", _FLOW, "Consumer groups of the source that are translated.")
GROUPS_SYNCED = _own("groups_synced", _FLOW, "Groups whose offsets on the target are up to date.")
GROUPS_NOT_SYNCED = _own(
    "groups_not_synced",
    ("flow", "reason"),
    "Groups that are not synced: `active` (in use on the target), `unreadable`, `refused` (the target rejects their "
    "offsets).",
)
UNTRANSLATED = _own("group_partitions_untranslated", _FLOW, "Partitions where a group's offset has no mirror offset.")
CHECKPOINTS = _own("checkpoints_written_total", _FLOW, "Checkpoints written.", COUNTER)
SYNC_SINCE = _own(
    "sync_seconds_since_success",
    ("flow", "kind"),
    "Seconds since the last successful sync, by kind: heartbeats, topic settings, access rules, offset syncs, …",
)
SYNC_FAILING = _own("sync_failing", ("flow", "kind"), "1 if the last sync failed.")
REQUESTS = _own("requests_total", _FLOW, "Requests of the driver to both clusters, without signals to leases.", COUNTER)
EVENTS = _own("events_total", ("flow", "level"), "Logged lines by level: `INFO`, `WARNING`, `ERROR`.", COUNTER)
TOPIC_LAG_RECORDS = _own("topic_lag_records", _TOPIC, "Like heliograph_lag_records, for one topic of the source.")
TOPIC_LAG_BYTES = _own("topic_lag_bytes", _TOPIC, "Like heliograph_lag_bytes.")
TOPIC_LAG_SECONDS = _own("topic_lag_seconds", _TOPIC, "Like heliograph_lag_seconds.")
TOPIC_MARGIN = _own(
    "topic_retention_margin_records",
    (*_TOPIC, "partition"),
    "Like heliograph_retention_margin_records, with the partition where it is least.",
)
TOPIC_SINCE_COPY = _own("topic_seconds_since_last_copy", _TOPIC, "Like heliograph_seconds_since_last_copy.")
TOPIC_RECORDS = _own("topic_copied_records_total", _TOPIC, "Like heliograph_copied_records_total.", COUNTER)
TOPIC_BYTES = _own("topic_copied_bytes_total", _TOPIC, "Like heliograph_copied_bytes_total.", COUNTER)
TOPIC_PARTITIONS = _own("topic_partitions", _TOPIC, "Partitions of the topic.")
TOPIC_STOPPED = _own("topic_partitions_stopped", _TOPIC, "Stopped partitions of the topic.")
PARTITION_LAG = _own("partition_lag_records", (*_TOPIC, "partition"), "Like heliograph_lag_records, for one partition.")
PARTITION_LAG_SECONDS = _own(
    "partition_lag_seconds", (*_TOPIC, "partition"), "Like heliograph_lag_seconds, for one partition."
)
TOPICS_LEFT_OUT = _own("topics_left_out", _FLOW, "Topics without their own series, because there are too many.")
OF_PROCESS = (BUILD, SPARK_UP)
OF_FLOW = (
    *(FLOW_STATE, MIRRORS, TOPICS_FAILED, DRIFT, PARTITIONS, REFUSALS, COPIED_RECORDS, COPIED_BYTES),
    *(CODEC_BATCHES, CODEC_BYTES, ENCODED_BATCHES, ENCODED_RECORDS, ENCODED_BYTES, THROTTLED),
    *(LAG_RECORDS, LAG_BYTES, LAG_SECONDS, MARGIN, OPEN_SECONDS, OPEN_PARTITIONS, OPEN_RECORDS),
    *(SINCE_COPY, NOTICES, NOTICE_RECORDS),
    *(LEASES, LEASES_WANTED, LEASE_AGE, LEASE_FAILURES, LEASE_RENEWALS, HEARTBEAT_AGE),
    *(GROUPS, GROUPS_SYNCED, GROUPS_NOT_SYNCED, UNTRANSLATED, CHECKPOINTS),
    *(SYNC_SINCE, SYNC_FAILING, REQUESTS, EVENTS, TOPICS_LEFT_OUT),
)
OF_TOPIC = (
    *(TOPIC_LAG_RECORDS, TOPIC_LAG_BYTES, TOPIC_LAG_SECONDS, TOPIC_MARGIN, TOPIC_SINCE_COPY),
    *(TOPIC_RECORDS, TOPIC_BYTES, TOPIC_PARTITIONS, TOPIC_STOPPED),
)
OF_PARTITION = (PARTITION_LAG, PARTITION_LAG_SECONDS)
