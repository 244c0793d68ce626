"""Looking at a simulated cluster from outside of time: nothing else happens while it is asked."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from copying.simulation.clock import VirtualLoop
from copying.simulation.cluster import SimulatedCluster, parse
from copying.simulation.fetching import Fetches
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Cluster
from heliograph.model.intervals import Intervals
from heliograph.model.partitions import TopicPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Buffer, Decode

T = TypeVar("T")


class _Instant:
    """A connection whose requests are answered at once."""

    closed = False

    def __init__(self, cluster: SimulatedCluster, loop: asyncio.AbstractEventLoop) -> None:
        self._cluster = cluster
        self._fetches = Fetches(loop)

    def version(self, api_key: int, newest: int, oldest: int = 0) -> int:
        return newest

    def knows(self, api_key: int, version: int = 0) -> bool:
        return True

    async def request(self, message: Any, newest: int | None = None, oldest: int = 0, decode: object = None) -> Any:
        answer = asyncio.get_running_loop().create_future()
        self._cluster.handle(message, self._fetches, answer.set_result)
        return await answer

    def send_parts(self, api_key: int, version: int, parts: Sequence[Buffer], decode: Decode) -> asyncio.Future[Any]:
        answer = asyncio.get_running_loop().create_future()
        message = parse(api_key, version, b"".join(parts), self._cluster.names)
        self._cluster.handle(message, self._fetches, lambda data: answer.set_result(decode(memoryview(data))))
        return answer

    def close(self) -> None:
        pass


class _Client(ClusterClient):
    def __init__(self, cluster: Cluster, simulated: SimulatedCluster, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(cluster)
        self._instant: Any = _Instant(simulated, loop)

    async def _open(self, host: str, port: int) -> Any:
        return self._instant


class Observer:
    def __init__(self, cluster: Cluster, simulated: SimulatedCluster, source_alias: str) -> None:
        self._loop = VirtualLoop()
        self._client = _Client(cluster, simulated, self._loop)
        self._source_alias = source_alias

    def translations(
        self, partition: TopicPartition, mirror_id: str, source_id: str, offsets: range, mirror_end: int
    ) -> dict[int, int | None]:
        """What somebody who reads the ledger afresh makes of these source offsets."""

        async def ask() -> dict[int, int | None]:
            ledger = Ledger(self._client, self._source_alias)
            await ledger.catch_up()

            def all_of(intervals: Intervals) -> dict[int, int | None]:
                return {offset: intervals.target_of(offset, source_id, mirror_end) for offset in offsets}

            return await ledger.ask(partition, mirror_id, all_of)

        return self._run(ask())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        self._loop.close()
