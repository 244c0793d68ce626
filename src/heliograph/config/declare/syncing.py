"""Declarations: what MirrorMaker 2's three connectors keep in sync besides records."""

from __future__ import annotations

from heliograph.config.declare.kinds import BOOL, PATTERNS, REPLICATION_FACTOR, TEXT, choice, whole
from heliograph.config.declare.locations import FLOW_ONLY
from heliograph.config.declare.plugins import plugin
from heliograph.config.declare.setting import DEFAULTS, Setting, SettingGroup, default_text
from heliograph.model.flow import DEFAULT_GROUPS

_KAFKA = "org.apache.kafka.connect.mirror"
_INTERVAL = "How often. Below 0: never; 0 is refused unless it is disabled."
_OWN_CLASS = (
    "Instead of the built-in one, the path of a Python class with a method `matches(name)` that returns True or False; "
    "its constructor gets the flow's settings, as a dict of texts, if it takes an argument."
)

SYNC_TOPIC_CONFIGS_ENABLED = Setting(
    "sync.topic.configs.enabled", BOOL, "true", "Whether changed topic configs are synced to mirrors."
)
SYNC_TOPIC_CONFIGS_INTERVAL = Setting(
    "sync.topic.configs.interval.seconds", whole(), default_text(DEFAULTS.topic_sync.configs_every), _INTERVAL
)
SYNC_TOPIC_ACLS_ENABLED = Setting(
    "sync.topic.acls.enabled", BOOL, "true", "Whether the ACLs of topics are synced to mirrors."
)
SYNC_TOPIC_ACLS_INTERVAL = Setting(
    "sync.topic.acls.interval.seconds", whole(), default_text(DEFAULTS.topic_sync.acls_every), _INTERVAL
)
USE_DEFAULTS_FROM = Setting(
    "use.defaults.from",
    TEXT,
    "target",
    "Whose defaults apply to topic configs: with `source`, what a source topic has by default is set on its mirror.",
    FLOW_ONLY,
)
TOPIC_FILTER_CLASS = Setting(
    "topic.filter.class",
    plugin("DefaultTopicFilter"),
    f"{_KAFKA}.DefaultTopicFilter",
    f"Class that selects topics; the built-in one uses `topics` and `topics.exclude`. {_OWN_CLASS}",
)
CONFIG_PROPERTY_FILTER_CLASS = Setting(
    "config.property.filter.class",
    plugin("DefaultConfigPropertyFilter"),
    f"{_KAFKA}.DefaultConfigPropertyFilter",
    "Class that selects the topic configs which mirrors get; the built-in one uses `config.properties.exclude`. "
    f"{_OWN_CLASS}",
)
EMIT_OFFSET_SYNCS_ENABLED = Setting(
    "emit.offset-syncs.enabled",
    BOOL,
    default_text(DEFAULTS.offset_syncs.enabled),
    "Whether pairs of source and target offsets are written for MM2's tools.",
)
OFFSET_LAG_MAX = Setting(
    "offset.lag.max",
    whole(),
    default_text(DEFAULTS.offset_syncs.lag_max),
    "How many records may be copied before a new pair is written.",
)
OFFSET_SYNCS_LOCATION = Setting(
    "offset-syncs.topic.location", choice("source", "target"), "source", "Where the offset-syncs topic is."
)
OFFSET_SYNCS_FACTOR = Setting(
    "offset-syncs.topic.replication.factor",
    REPLICATION_FACTOR,
    default_text(DEFAULTS.offset_syncs.replication_factor),
    "Replicas of the offset-syncs topic.",
)
GROUP_NAMES = Setting("groups", PATTERNS, default_text(DEFAULT_GROUPS.include), "Consumer groups to translate.")
GROUPS_EXCLUDE = Setting(
    "groups.exclude",
    PATTERNS,
    default_text(DEFAULT_GROUPS.exclude),
    "Consumer groups not to translate; wins over `groups`.",
    old_names=("groups.blacklist",),
)
GROUP_FILTER_CLASS = Setting(
    "group.filter.class",
    plugin("DefaultGroupFilter"),
    f"{_KAFKA}.DefaultGroupFilter",
    f"Class that selects groups; the built-in one uses `groups` and `groups.exclude`. {_OWN_CLASS}",
)
REFRESH_GROUPS_ENABLED = Setting("refresh.groups.enabled", BOOL, "true", "Whether to check for new groups.")
REFRESH_GROUPS_INTERVAL = Setting(
    "refresh.groups.interval.seconds", whole(), default_text(DEFAULTS.groups.refresh_every), _INTERVAL
)
EMIT_CHECKPOINTS_ENABLED = Setting(
    "emit.checkpoints.enabled", BOOL, "true", "Whether translated group offsets are written as checkpoints."
)
EMIT_CHECKPOINTS_INTERVAL = Setting(
    "emit.checkpoints.interval.seconds", whole(), default_text(DEFAULTS.groups.checkpoints_every), _INTERVAL
)
SYNC_GROUP_OFFSETS_ENABLED = Setting(
    "sync.group.offsets.enabled", BOOL, "false", "Whether idle groups on the target get translated offsets."
)
SYNC_GROUP_OFFSETS_INTERVAL = Setting("sync.group.offsets.interval.seconds", whole(), "60", _INTERVAL)
SYNC_GROUP_DELETES = Setting(
    "heliograph.sync.group.deletes",
    BOOL,
    default_text(DEFAULTS.groups.deletes),
    "Whether a group that the source no longer has, because it was deleted or its offsets have expired, is deleted on "
    "the target, too. Only if it is empty there, never had members, and has no offsets but those that were synced. Not "
    "a setting of MirrorMaker 2. Needs `sync.group.offsets.enabled`.",
)
CHECKPOINTS_FACTOR = Setting(
    "checkpoints.topic.replication.factor",
    REPLICATION_FACTOR,
    default_text(DEFAULTS.groups.replication_factor),
    "Replicas of the checkpoints topic.",
)
EMIT_HEARTBEATS_ENABLED = Setting("emit.heartbeats.enabled", BOOL, "true", "Whether to write heartbeats to the target.")
EMIT_HEARTBEATS_INTERVAL = Setting(
    "emit.heartbeats.interval.seconds", whole(), default_text(DEFAULTS.heartbeats.every), _INTERVAL
)
HEARTBEATS_FACTOR = Setting(
    "heartbeats.topic.replication.factor",
    REPLICATION_FACTOR,
    default_text(DEFAULTS.heartbeats.replication_factor),
    "Replicas of the heartbeats topic.",
)
FILTER_CLASSES = (TOPIC_FILTER_CLASS, GROUP_FILTER_CLASS, CONFIG_PROPERTY_FILTER_CLASS)

