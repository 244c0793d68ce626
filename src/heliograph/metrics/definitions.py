"""Every metric: name, kind, labels, meaning. `make docs` generates docs/metrics.md from this."""

from dataclasses import dataclass

GAUGE, COUNTER = "gauge", "counter"

_SOURCE = "kafka_connect_mirror_mirrorsourceconnector_"
_CHECKPOINT = "kafka_connect_mirror_mirrorcheckpointconnector_"
_ERROR = "kafka_connect_task_error_"
_REBALANCE = "kafka_connect_worker_rebalance_"
_PARTITION = ("source", "target", "topic", "partition")
_GROUP = ("source", "target", "group", "topic", "partition")
_TASK = ("connector", "task")


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    labels: tuple[str, ...]
    meaning: str
    kind: str = GAUGE


def _own(name: str, labels: tuple[str, ...], meaning: str, kind: str = GAUGE) -> Metric:
    return Metric(f"heliograph_{name}", labels, meaning, kind)


# --- MM2's -------------------------------------------------------------------------------------------------

RECORD_COUNT = Metric(f"{_SOURCE}record_count", _PARTITION, "Records appended to the mirror since the flow started.")
RECORD_RATE = Metric(f"{_SOURCE}record_rate", _PARTITION, "The same per second, over the last minute.")
BYTE_COUNT = Metric(
    f"{_SOURCE}byte_count",
    _PARTITION,
    "Bytes of the batches appended to the mirror, compressed as stored. (MM2 counts only values, uncompressed.)",
)
BYTE_RATE = Metric(f"{_SOURCE}byte_rate", _PARTITION, "The same per second, over the last minute.")
_AGE = "the newest record of a batch, from its timestamp to its append to the mirror; sampled twice a second"
LATENCY = Metric(f"{_SOURCE}replication_latency_ms", _PARTITION, f"The age of {_AGE}: the last value, in milliseconds.")
LATENCY_AVG = Metric(f"{_SOURCE}replication_latency_ms_avg", _PARTITION, "Its mean over the last minute.")
LATENCY_MAX = Metric(f"{_SOURCE}replication_latency_ms_max", _PARTITION, "Its maximum in the last minute.")
LATENCY_MIN = Metric(f"{_SOURCE}replication_latency_ms_min", _PARTITION, "Its minimum in the last minute.")
_SAME = "The same value as replication_latency_ms{}: there is no separate measurement between fetch and append."
AGE = Metric(f"{_SOURCE}record_age_ms", _PARTITION, _SAME.format(""))
AGE_AVG = Metric(f"{_SOURCE}record_age_ms_avg", _PARTITION, _SAME.format("_avg"))
AGE_MAX = Metric(f"{_SOURCE}record_age_ms_max", _PARTITION, _SAME.format("_max"))
AGE_MIN = Metric(f"{_SOURCE}record_age_ms_min", _PARTITION, _SAME.format("_min"))
CHECKPOINT_AVG = Metric(
    f"{_CHECKPOINT}checkpoint_latency_ms_avg",
    _GROUP,
    "From reading a group's offsets to writing its checkpoint: the mean over the last minute.",
)
CHECKPOINT_MAX = Metric(f"{_CHECKPOINT}checkpoint_latency_ms_max", _GROUP, "Its maximum in the last minute.")
CHECKPOINT_MIN = Metric(f"{_CHECKPOINT}checkpoint_latency_ms_min", _GROUP, "Its minimum in the last minute.")
RECORDS_LAG = Metric(
    "kafka_consumer_fetch_manager_records_lag",
    ("clientid", "topic", "partition"),
    "Records of a source partition that are not copied yet; for MM2 it is the lag of its consumer.",
)
MM2 = (
    *(RECORD_COUNT, RECORD_RATE, BYTE_COUNT, BYTE_RATE),
    *(LATENCY, LATENCY_AVG, LATENCY_MAX, LATENCY_MIN, AGE, AGE_AVG, AGE_MAX, AGE_MIN),
    *(CHECKPOINT_AVG, CHECKPOINT_MAX, CHECKPOINT_MIN, RECORDS_LAG),
)

# --- Connect's ---------------------------------------------------------------------------------------------

TASK_STATUS = Metric(
    "kafka_connect_connector_status", (*_TASK, "status"), "1 for the current status of a task, in lower case."
)
CONNECTORS = Metric("kafka_connect_worker_connector_count", (), "Connectors, running or not.")
TASKS = Metric("kafka_connect_worker_task_count", (), "Tasks of all connectors.")
TASKS_OF = {
    state: Metric(
        f"kafka_connect_worker_connector_{state}_task_count",
        ("connector",),
        "Tasks of a connector." if state == "total" else f"Tasks of a connector that are {state}.",
    )
    for state in ("total", "running", "paused", "failed", "unassigned")
}
WRITE_TOTAL = Metric(
    "kafka_connect_source_task_source_record_write_total",
    _TASK,
    "Records copied of the partitions that the task has now; it decreases when partitions move to another task.",
)
WRITE_RATE = Metric(
    "kafka_connect_source_task_source_record_write_rate", _TASK, "The same per second, over the last minute."
)
POLL_TOTAL = Metric("kafka_connect_source_task_source_record_poll_total", _TASK, "The same value as write_total.")
POLL_RATE = Metric("kafka_connect_source_task_source_record_poll_rate", _TASK, "The same value as write_rate.")
_NOW = "Like write_total, it covers the partitions that the task has now."
RECORD_ERRORS = Metric(
    f"{_ERROR}total_record_errors",
    _TASK,
    f"Records that could not be copied: sent to the dead-letter topic, or their partition stopped. {_NOW}",
)
RECORD_FAILURES = Metric(
    f"{_ERROR}total_record_failures",
    _TASK,
    "The same value as total_record_errors: errors that a retry resolves are not counted.",
)
RECORDS_SKIPPED = Metric(
    f"{_ERROR}total_records_skipped", _TASK, "Records sent to the dead-letter topic, which the mirror does not hold."
)
DEAD_LETTERS = Metric(
    f"{_ERROR}deadletterqueue_produce_requests",
    _TASK,
    "The same value as total_records_skipped: copying resumes when the record is in the dead-letter topic.",
)
ERRORS_LOGGED = Metric(
    f"{_ERROR}total_errors_logged", _TASK, "Logged errors about the task's partitions: refusals and notices."
)
LAST_ERROR = Metric(
    f"{_ERROR}last_error_timestamp", _TASK, "The time of the last error, in milliseconds since 1970; 0 for never."
)
TASK_ERRORS = (RECORD_ERRORS, RECORD_FAILURES, RECORDS_SKIPPED, DEAD_LETTERS, ERRORS_LOGGED, LAST_ERROR)
REBALANCES = Metric(
    f"{_REBALANCE}completed_rebalances_total",
    (),
    "How often the assignment of partitions to leases changed, in all flows.",
)
REBALANCING = Metric(f"{_REBALANCE}rebalancing", (), "1 while fewer leases run than are wanted, 0 otherwise.")
SINCE_REBALANCE = Metric(
    f"{_REBALANCE}time_since_last_rebalance_ms",
    (),
    "Milliseconds since the assignment of partitions to leases last changed.",
)
CONNECT = (
    *(TASK_STATUS, CONNECTORS, TASKS, *TASKS_OF.values(), WRITE_TOTAL, WRITE_RATE, POLL_TOTAL, POLL_RATE),
    *(*TASK_ERRORS, REBALANCES, REBALANCING, SINCE_REBALANCE),
)

# --- ours --------------------------------------------------------------------------------------------------

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
