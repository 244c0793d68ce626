"""A client of one cluster: finds brokers, keeps one connection to each, reads metadata.

Does not retry: the copier has its own recovery path, and a command on a terminal should fail rather than wait. A
request that any broker can answer goes to the next broker when one fails or stays silent (`ask_any`).
"""

import asyncio
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from kafka.protocol.metadata import MetadataRequest

from heliograph.model.flow import Cluster
from heliograph.wire.connection import Connection
from heliograph.wire.errors import Unreachable, WireError
from heliograph.wire.security.failures import SecurityFailure

T = TypeVar("T")
NO_ID = uuid.UUID(int=0)
# Seconds until the next address, or the next broker, is asked as well.
_CONNECT_HEAD_START = 0.5
_ANSWER_HEAD_START = 2.0
_HEAVY_HEAD_START = 10.0  # for requests about all topics
_RECONNECT_BACKOFF = 1.0
_LONGEST_LOGIN_BACKOFF = 16.0


def id_text(topic_id: uuid.UUID) -> str:
    """A topic id as internal topics hold it; empty where there is none."""
    return topic_id.hex if topic_id.int else ""


def are_different(topic_id: str, other_id: str) -> bool:
    """Whether two ids belong to different topics. An empty id (brokers before 2.8) is never different."""
    return bool(topic_id) and bool(other_id) and topic_id != other_id


@dataclass(frozen=True, slots=True)
class Topic:
    """Metadata of one topic. `id` is all zeros on brokers that have no topic ids (before 2.8)."""

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
        self._bootstrap: Connection | None = None
        self._bootstrapping = asyncio.Lock()
        self._failures = 0  # calls of `ask_any` that no broker answered
        self._answered_last: Connection | None = None
        self._backoff_until: dict[int, float] = {}  # by broker
        self._login_backoffs: defaultdict[tuple[str, int], _LoginBackoff] = defaultdict(_LoginBackoff)

    async def connect(self) -> None:
        """Connects to any broker of the cluster, or raises Unreachable with the error of each address."""
        await self.metadata([])

    async def metadata(self, topics: Iterable[str] | None) -> Metadata:
        """Brokers, and leaders of the named topics (None: of all). Topics that do not exist carry an error."""
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        # Version 0 cannot ask for no topics, 4 is the first that can forbid creating them.
        answer = await self.ask_any(
            lambda connection: connection.request(request, newest=12, oldest=4),
            is_heavy=topics is None,
        )
        self.brokers = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        self._controller = answer.controller_id
        return Metadata(
            self.brokers,
            answer.controller_id,
            answer.cluster_id or "",
            {topic.name: _topic(topic) for topic in answer.topics if topic.name is not None},
        )

    async def ask_any(self, ask: Callable[[Connection], Awaitable[T]], is_heavy: bool = False) -> T:
        """Returns the answer to requests that any broker can answer, and that may be sent twice.

        The broker that answered last is asked first. When it fails or is silent for a moment, longer if the request
        `is_heavy`, the next one is asked as well, and the first answer counts. Raises the error, or Unreachable with
        all of them, when none answers.
        """

        async def attempt(connect: Callable[[], Awaitable[Connection]]) -> tuple[Connection, T]:
            connection = await connect()
            return connection, await ask(connection)

        if not self._open_connections():
            await self._connect_bootstrap()
        candidates = self._candidates()
        give_up_at = time.monotonic() + self.cluster.request_timeout
        errors: list[WireError] = []
        waiting: set[asyncio.Task[tuple[Connection, T]]] = set()
        try:
            while waiting or (candidates and time.monotonic() < give_up_at):
                if candidates:
                    task = asyncio.create_task(attempt(candidates.popleft()))
                    task.add_done_callback(_retrieve_exception)
                    waiting.add(task)
                head_start = _HEAVY_HEAD_START if is_heavy else _ANSWER_HEAD_START
                timeout = head_start if candidates else None
                done, waiting = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    try:
                        self._answered_last, answer = task.result()
                    except WireError as error:
                        errors.append(error)
                    else:
                        return answer
        finally:
            for task in waiting:
                task.cancel()
        self._failures += 1
        if len(errors) == 1:
            raise errors[0]
        reasons = "; ".join(dict.fromkeys(map(str, errors))) or "no broker could be asked"
        raise Unreachable(reasons)

    def _candidates(self) -> deque[Callable[[], Awaitable[Connection]]]:
        """How to get a connection to each broker: open ones first, and the one that answered last before all."""

        async def existing(connection: Connection) -> Connection:
            return connection

        connections = sorted(self._open_connections(), key=lambda connection: connection is not self._answered_last)
        unconnected = [node for node in self.brokers if node not in self._connections or self._connections[node].closed]
        return deque(
            [
                *(partial(existing, connection) for connection in connections),
                *(partial(self.connection, node) for node in unconnected),
            ]
        )

    def _open_connections(self) -> list[Connection]:
        known = (*self._connections.values(), self._bootstrap)
        return [connection for connection in known if connection is not None and not connection.closed]

    async def connection(self, node: int) -> Connection:
        """The shared connection to a broker, opened on first use."""
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
        if time.monotonic() < self._backoff_until.get(node, 0.0):
            raise Unreachable(f"broker {node} of cluster {self.cluster.alias} could not be reached a moment ago")
        try:
            return await self._open(*self.brokers[node])
        except Unreachable:
            # Callers that wait for the same broker must not run into the connect timeout one after the other.
            self._backoff_until[node] = time.monotonic() + _RECONNECT_BACKOFF
            raise

    @property
    def requests(self) -> int:
        """Requests sent so far on the connections that are open now."""
        return sum(connection.requests for connection in self._open_connections())

    def close(self) -> None:
        for connection in self._open_connections():
            connection.close()

    async def _connect_bootstrap(self) -> Connection:
        async with self._bootstrapping:
            if self._bootstrap is None or self._bootstrap.closed:
                self._bootstrap = await self._first_reachable()
        return self._bootstrap

    async def _first_reachable(self) -> Connection:
        """Connects to the first address that answers. Each is tried a moment after the one before, so that a dead
        address costs little."""
        # After a failure another one goes first: the first may accept connections and answer no request.
        servers = self.cluster.bootstrap_servers
        turn = self._failures % max(1, len(servers))
        addresses = list(dict.fromkeys((*servers[turn:], *servers[:turn], *self.brokers.values())))

        async def delayed(position: int, host: str, port: int) -> Connection:
            await asyncio.sleep(position * _CONNECT_HEAD_START)
            return await self._open(host, port)

        attempts = [asyncio.create_task(delayed(position, *address)) for position, address in enumerate(addresses)]
        errors: list[WireError] = []
        first: Connection | None = None
        try:
            for attempt in asyncio.as_completed(attempts):
                try:
                    first = await attempt
                    return first
                except WireError as error:
                    errors.append(error)
        finally:
            for task in attempts:
                task.cancel()
                task.add_done_callback(lambda task: _close_unless(first, task))
        is_refused = all(isinstance(error, SecurityFailure) for error in errors)
        raise (SecurityFailure if is_refused else Unreachable)("; ".join(map(str, errors)))

    async def _open(self, host: str, port: int) -> Connection:
        cluster, backoff = self.cluster, self._login_backoffs[host, port]
        backoff.check()
        try:
            connection = await Connection.open(host, port, cluster.client_id, cluster.request_timeout, cluster.security)
        except SecurityFailure as error:
            raise backoff.failed(f"cluster {cluster.alias}, {host}:{port}: {error}") from error
        backoff.reset()
        return connection


