"""One direction of mirroring, `A->B`, as plain values: the two clusters, what is copied and within which limits.

Everything is frozen and picklable, because flows are sent to Spark executors. Times are in seconds, sizes in bytes. The
file and line of each value are known to `heliograph.config` only.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from heliograph.model.backoff import Backoff
from heliograph.model.compression import Compression
from heliograph.model.connecting import DEFAULT_CONNECTING, Connecting
from heliograph.model.names import Matches, NameFilter
from heliograph.model.policy import (
    DefaultReplicationPolicy,
    ReplicationPolicy,
    checkpoint_topic,
    selected,
    why_left_out,
)
from heliograph.model.security import UNSECURED, Security

MIB = 1024 * 1024

DEFAULT_RETRY_BACKOFF = Backoff(0.1, 5.0)
DEFAULT_POLICY = DefaultReplicationPolicy()
DEFAULT_TOPICS = NameFilter((".*",), (r".*[\-\.]internal", r".*\.replica", "__.*"))
DEFAULT_GROUPS = NameFilter((".*",), ("console-consumer-.*", "connect-.*", "__.*"))
DEFAULT_CONFIG_PROPERTIES_EXCLUDE = NameFilter(
    (
        r"follower\.replication\.throttled\.replicas",
        r"leader\.replication\.throttled\.replicas",
        r"message\.timestamp\.difference\.max\.ms",
        r"message\.timestamp\.type",
        r"unclean\.leader\.election\.enable",
        r"min\.insync\.replicas",
    )
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Kafka cluster and how a client reaches it."""

    alias: str
    bootstrap_servers: tuple[tuple[str, int], ...]
    client_id: str = "heliograph"
    request_timeout: float = 30.0
    security: Security = UNSECURED
    connecting: Connecting = DEFAULT_CONNECTING


FAIL, CONTINUE = "fail", "continue"


@dataclass(frozen=True, slots=True)
class Policies:
    """What to do about a problem of a partition: stop it (`fail`), or report it and continue (`continue`).

    - data_loss: the source has deleted or lost records before they were copied. Stopping brings none of them back, and
      retention deletes more meanwhile; so the default is to continue.
    - recreated_topic: the source topic was deleted and created again. Two topics in one mirror cannot be separated
      later; so the default is to stop.
    - foreign_writer: somebody else has written to the mirror, or batches of ours are missing or duplicated: it is not a
      copy any more. The default is to stop.
    - refused_record: the target refuses a record. `continue` writes it to the dead-letter topic, which nobody may be
      reading; so the default is to stop.
    """

    data_loss: str = CONTINUE
    recreated_topic: str = FAIL
    foreign_writer: str = FAIL
    refused_record: str = FAIL


@dataclass(frozen=True, slots=True)
class Reading:
    """What is fetched from the source, and the limits of a fetch."""

    fetch_max_bytes: int = 50 * MIB
    max_partition_fetch_bytes: int = 4 * MIB
    fetch_min_bytes: int = 1
    fetch_max_wait: float = 0.5
    committed_only: bool = True
    from_the_end: bool = False  # new mirrors begin at the source's end, not at its start
    rack: str = ""  # where the copiers are: the leader may name a replica in the same rack to fetch from; '': leaders


@dataclass(frozen=True, slots=True)
class Writing:
    """Limits of the appends to the target."""

    max_request_size: int = 4 * MIB
    request_timeout: float = 30.0
    join_up_to: int = 900_000  # small batches are joined to this size
    compiled: bool = True  # use compiled code to join them
    compression: Compression | None = None  # None: as in the source


@dataclass(frozen=True, slots=True)
class KeptOffsets:
    """Which mirrors preserve the source's offsets (None: none), and limits: `most_filler` offsets may be filled at a
    mirror's beginning, `most_gap` in a gap between records, which takes a transaction for each."""

    topics: Matches | None = None
    most_filler: int = 1_000_000_000
    most_gap: int = 100_000


