"""Declarations: what MirrorMaker 2's three connectors take besides what says which records to copy."""

from __future__ import annotations

from heliograph.config.declare import locations
from heliograph.config.declare.kinds import Bool, Choice, Kind, Names, Patterns, Text, Whole
from heliograph.config.declare.plugins import Plugin
from heliograph.config.declare.setting import Setting, SettingGroup, T_co

_CLASS = Text("class")
_FACTOR = Whole(-1, 32767, but_not=0)
_KAFKA = "org.apache.kafka.connect.mirror"


def _acted(name: str, kind: Kind[T_co], default: str | None, about: str) -> Setting[T_co]:
    return Setting(name, kind, default, about, locations.FLOW, supported=True)


def _flow(name: str, kind: Kind[object], default: str | None, about: str, ignored_because: str = "") -> Setting[object]:
    return Setting(name, kind, default, about, locations.FLOW, ignored_because=ignored_because)


def _flow_only(
    name: str, kind: Kind[object], default: str | None, about: str, ignored_because: str = ""
) -> Setting[object]:
    """MM2's driver drops these at top level, because no connector declares them."""
    return Setting(name, kind, default, about, locations.FLOW_ONLY, ignored_because=ignored_because)


_NO_CONNECT = "there is no Connect here, and no connector to name"
_OWN_TASKS = "MM2 and Connect write it for their own tasks, which there are none of here"
_NO_TRANSFORMS = "records are copied as they are, and transforms are NOT applied"
_OWN_RETRIES = "failures are tried again by Heliograph's own rules; the `heliograph.on.*` settings say what stops"
_OWN_LOG = "every failure is logged once, with topic, partition and offsets"
_NO_TRANSACTIONS = "mirrors are written exactly once without transactions"
_OWN_TOPICS = "mirrors are created by Heliograph, with their source topics' settings"


_INTERVAL = "How often. Below 0: never; 0 is refused unless it is switched off."