_TOPICS: tuple[Setting[object], ...] = (
    SYNC_TOPIC_CONFIGS_ENABLED,
    SYNC_TOPIC_CONFIGS_INTERVAL,
    SYNC_TOPIC_ACLS_ENABLED,
    SYNC_TOPIC_ACLS_INTERVAL,
    USE_DEFAULTS_FROM,
    CONFIG_PROPERTY_FILTER_CLASS,
    TOPIC_FILTER_CLASS,
)
_OFFSETS = (EMIT_OFFSET_SYNCS_ENABLED, OFFSET_LAG_MAX, OFFSET_SYNCS_LOCATION, OFFSET_SYNCS_FACTOR)
_GROUPS: tuple[Setting[object], ...] = (
    GROUP_NAMES,
    GROUPS_EXCLUDE,
    GROUP_FILTER_CLASS,
    REFRESH_GROUPS_ENABLED,
    REFRESH_GROUPS_INTERVAL,
    EMIT_CHECKPOINTS_ENABLED,
    EMIT_CHECKPOINTS_INTERVAL,
    SYNC_GROUP_OFFSETS_ENABLED,
    SYNC_GROUP_OFFSETS_INTERVAL,
    SYNC_GROUP_DELETES,
    CHECKPOINTS_FACTOR,
)
_HEARTBEATS = (EMIT_HEARTBEATS_ENABLED, EMIT_HEARTBEATS_INTERVAL, HEARTBEATS_FACTOR)
# Settings that only one connector reads; the source connector reads all others.
OF_CHECKPOINT = frozenset(name for setting in _GROUPS for name in setting.names) | {"task.assigned.groups"}
OF_HEARTBEAT = frozenset(setting.name for setting in _HEARTBEATS)

GROUPS = (
    SettingGroup("Topic configs and ACLs", "What mirrors get besides records.", _TOPICS),
    SettingGroup("Offset syncs", "Which source offset belongs to which target offset.", _OFFSETS),
    SettingGroup("Consumer groups", "Checkpoints and translated group offsets.", _GROUPS),
    SettingGroup("Heartbeats", "Small records that show that a flow is alive.", _HEARTBEATS),
    SettingGroup("Connectors", "Other settings of MirrorMaker 2's connectors."),
)
