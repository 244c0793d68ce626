"""For applications: which topics of a cluster are mirrors, and where a group resumes after a failover.

The calls are those of MirrorMaker 2's `MirrorClient` and `RemoteClusterUtils`, and they read the same topics, whether
Heliograph or MM2 has written them. Each call connects, reads and disconnects; in a program with an event loop, use
`asyncio.to_thread`.

    from heliograph.client import MirrorClient

    standby = MirrorClient("standby:9092")
    for (topic, partition), at in standby.remote_consumer_offsets("billing", "primary").items():
        consumer.seek(TopicPartition(topic, partition), at.offset)

A secured cluster needs Kafka's settings for its clients, as a mapping or as a properties file:

    MirrorClient("standby:9093", config={"security.protocol": "SSL", "ssl.truststore.location": "/etc/kafka/trust.jks"})
    MirrorClient("standby:9093", config="/etc/kafka/client.properties")
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from heliograph.config import ConfigError
from heliograph.config.declare.kinds import ADDRESSES
from heliograph.config.resolve.client_config import client_security
from heliograph.model.flow import Cluster
from heliograph.model.mm2_records import Checkpoint
from heliograph.model.partitions import TopicPartition
from heliograph.model.policy import DefaultReplicationPolicy, ReplicationPolicy, hops
from heliograph.model.security import UNSECURED
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Committed
from heliograph.wire.errors import WireError
from heliograph.wire.records import own_topic, read_kind

__all__ = [
    "Committed",
    "ConfigError",
    "MirrorClient",
    "WireError",
    "checkpoint_topics",
    "heartbeat_topics",
    "replication_hops",
    "translate_offsets",
    "upstream_clusters",
]

T = TypeVar("T")
Servers = str | Sequence[str]
Config = Mapping[str, str] | str | os.PathLike[str]


class MirrorClient:
    """Reads one cluster. `IdentityReplicationPolicy` needs the alias of the source."""

    def __init__(
        self,
        bootstrap_servers: Servers,
        policy: ReplicationPolicy | None = None,
        request_timeout: float = 30.0,
        config: Config | None = None,
    ) -> None:
        """`bootstrap_servers` is "host:port"; several are separated by commas, or a list. `config` are Kafka's settings
        of TLS and SASL, or a properties file that has them; others are ignored. Raises `ConfigError`."""
        self.policy = DefaultReplicationPolicy() if policy is None else policy
        security = UNSECURED if config is None else client_security(config)
        addresses = _addresses(bootstrap_servers)
        self._cluster = Cluster("", addresses, "heliograph-client", request_timeout, security)

    def heartbeat_topics(self) -> set[str]:
        """The heartbeats topics of this cluster: its own, and those that were copied to it."""
        return {topic for topic in self._topics() if self.policy.is_heartbeats_topic(topic)}

    def checkpoint_topics(self) -> set[str]:
        return {topic for topic in self._topics() if self.policy.is_checkpoints_topic(topic)}

    def remote_topics(self, source: str | None = None) -> set[str]:
        """The mirrors on this cluster, or those from one source."""
        return {
            topic
            for topic in self._topics()
            if not self.policy.is_internal_topic(topic)
            and (alias := self.policy.topic_source(topic)) is not None
            and (source is None or alias == source)
        }

    def upstream_clusters(self) -> set[str]:
        """The clusters from which records are mirrored to this one, directly or by way of others."""
        return {alias for topic in self.heartbeat_topics() for alias in self._sources(topic)}

    def replication_hops(self, upstream_alias: str) -> int:
        """The least number of flows from that cluster to this one; -1 if there is no way."""
        counts = [
            sources.index(upstream_alias) + 1
            for topic in self.heartbeat_topics()
            if upstream_alias in (sources := self._sources(topic))
        ]
        return min(counts, default=-1)

    def remote_consumer_offsets(
        self, group: str, remote_alias: str, timeout: float = 30.0
    ) -> dict[TopicPartition, Committed]:
        """Where a group of the cluster `remote_alias` resumes in the mirrors of this one: the last checkpoint of each
        partition, as far as it could be read within `timeout` seconds."""
        offsets: dict[TopicPartition, Committed] = {}

        async def collect(client: ClusterClient) -> None:
            name = self.policy.checkpoints_topic(remote_alias)
            topic = await own_topic(client, name)
            async for checkpoint in read_kind(client, topic, Checkpoint.from_record):
                if checkpoint.group == group:
                    committed = Committed(checkpoint.downstream, checkpoint.metadata)
                    offsets[checkpoint.topic, checkpoint.partition] = committed

        with suppress(TimeoutError):
            self._ask(collect, timeout)
        return offsets

    def _sources(self, topic: str) -> list[str]:
        """The clusters that a topic has come from, the nearest first."""
        sources: list[str] = []
        for name in hops(self.policy, topic):
            alias = self.policy.topic_source(name)
            if alias is None or alias in sources:
                break
            sources.append(alias)
        return sources

    def _topics(self) -> list[str]:
        async def ask(client: ClusterClient) -> list[str]:
            return list((await client.metadata(None)).topics)

        return self._ask(ask, self._cluster.request_timeout)

    def _ask(self, question: Callable[[ClusterClient], Awaitable[T]], timeout: float) -> T:
        async def main() -> T:
            client = ClusterClient(self._cluster)
            try:
                async with asyncio.timeout(timeout):
                    await client.connect()
                    return await question(client)
            finally:
                client.close()

        return asyncio.run(main())


def heartbeat_topics(
    bootstrap_servers: Servers, policy: ReplicationPolicy | None = None, config: Config | None = None
) -> set[str]:
    return MirrorClient(bootstrap_servers, policy, config=config).heartbeat_topics()


def checkpoint_topics(
    bootstrap_servers: Servers, policy: ReplicationPolicy | None = None, config: Config | None = None
) -> set[str]:
    return MirrorClient(bootstrap_servers, policy, config=config).checkpoint_topics()


def upstream_clusters(
    bootstrap_servers: Servers, policy: ReplicationPolicy | None = None, config: Config | None = None
) -> set[str]:
    return MirrorClient(bootstrap_servers, policy, config=config).upstream_clusters()


def replication_hops(
    bootstrap_servers: Servers,
    upstream_alias: str,
    policy: ReplicationPolicy | None = None,
    config: Config | None = None,
) -> int:
    return MirrorClient(bootstrap_servers, policy, config=config).replication_hops(upstream_alias)


def translate_offsets(
    bootstrap_servers: Servers,
    remote_alias: str,
    group: str,
    timeout: float = 30.0,
    policy: ReplicationPolicy | None = None,
    config: Config | None = None,
) -> dict[TopicPartition, Committed]:
    """As `MirrorClient.remote_consumer_offsets`; the alias comes first, as in MM2's call of this name."""
    return MirrorClient(bootstrap_servers, policy, config=config).remote_consumer_offsets(group, remote_alias, timeout)


def _addresses(servers: Servers) -> tuple[tuple[str, int], ...]:
    text = servers if isinstance(servers, str) else ",".join(servers)
    try:
        return ADDRESSES.parse(text)
    except ValueError as reason:
        raise ValueError(f"'{text}' {reason}") from None
