"""Parts of a running flow in memory: no broker, no Spark."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from heliograph.copy.counts import Counts
from heliograph.copy.work import Outcome, Progress, Work
from heliograph.model.flow import Cluster, Flow
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.problems import Refusal
from heliograph.service.error_log import ErrorLog
from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_context import FlowContext
from heliograph.service.flow_stats import FlowStats
from heliograph.wire.errors import Unreachable

FLOW = Flow(Cluster("A", (("a", 9092),)), Cluster("B", (("b", 9092),)), lease_seconds=600.0)


def partitions(*numbers: int, topic: str = "t") -> list[MirrorPartition]:
    return [MirrorPartition(topic, f"A.{topic}", number) for number in numbers]


class FakeLedger:
    """`errors` are raised by the next calls, one each."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []

    async def catch_up(self) -> None:
        if self.errors:
            raise self.errors.pop(0)

    def hand_over(self, wanted: Mapping[tuple[str, int], int | None]) -> Any:
        """What was asked for."""
        return dict(wanted)


class FakeClients:
    source = target = signals = None

    def __init__(self) -> None:
        self.ledger = FakeLedger()


def make_context(flow: Flow = FLOW, run_id: str = "run") -> FlowContext:
    """Must be called in an event loop."""
    refresh_needed = asyncio.Event()
    stats = FlowStats(flow.name, refresh_needed.set)
    return FlowContext(flow, run_id, cast(FlowClients, FakeClients()), refresh_needed, stats, ErrorLog())


class FakeCommands:
    """Keeps the commands that are sent to leases. While it `fails`, none can be."""

    def __init__(self) -> None:
        self.next_offset = 0
        self.lost_at = float("-inf")
        self.sent: list[tuple[bytes, bytes]] = []
        self.fails = False

    async def send(self, command: tuple[bytes, bytes]) -> None:
        await asyncio.sleep(0)
        if self.fails:
            raise Unreachable("b:9092 does not answer")
        self.sent.append(command)
        self.next_offset += 1

    def kinds(self) -> list[str]:
        return [key.decode() for key, _value in self.sent]


class FakeEngine:
    """Runs leases until a test ends them; they are in the order in which they started."""

    def __init__(self) -> None:
        self.works: list[Work] = []
        self.cancelled: list[str] = []
        self._running: dict[str, asyncio.Future[Outcome]] = {}

    async def run(self, work: Work) -> Outcome:
        self.works.append(work)
        held = {partition for other in self.running() for partition in other.partitions} & set(work.partitions)
        assert not held, f"{held} are copied by two leases"
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._running[work.lease] = future
        try:
            return await future
        finally:
            del self._running[work.lease]

    async def cancel(self, lease: str) -> None:
        self.cancelled.append(lease)
        self.fail(lease, RuntimeError("cancelled"))

    def running(self) -> list[Work]:
        return [work for work in self.works if work.lease in self._running]

    def end(self, lease: str, positions: Mapping[MirrorPartition, int] | None = None, **more: Any) -> None:
        progress = {partition: Progress(Position(at, at), at) for partition, at in (positions or {}).items()}
        refusals: tuple[Refusal, ...] = more.get("refusals", ())
        self._running[lease].set_result(Outcome(lease, Counts(), progress, refusals))

    def fail(self, lease: str, error: Exception) -> None:
        self._running[lease].set_exception(error)

    def end_all(self) -> None:
        for work in self.running():
            self.end(work.lease)
