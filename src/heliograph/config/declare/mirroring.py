"""Declarations: the clusters, what a flow copies and how, and Heliograph's own settings."""

from heliograph.config.declare import kinds
from heliograph.config.declare.kinds import BOOL, INT_MAX, NAMES, PATTERNS, TEXT, choice, decimal, subset, whole
from heliograph.config.declare.locations import CLUSTER, PROVIDERS, TOP
from heliograph.config.declare.plugins import plugin
from heliograph.config.declare.setting import DEFAULTS, SettingGroup, default_text
from heliograph.model.flow import (
    CHECKPOINT,
    CONTINUE,
    DEFAULT_CONFIG_PROPERTIES_EXCLUDE,
    DEFAULT_TOPICS,
    FAIL,
    HEARTBEAT,
    MIB,
    SOURCE,
)

TRANSLATE, PRESERVE = "translate", "preserve"

_DEPLOYMENT = SettingGroup("The deployment", "Which clusters there are, and where values may come from.")
_COPYING = SettingGroup("What a flow copies", "Besides addresses, a file needs at least `A->B.enabled = true`.")
_OWN = SettingGroup("Heliograph's own", "MirrorMaker 2 has no such settings.")

CLUSTERS = _DEPLOYMENT.declare(
    "clusters",
    kinds.ALIASES,
    None,
    "The aliases of the clusters, such as `A, B`. They become part of topic names.",
    TOP,
)
BOOTSTRAP_SERVERS = _DEPLOYMENT.declare(
    "bootstrap.servers",
    kinds.ADDRESSES,
    None,
    "Addresses of a cluster's brokers: `host:port`, several separated by commas. At top level it applies to every "
    "cluster that has none of its own.",
    CLUSTER,
)
CONFIG_PROVIDERS = _DEPLOYMENT.declare(
    "config.providers",
    NAMES,
    "",
    "Names of the providers that `${name:path:key}` in a value may refer to.",
    PROVIDERS,
)
CONFIG_PROVIDER_OPTIONS = _DEPLOYMENT.declare(
    "config.providers.*",
    TEXT,
    None,
    "Class and parameters of a provider: `config.providers.env.class = "
    "org.apache.kafka.common.config.provider.EnvVarConfigProvider`. Supported are EnvVarConfigProvider (parameter "
    "`allowlist.pattern`), FileConfigProvider and DirectoryConfigProvider (parameter `allowed.paths`).",
    TOP,
)

ENABLED = _COPYING.declare(
    "enabled",
    BOOL,
    "false",
    "Whether the flow copies anything. Usually set per flow; at top level it enables every flow that has no such "
    "setting of its own (and has not disabled its heartbeats), as with MM2.",
)
TOPICS = _COPYING.declare("topics", PATTERNS, default_text(DEFAULT_TOPICS.include), "Topics to copy.")
TOPICS_EXCLUDE = _COPYING.declare(
    "topics.exclude",
    PATTERNS,
    default_text(DEFAULT_TOPICS.exclude),
    "Topics not to copy; wins over `topics`.",
    old_names=("topics.blacklist",),
)
HEARTBEATS_REPLICATION_ENABLED = _COPYING.declare(
    "heartbeats.replication.enabled",
    BOOL,
    default_text(DEFAULTS.heartbeats_replication),
    "Whether heartbeats topics are copied even if `topics` and `topics.exclude` do not select them.",
)
REPLICATION_POLICY_CLASS = _COPYING.declare(
    "replication.policy.class",
    plugin("DefaultReplicationPolicy", "IdentityReplicationPolicy"),
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    "How mirrors are named: `DefaultReplicationPolicy` puts the source alias in front, `IdentityReplicationPolicy` "
    "keeps the name. With or without its package; Strimzi's class of the same name counts as Identity. Or the path of "
    "a Python class with the methods of `heliograph.model.policy.ReplicationPolicy`; its constructor gets "
    "`source_alias` and `separator` if it has such parameters.",
)
REPLICATION_POLICY_SEPARATOR = _COPYING.declare(
    "replication.policy.separator",
    kinds.SEPARATOR,
    ".",
    "Separator of alias and topic name; taken as it is, spaces at the end included.",
)
INTERNAL_TOPIC_SEPARATOR_ENABLED = _COPYING.declare(
    "replication.policy.internal.topic.separator.enabled",
    BOOL,
    "true",
    "Whether the names of offset-syncs and checkpoints topics have that separator too; otherwise they have a dot.",
)
REPLICATION_FACTOR = _COPYING.declare(
    "replication.factor",
    kinds.REPLICATION_FACTOR,
    default_text(DEFAULTS.replication_factor),
    "Replicas of new mirrors; -1 is the default of the target's brokers.",
)
TASKS_MAX = _COPYING.declare(
    "tasks.max", whole(1, INT_MAX), default_text(DEFAULTS.tasks_max), "The largest number of leases of the flow."
)
REFRESH_TOPICS_ENABLED = _COPYING.declare(
    "refresh.topics.enabled", BOOL, "true", "Whether to check for new topics and partitions."
)
REFRESH_TOPICS_INTERVAL = _COPYING.declare(
    "refresh.topics.interval.seconds",
    whole(),
    default_text(DEFAULTS.refresh_topics_every),
    "How often to check. Below 0: never; 0 is refused unless the check is disabled.",
)
CONFIG_PROPERTIES_EXCLUDE = _COPYING.declare(
    "config.properties.exclude",
    PATTERNS,
    default_text(DEFAULT_CONFIG_PROPERTIES_EXCLUDE.include),
    "Topic configs that a mirror does not get from its source topic.",
    old_names=("config.properties.blacklist",),
)

