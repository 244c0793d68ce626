"""Declarations: the settings of MirrorMaker 2's three connectors that this version does not act on."""

from __future__ import annotations

from heliograph.config import places
from heliograph.config.kinds import Bool, Choice, Kind, Names, Patterns, Text, Whole
from heliograph.config.setting import Group, Setting

_CLASS = Text("class")
_FACTOR = Whole(-1, 32767, but_not=0)
_KAFKA = "org.apache.kafka.connect.mirror"


def _flow(name: str, kind: Kind[object], default: str | None, about: str) -> Setting[object]:
    return Setting(name, kind, default, about, places.FLOW)


def _flow_only(name: str, kind: Kind[object], default: str | None, about: str) -> Setting[object]:
    """MM2's driver drops these at top level, because no connector declares them."""
    return Setting(name, kind, default, about, places.FLOW_ONLY)


EMIT_HEARTBEATS_ENABLED = _flow("emit.heartbeats.enabled", Bool(), "true", "Whether to write heartbeats to the target.")

_TOPICS = (
    _flow("sync.topic.configs.enabled", Bool(), "true", "Whether changed topic settings are carried over to mirrors."),
    _flow("sync.topic.configs.interval.seconds", Whole(), "600", "How often."),
    _flow("sync.topic.acls.enabled", Bool(), "true", "Whether access rules of topics are carried over to mirrors."),
    _flow("sync.topic.acls.interval.seconds", Whole(), "600", "How often."),
    _flow_only("use.defaults.from", Text(), "target", "Whose defaults count for topics: `target` or `source`."),
    _flow("use.incremental.alter.configs", Text(), "requested", "Kafka 3.5 to 3.9: by which request settings change."),
    _flow("config.property.filter.class", _CLASS, f"{_KAFKA}.DefaultConfigPropertyFilter", "What picks settings."),
    _flow("topic.filter.class", _CLASS, f"{_KAFKA}.DefaultTopicFilter", "Class that picks topics."),
)
_OFFSETS = (
    _flow("emit.offset-syncs.enabled", Bool(), "true", "Whether pairs of source and target offsets are written down."),
    _flow("offset.lag.max", Whole(), "100", "How far a mirror's offset may run off before a new pair is written."),
    _flow("offset-syncs.topic.location", Choice(("source", "target")), "source", "Where the offset-syncs topic is."),
    _flow("offset-syncs.topic.replication.factor", _FACTOR, "3", "Replicas of the offset-syncs topic."),
)
_GROUPS = (
    _flow("groups", Patterns(), ".*", "Consumer groups to translate."),
    Setting(
        "groups.exclude",
        Patterns(),
        "console-consumer-.*, connect-.*, __.*",
        "Consumer groups to leave out; wins over `groups`.",
        places.FLOW,
        old_names=("groups.blacklist",),
    ),
    _flow("group.filter.class", _CLASS, f"{_KAFKA}.DefaultGroupFilter", "Class that picks groups."),
    _flow("refresh.groups.enabled", Bool(), "true", "Whether to look for new groups now and then."),
    _flow("refresh.groups.interval.seconds", Whole(), "600", "How often."),
    _flow("emit.checkpoints.enabled", Bool(), "true", "Whether translated group offsets are written as checkpoints."),
    _flow("emit.checkpoints.interval.seconds", Whole(), "60", "How often."),
    _flow("sync.group.offsets.enabled", Bool(), "false", "Whether idle groups on the target get translated offsets."),
    _flow("sync.group.offsets.interval.seconds", Whole(), "60", "How often."),
    _flow("checkpoints.topic.replication.factor", _FACTOR, "3", "Replicas of the checkpoints topic."),
)
_HEARTBEATS = (
    EMIT_HEARTBEATS_ENABLED,
    _flow("emit.heartbeats.interval.seconds", Whole(), "1", "How often."),
    _flow("heartbeats.topic.replication.factor", _FACTOR, "3", "Replicas of the heartbeats topic."),
)
_CONNECTORS = (
    _flow("name", Text(), None, "Name of the connector."),
    _flow("connector.class", _CLASS, None, "Class of the connector."),
    _flow("tasks.max.enforce", Bool(), "true", "Whether a connector with more tasks than `tasks.max` fails."),
    _flow("source.cluster.alias", Text(), None, "Alias of the source, set by MM2's driver."),
    _flow("target.cluster.alias", Text(), "target", "Alias of the target, set by MM2's driver."),
    _flow("admin.timeout.ms", Whole(), "60000", "How long one administrative job may take."),
    _flow("consumer.poll.timeout.ms", Whole(), "1000", "How long one poll of the source waits."),
    _flow(
        "forwarding.admin.class",
        _CLASS,
        "org.apache.kafka.clients.admin.ForwardingAdmin",
        "Class through which topics and access rules are changed.",
    ),
    _flow("add.source.alias.to.metrics", Bool(), "false", "Kafka 3.5 to 3.9: whether metrics name the source."),
    _flow("config.action.reload", Choice(("restart", "none")), "restart", "What to do when a provided value expires."),
    _flow("errors.retry.timeout", Whole(-1), "0", "How long a failed operation is tried again; -1 is for ever."),
    _flow("errors.retry.delay.max.ms", Whole(), "60000", "The longest pause between two tries."),
    _flow("errors.tolerance", Choice(("none", "all")), "none", "Whether records that fail are skipped."),
    _flow("errors.log.enable", Bool(), "false", "Whether each failure is logged."),
    _flow("errors.log.include.messages", Bool(), "false", "Whether the log holds the failed record."),
    _flow("transforms", Names(), "", "Aliases of single message transforms."),
    _flow_only("transforms.*", Text(), None, "A transform's class and options."),
    _flow("predicates", Names(), "", "Aliases of the conditions of transforms."),
    _flow_only("predicates.*", Text(), None, "A condition's class and options."),
    _flow_only("exactly.once.support", Choice(("requested", "required")), "requested", "Whether to insist on it."),
    _flow_only(
        "transaction.boundary", Choice(("poll", "interval", "connector")), "poll", "When Connect ends a transaction."
    ),
    _flow_only("transaction.boundary.interval.ms", Whole(), None, "How often, if by interval."),
    _flow_only("offsets.storage.topic", Text(), None, "A Connect offsets topic of the connector's own."),
    _flow_only("topic.creation.groups", Names(), "", "Groups of rules for topics that Connect creates."),
    _flow_only("topic.creation.*", Text(), None, "Such a rule."),
    _flow("task.assigned.partitions", Names(), None, "Written by MM2 for its tasks."),
    _flow("task.assigned.groups", Names(), None, "Written by MM2 for its tasks."),
    _flow("task.index", Whole(), None, "Written by MM2 for its tasks."),
    _flow("task.class", _CLASS, None, "Written by Connect for its tasks."),
)

GROUPS = (
    Group("Topic settings and access rules", "What mirrors get besides records.", _TOPICS),
    Group("Offset syncs", "Which source offset belongs to which target offset.", _OFFSETS),
    Group("Consumer groups", "Checkpoints and translated group offsets.", _GROUPS),
    Group("Heartbeats", "Small records that show a flow is alive.", _HEARTBEATS),
    Group("Connectors", "What else MirrorMaker 2's connectors take.", _CONNECTORS),
)
