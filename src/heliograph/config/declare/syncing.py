"""Declarations: what MirrorMaker 2's three connectors keep in sync besides records."""

from heliograph.config.declare.kinds import BOOL, PATTERNS, REPLICATION_FACTOR, TEXT, choice, whole
from heliograph.config.declare.locations import FLOW_ONLY
from heliograph.config.declare.plugins import plugin
from heliograph.config.declare.setting import DEFAULTS, SettingGroup, default_text
from heliograph.model.flow import DEFAULT_GROUPS

_TOPICS = SettingGroup("Topic configs and ACLs", "What mirrors get besides records.")
_OFFSETS = SettingGroup("Offset syncs", "Which source offset belongs to which target offset.")
_GROUPS = SettingGroup("Consumer groups", "Checkpoints and translated group offsets.")
_HEARTBEATS = SettingGroup("Heartbeats", "Small records that show that a flow is alive.")

_KAFKA = "org.apache.kafka.connect.mirror"
_INTERVAL = "How often. Below 0: never; 0 is refused unless it is disabled."
_OWN_CLASS = (
    "Instead of the built-in one, the path of a Python class with a method `matches(name)` that returns True or False; "
    "its constructor gets the flow's settings, as a dict of texts, if it takes an argument."
)

SYNC_TOPIC_CONFIGS_ENABLED = _TOPICS.declare(
    "sync.topic.configs.enabled", BOOL, "true", "Whether changed topic configs are synced to mirrors."
)
SYNC_TOPIC_CONFIGS_INTERVAL = _TOPICS.declare(
    "sync.topic.configs.interval.seconds", whole(), default_text(DEFAULTS.topic_sync.configs_every), _INTERVAL
)
SYNC_TOPIC_ACLS_ENABLED = _TOPICS.declare(
    "sync.topic.acls.enabled", BOOL, "true", "Whether the ACLs of topics are synced to mirrors."
)
SYNC_TOPIC_ACLS_INTERVAL = _TOPICS.declare(
    "sync.topic.acls.interval.seconds", whole(), default_text(DEFAULTS.topic_sync.acls_every), _INTERVAL
)
USE_DEFAULTS_FROM = _TOPICS.declare(
    "use.defaults.from",
    TEXT,
    "target",
    "Whose defaults apply to topic configs: with `source`, what a source topic has by default is set on its mirror.",
    FLOW_ONLY,
)
TOPIC_FILTER_CLASS = _TOPICS.declare(
    "topic.filter.class",
    plugin("DefaultTopicFilter"),
    f"{_KAFKA}.DefaultTopicFilter",
    f"Class that selects topics; the built-in one uses `topics` and `topics.exclude`. {_OWN_CLASS}",
)
CONFIG_PROPERTY_FILTER_CLASS = _TOPICS.declare(
    "config.property.filter.class",
    plugin("DefaultConfigPropertyFilter"),
    f"{_KAFKA}.DefaultConfigPropertyFilter",
    "Class that selects the topic configs which mirrors get; the built-in one uses `config.properties.exclude`. "
    f"{_OWN_CLASS}",
)
EMIT_OFFSET_SYNCS_ENABLED = _OFFSETS.declare(
    "emit.offset-syncs.enabled",
    BOOL,
    default_text(DEFAULTS.offset_syncs.enabled),
    "Whether pairs of source and target offsets are written for MM2's tools.",
)
OFFSET_LAG_MAX = _OFFSETS.declare(
    "offset.lag.max",
    whole(),
    default_text(DEFAULTS.offset_syncs.lag_max),
    "How many records may be copied before a new pair is written.",
)
OFFSET_SYNCS_LOCATION = _OFFSETS.declare(
    "offset-syncs.topic.location", choice("source", "target"), "source", "Where the offset-syncs topic is."
)
OFFSET_SYNCS_FACTOR = _OFFSETS.declare(
    "offset-syncs.topic.replication.factor",
    REPLICATION_FACTOR,
    default_text(DEFAULTS.offset_syncs.replication_factor),
    "Replicas of the offset-syncs topic.",
)
GROUP_NAMES = _GROUPS.declare("groups", PATTERNS, default_text(DEFAULT_GROUPS.include), "Consumer groups to translate.")
GROUPS_EXCLUDE = _GROUPS.declare(
    "groups.exclude",
    PATTERNS,
    default_text(DEFAULT_GROUPS.exclude),
    "Consumer groups not to translate; wins over `groups`.",
    old_names=("groups.blacklist",),
)
GROUP_FILTER_CLASS = _GROUPS.declare(
    "group.filter.class",
    plugin("DefaultGroupFilter"),
    f"{_KAFKA}.DefaultGroupFilter",
    f"Class that selects groups; the built-in one uses `groups` and `groups.exclude`. {_OWN_CLASS}",
)
REFRESH_GROUPS_ENABLED = _GROUPS.declare("refresh.groups.enabled", BOOL, "true", "Whether to check for new groups.")
REFRESH_GROUPS_INTERVAL = _GROUPS.declare(
    "refresh.groups.interval.seconds", whole(), default_text(DEFAULTS.groups.refresh_every), _INTERVAL
)
EMIT_CHECKPOINTS_ENABLED = _GROUPS.declare(
    "emit.checkpoints.enabled", BOOL, "true", "Whether translated group offsets are written as checkpoints."
)
EMIT_CHECKPOINTS_INTERVAL = _GROUPS.declare(
    "emit.checkpoints.interval.seconds", whole(), default_text(DEFAULTS.groups.checkpoints_every), _INTERVAL
)
SYNC_GROUP_OFFSETS_ENABLED = _GROUPS.declare(
    "sync.group.offsets.enabled", BOOL, "false", "Whether idle groups on the target get translated offsets."
)
SYNC_GROUP_OFFSETS_INTERVAL = _GROUPS.declare("sync.group.offsets.interval.seconds", whole(), "60", _INTERVAL)
SYNC_GROUP_DELETES = _GROUPS.declare(
    "heliograph.sync.group.deletes",
    BOOL,
    default_text(DEFAULTS.groups.deletes),
    "Whether a group that the source no longer has, because it was deleted or its offsets have expired, is deleted on "
    "the target, too. Only if it is empty there, never had members, and has no offsets but those that were synced. Not "
    "a setting of MirrorMaker 2. Needs `sync.group.offsets.enabled`.",
)
CHECKPOINTS_FACTOR = _GROUPS.declare(
    "checkpoints.topic.replication.factor",
    REPLICATION_FACTOR,
    default_text(DEFAULTS.groups.replication_factor),
    "Replicas of the checkpoints topic.",
)
EMIT_HEARTBEATS_ENABLED = _HEARTBEATS.declare(
    "emit.heartbeats.enabled", BOOL, "true", "Whether to write heartbeats to the target."
)
EMIT_HEARTBEATS_INTERVAL = _HEARTBEATS.declare(
    "emit.heartbeats.interval.seconds", whole(), default_text(DEFAULTS.heartbeats.every), _INTERVAL
)
HEARTBEATS_FACTOR = _HEARTBEATS.declare(
    "heartbeats.topic.replication.factor",
    REPLICATION_FACTOR,
    default_text(DEFAULTS.heartbeats.replication_factor),
    "Replicas of the heartbeats topic.",
)
FILTER_CLASSES = (TOPIC_FILTER_CLASS, GROUP_FILTER_CLASS, CONFIG_PROPERTY_FILTER_CLASS)

# Settings that only one connector reads; the source connector reads all others.
OF_CHECKPOINT = frozenset(name for setting in _GROUPS.settings for name in setting.names) | {"task.assigned.groups"}
OF_HEARTBEAT = frozenset(setting.name for setting in _HEARTBEATS.settings)

GROUPS = (
    _TOPICS,
    _OFFSETS,
    _GROUPS,
    _HEARTBEATS,
    SettingGroup("Connectors", "Other settings of MirrorMaker 2's connectors."),
)
