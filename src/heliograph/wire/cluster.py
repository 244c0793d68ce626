"""A client of one cluster: finds brokers, keeps one connection to each, reads metadata.

Does not retry: the copier has its own recovery path, and a command on a terminal should fail rather than wait. A
request that any broker can answer goes to the next broker when one fails or stays silent (`ask_any`).
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from kafka.protocol.metadata import MetadataRequest

from heliograph.model.connecting import CANONICAL_BOOTSTRAP_SERVERS
from heliograph.model.flow import Cluster
from heliograph.wire.connection import Connection
from heliograph.wire.errors import Unreachable, WireError
from heliograph.wire.metadata import BY_HAND, Metadata, decode, from_message
from heliograph.wire.racing import AllFailed, first_success
from heliograph.wire.reconnecting import ConnectAttempts
from heliograph.wire.security.failures import SecurityFailure
from heliograph.wire.sockets import canonical_servers

T = TypeVar("T")
# Seconds until the next address, or the next broker, is asked as well.
_CONNECT_HEAD_START = 0.5
_ANSWER_HEAD_START = 2.0
_HEAVY_HEAD_START = 10.0  # for requests about all topics


class ClusterClient:
    def __init__(self, cluster: Cluster, check: Callable[[], None] | None = None) -> None:
        """`check` is called before each request, and raises Fenced if it may not be sent."""
        self.cluster = cluster
        self._check = check
        self.brokers: dict[int, tuple[str, int]] = {}
        self._controller = -1
        self._connections: dict[int, Connection] = {}
        self._opening: dict[int, asyncio.Lock] = {}
        self._bootstrap: Connection | None = None
        self._bootstrapping = asyncio.Lock()
        self._failures = 0  # calls of `ask_any` that no broker answered
        self._answered_last: Connection | None = None
        self._refreshed_at = time.monotonic()
        self._attempts: defaultdict[tuple[str, int], ConnectAttempts] = defaultdict(
            lambda: ConnectAttempts(cluster.connecting.reconnect)
        )

    async def connect(self) -> None:
        """Connects to any broker of the cluster, or raises Unreachable with the error of each address."""
        await self.metadata([])

    async def metadata(self, topics: Iterable[str] | None) -> Metadata:
        """Brokers, and leaders of the named topics (None: of all). Topics that do not exist carry an error."""
        wanted = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

        def ask(connection: Connection) -> Awaitable[Any]:
            # Version 0 cannot ask for no topics, 4 is the first that can forbid creating them.
            by_hand = decode if connection.knows(request.API_KEY, BY_HAND) else None
            return connection.request(request, newest=BY_HAND, oldest=4, decode=by_hand)

        answer = await self.ask_any(ask, is_heavy=topics is None)
        metadata = answer if isinstance(answer, Metadata) else from_message(answer)
        self.brokers, self._controller = metadata.brokers, metadata.controller
        self._refreshed_at = time.monotonic()
        return metadata

    async def ask_any(self, ask: Callable[[Connection], Awaitable[T]], is_heavy: bool = False) -> T:
        """Returns the answer to requests that any broker can answer, and that may be sent twice.

        The broker that answered last is asked first. When it fails or is silent for a moment, longer if the request
        `is_heavy`, the next one is asked as well, and the first answer counts. Raises the error, or Unreachable with
        all of them, when none answers.
        """

        async def attempt(connect: Callable[[], Awaitable[Connection]]) -> tuple[Connection, T]:
            connection = await connect()
            return connection, await ask(connection)

        self._check_fence()
        if not self._open_connections():
            await self._connect_bootstrap()
        head_start = _HEAVY_HEAD_START if is_heavy else _ANSWER_HEAD_START
        give_up_at = time.monotonic() + self.cluster.request_timeout
        attempts = [partial(attempt, connect) for connect in self._candidates()]
        try:
            self._answered_last, answer = await first_success(attempts, head_start, WireError, give_up_at=give_up_at)
        except AllFailed as failed:
            self._failures += 1
            if len(failed.errors) == 1:
                raise failed.errors[0] from None
            reasons = "; ".join(dict.fromkeys(map(str, failed.errors))) or "no broker could be asked"
            raise Unreachable(reasons) from None
        return answer

    def _check_fence(self) -> None:
        """Raises Fenced as such, not as one of several reasons why no broker answers."""
        if self._check is not None:
            self._check()

    def _candidates(self) -> list[Callable[[], Awaitable[Connection]]]:
        """How to get a connection to each broker: open ones first, and the one that answered last before all."""

        async def existing(connection: Connection) -> Connection:
            return connection

        connections = sorted(self._open_connections(), key=lambda connection: connection is not self._answered_last)
        unconnected = [node for node in self.brokers if node not in self._connections or self._connections[node].closed]
        return [
            *(partial(existing, connection) for connection in connections),
            *(partial(self._shared_connection, node) for node in unconnected),
        ]

    def _open_connections(self) -> list[Connection]:
        known = (*self._connections.values(), self._bootstrap)
        return [connection for connection in known if connection is not None and not connection.closed]

    async def connection(self, node: int) -> Connection:
        """The shared connection to a broker, opened on first use."""
        connection = self._connections.get(node)
        if connection is not None and not connection.closed:
            return connection
        await self._refresh_if_old()
        return await self._shared_connection(node)

    async def _shared_connection(self, node: int) -> Connection:
        async with self._opening.setdefault(node, asyncio.Lock()):
            connection = self._connections.get(node)
            if connection is None or connection.closed:
                connection = self._connections[node] = await self._connect(node)
        return connection

    async def controller(self) -> Connection:
        await self._refresh_if_old()
        if self._controller not in self.brokers:
            await self.metadata([])
        return await self.connection(self._controller)

    async def dedicated_connection(self, node: int) -> Connection:
        """A further connection to a broker, for requests that hold up others (long polls). The caller closes it."""
        await self._refresh_if_old()
        return await self._connect(node)

    async def _refresh_if_old(self) -> None:
        """Whether brokers have come, gone or moved since; if no broker answers, the known ones are used."""
        if time.monotonic() - self._refreshed_at > self.cluster.connecting.metadata_max_age:
            with suppress(WireError):
                await self.metadata([])

    async def _connect(self, node: int) -> Connection:
        if node not in self.brokers:
            raise Unreachable(f"cluster {self.cluster.alias} has no broker {node} now")
        # Callers that wait for the same broker must not run into the connect timeout one after the other.
        self._attempts[self.brokers[node]].check()
        return await self._open(*self.brokers[node])

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
        """Connects to the first address that answers. Each is tried when the one before fails, or a moment later, so
        that a dead address costs little."""
        servers = self.cluster.bootstrap_servers
        if self.cluster.connecting.dns_lookup == CANONICAL_BOOTSTRAP_SERVERS:
            servers = tuple(await canonical_servers(servers))
        # After a failure another one goes first: the first may accept connections and answer no request.
        turn = self._failures % max(1, len(servers))
        addresses = dict.fromkeys((*servers[turn:], *servers[:turn], *self.brokers.values()))
        attempts = sorted(addresses, key=lambda address: self._attempts[address].pause > 0)
        try:
            return await first_success(
                [partial(self._open_when_due, address) for address in attempts],
                _CONNECT_HEAD_START,
                WireError,
                lambda connection: connection.close(),
            )
        except AllFailed as failed:
            is_refused = all(isinstance(error, SecurityFailure) for error in failed.errors)
            raise (SecurityFailure if is_refused else Unreachable)("; ".join(map(str, failed.errors))) from None

    async def _open_when_due(self, address: tuple[str, int]) -> Connection:
        await self._attempts[address].wait()
        return await self._open(*address)

    async def _open(self, host: str, port: int) -> Connection:
        attempts = self._attempts[host, port]
        try:
            connection = await Connection.open(host, port, self.cluster, attempts.failures, self._check)
        except SecurityFailure as error:
            refused = SecurityFailure(f"cluster {self.cluster.alias}, {host}:{port}: {error}")
            attempts.failed(refused)
            raise refused from error
        except Unreachable as error:
            attempts.failed(error)
            raise
        attempts.succeeded()
        return connection
