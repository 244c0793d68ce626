"""Kafka's metrics: of MM2, Connect and their clients, by MBean and attribute, and what they mean here.

Their names are those that the rules of Strimzi's example for the JMX exporter give them; `naming` has other names.
"""

from heliograph.metrics.definitions import MBean, Metric

MIRROR_SOURCE = MBean("kafka.connect.mirror", "MirrorSourceConnector", ("source", "target", "topic", "partition"))
MIRROR_CHECKPOINT = MBean(
    "kafka.connect.mirror", "MirrorCheckpointConnector", ("source", "target", "group", "topic", "partition")
)
WORKER = MBean("kafka.connect", "connect-worker-metrics")
WORKER_CONNECTOR = MBean("kafka.connect", "connect-worker-metrics", ("connector",))
REBALANCE = MBean("kafka.connect", "connect-worker-rebalance-metrics")
COORDINATOR = MBean("kafka.connect", "connect-coordinator-metrics", ("client-id",))
TASK = MBean("kafka.connect", "connector-task-metrics", ("connector", "task"))
SOURCE_TASK = MBean("kafka.connect", "source-task-metrics", ("connector", "task"))
TASK_ERROR = MBean("kafka.connect", "task-error-metrics", ("connector", "task"))
PRODUCER = MBean("kafka.producer", "producer-metrics", ("client-id",))
CONSUMER = MBean("kafka.consumer", "consumer-metrics", ("client-id",))
FETCH = MBean("kafka.consumer", "consumer-fetch-manager-metrics", ("client-id", "topic", "partition"))

STATUS = "status"  # the attribute whose value is text: it becomes a label


def _metric(mbean: MBean, attribute: str, meaning: str) -> Metric:
    labels = tuple(key.replace("-", "") for key in mbean.keys)
    return Metric(strimzi_name(mbean, attribute), labels, meaning, mbean=mbean, attribute=attribute)


def strimzi_name(mbean: MBean, attribute: str) -> str:
    kind = mbean.type.removesuffix("-metrics").lower()
    if mbean.domain == "kafka.connect.mirror":
        kind = f"connect_mirror_{kind}"
    elif mbean.domain == "kafka.connect":
        kind = f"connect_{kind.removeprefix('connect-')}"
    return f"kafka_{kind}_{attribute}".replace("-", "_")


# --- MM2's -------------------------------------------------------------------------------------------------

_MINUTE = "The same per second, over the last minute."
RECORD_COUNT = _metric(MIRROR_SOURCE, "record-count", "Records appended to the mirror since the flow started.")
RECORD_RATE = _metric(MIRROR_SOURCE, "record-rate", _MINUTE)
BYTE_COUNT = _metric(
    MIRROR_SOURCE,
    "byte-count",
    "Bytes of the batches appended to the mirror, compressed as stored. (MM2 counts only values, uncompressed.)",
)
BYTE_RATE = _metric(MIRROR_SOURCE, "byte-rate", _MINUTE)
_AGE = "the newest record of a batch, from its timestamp to its append to the mirror; sampled twice a second"
LATENCY = _metric(MIRROR_SOURCE, "replication-latency-ms", f"The age of {_AGE}: the last value, in milliseconds.")
LATENCY_AVG = _metric(MIRROR_SOURCE, "replication-latency-ms-avg", "Its mean over the last minute.")
LATENCY_MAX = _metric(MIRROR_SOURCE, "replication-latency-ms-max", "Its maximum in the last minute.")
LATENCY_MIN = _metric(MIRROR_SOURCE, "replication-latency-ms-min", "Its minimum in the last minute.")
_SAME = "The same value as replication_latency_ms{}: there is no separate measurement between fetch and append."
AGE = _metric(MIRROR_SOURCE, "record-age-ms", _SAME.format(""))
AGE_AVG = _metric(MIRROR_SOURCE, "record-age-ms-avg", _SAME.format("_avg"))
AGE_MAX = _metric(MIRROR_SOURCE, "record-age-ms-max", _SAME.format("_max"))
AGE_MIN = _metric(MIRROR_SOURCE, "record-age-ms-min", _SAME.format("_min"))
CHECKPOINT_LATENCY = _metric(
    MIRROR_CHECKPOINT,
    "checkpoint-latency-ms",
    "From reading a group's offsets to writing its checkpoint, in milliseconds: the last value. Absent if the last "
    "checkpoint is more than a minute old.",
)
CHECKPOINT_AVG = _metric(MIRROR_CHECKPOINT, "checkpoint-latency-ms-avg", "Its mean over the last minute.")
CHECKPOINT_MAX = _metric(MIRROR_CHECKPOINT, "checkpoint-latency-ms-max", "Its maximum in the last minute.")
CHECKPOINT_MIN = _metric(MIRROR_CHECKPOINT, "checkpoint-latency-ms-min", "Its minimum in the last minute.")
MM2 = (
    *(RECORD_COUNT, RECORD_RATE, BYTE_COUNT, BYTE_RATE),
    *(LATENCY, LATENCY_AVG, LATENCY_MAX, LATENCY_MIN, AGE, AGE_AVG, AGE_MAX, AGE_MIN),
    *(CHECKPOINT_LATENCY, CHECKPOINT_AVG, CHECKPOINT_MAX, CHECKPOINT_MIN),
)

