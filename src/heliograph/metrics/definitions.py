"""Every metric: name, kind, labels, and what it means. The page docs/metrics.md is made of this."""

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

RECORD_COUNT = Metric(f"{_SOURCE}record_count", _PARTITION, "Records appended to the mirror since the flow runs.")
RECORD_RATE = Metric(f"{_SOURCE}record_rate", _PARTITION, "The same per second, over the last minute.")
BYTE_COUNT = Metric(
    f"{_SOURCE}byte_count",
    _PARTITION,
    "Bytes of the batches appended to the mirror, compressed as they are. (MM2 counts values only, uncompressed.)",
)
BYTE_RATE = Metric(f"{_SOURCE}byte_rate", _PARTITION, "The same per second, over the last minute.")
_AGE = "the newest record of a batch, from its own time until it had landed in the mirror; looked at twice a second"
LATENCY = Metric(f"{_SOURCE}replication_latency_ms", _PARTITION, f"The age of {_AGE}: the last one, in milliseconds.")
LATENCY_AVG = Metric(f"{_SOURCE}replication_latency_ms_avg", _PARTITION, "The mean of it over the last minute.")
LATENCY_MAX = Metric(f"{_SOURCE}replication_latency_ms_max", _PARTITION, "The greatest of it in the last minute.")
LATENCY_MIN = Metric(f"{_SOURCE}replication_latency_ms_min", _PARTITION, "The least of it in the last minute.")
_SAME = "The same number as replication_latency_ms{}: no time is taken between reading a batch and appending it."
AGE = Metric(f"{_SOURCE}record_age_ms", _PARTITION, _SAME.format(""))
AGE_AVG = Metric(f"{_SOURCE}record_age_ms_avg", _PARTITION, _SAME.format("_avg"))
AGE_MAX = Metric(f"{_SOURCE}record_age_ms_max", _PARTITION, _SAME.format("_max"))
AGE_MIN = Metric(f"{_SOURCE}record_age_ms_min", _PARTITION, _SAME.format("_min"))
CHECKPOINT_AVG = Metric(
    f"{_CHECKPOINT}checkpoint_latency_ms_avg",
    _GROUP,
    "From looking at a group until its checkpoint was written: the mean over the last minute.",
)
CHECKPOINT_MAX = Metric(f"{_CHECKPOINT}checkpoint_latency_ms_max", _GROUP, "The greatest of it in the last minute.")
CHECKPOINT_MIN = Metric(f"{_CHECKPOINT}checkpoint_latency_ms_min", _GROUP, "The least of it in the last minute.")
RECORDS_LAG = Metric(
    "kafka_consumer_fetch_manager_records_lag",
    ("clientid", "topic", "partition"),
    "Records of a source partition that are not copied yet, where MM2's consumer has its own lag.",
)
MM2 = (
    *(RECORD_COUNT, RECORD_RATE, BYTE_COUNT, BYTE_RATE),
    *(LATENCY, LATENCY_AVG, LATENCY_MAX, LATENCY_MIN, AGE, AGE_AVG, AGE_MAX, AGE_MIN),
    *(CHECKPOINT_AVG, CHECKPOINT_MAX, CHECKPOINT_MIN, RECORDS_LAG),
)

# --- Connect's ---------------------------------------------------------------------------------------------

TASK_STATUS = Metric(
    "kafka_connect_connector_status", (*_TASK, "status"), "1 for the status that a task has, in small letters."
)
CONNECTORS = Metric("kafka_connect_worker_connector_count", (), "Connectors, running or not.")
TASKS = Metric("kafka_connect_worker_task_count", (), "Tasks of all connectors.")
TASKS_OF = {
    state: Metric(
        f"kafka_connect_worker_connector_{state}_task_count",
        ("connector",),
        "Tasks of a connector." if state == "total" else f"Those of them that are {state}.",
    )
    for state in ("total", "running", "paused", "failed", "unassigned")
}
WRITE_TOTAL = Metric(
    "kafka_connect_source_task_source_record_write_total",
    _TASK,
    "Records copied of the partitions that the task has now; it falls when partitions move to another task.",
)
WRITE_RATE = Metric(
    "kafka_connect_source_task_source_record_write_rate", _TASK, "The same per second, over the last minute."
)
POLL_TOTAL = Metric("kafka_connect_source_task_source_record_poll_total", _TASK, "The same number as write_total.")
POLL_RATE = Metric("kafka_connect_source_task_source_record_poll_rate", _TASK, "The same number as write_rate.")
_NOW = "As write_total, it is of the partitions that the task has now."
RECORD_ERRORS = Metric(
    f"{_ERROR}total_record_errors",
    _TASK,
    f"Records that could not be copied: put aside, or their partition stopped at them. {_NOW}",
)
RECORD_FAILURES = Metric(
    f"{_ERROR}total_record_failures",
    _TASK,
    "The same number as total_record_errors: what a second try heals is not counted.",
)
RECORDS_SKIPPED = Metric(
    f"{_ERROR}total_records_skipped", _TASK, "Those of them that were put aside, so that the mirror does not have them."
)
DEAD_LETTERS = Metric(
    f"{_ERROR}deadletterqueue_produce_requests",
    _TASK,
    "The same number as total_records_skipped: each of them is in the dead-letter topic before the copy goes on.",
)
ERRORS_LOGGED = Metric(
    f"{_ERROR}total_errors_logged", _TASK, "How often a refusal or a notice about one of its partitions was logged."
)
LAST_ERROR = Metric(
    f"{_ERROR}last_error_timestamp", _TASK, "When the last one was, in milliseconds since 1970; 0 for never."
)
TASK_ERRORS = (RECORD_ERRORS, RECORD_FAILURES, RECORDS_SKIPPED, DEAD_LETTERS, ERRORS_LOGGED, LAST_ERROR)
REBALANCES = Metric(
    f"{_REBALANCE}completed_rebalances_total",
    (),
    "How often partitions were shared out among leases otherwise than before, in all flows.",
)
REBALANCING = Metric(f"{_REBALANCE}rebalancing", (), "1 while leases that there should be do not run, 0 otherwise.")
SINCE_REBALANCE = Metric(
    f"{_REBALANCE}time_since_last_rebalance_ms", (), "Milliseconds since partitions were last shared out otherwise."
)
CONNECT = (
    *(TASK_STATUS, CONNECTORS, TASKS, *TASKS_OF.values(), WRITE_TOTAL, WRITE_RATE, POLL_TOTAL, POLL_RATE),
    *(*TASK_ERRORS, REBALANCES, REBALANCING, SINCE_REBALANCE),
)