SYNC_TOPIC_CONFIGS_ENABLED = _acted(
    "sync.topic.configs.enabled", Bool(), "true", "Whether changed topic settings are carried over to mirrors."
)
SYNC_TOPIC_CONFIGS_INTERVAL = _acted("sync.topic.configs.interval.seconds", Whole(), "600", _INTERVAL)
SYNC_TOPIC_ACLS_ENABLED = _acted(
    "sync.topic.acls.enabled", Bool(), "true", "Whether access rules of topics are carried over to mirrors."
)
SYNC_TOPIC_ACLS_INTERVAL = _acted("sync.topic.acls.interval.seconds", Whole(), "600", _INTERVAL)
USE_DEFAULTS_FROM = Setting(
    "use.defaults.from",
    Text(),
    "target",
    "Whose defaults count for topic settings: with `source`, what a source topic has by default is set on its mirror.",
    locations.FLOW_ONLY,
    supported=True,
)
EMIT_OFFSET_SYNCS_ENABLED = _acted(
    "emit.offset-syncs.enabled",
    Bool(),
    "true",
    "Whether pairs of source and target offsets are written for MM2's tools.",
)
OFFSET_LAG_MAX = _acted("offset.lag.max", Whole(), "100", "How far a mirror may get on before a new pair is written.")
OFFSET_SYNCS_LOCATION = _acted(
    "offset-syncs.topic.location", Choice(("source", "target")), "source", "Where the offset-syncs topic is."
)
OFFSET_SYNCS_FACTOR = _acted(
    "offset-syncs.topic.replication.factor", _FACTOR, "3", "Replicas of the offset-syncs topic."
)
GROUP_NAMES = _acted("groups", Patterns(), ".*", "Consumer groups to translate.")
GROUPS_EXCLUDE = Setting(
    "groups.exclude",
    Patterns(),
    "console-consumer-.*, connect-.*, __.*",
    "Consumer groups to leave out; wins over `groups`.",
    locations.FLOW,
    supported=True,
    old_names=("groups.blacklist",),
)
REFRESH_GROUPS_ENABLED = _acted(
    "refresh.groups.enabled", Bool(), "true", "Whether to look for new groups now and then."
)
REFRESH_GROUPS_INTERVAL = _acted("refresh.groups.interval.seconds", Whole(), "600", _INTERVAL)
EMIT_CHECKPOINTS_ENABLED = _acted(
    "emit.checkpoints.enabled", Bool(), "true", "Whether translated group offsets are written as checkpoints."
)
EMIT_CHECKPOINTS_INTERVAL = _acted("emit.checkpoints.interval.seconds", Whole(), "60", _INTERVAL)
SYNC_GROUP_OFFSETS_ENABLED = _acted(
    "sync.group.offsets.enabled", Bool(), "false", "Whether idle groups on the target get translated offsets."
)
SYNC_GROUP_OFFSETS_INTERVAL = _acted("sync.group.offsets.interval.seconds", Whole(), "60", _INTERVAL)
SYNC_GROUP_DELETES = _acted(
    "heliograph.sync.group.deletes",
    Bool(),
    "false",
    "Whether a group that the source does not have any more, as it was deleted or its offsets have expired, is deleted "
    "on the target, too. Only if it is empty there, never had members, and has no offsets but those that were synced. "
    "Not a setting of MirrorMaker 2. Needs `sync.group.offsets.enabled`.",
)
CHECKPOINTS_FACTOR = _acted("checkpoints.topic.replication.factor", _FACTOR, "3", "Replicas of the checkpoints topic.")
EMIT_HEARTBEATS_ENABLED = _acted(
    "emit.heartbeats.enabled", Bool(), "true", "Whether to write heartbeats to the target."
)
EMIT_HEARTBEATS_INTERVAL = _acted("emit.heartbeats.interval.seconds", Whole(), "1", _INTERVAL)
HEARTBEATS_FACTOR = _acted("heartbeats.topic.replication.factor", _FACTOR, "3", "Replicas of the heartbeats topic.")
_OF_ONES_OWN = (
    "Instead of the built-in one, the path of a Python class with a method `matches(name)` that answers True or False; "
    "it is given the flow's settings, as a dict of texts, if its constructor takes an argument."
)
TOPIC_FILTER_CLASS = _acted(
    "topic.filter.class",
    Plugin(("DefaultTopicFilter",)),
    f"{_KAFKA}.DefaultTopicFilter",
    f"Class that picks topics; the built-in one goes by `topics` and `topics.exclude`. {_OF_ONES_OWN}",
)
GROUP_FILTER_CLASS = _acted(
    "group.filter.class",
    Plugin(("DefaultGroupFilter",)),
    f"{_KAFKA}.DefaultGroupFilter",
    f"Class that picks groups; the built-in one goes by `groups` and `groups.exclude`. {_OF_ONES_OWN}",
)
CONFIG_PROPERTY_FILTER_CLASS = _acted(
    "config.property.filter.class",
    Plugin(("DefaultConfigPropertyFilter",)),
    f"{_KAFKA}.DefaultConfigPropertyFilter",
    "Class that picks the topic settings which mirrors get; the built-in one goes by `config.properties.exclude`. "
    f"{_OF_ONES_OWN}",
)
FILTER_CLASSES = (TOPIC_FILTER_CLASS, GROUP_FILTER_CLASS, CONFIG_PROPERTY_FILTER_CLASS)