@dataclass(frozen=True, slots=True)
class TopicSync:
    """What is synced to existing mirrors. An interval of None: never.

    `exclude` matches the topic configs that are not synced. With `source_defaults`, configs that the source topic has
    by default are set on the mirror to the same value; without, the mirror has the target's default.
    """

    configs_every: float | None = 600.0
    acls_every: float | None = 600.0
    exclude: Matches = DEFAULT_CONFIG_PROPERTIES_EXCLUDE
    source_defaults: bool = False


@dataclass(frozen=True, slots=True)
class OffsetSyncs:
    """Pairs of source and target offsets, for MM2's own tools. `lag_max`: records until the next pair."""

    enabled: bool = True
    on_target: bool = False
    lag_max: int = 100
    replication_factor: int = 3


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups whose offsets are translated, and how often. An interval of None: never."""

    names: Matches = DEFAULT_GROUPS
    refresh_every: float | None = 600.0
    checkpoints_every: float | None = 60.0
    sync_every: float | None = None
    replication_factor: int = 3  # of the checkpoints topic
    deletes: bool = False  # whether groups that are deleted on the source are deleted on the target


@dataclass(frozen=True, slots=True)
class Heartbeats:
    every: float | None = 1.0
    replication_factor: int = 3


@dataclass(frozen=True, slots=True)
class ConnectOffsets:
    """Where MM2 stores its source offsets: the topic on the target and the connector's name; and how to see whether it
    runs: the group of its workers, and the topic with the states of connectors. Without that topic, it runs as long as
    the group has members. Empty fields: as in MM2's dedicated mode."""

    topic: str = ""
    connector: str = "MirrorSourceConnector"
    group: str = ""
    status_topic: str = ""


# The parts of a flow, named after MM2's connectors.
SOURCE, CHECKPOINT, HEARTBEAT = "source", "checkpoint", "heartbeat"