PARTS = _OWN.declare(
    "heliograph.parts",
    subset(SOURCE, CHECKPOINT, HEARTBEAT),
    f"{SOURCE}, {CHECKPOINT}, {HEARTBEAT}",
    "Which parts of an enabled flow run, named after MM2's connectors: `source` copies records, `checkpoint` "
    "translates the offsets of groups, `heartbeat` writes heartbeats.",
)
PARTITIONS = _OWN.declare(
    "heliograph.partitions",
    kinds.PARTITIONS,
    "source",
    "How many partitions new mirrors have: `source` for as many as their source topics, or at least this number. Never "
    "fewer than the source topic has: two partitions in one have no order and no exact offsets.",
)
OFFSETS = _OWN.declare(
    "heliograph.offsets",
    choice(TRANSLATE, PRESERVE),
    TRANSLATE,
    "Which offsets records have on mirrors: with `translate` mirrors are dense and the offsets of groups are "
    "translated; with `preserve` records have the source's own offsets. That needs transactions and the right to "
    "delete records on the target.",
)
PRESERVE_TOPICS = _OWN.declare(
    "heliograph.preserve.topics",
    PATTERNS,
    ".*",
    "With `heliograph.offsets = preserve`: for which source topics. The offsets of other topics are translated.",
)
PRESERVE_MAX_FILL = _OWN.declare(
    "heliograph.preserve.max.fill",
    whole(0, 2**62),
    default_text(DEFAULTS.kept_offsets.most_filler),
    "With `preserve`: how many offsets may be filled before the first record of a mirror, at some millions per second. "
    "If the source begins later, its offsets are translated.",
)
PRESERVE_MAX_GAP = _OWN.declare(
    "heliograph.preserve.max.gap",
    whole(0, INT_MAX),
    default_text(DEFAULTS.kept_offsets.most_gap),
    "With `preserve`: how many offsets without a record may be filled between two records: some thousands per second "
    "with ClusterAction on the target, else some hundreds. After a wider gap the partition's offsets are translated.",
)
TOPICS_PAUSED = _OWN.declare(
    "heliograph.topics.paused",
    NAMES,
    "",
    "Topics that are paused: names, not expressions. Their mirrors stay, and copying resumes there later.",
)
BUFFER_MEMORY = _OWN.declare(
    "heliograph.buffer.memory",
    whole(MIB, 2**40),
    default_text(DEFAULTS.buffer_memory),
    "How many bytes of records one lease may hold in memory.",
)
LEASE_SECONDS = _OWN.declare(
    "heliograph.lease.seconds",
    decimal(1, 600),
    default_text(DEFAULTS.lease_seconds),
    "How long a copier goes on without a renewal from the driver. A lease ends after 15 times that at most, and its "
    "partitions are reassigned.",
)
MAX_BYTES_PER_SECOND = _OWN.declare(
    "heliograph.max.bytes.per.second",
    whole(0, 2**50),
    default_text(DEFAULTS.max_bytes_per_second),
    "How many bytes per second the flow may read from its source, over all its leases; 0 is no limit.",
)
RAISE_MIRROR_LIMITS = _OWN.declare(
    "heliograph.raise.mirror.limits",
    BOOL,
    default_text(DEFAULTS.may_raise_limits),
    "Whether `max.message.bytes` and `segment.bytes` of a mirror are raised for a batch that needs it. If not, or if "
    "the target does not allow it, such batches are split.",
)
MM2_CONNECTOR = _OWN.declare(
    "heliograph.mm2.connector",
    TEXT,
    DEFAULTS.connect_offsets.connector,
    "The name of MM2's source connector, under which Connect has stored its source offsets: for a takeover from a "
    "connector that had another name.",
)
NOTIFY_WEBHOOK = _OWN.declare(
    "heliograph.notify.webhook",
    kinds.WEBHOOK,
    "",
    "Where warnings and errors are posted as JSON, for deployments without Alertmanager: an http or https address. It "
    "may contain a secret, and is never shown. Read when the process starts; for `heliograph serve`, from the worker's "
    "file.",
    TOP,
)
_POLICY = choice(FAIL, CONTINUE)
ON_DATA_LOSS = _OWN.declare(
    "heliograph.on.data.loss",
    _POLICY,
    DEFAULTS.policies.data_loss,
    "When the source has deleted (retention) or lost (unclean election) records before they were copied: stop that "
    "partition, or report it and continue. Stopping brings no record back, and lets retention delete more.",
)
ON_RECREATED_TOPIC = _OWN.declare(
    "heliograph.on.recreated.topic",
    _POLICY,
    DEFAULTS.policies.recreated_topic,
    "When a source topic was deleted and created again: stop its partitions, or append the new topic's records after "
    "the old one's. Two topics in one mirror cannot be separated again.",
)
ON_FOREIGN_WRITER = _OWN.declare(
    "heliograph.on.foreign.writer",
    _POLICY,
    DEFAULTS.policies.foreign_writer,
    "When another producer has written to a mirror, or batches of Heliograph's own are missing or duplicated there, so "
    "that it is no longer a copy: stop that partition, or continue after them and copy what is missing.",
)
ON_REFUSED_RECORD = _OWN.declare(
    "heliograph.on.refused.record",
    _POLICY,
    DEFAULTS.policies.refused_record,
    "When the target refuses a record (too large, no key on a compacted mirror, a timestamp out of bounds): stop that "
    "partition, or write the record to the topic `heliograph-dead-letters.<source>.internal` and continue. Watch that "
    "topic then.",
)

GROUPS = (_DEPLOYMENT, _COPYING, _OWN)