class _LoginBackoff:
    """After a failed login further ones at the same broker fail at once for a while, longer each time."""

    def __init__(self) -> None:
        self._until = 0.0
        self._seconds = 0.0
        self._error = ""

    def check(self) -> None:
        if time.monotonic() < self._until:
            raise SecurityFailure(self._error)

    def failed(self, error: str) -> SecurityFailure:
        self._error = error
        self._seconds = min(2 * self._seconds or _RECONNECT_BACKOFF, _LONGEST_LOGIN_BACKOFF)
        self._until = time.monotonic() + self._seconds
        return SecurityFailure(error)

    def reset(self) -> None:
        self._until = self._seconds = 0.0


def _close_unless(used: Connection | None, task: asyncio.Task[Connection]) -> None:
    """Of two connections that are opened at the same moment only one is used."""
    if not task.cancelled() and task.exception() is None and task.result() is not used:
        task.result().close()


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Nobody may be waiting for the answer any more; asyncio would log its error."""
    if not task.cancelled():
        task.exception()


def _topic(topic: Any) -> Topic:
    leaders = {part.partition_index: part.leader_id for part in topic.partitions}
    epochs = {part.partition_index: part.leader_epoch for part in topic.partitions}
    return Topic(topic.name, topic.topic_id or NO_ID, bool(topic.is_internal), leaders, topic.error_code, epochs)
