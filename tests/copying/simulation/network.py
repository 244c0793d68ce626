"""Connections to simulated brokers: requests take their time, get lost, or land long after their sender has died."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from copying.simulation.cluster import Appending, SimulatedCluster, parse
from copying.simulation.fetching import Fetches
from heliograph.model.flow import Cluster
from heliograph.wire.connection import Buffer, Decode
from heliograph.wire.errors import Unreachable

_PRODUCE_BY_ID = 0, 13
_LATENCIES = (0.0002, 0.001, 0.001, 0.003, 0.02)

# What may happen to the next append to a topic.
LOST_BEFORE = "lost before it took effect"
LOST_AFTER = "its answer is lost"
DELAYED = "comes late"


@dataclass
class Network:
    """All that is between the clusters and who talks to them."""

    loop: asyncio.AbstractEventLoop
    clusters: dict[str, SimulatedCluster]
    random: Random
    faults: dict[str, list[str]] = field(default_factory=dict)  # by topic: for its next appends
    connections: list["SimulatedConnection"] = field(default_factory=list)

    async def open(
        self, host: str, _port: int, cluster: Cluster, _failures: int, _check: object = None
    ) -> "SimulatedConnection":
        await asyncio.sleep(self.latency())
        connection = SimulatedConnection(self, self.clusters[host], cluster.client_id, cluster.request_timeout)
        self.connections.append(connection)
        return connection

    def latency(self) -> float:
        return self.random.choice(_LATENCIES)

    def kill(self, client_id: str, surviving: int, later: float) -> None:
        """Who has this id is dead. So many of the requests that it has sent on each connection land all the same."""
        for connection in self.connections:
            if connection.client_id == client_id:
                connection.kill(surviving, later)
        self.connections = [each for each in self.connections if not each.closed]

    def cut(self, cluster: SimulatedCluster) -> None:
        """All connections to it break."""
        for connection in self.connections:
            if connection.cluster is cluster:
                connection.close("cut off")

    def fault_of(self, message: Any) -> str | None:
        if isinstance(message, list):
            for request in message:
                if isinstance(request, Appending) and self.faults.get(request.topic):
                    return self.faults[request.topic].pop(0)
        return None


@dataclass
class _Request:
    message: Any
    answer: asyncio.Future[Any]
    decode: Decode | None
    arrives: float


class SimulatedConnection:
    """What the product takes for a Connection."""

    def __init__(self, network: Network, cluster: SimulatedCluster, client_id: str, timeout: float) -> None:
        self.address = f"{cluster.name}:9092"
        self.client_id = client_id
        self.closed = False
        self.requests = 0
        self._network = network
        self.cluster = cluster
        self._timeout = timeout
        self._fetches = Fetches(network.loop)
        self._waiting: deque[_Request] = deque()  # sent, and not handled yet
        self._unanswered: list[asyncio.Future[Any]] = []
        self._busy = False
        self._last = 0.0  # when the last of the requests arrives
        self._last_answer = 0.0

    def version(self, api_key: int, newest: int, oldest: int = 0) -> int:
        return newest

    def knows(self, api_key: int, version: int = 0) -> bool:
        return (api_key, version) != _PRODUCE_BY_ID or self.cluster.appends_by_id

    async def request(
        self, message: Any, newest: int | None = None, oldest: int = 0, decode: Decode | None = None
    ) -> Any:
        return await self._send(message, None)

    def send_parts(self, api_key: int, version: int, parts: Sequence[Buffer], decode: Decode) -> asyncio.Future[Any]:
        return self._send(parse(api_key, version, b"".join(parts), self.cluster.names), decode)

    def close(self, reason: str = "closed by us") -> None:
        self.closed = True
        for answer in self._unanswered:
            if not answer.done():
                answer.set_exception(Unreachable(f"{self.address}: {reason}"))
                answer.exception()
        self._unanswered.clear()

    def kill(self, surviving: int, later: float) -> None:
        self.close("killed")
        while len(self._waiting) > surviving:
            self._waiting.pop()
        self._busy = False
        for request in self._waiting:
            request.arrives = max(request.arrives, self._network.loop.time() + later)
        self._handle_next()

    # --- the way there and back -----------------------------------------------------------------------------------

    def _send(self, message: Any, decode: Decode | None) -> asyncio.Future[Any]:
        loop = self._network.loop
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.closed:
            answer.set_exception(Unreachable(f"{self.address}: connection closed"))
            return answer
        self.requests += 1
        self._last = max(self._last, loop.time() + self._network.latency())
        self._waiting.append(_Request(message, answer, decode, self._last))
        self._unanswered.append(answer)
        if len(self._waiting) == 1:
            self._handle_next()
        return answer

    def _handle_next(self) -> None:
        loop = self._network.loop
        if self._busy or not self._waiting:
            return
        request = self._waiting[0]
        if request.arrives > loop.time():
            loop.call_at(request.arrives, self._handle_next)
            return
        self._waiting.popleft()
        fault = self._network.fault_of(request.message)
        if fault == LOST_BEFORE:
            self._break()
        elif fault == LOST_AFTER:
            self.cluster.handle(request.message, self._fetches, lambda _answer: None)
            self._break()
        elif fault == DELAYED:  # longer than anybody waits for the answer
            later = self._network.random.choice((0.3, 5.0, self._timeout + 1))
            if later >= self._timeout:
                loop.call_later(self._timeout, lambda: self.close("no answer"))
            request.arrives = loop.time() + later
            self._waiting.appendleft(request)
            self._handle_next()
        else:
            self._busy = True
            self.cluster.handle(request.message, self._fetches, self._replier(request))

    def _break(self) -> None:
        """The connection is cut, and what else was on its way is lost."""
        self._waiting.clear()
        self._network.loop.call_later(self._network.latency(), lambda: self.close("cut off"))

    def _replier(self, request: _Request) -> Callable[[Any], None]:
        def reply(result: Any) -> None:
            loop = self._network.loop
            self._last_answer = max(self._last_answer + 1e-6, loop.time() + self._network.latency())
            loop.call_at(self._last_answer, self._deliver, request, result)
            self._busy = False
            self._handle_next()

        return reply

    def _deliver(self, request: _Request, result: Any) -> None:
        if request.answer in self._unanswered:
            self._unanswered.remove(request.answer)
        if not request.answer.done():
            request.answer.set_result(result if request.decode is None else request.decode(memoryview(result)))
