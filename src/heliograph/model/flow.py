"""One direction of mirroring, `A->B`, as plain values: the two clusters, what is copied and within which limits.

Everything is frozen and can be pickled, because flows travel to Spark executors. Times are in seconds, sizes in
bytes. Where the values come from, and which file line is to blame for a bad one, is known to `heliograph.config`
alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from heliograph.model.names import NameFilter
from heliograph.model.policy import DefaultReplicationPolicy, ReplicationPolicy, selected

MIB = 1024 * 1024

DEFAULT_POLICY = DefaultReplicationPolicy()
DEFAULT_TOPICS = NameFilter((".*",), (r".*[\-\.]internal", r".*\.replica", "__.*"))
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
    """A Kafka cluster and how to reach it."""

    alias: str
    bootstrap_servers: tuple[tuple[str, int], ...]
    client_id: str = "heliograph"
    request_timeout: float = 30.0


FAIL, CONTINUE = "fail", "continue"


@dataclass(frozen=True, slots=True)
class Policies:
    """What to do where there is a choice: stop the one partition (`fail`), or say so and go on (`continue`).

    - data_loss: the source has deleted or lost records before they were copied. Stopping brings none of them back, and
      lets retention take more; so the default is to go on.
    - recreated_topic: the source topic was deleted and made again. Two topics in one mirror cannot be told apart later;
      so the default is to stop.
    - foreign_writer: somebody else has written to the mirror, which is then not a copy any more: stop.
    - refused_record: the target does not take a record. `continue` parks it in a topic of its own: stop, as nobody may
      be looking there.
    """

    data_loss: str = CONTINUE
    recreated_topic: str = FAIL
    foreign_writer: str = FAIL
    refused_record: str = FAIL


@dataclass(frozen=True, slots=True)
class Reading:
    """Limits of the fetches from the source."""

    fetch_max_bytes: int = 50 * MIB
    max_partition_fetch_bytes: int = MIB
    fetch_min_bytes: int = 1
    fetch_max_wait: float = 0.5
    committed_only: bool = True


@dataclass(frozen=True, slots=True)
class Writing:
    """Limits of the appends to the target."""

    max_request_size: int = MIB
    request_timeout: float = 30.0
    join_up_to: int = 128 * 1024  # thin batches are joined to this size


@dataclass(frozen=True, slots=True)
class Flow:
    """What is copied from one cluster to another, and how.

    `config_properties_exclude` matches the topic settings that are not carried over to a mirror. `buffer_memory` is
    what one lease may hold in memory.
    """

    source: Cluster
    target: Cluster
    policy: ReplicationPolicy = DEFAULT_POLICY
    topics: NameFilter = DEFAULT_TOPICS
    heartbeats_replication: bool = True
    replication_factor: int = 2
    tasks_max: int = 1
    refresh_topics: bool = True
    refresh_topics_interval: float = 600.0
    config_properties_exclude: NameFilter = DEFAULT_CONFIG_PROPERTIES_EXCLUDE
    reading: Reading = Reading()
    writing: Writing = Writing()
    buffer_memory: int = 64 * MIB
    lease_seconds: float = 20.0
    max_bytes_per_second: int = 0  # 0: no limit
    may_raise_limits: bool = True  # may change a mirror's settings where a source's records need it
    policies: Policies = Policies()

    @property
    def name(self) -> str:
        return f"{self.source.alias}->{self.target.alias}"

    def mirror_name(self, topic: str) -> str:
        """What a source topic is called on the target."""
        return self.policy.remote_topic(self.source.alias, topic)

    def selects(self, topic: str) -> bool:
        """Whether this flow copies a source topic."""
        return selected(self.policy, self.topics, self.heartbeats_replication, self.target.alias, topic)
