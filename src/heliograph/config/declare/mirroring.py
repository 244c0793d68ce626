"""Declarations: what a deployment is, what a flow copies and how, and Heliograph's own settings. All are acted on."""

from __future__ import annotations

from heliograph.config.declare import locations
from heliograph.config.declare.kinds import (
    INT_MAX,
    Addresses,
    Aliases,
    Bool,
    Choice,
    Decimal,
    Names,
    Partitions,
    Patterns,
    Separator,
    Subset,
    Text,
    Webhook,
    Whole,
)
from heliograph.config.declare.plugins import Plugin
from heliograph.config.declare.setting import Setting, SettingGroup
from heliograph.model.flow import CHECKPOINT, CONTINUE, FAIL, HEARTBEAT, SOURCE, KeptOffsets

TRANSLATE, PRESERVE = "translate", "preserve"
DEFAULT_KEPT = KeptOffsets()

MIB = 1024 * 1024

CLUSTERS = Setting(
    "clusters",
    Aliases(),
    None,
    "The aliases of the clusters, such as `A, B`. They become part of topic names.",
    locations.TOP,
    supported=True,
)
BOOTSTRAP_SERVERS = Setting(
    "bootstrap.servers",
    Addresses(),
    None,
    "Where a cluster can be reached: `host:port`, several with commas between. One at top level counts for every "
    "cluster that has none of its own.",
    locations.CLUSTER,
    supported=True,
)
ENABLED = Setting(
    "enabled",
    Bool(),
    "false",
    "Whether the flow copies anything. Usually set per flow; at top level it switches on every flow that does not say "
    "otherwise (and has not switched off its heartbeats), as with MM2.",
    locations.FLOW,
    supported=True,
)
TOPICS = Setting("topics", Patterns(), ".*", "Topics to copy.", locations.FLOW, supported=True)
TOPICS_EXCLUDE = Setting(
    "topics.exclude",
    Patterns(),
    r".*[\-\.]internal, .*\.replica, __.*",
    "Topics not to copy; wins over `topics`.",
    locations.FLOW,
    supported=True,
    old_names=("topics.blacklist",),
)
CONFIG_PROPERTIES_EXCLUDE = Setting(
    "config.properties.exclude",
    Patterns(),
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.type, unclean\.leader\.election\.enable, "
    r"min\.insync\.replicas",
    "Topic settings that a mirror does not get from its source topic.",
    locations.FLOW,
    supported=True,
    old_names=("config.properties.blacklist",),
)
HEARTBEATS_REPLICATION_ENABLED = Setting(
    "heartbeats.replication.enabled",
    Bool(),
    "true",
    "Whether heartbeats topics are copied whatever `topics` and `topics.exclude` say.",
    locations.FLOW,
    supported=True,
)
REPLICATION_POLICY_CLASS = Setting(
    "replication.policy.class",
    Plugin(("DefaultReplicationPolicy", "IdentityReplicationPolicy")),
    "org.apache.kafka.connect.mirror.DefaultReplicationPolicy",
    "How mirrors are called: `DefaultReplicationPolicy` puts the source alias in front, `IdentityReplicationPolicy` "
    "keeps the name. With or without its package; Strimzi's class of the same name counts as Identity. Or the path of "
    "a Python class with the methods of `heliograph.model.policy.ReplicationPolicy`; it is given `source_alias` and "
    "`separator` if it takes them.",
    locations.FLOW,
    supported=True,
)
REPLICATION_POLICY_SEPARATOR = Setting(
    "replication.policy.separator",
    Separator(),
    ".",
    "What stands between alias and topic name; taken as it is, blanks at the end included.",
    locations.FLOW,
    supported=True,
)
INTERNAL_TOPIC_SEPARATOR_ENABLED = Setting(
    "replication.policy.internal.topic.separator.enabled",
    Bool(),
    "true",
    "Whether the names of offset-syncs and checkpoints topics have that separator too; if not, they have a dot.",
    locations.FLOW,
    supported=True,
)
REPLICATION_FACTOR = Setting(
    "replication.factor",
    Whole(-1, 32767, but_not=0),
    "2",
    "Replicas of new mirrors; -1 leaves it to the target's brokers.",
    locations.FLOW,
    supported=True,
)
TASKS_MAX = Setting(
    "tasks.max",
    Whole(1, INT_MAX),
    "1",
    "In how many pieces at most the flow's work is cut.",
    locations.FLOW,
    supported=True,
)
REFRESH_TOPICS_ENABLED = Setting(
    "refresh.topics.enabled",
    Bool(),
    "true",
    "Whether to look for new topics and partitions now and then.",
    locations.FLOW,
    supported=True,
)
REFRESH_TOPICS_INTERVAL = Setting(
    "refresh.topics.interval.seconds",
    Whole(),
    "600",
    "How often to look for them. Below 0: never; 0 is refused unless looking is switched off.",
    locations.FLOW,
    supported=True,
)
PARTS = Setting(
    "heliograph.parts",
    Subset((SOURCE, CHECKPOINT, HEARTBEAT)),
    f"{SOURCE}, {CHECKPOINT}, {HEARTBEAT}",
    "Which parts of an enabled flow run, called after MM2's connectors: `source` copies records, `checkpoint` "
    "translates the offsets of groups, `heartbeat` writes heartbeats.",
    locations.FLOW,
    supported=True,
)
PARTITIONS = Setting(
    "heliograph.partitions",
    Partitions(),
    "source",
    "How many partitions new mirrors have: `source` for as many as their source topics, or a number for that many at "
    "least. Never fewer than the source topic has: two partitions in one have no order and no exact offsets.",
    locations.FLOW,
    supported=True,
)
OFFSETS = Setting(
    "heliograph.offsets",
    Choice((TRANSLATE, PRESERVE)),
    TRANSLATE,
    "Which offsets records have on mirrors: with `translate` mirrors are dense and the offsets of groups are "
    "translated; with `preserve` records have the source's own offsets. That needs transactions and the right to "
    "delete records on the target.",
    locations.FLOW,
    supported=True,
)
PRESERVE_TOPICS = Setting(
    "heliograph.preserve.topics",
    Patterns(),
    ".*",
    "With `heliograph.offsets = preserve`: for which source topics. Those of others are translated.",
    locations.FLOW,
    supported=True,
)
PRESERVE_MAX_FILL = Setting(
    "heliograph.preserve.max.fill",
    Whole(0, 2**62),
    str(DEFAULT_KEPT.most_filler),
    "With `preserve`: how many offsets may be filled up before the first record of a mirror, at some millions per "
    "second. The offsets of a source that begins later are translated.",
    locations.FLOW,
    supported=True,
)
PRESERVE_MAX_GAP = Setting(
    "heliograph.preserve.max.gap",
    Whole(0, 2**31 - 1),
    str(DEFAULT_KEPT.most_gap),
    "With `preserve`: how many offsets without a record may be filled up between two records: some thousands per "
    "second with ClusterAction on the target, else some hundreds. Behind a wider gap the partition's offsets are "
    "translated.",
    locations.FLOW,
    supported=True,
)
BUFFER_MEMORY = Setting(
    "heliograph.buffer.memory",
    Whole(MIB, 2**40),
    str(64 * MIB),
    "How many bytes of records one lease may hold in memory.",
    locations.FLOW,
    supported=True,
)
LEASE_SECONDS = Setting(
    "heliograph.lease.seconds",
    Decimal(1, 600),
    "20",
    "How long a copier goes on without word from the driver. Its work is handed out anew after 15 times that at most.",
    locations.FLOW,
    supported=True,
)
MAX_BYTES_PER_SECOND = Setting(
    "heliograph.max.bytes.per.second",
    Whole(0, 2**50),
    "0",
    "How many bytes per second the flow may read from its source; 0 is no limit. Shared out over its leases.",
    locations.FLOW,
    supported=True,
)
RAISE_MIRROR_LIMITS = Setting(
    "heliograph.raise.mirror.limits",
    Bool(),
    "true",
    "Whether `max.message.bytes` and `segment.bytes` of a mirror are raised for a batch that needs it. If not, or if "
    "the target does not allow it, such batches are split.",
    locations.FLOW,
    supported=True,
)
MM2_CONNECTOR = Setting(
    "heliograph.mm2.connector",
    Text(),
    "MirrorSourceConnector",
    "The name of MM2's source connector, under which Connect has noted how far it has come: for taking over from a "
    "connector that had another name.",
    locations.FLOW,
    supported=True,
)
_POLICY = Choice((FAIL, CONTINUE))
ON_DATA_LOSS = Setting(
    "heliograph.on.data.loss",
    _POLICY,
    CONTINUE,
    "When the source has deleted (retention) or lost (unclean election) records before they were copied: stop that "
    "partition, or say so and go on. Stopping brings none of them back, and lets retention take more.",
    locations.FLOW,
    supported=True,
)
ON_RECREATED_TOPIC = Setting(
    "heliograph.on.recreated.topic",
    _POLICY,
    FAIL,
    "When a source topic was deleted and created again: stop its partitions, or append the new topic's records behind "
    "the old one's. Two topics in one mirror cannot be taken apart again.",
    locations.FLOW,
    supported=True,
)
ON_FOREIGN_WRITER = Setting(
    "heliograph.on.foreign.writer",
    _POLICY,
    FAIL,
    "When somebody else has written to a mirror, or batches of Heliograph's own are missing there or there twice, so "
    "that it is not a copy any more: stop that partition, or go on behind them, with what is missing copied then.",
    locations.FLOW,
    supported=True,
)
ON_REFUSED_RECORD = Setting(
    "heliograph.on.refused.record",
    _POLICY,
    FAIL,
    "When the target does not take a record (too large, no key on a compacted mirror, a time out of bounds): stop that "
    "partition, or put the record aside in the topic `heliograph-dead-letters.<source>.internal` and go on. Nobody may "
    "be looking there.",
    locations.FLOW,
    supported=True,
)
TOPICS_PAUSED = Setting(
    "heliograph.topics.paused",
    Names(),
    "",
    "Topics that are not copied for now: names, no expressions. Their mirrors stay, and are gone on with later.",
    locations.FLOW,
    supported=True,
)
NOTIFY_WEBHOOK = Setting(
    "heliograph.notify.webhook",
    Webhook(),
    "",
    "Where warnings and errors are posted as JSON, for those without Alertmanager: an http or https address. It may "
    "hold a secret, and is never shown. Read when the process starts; for `heliograph serve`, from the worker's file.",
    locations.TOP,
    supported=True,
)
CONFIG_PROVIDERS = Setting(
    "config.providers",
    Names(),
    "",
    "Names of the providers that `${name:path:key}` in a value may refer to.",
    locations.PROVIDERS,
    supported=True,
)
CONFIG_PROVIDER_OPTIONS = Setting(
    "config.providers.*",
    Text(),
    None,
    "Class and parameters of a provider: `config.providers.env.class = "
    "org.apache.kafka.common.config.provider.EnvVarConfigProvider`. Known are EnvVarConfigProvider (parameter "
    "`allowlist.pattern`), FileConfigProvider and DirectoryConfigProvider (parameter `allowed.paths`).",
    locations.TOP,
    supported=True,
)

