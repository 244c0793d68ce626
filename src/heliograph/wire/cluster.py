"""A client of one cluster: finds brokers, keeps one connection to each, knows who leads what.

Makes one attempt per call and reports failure; when to try again is the caller's business. The copier has its
own recovery path, and a command on a terminal should rather fail than wait.
"""

import asyncio
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.metadata import MetadataRequest

from heliograph.model.flow import Cluster
from heliograph.wire.connection import Connection
from heliograph.wire.errors import Unreachable, WireError

NO_ID = uuid.UUID(int=0)


def id_text(topic_id: uuid.UUID) -> str:
    """For what is written down; empty where there is none."""
    return topic_id.hex if topic_id.int else ""


def are_different(one_id: str, other_id: str) -> bool:
    """Whether these are of two topics; an empty one tells nothing."""
    return bool(one_id) and bool(other_id) and one_id != other_id


_HEAD_START = 0.5
_SHUN = 1.0


@dataclass(frozen=True, slots=True)
class Topic:
    """What a cluster says of one topic. `id` is all zeros on brokers that have no topic ids (before 2.8)."""

    name: str
    id: uuid.UUID
    internal: bool
    leaders: dict[int, int]  # partition -> broker id; -1 where there is no leader now
    error: int = 0
    epochs: dict[int, int] = field(default_factory=dict)  # partition -> leader epoch; -1 on brokers before 2.1


@dataclass(frozen=True, slots=True)
class Metadata:
    brokers: dict[int, tuple[str, int]] = field(default_factory=dict)
    controller: int = -1
    cluster_id: str = ""
    topics: dict[str, Topic] = field(default_factory=dict)


class ClusterClient:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.brokers: dict[int, tuple[str, int]] = {}
        self._controller = -1
        self._connections: dict[int, Connection] = {}
        self._opening: dict[int, asyncio.Lock] = {}
        self._seed: Connection | None = None
        self._finding = asyncio.Lock()
        self._shunned: dict[int, float] = {}  # broker -> when it may be tried again

    async def connect(self) -> None:
        """Reach any broker of the cluster, or raise Unreachable with what each address said."""
        await self.metadata([])

    async def metadata(self, topics: Iterable[str] | None) -> Metadata:
        """Brokers, and leaders of the named topics (None: of all). Topics that do not exist carry an error."""
        connection = await self._any()
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        # Version 0 cannot ask for no topics, 4 is the first that can forbid creating them.
        answer = await connection.request(request, newest=12, oldest=4)
        self.brokers = {one.node_id: (one.host, one.port) for one in answer.brokers}
        self._controller = answer.controller_id
        return Metadata(
            self.brokers,
            answer.controller_id,
            answer.cluster_id or "",
            {one.name: _topic(one) for one in answer.topics if one.name is not None},
        )

    async def connection(self, node: int) -> Connection:
        """The connection to one broker, opened if need be."""
        connection = self._connections.get(node)
        if connection is not None and not connection.closed:
            return connection
        async with self._opening.setdefault(node, asyncio.Lock()):
            connection = self._connections.get(node)
            if connection is None or connection.closed:
                connection = await self.dedicated_connection(node)
                self._connections[node] = connection
        return connection

    async def controller(self) -> Connection:
        if self._controller not in self.brokers:
            await self.metadata([])
        return await self.connection(self._controller)

    async def dedicated_connection(self, node: int) -> Connection:
        """A further connection to a broker, for requests that hold up others (long polls). The caller closes it."""
        if node not in self.brokers:
            raise Unreachable(f"cluster {self.cluster.alias} has no broker {node} now")
        if time.monotonic() < self._shunned.get(node, 0.0):
            raise Unreachable(f"broker {node} of cluster {self.cluster.alias} could not be reached a moment ago")
        try:
            return await self._open(*self.brokers[node])
        except Unreachable:
            # Many may be waiting for this broker; let them not wait for the same disappointment one by one.
            self._shunned[node] = time.monotonic() + _SHUN
            raise

    @property
    def requests(self) -> int:
        """How many were sent so far on the connections that are open now."""
        connections = {id(one): one for one in (*self._connections.values(), self._seed) if one is not None}
        return sum(one.requests for one in connections.values())

    def close(self) -> None:
        for connection in (*self._connections.values(), self._seed):
            if connection is not None:
                connection.close()

    async def _any(self) -> Connection:
        for connection in (*self._connections.values(), self._seed):
            if connection is not None and not connection.closed:
                return connection
        async with self._finding:
            if self._seed is None or self._seed.closed:
                self._seed = await self._find()
        return self._seed

    async def _find(self) -> Connection:
        """The first address that answers, each tried a moment after the one before: a dead one costs little."""
        # The bootstrap addresses first: they are what the operator can see and change.
        addresses = list(dict.fromkeys((*self.cluster.bootstrap_servers, *self.brokers.values())))

        async def later(turn: int, host: str, port: int) -> Connection:
            await asyncio.sleep(turn * _HEAD_START)
            return await self._open(host, port)

        tries = [asyncio.create_task(later(turn, *address)) for turn, address in enumerate(addresses)]
        said = []
        try:
            for one in asyncio.as_completed(tries):
                try:
                    return await one
                except WireError as error:
                    said.append(str(error))
        finally:
            for task in tries:
                task.cancel()
        raise Unreachable("; ".join(said))

    async def _open(self, host: str, port: int) -> Connection:
        return await Connection.open(host, port, self.cluster.client_id, self.cluster.request_timeout)


def _topic(one: Any) -> Topic:
    leaders = {part.partition_index: part.leader_id for part in one.partitions}
    epochs = {part.partition_index: part.leader_epoch for part in one.partitions}
    return Topic(one.name, one.topic_id or NO_ID, bool(one.is_internal), leaders, one.error_code, epochs)