_TOPICS = (
    SYNC_TOPIC_CONFIGS_ENABLED,
    SYNC_TOPIC_CONFIGS_INTERVAL,
    SYNC_TOPIC_ACLS_ENABLED,
    SYNC_TOPIC_ACLS_INTERVAL,
    USE_DEFAULTS_FROM,
    _flow(
        "use.incremental.alter.configs",
        Text(),
        "requested",
        "Kafka 3.5 to 3.9: by which request settings change.",
        "settings are always changed one by one (IncrementalAlterConfigs), as by MM2 since 4.0",
    ),
    CONFIG_PROPERTY_FILTER_CLASS,
    TOPIC_FILTER_CLASS,
)
_OFFSETS = (EMIT_OFFSET_SYNCS_ENABLED, OFFSET_LAG_MAX, OFFSET_SYNCS_LOCATION, OFFSET_SYNCS_FACTOR)
_GROUPS = (
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
# Which connector alone reads a setting; all others are read by the source connector, if anything.
OF_CHECKPOINT = frozenset(name for one in _GROUPS for name in (one.name, *one.old_names)) | {"task.assigned.groups"}
OF_HEARTBEAT = frozenset(setting.name for setting in _HEARTBEATS)

_CONNECTORS = (
    _flow("name", Text(), None, "Name of the connector.", _NO_CONNECT),
    _flow("connector.class", _CLASS, None, "Class of the connector.", _NO_CONNECT),
    _flow(
        "tasks.max.enforce",
        Bool(),
        "true",
        "Whether a connector with more tasks than `tasks.max` fails.",
        "there are never more leases than `tasks.max`",
    ),
    _flow(
        "source.cluster.alias",
        Text(),
        None,
        "Alias of the source, set by MM2's driver.",
        "the alias is in the flow's name, `A->B`",
    ),
    _flow(
        "target.cluster.alias",
        Text(),
        "target",
        "Alias of the target, set by MM2's driver.",
        "the alias is in the flow's name, `A->B`",
    ),
    _flow(
        "admin.timeout.ms",
        Whole(),
        "60000",
        "How long one administrative job may take.",
        "each request has a limit of its own, `request.timeout.ms`",
    ),
    _flow(
        "consumer.poll.timeout.ms",
        Whole(),
        "1000",
        "How long one poll of the source waits.",
        "nothing is polled: `consumer.fetch.max.wait.ms` says how long a broker gathers",
    ),
    _flow(
        "forwarding.admin.class",
        _CLASS,
        "org.apache.kafka.clients.admin.ForwardingAdmin",
        "Class through which topics and access rules are changed.",
        "Java classes cannot be loaded here",
    ),
    _flow(
        "add.source.alias.to.metrics",
        Bool(),
        "false",
        "Kafka 3.5 to 3.9: whether metrics name the source.",
        "whatever is reported of a flow names its source and target",
    ),
    _flow(
        "config.action.reload",
        Choice(("restart", "none")),
        "restart",
        "What to do when a provided value expires.",
        "values are looked up once, when the file is read, and do not expire",
    ),
    _flow(
        "errors.retry.timeout",
        Whole(-1),
        "0",
        "How long a failed operation is tried again; -1 is for ever.",
        _OWN_RETRIES,
    ),
    _flow("errors.retry.delay.max.ms", Whole(), "60000", "The longest pause between two tries.", _OWN_RETRIES),
    _flow(
        "errors.tolerance",
        Choice(("none", "all")),
        "none",
        "Whether records that fail are skipped.",
        "it is about converters and transforms; for records that a target refuses there is "
        "`heliograph.on.refused.record`",
    ),
    _flow("errors.log.enable", Bool(), "false", "Whether each failure is logged.", _OWN_LOG),
    _flow(
        "errors.log.include.messages",
        Bool(),
        "false",
        "Whether the log holds the failed record.",
        "records are never logged, only where they are",
    ),
    _flow("transforms", Names(), "", "Aliases of single message transforms.", _NO_TRANSFORMS),
    _flow_only("transforms.*", Text(), None, "A transform's class and options.", _NO_TRANSFORMS),
    _flow("predicates", Names(), "", "Aliases of the conditions of transforms.", _NO_TRANSFORMS),
    _flow_only("predicates.*", Text(), None, "A condition's class and options.", _NO_TRANSFORMS),
    _flow_only(
        "exactly.once.support",
        Choice(("requested", "required")),
        "requested",
        "Whether to insist on it.",
        "every batch is always appended exactly once",
    ),
    _flow_only(
        "transaction.boundary",
        Choice(("poll", "interval", "connector")),
        "poll",
        "When Connect ends a transaction.",
        _NO_TRANSACTIONS,
    ),
    _flow_only("transaction.boundary.interval.ms", Whole(), None, "How often, if by interval.", _NO_TRANSACTIONS),
    _flow_only(
        "offsets.storage.topic",
        Text(),
        None,
        "A Connect offsets topic of the connector's own.",
        "how far a mirror has got is read from the mirror itself",
    ),
    _flow_only("topic.creation.groups", Names(), "", "Groups of rules for topics that Connect creates.", _OWN_TOPICS),
    _flow_only("topic.creation.*", Text(), None, "Such a rule.", _OWN_TOPICS),
    _flow("task.assigned.partitions", Names(), None, "Written by MM2 for its tasks.", _OWN_TASKS),
    _flow("task.assigned.groups", Names(), None, "Written by MM2 for its tasks.", _OWN_TASKS),
    _flow("task.index", Whole(), None, "Written by MM2 for its tasks.", _OWN_TASKS),
    _flow("task.class", _CLASS, None, "Written by Connect for its tasks.", _OWN_TASKS),
)

GROUPS = (
    SettingGroup("Topic settings and access rules", "What mirrors get besides records.", _TOPICS),
    SettingGroup("Offset syncs", "Which source offset belongs to which target offset.", _OFFSETS),
    SettingGroup("Consumer groups", "Checkpoints and translated group offsets.", _GROUPS),
    SettingGroup("Heartbeats", "Small records that show a flow is alive.", _HEARTBEATS),
    SettingGroup("Connectors", "What else MirrorMaker 2's connectors take.", _CONNECTORS),
)