# A running flow takes changes of these over. A field that is neither here nor in LeaseSettings needs a new runner.
_CHANGEABLE = (
    *("parts", "topics", "paused_topics", "heartbeats_replication", "replication_factor", "tasks_max"),
    *("refresh_topics_every", "least_partitions", "topic_sync", "offset_syncs", "groups", "heartbeats"),
    "flush_offsets_every",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """How leases copy. Running leases restart when one of these changes: a setting that leases use belongs here, or to
    what needs a new runner (see `Flow.needs_new_runner`).

    Leases may connect in other ways than the driver does: `reader` is the source as the consumer of records reaches it,
    `writer` the target as their producer does; None: as the driver. `retry_backoff` is for a partition that has
    failed."""

    reading: Reading = Reading()
    writing: Writing = Writing()
    buffer_memory: int = 64 * MIB  # what one lease may hold in memory
    lease_seconds: float = 20.0
    max_bytes_per_second: int = 0  # 0: no limit
    may_raise_limits: bool = True  # may change a mirror's settings where a source's records need it
    policies: Policies = Policies()
    reader: Cluster | None = None
    writer: Cluster | None = None
    retry_backoff: Backoff = DEFAULT_RETRY_BACKOFF


@dataclass(frozen=True, slots=True)
class Flow(LeaseSettings):
    """What is copied from one cluster to another, and how.

    `parts` says what of it runs: a flow that is not enabled still writes heartbeats, and MM2's connectors can be
    deployed one by one. `least_partitions` is how many a mirror has even if its source topic has fewer.
    `flush_offsets_every` is how often offset syncs that are held back are written, and positions as MM2's source
    offsets.

    `source` and `target` are the clusters as the driver's clients reach them. Flows, Heliograph's own topics and MM2's
    workers are named after their aliases. Mirrors and MM2's internal topics are named after the aliases that MM2's
    connectors have (`aliases`): `connector_aliases`, where a file sets others than those in `clusters`.
    `checkpoint_policy` is that of the checkpoint connector, if it is not the source connector's.
    """

    source: Cluster
    target: Cluster
    parts: frozenset[str] = frozenset({SOURCE, CHECKPOINT, HEARTBEAT})
    connector_aliases: tuple[str, str] | None = None
    policy: ReplicationPolicy = DEFAULT_POLICY
    checkpoint_policy: ReplicationPolicy | None = None
    topics: Matches = DEFAULT_TOPICS
    paused_topics: frozenset[str] = frozenset()  # selected, but not copied for now
    heartbeats_replication: bool = True
    replication_factor: int = 2
    tasks_max: int = 1
    refresh_topics_every: float | None = 600.0
    least_partitions: int = 0
    kept_offsets: KeptOffsets = KeptOffsets()
    topic_sync: TopicSync = TopicSync()
    offset_syncs: OffsetSyncs = OffsetSyncs()
    groups: Groups = Groups()
    heartbeats: Heartbeats = Heartbeats()
    connect_offsets: ConnectOffsets = ConnectOffsets()
    flush_offsets_every: float = 60.0

    @property
    def name(self) -> str:
        return f"{self.source.alias}->{self.target.alias}"

    @property
    def lease_settings(self) -> LeaseSettings:
        return LeaseSettings(**{setting.name: getattr(self, setting.name) for setting in fields(LeaseSettings)})

    def needs_new_runner(self, changed: Flow) -> bool:
        """Whether a change needs the flow to be stopped and started again: not if only settings of leases change, and
        settings that a running flow takes over."""
        names = (*_CHANGEABLE, *(setting.name for setting in fields(LeaseSettings)))
        return replace(self, **{name: getattr(changed, name) for name in names}) != changed

    @property
    def reads_source(self) -> bool:
        """A flow that only writes heartbeats does not need its source, which may even have no address."""
        return self.parts != {HEARTBEAT}

    @property
    def aliases(self) -> tuple[str, str]:
        """`source.cluster.alias` and `target.cluster.alias` of MM2's connectors."""
        return self.connector_aliases or (self.source.alias, self.target.alias)

    def mirror_name(self, topic: str) -> str:
        """The mirror of a source topic."""
        return self.policy.remote_topic(self.aliases[0], topic)

    @property
    def offset_syncs_topic(self) -> str:
        """Named after the cluster that it is not on."""
        source, target = self.aliases
        return self.policy.offset_syncs_topic(source if self.offset_syncs.on_target else target)

    @property
    def checkpoints_topic(self) -> str:
        return (self.checkpoint_policy or self.policy).checkpoints_topic(self.aliases[0])

    def name_in_checkpoints(self, topic: str) -> str:
        """What checkpoints call a source topic: as the checkpoint connector names its mirror."""
        return checkpoint_topic(self.checkpoint_policy or self.policy, *self.aliases, topic)

    def mixes_heartbeats(self, topic: str) -> bool:
        """Whether the mirror of a topic would be the one that this flow writes heartbeats to. MM2 mixes both; here a
        mirror has no records but its source's."""
        is_writing = HEARTBEAT in self.parts and self.heartbeats.every is not None
        return is_writing and self.mirror_name(topic) == self.policy.heartbeats_topic()

    def keeps_offsets(self, topic: str) -> bool:
        """Whether the mirror of a source topic preserves its offsets."""
        topics = self.kept_offsets.topics
        return topics is not None and topics.matches(topic)

    def selects(self, topic: str) -> bool:
        """Whether this flow copies a source topic."""
        return not self.mixes_heartbeats(topic) and selected(
            self.policy, self.topics, self.heartbeats_replication, self.aliases[1], topic
        )

    def why_left_out(self, topic: str) -> tuple[str, str]:
        """Why this flow does not copy a topic, and what would change that."""
        if self.mixes_heartbeats(topic):
            return "its mirror is the topic that heartbeats are written to", "set emit.heartbeats.enabled = false"
        return why_left_out(self.policy, self.topics, self.aliases[1], topic)