# --- Connect's ---------------------------------------------------------------------------------------------

TASK_STATUS = Metric(
    "kafka_connect_connector_status",
    ("connector", "task", "status"),
    "1 for the current status of a task, in lower case.",
    mbean=TASK,
    attribute=STATUS,
)
CONNECTORS = _metric(WORKER, "connector-count", "Connectors, running or not.")
TASKS = _metric(WORKER, "task-count", "Tasks of all connectors.")
ASSIGNED_CONNECTORS = _metric(COORDINATOR, "assigned-connectors", "The same value as connector_count.")
ASSIGNED_TASKS = _metric(COORDINATOR, "assigned-tasks", "The same value as task_count.")
_DESTROYED = "Tasks of a connector that are destroyed: none, as the tasks of a deleted connector are not listed."
TASKS_OF = {
    state: _metric(WORKER_CONNECTOR, f"connector-{state}-task-count", meaning)
    for state, meaning in (
        ("total", "Tasks of a connector."),
        *((state, f"Tasks of a connector that are {state}.") for state in ("running", "paused", "failed")),
        ("unassigned", "Tasks of a connector that are unassigned."),
        ("destroyed", _DESTROYED),
    )
}
_LATELY = "over the last minute"
BATCH_SIZE = _metric(TASK, "batch-size-avg", f"Records in a batch that is appended: the mean {_LATELY}.")
BATCH_SIZE_MAX = _metric(TASK, "batch-size-max", "The most records in one appended batch in the last minute.")
_COMMIT = (
    "Heliograph commits no source offsets: a mirror's end is its position. In their place stand the reports of its "
    "progress that a lease writes to an internal topic of the target"
)
COMMIT_TIME = _metric(
    TASK, "offset-commit-avg-time-ms", f"{_COMMIT}: how long a write takes in milliseconds, the mean {_LATELY}."
)
COMMIT_TIME_MAX = _metric(TASK, "offset-commit-max-time-ms", "The longest such write in the last minute.")
COMMIT_SUCCESS = _metric(
    TASK, "offset-commit-success-percentage", f"The share of these writes that succeeded {_LATELY}: 0 to 1."
)
COMMIT_FAILURE = _metric(TASK, "offset-commit-failure-percentage", "The share that failed: 0 to 1.")
RUNNING_RATIO = _metric(
    TASK, "running-ratio", "The share of the time since the task first started in which a lease ran for it: 0 to 1."
)
ACTIVE = _metric(
    SOURCE_TASK,
    "source-record-active-count",
    "Records that are fetched and not yet acknowledged by the target, as of the lease's last report.",
)
_NOW = "Like write_total, it covers the partitions that the task has now."
WRITE_TOTAL = _metric(
    SOURCE_TASK,
    "source-record-write-total",
    "Records copied of the partitions that the task has now; it decreases when partitions move to another task.",
)
WRITE_RATE = _metric(SOURCE_TASK, "source-record-write-rate", _MINUTE)
POLL_TOTAL = _metric(SOURCE_TASK, "source-record-poll-total", "The same value as write_total.")
POLL_RATE = _metric(SOURCE_TASK, "source-record-poll-rate", "The same value as write_rate.")
RECORD_ERRORS = _metric(
    TASK_ERROR,
    "total-record-errors",
    f"Records that could not be copied: sent to the dead-letter topic, or their partition stopped. {_NOW}",
)
RECORD_FAILURES = _metric(
    TASK_ERROR,
    "total-record-failures",
    "The same value as total_record_errors: errors that a retry resolves are not counted.",
)
RECORDS_SKIPPED = _metric(
    TASK_ERROR, "total-records-skipped", "Records sent to the dead-letter topic, which the mirror does not hold."
)
RETRIES = _metric(
    TASK_ERROR,
    "total-retries",
    "How often copying of a partition was interrupted by an error, and resumed from the mirror's end. Like the metrics "
    "of the producer, it counts what all leases of this number did since the flow started.",
)
DEAD_LETTERS = _metric(
    TASK_ERROR,
    "deadletterqueue-produce-requests",
    "The same value as total_records_skipped: copying resumes when the record is in the dead-letter topic.",
)
ERRORS_LOGGED = _metric(
    TASK_ERROR, "total-errors-logged", "Logged errors about the task's partitions: refusals and notices."
)
LAST_ERROR = _metric(
    TASK_ERROR, "last-error-timestamp", "The time of the last error, in milliseconds since 1970; 0 for never."
)
REBALANCES = _metric(
    REBALANCE,
    "completed-rebalances-total",
    "How often the assignment of partitions to leases changed, in all flows.",
)
REBALANCING = _metric(REBALANCE, "rebalancing", "1 while fewer leases run than are wanted, 0 otherwise.")
SINCE_REBALANCE = _metric(
    REBALANCE,
    "time-since-last-rebalance-ms",
    "Milliseconds since the assignment of partitions to leases last changed.",
)
CONNECT = (
    *(TASK_STATUS, CONNECTORS, TASKS, ASSIGNED_CONNECTORS, ASSIGNED_TASKS, *TASKS_OF.values()),
    *(BATCH_SIZE, BATCH_SIZE_MAX, COMMIT_TIME, COMMIT_TIME_MAX, COMMIT_SUCCESS, COMMIT_FAILURE, RUNNING_RATIO),
    *(ACTIVE, WRITE_TOTAL, WRITE_RATE, POLL_TOTAL, POLL_RATE),
    *(RECORD_ERRORS, RECORD_FAILURES, RECORDS_SKIPPED, RETRIES, DEAD_LETTERS, ERRORS_LOGGED, LAST_ERROR),
    *(REBALANCES, REBALANCING, SINCE_REBALANCE),
)