# --- ours --------------------------------------------------------------------------------------------------

_FLOW = ("flow",)
_TOPIC = ("flow", "topic")
BUILD = _own("build_info", ("version", "python"), "1.")
SPARK_UP = _own("spark_up", (), "1 if Spark has started and its JVM is alive.")
FLOW_STATE = _own(
    "flow_state", ("flow", "state"), "1 for the state that a flow is in: `running`, `starting`, `paused` or `failed`."
)
MIRRORS = _own("mirrors", _FLOW, "Topics that are mirrored.")
TOPICS_FAILED = _own("topics_failed", _FLOW, "Topics that are selected and cannot be mirrored.")
DRIFT = _own(
    "drift",
    ("flow", "what"),
    "What differs between source and target and cannot be put right: mirrors with more `partitions` than their topics, "
    "topics whose `settings` cannot be carried over, `access rules` that the target does not take.",
)
PARTITIONS = _own(
    "partitions",
    ("flow", "state"),
    "Partitions by what they do: `starting`, `aligning`, `copying`, `caught-up`, `waiting`, `stopped`, `paused`.",
)
REFUSALS = _own(
    "refusals",
    ("flow", "reason", "final"),
    "Partitions that are not copied, by reason. `final` is `true` for stopped ones, `false` for those that wait.",
)
COPIED_RECORDS = _own("copied_records_total", _FLOW, "Records appended to mirrors.", COUNTER)
COPIED_BYTES = _own("copied_bytes_total", _FLOW, "Bytes of the batches appended to mirrors.", COUNTER)
CODEC_BATCHES = _own(
    "codec_batches_total",
    ("flow", "codec"),
    "Batches appended to mirrors, by their compression: `none`, `gzip`, `snappy`, `lz4`, `zstd`.",
    COUNTER,
)
CODEC_BYTES = _own("codec_bytes_total", ("flow", "codec"), "Bytes of these batches, compressed as they are.", COUNTER)
_HOW = ("flow", "how")
ENCODED_BATCHES = _own(
    "encoded_batches_total",
    _HOW,
    "Batches appended to mirrors, by how they came about: `as-it-is`, or why they were decoded and encoded anew. "
    "`thin`: joined with others; `holes`: compacted; `overlap`: begun before the position; `stamped`: with times of "
    "arrival; `old-format`: of before Kafka 0.11; `too-large`: split; `no-zstd`: the target does not know it; "
    "`refused`: to find the records that the target does not take. For several reasons, the first.",
    COUNTER,
)
ENCODED_RECORDS = _own("encoded_records_total", _HOW, "Records of these batches.", COUNTER)
ENCODED_BYTES = _own("encoded_bytes_total", _HOW, "Bytes of these batches.", COUNTER)
THROTTLED = _own(
    "throttled_seconds_total",
    ("flow", "side"),
    "Seconds in which brokers of the `source`, or of the `target`, had told a lease to stay away, as it is over a "
    "quota; several brokers at the same time count once, several leases each.",
    COUNTER,
)
LAG_RECORDS = _own("lag_records", _FLOW, "Records that can be read on the source and are not copied yet.")
LAG_BYTES = _own("lag_bytes", _FLOW, "The same in bytes, estimated by the mean size of the records that were copied.")
LAG_SECONDS = _own(
    "lag_seconds",
    _FLOW,
    "How old the oldest record may be that is not copied, in the partition where that is worst: since when there is "
    "one, or the age of the last record that was copied. 0 if everything is.",
)
MARGIN = _own(
    "retention_margin_records",
    _FLOW,
    "How many offsets lie between where the source begins and where copying stands, where that is least among the "
    "partitions that are a minute or more behind. At 0, what retention deletes next was not copied. Not there while no "
    "partition is that late.",
)
OPEN_SECONDS = _own(
    "open_transaction_seconds",
    _FLOW,
    "How long the last stable offset of a source partition stands still while records are behind it, where that is "
    "longest: a transaction is open, and readers of committed records wait for it. 0 if there is none.",
)
OPEN_PARTITIONS = _own(
    "open_transaction_partitions", _FLOW, "Partitions where that has lasted for a minute; the lag does not count them."
)
OPEN_RECORDS = _own("open_transaction_records", _FLOW, "Offsets of these that wait behind the transactions.")
SINCE_COPY = _own("seconds_since_last_copy", _FLOW, "Seconds since anything was copied.")
NOTICES = _own(
    "notices_total", ("flow", "kind"), "What went wrong with a partition that goes on all the same, by kind.", COUNTER
)
NOTICE_RECORDS = _own(
    "notice_records_total",
    ("flow", "kind"),
    "How many records that was about: lost with `data-loss`, put aside with `parked`, of others with `foreign-writer`.",
    COUNTER,
)
LEASES = _own("leases", _FLOW, "Leases that run; those for which Spark has no place do not.")
LEASES_WANTED = _own("leases_wanted", _FLOW, "Leases that there should be.")
LEASE_AGE = _own("lease_age_seconds", _FLOW, "How long the oldest of them runs, renewals included.")
LEASE_FAILURES = _own("lease_failures_total", _FLOW, "Leases that failed and were begun again.", COUNTER)
LEASE_RENEWALS = _own("lease_renewals_total", _FLOW, "How often a lease was given more time.", COUNTER)
HEARTBEAT_AGE = _own(
    "heartbeat_age_seconds",
    _TOPIC,
    "The age of the newest heartbeat that was copied, from where it was written on. `topic` is the source's.",
)
GROUPS = _own("groups", _FLOW, "Consumer groups of the source that are translated.")
GROUPS_SYNCED = _own("groups_synced", _FLOW, "Groups whose offsets on the target are as far as they can be.")
GROUPS_NOT_SYNCED = _own(
    "groups_not_synced",
    ("flow", "reason"),
    "Groups that are left alone on the target: `active` (in use there), `unreadable`, `refused` (the target does not "
    "take their offsets).",
)
UNTRANSLATED = _own(
    "group_partitions_untranslated", _FLOW, "Partitions for which a group's offset has no mirror offset."
)
CHECKPOINTS = _own("checkpoints_written_total", _FLOW, "Checkpoints written.", COUNTER)
SYNC_SINCE = _own(
    "sync_seconds_since_success",
    ("flow", "kind"),
    "Seconds since something was kept in sync: heartbeats, topic settings, access rules, offset syncs, checkpoints, …",
)
SYNC_FAILING = _own("sync_failing", ("flow", "kind"), "1 if it was not the last time.")
REQUESTS = _own("requests_total", _FLOW, "Requests to both clusters, but for those of leases.", COUNTER)
EVENTS = _own("events_total", ("flow", "level"), "Lines that were logged: `INFO`, `WARNING`, `ERROR`.", COUNTER)
TOPIC_LAG_RECORDS = _own("topic_lag_records", _TOPIC, "As heliograph_lag_records, for one topic of the source.")
TOPIC_LAG_BYTES = _own("topic_lag_bytes", _TOPIC, "As heliograph_lag_bytes.")
TOPIC_LAG_SECONDS = _own("topic_lag_seconds", _TOPIC, "As heliograph_lag_seconds.")
TOPIC_MARGIN = _own(
    "topic_retention_margin_records",
    (*_TOPIC, "partition"),
    "As heliograph_retention_margin_records, with the partition where it is least.",
)
TOPIC_SINCE_COPY = _own("topic_seconds_since_last_copy", _TOPIC, "As heliograph_seconds_since_last_copy.")
TOPIC_RECORDS = _own("topic_copied_records_total", _TOPIC, "As heliograph_copied_records_total.", COUNTER)
TOPIC_BYTES = _own("topic_copied_bytes_total", _TOPIC, "As heliograph_copied_bytes_total.", COUNTER)
TOPIC_PARTITIONS = _own("topic_partitions", _TOPIC, "Partitions of the topic.")
TOPIC_STOPPED = _own("topic_partitions_stopped", _TOPIC, "Those of them that are stopped.")
PARTITION_LAG = _own("partition_lag_records", (*_TOPIC, "partition"), "For one partition of the source.")
PARTITION_LAG_SECONDS = _own("partition_lag_seconds", (*_TOPIC, "partition"), "For one partition of the source.")
TOPICS_LEFT_OUT = _own("topics_left_out", _FLOW, "Topics without series of their own, as there are too many.")
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
