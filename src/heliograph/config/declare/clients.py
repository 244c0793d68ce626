"""Declarations: the clients that read and write, security, and MirrorMaker 2's Connect workers.

The defaults are those of MirrorMaker 2's clients: for the producer those that Connect gives its data producer.
"""

from heliograph.config.declare.kinds import INT_MAX, TEXT, choice, whole
from heliograph.config.declare.locations import CLIENT_CLUSTER, CONSUMER, PRODUCER, SECURITY, WORKER, WORKER_TOP_FIRST
from heliograph.config.declare.setting import DEFAULTS, SettingGroup, default_text

_CLIENTS = SettingGroup("Every client", "Settings that consumer, producer and admin client share.")
_CONSUMER = SettingGroup("Consumer", "Reading from the source.")
_PRODUCER = SettingGroup("Producer", "Writing to the target.")
_SECURITY = SettingGroup("Security protocol", "Checked wherever it is written.")
_STORAGE = SettingGroup(
    "Connect's topics and tasks", "At top level these win over `B.`, the reverse of what one expects."
)
_WORKERS = SettingGroup("Connect workers", "Read only with the alias of the target in front.")

_SIZE = whole(0, INT_MAX)

CLIENT_ID = _CLIENTS.declare(
    "client.id",
    TEXT,
    DEFAULTS.source.client_id,
    "The name that brokers see in logs and quotas. (MM2 derives one from flow, connector and role.)",
    CLIENT_CLUSTER,
)
REQUEST_TIMEOUT = _CLIENTS.declare(
    "request.timeout.ms",
    whole(1, INT_MAX),
    default_text(DEFAULTS.source.request_timeout * 1000),
    "How long to wait for a broker's response.",
    CLIENT_CLUSTER,
)
FETCH_MAX_BYTES = _CONSUMER.declare(
    "fetch.max.bytes",
    _SIZE,
    default_text(DEFAULTS.reading.fetch_max_bytes),
    "The largest fetch response of a source broker.",
    CONSUMER,
)
MAX_PARTITION_FETCH_BYTES = _CONSUMER.declare(
    "max.partition.fetch.bytes",
    _SIZE,
    default_text(DEFAULTS.reading.max_partition_fetch_bytes),
    "How much of it may come from one partition.",
    CONSUMER,
)
FETCH_MIN_BYTES = _CONSUMER.declare(
    "fetch.min.bytes",
    _SIZE,
    default_text(DEFAULTS.reading.fetch_min_bytes),
    "How many bytes a broker waits for before it responds.",
    CONSUMER,
)
FETCH_MAX_WAIT = _CONSUMER.declare(
    "fetch.max.wait.ms",
    _SIZE,
    default_text(DEFAULTS.reading.fetch_max_wait * 1000),
    "How long it waits at most.",
    CONSUMER,
)
ISOLATION_LEVEL = _CONSUMER.declare(
    "isolation.level",
    choice("read_uncommitted", "read_committed"),
    "read_committed",
    "Whether records of aborted transactions are left out, and those of open ones waited for (MM2's own default is "
    "`read_uncommitted`).",
    CONSUMER,
)
AUTO_OFFSET_RESET = _CONSUMER.declare(
    "auto.offset.reset",
    choice("earliest", "latest", "none"),
    "earliest",
    "Where a new mirror begins: at the start of the source topic, or with `latest` at its end. For records that are "
    "deleted before they are copied, see `heliograph.on.data.loss`.",
    CONSUMER,
)
BATCH_SIZE = _PRODUCER.declare(
    "batch.size",
    _SIZE,
    default_text(DEFAULTS.writing.join_up_to),
    "The largest batch that thin ones are joined to; others stay as they are. 0: they are not joined. (MM2's own "
    "default is 16384.)",
    PRODUCER,
)
MAX_REQUEST_SIZE = _PRODUCER.declare(
    "max.request.size",
    whole(1, INT_MAX),
    default_text(DEFAULTS.writing.max_request_size),
    "The largest produce request to a target broker.",
    PRODUCER,
)
SECURITY_PROTOCOL = _SECURITY.declare(
    "security.protocol",
    choice("PLAINTEXT", otherwise="is not supported: this version has no TLS and SASL yet, write PLAINTEXT"),
    "PLAINTEXT",
    "How to connect to brokers. This version supports PLAINTEXT only and refuses to start with anything else.",
    SECURITY,
)
OFFSET_STORAGE_TOPIC = _STORAGE.declare(
    "offset.storage.topic",
    TEXT,
    "mm2-offsets.A.internal",
    "Topic of Connect's offsets of a flow: where MM2 has stored its source offsets, for a takeover.",
    WORKER_TOP_FIRST,
)
GROUP_ID = _WORKERS.declare(
    "group.id",
    TEXT,
    "A-mm2",
    "Connect group of MM2's workers of a flow: while it has members, Heliograph does not take over.",
    WORKER,
)

GROUPS = (
    _CLIENTS,
    _CONSUMER,
    _PRODUCER,
    _SECURITY,
    SettingGroup("TLS", "Names as in Kafka's clients."),
    SettingGroup("SASL", "Names as in Kafka's clients."),
    SettingGroup("MirrorMaker 2's driver", "Read from the top level only."),
    _STORAGE,
    SettingGroup("Converters", "MirrorMaker 2 keeps the bytes."),
    _WORKERS,
)