# --- of producers and consumers --------------------------------------------------------------------------------

PRODUCER_BATCH_SIZE = _metric(
    PRODUCER, "batch-size-avg", f"Bytes of a batch that is appended, compressed as stored: the mean {_LATELY}."
)
REQUEST_LATENCY = _metric(
    PRODUCER,
    "request-latency-avg",
    f"Milliseconds from sending a Produce request to its answer, which waits for all in-sync replicas: the mean "
    f"{_LATELY}.",
)
OUTGOING = _metric(
    PRODUCER, "outgoing-byte-total", "Bytes of the batches that were appended, without requests' headers."
)
BUFFER_AVAILABLE = _metric(
    PRODUCER,
    "buffer-available-bytes",
    "What is free of `heliograph.buffer.memory`, as of the lease's last report: fetched bytes take it until they are "
    "appended.",
)
INCOMING = _metric(CONSUMER, "incoming-byte-total", "Bytes of records that were fetched from the source.")
RECORDS_LAG = _metric(
    FETCH,
    "records-lag",
    "Records of a source partition that are not copied yet; for MM2 it is the lag of its consumer.",
)
CLIENTS = (PRODUCER_BATCH_SIZE, REQUEST_LATENCY, OUTGOING, BUFFER_AVAILABLE, INCOMING, RECORDS_LAG)