GROUPS = (
    SettingGroup(
        "The deployment",
        "Which clusters there are, and where values may come from.",
        (CLUSTERS, BOOTSTRAP_SERVERS, CONFIG_PROVIDERS, CONFIG_PROVIDER_OPTIONS),
    ),
    SettingGroup(
        "What a flow copies",
        "The least that a file needs besides addresses is `A->B.enabled = true`.",
        (
            ENABLED,
            TOPICS,
            TOPICS_EXCLUDE,
            HEARTBEATS_REPLICATION_ENABLED,
            REPLICATION_POLICY_CLASS,
            REPLICATION_POLICY_SEPARATOR,
            INTERNAL_TOPIC_SEPARATOR_ENABLED,
            REPLICATION_FACTOR,
            TASKS_MAX,
            REFRESH_TOPICS_ENABLED,
            REFRESH_TOPICS_INTERVAL,
            CONFIG_PROPERTIES_EXCLUDE,
        ),
    ),
    SettingGroup(
        "Heliograph's own",
        "MirrorMaker 2 has no such settings.",
        (
            PARTS,
            PARTITIONS,
            OFFSETS,
            PRESERVE_TOPICS,
            PRESERVE_MAX_FILL,
            PRESERVE_MAX_GAP,
            TOPICS_PAUSED,
            BUFFER_MEMORY,
            LEASE_SECONDS,
            MAX_BYTES_PER_SECOND,
            RAISE_MIRROR_LIMITS,
            MM2_CONNECTOR,
            NOTIFY_WEBHOOK,
            ON_DATA_LOSS,
            ON_RECREATED_TOPIC,
            ON_FOREIGN_WRITER,
            ON_REFUSED_RECORD,
        ),
    ),
)
