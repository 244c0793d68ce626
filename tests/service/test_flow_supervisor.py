"""A flow that starts, changes, fails and ends under its supervisor; in virtual time, without brokers."""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from copying.simulation.clock import VirtualLoop, virtual_time
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE, Cluster, Flow
from heliograph.service import flow_supervisor
from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_runner import FlowRunner
from heliograph.service.flow_supervisor import FlowSupervisor
from heliograph.wire.errors import Unreachable
from logged import lines_of

FLOW = Flow(
    Cluster("A", (("a", 9092),)), Cluster("B", (("b", 9092),)), parts=frozenset({SOURCE, CHECKPOINT, HEARTBEAT})
)


class FakeRunner:
    run_id = "run"

    def __init__(self, world: "World", flow: Flow, clients: FlowClients) -> None:
        self.world = world
        self.flow = flow
        self.clients = clients
        self.view = self
        self.stops = asyncio.Event()
        self.error: Exception | None = None
        self.ignores_stop = False
        world.log.append("new runner")

    async def connect(self) -> None:
        pass

    async def prepare(self) -> None:
        pass

    async def run(self) -> None:
        self.world.log.append("copying starts")
        try:
            await self.stops.wait()
            if self.error is not None:
                raise self.error
        finally:
            self.world.log.append("copying ends")

    async def stop(self) -> None:
        if not self.ignores_stop:
            self.stops.set()

    async def change(self, flow: Flow) -> None:
        self.flow = flow
        self.world.log.append("runner changes")

    async def restart_leases(self, _leases: Collection[int]) -> None:
        pass

    async def refresh_topics(self) -> None:
        pass

    def positions(self) -> dict[Any, Any]:
        return {}

    def tasks(self) -> list[Any]:
        return []


class FakeSyncers:
    def __init__(self, world: "World", flow: Flow, clients: FlowClients) -> None:
        self.world = world
        self.flow = flow
        self.clients = clients
        self.number = len(world.syncers)
        self.fails = asyncio.Event()
        self.checkpoints = SimpleNamespace(groups=())
        self.checkpoint_syncer = SimpleNamespace(loaded=False)

    async def prepare(self) -> None:
        if self.world.unreachable:
            raise Unreachable("b:9092 is gone")

    async def run(self) -> None:
        self.world.log.append(f"syncers {self.number} start")
        try:
            await self.fails.wait()
            raise KeyError("syncer")
        finally:
            self.world.log.append(f"syncers {self.number} end")

    def take_over(self, earlier: "FakeSyncers") -> None:
        self.world.log.append(f"syncers {self.number} take over from {earlier.number}")

    async def finish(self) -> None:
        assert not self.clients_closed
        await asyncio.sleep(self.world.finish_takes)
        self.world.log.append(f"syncers {self.number} finish")

    @property
    def clients_closed(self) -> bool:
        return self.clients in self.world.closed


class World:
    """What happens, in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.runners: list[FakeRunner] = []
        self.syncers: list[FakeSyncers] = []
        self.closed: list[FlowClients] = []
        self.unreachable = False
        self.finish_takes = 0.0

    def make_runner(self, flow: Flow, clients: FlowClients) -> FlowRunner:
        self.runners.append(FakeRunner(self, flow, clients))
        return cast(FlowRunner, self.runners[-1])

    def make_syncers(self, flow: Flow, _positions: object, clients: FlowClients) -> FakeSyncers:
        self.syncers.append(FakeSyncers(self, flow, clients))
        return self.syncers[-1]

    def supervisor(self, flow: Flow = FLOW) -> FlowSupervisor:
        async def spark_is_up() -> None:
            pass

        return FlowSupervisor(flow, self.make_runner, spark_is_up)

    def new_lines(self) -> list[str]:
        lines, self.log = self.log, []
        return lines


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(flow_supervisor, "FlowSyncers", world.make_syncers)
    monkeypatch.setattr(FlowClients, "close", lambda self: world.closed.append(self))
    monkeypatch.setattr(FlowClients, "__init__", lambda self, flow: self.__dict__.update(flow=flow))
    monkeypatch.setattr(
        FlowClients,
        "are_for",
        lambda self, flow: (self.flow.source, self.flow.target) == (flow.source, flow.target),
    )
    return world


@pytest.fixture
def in_virtual_time() -> Iterator[Callable[[Coroutine[Any, Any, None]], None]]:
    loop = VirtualLoop()
    with virtual_time(loop):
        yield loop.run_until_complete
    loop.close()


Run = Callable[[Coroutine[Any, Any, None]], None]


async def a_moment() -> None:
    await asyncio.sleep(0.01)


def nothing() -> None:
    pass


def test_a_flow_starts_changes_and_ends_when_it_is_not_wanted(world: World, in_virtual_time: Run) -> None:
    async def main() -> None:
        supervisor = world.supervisor()
        running = asyncio.create_task(supervisor.run(lambda: world.log.append("gone")))
        await a_moment()
        assert (supervisor.is_copying, supervisor.runs_part(CHECKPOINT), supervisor.trouble) == (True, True, "")
        assert set(world.new_lines()) == {"syncers 0 start", "new runner", "copying starts"}
        supervisor.want(replace(FLOW, refresh_topics_every=7.0))
        await a_moment()
        assert world.new_lines() == [
            "syncers 1 take over from 0",
            "syncers 1 start",
            "syncers 0 end",
            "runner changes",
        ]
        assert world.closed == []
        assert world.syncers[1].clients is world.syncers[0].clients is world.runners[0].clients
        supervisor.want(None)
        await running
        assert world.new_lines() == ["copying ends", "syncers 1 end", "syncers 1 finish", "gone"]
        assert world.closed == [world.syncers[0].clients]

    in_virtual_time(main())


def test_a_flow_that_is_paused_at_the_start_prepares_nothing(world: World, in_virtual_time: Run) -> None:
    async def main() -> None:
        supervisor = world.supervisor(replace(FLOW, parts=frozenset()))
        world.unreachable = True
        await supervisor.prepare(until_caught_up=True)
        running = asyncio.create_task(supervisor.run(nothing))
        await a_moment()
        assert (world.new_lines(), supervisor.trouble) == ([], "")
        world.unreachable = False
        supervisor.want(FLOW)
        await a_moment()
        assert set(world.new_lines()) == {"syncers 0 start", "new runner", "copying starts"}
        supervisor.want(None)
        await running

    in_virtual_time(main())


def test_a_paused_flow_has_no_connections_and_gets_others_when_it_resumes(world: World, in_virtual_time: Run) -> None:
    async def main() -> None:
        supervisor = world.supervisor()
        running = asyncio.create_task(supervisor.run(nothing))
        await a_moment()
        world.new_lines()
        supervisor.want(replace(FLOW, parts=frozenset()))
        await a_moment()
        assert world.new_lines() == ["copying ends", "syncers 0 end", "syncers 0 finish"]
        first = world.syncers[0].clients
        assert world.closed == [first]
        assert (supervisor.is_copying, supervisor.runner, supervisor.syncers) == (False, None, None)
        supervisor.want(FLOW)
        await a_moment()
        assert (supervisor.is_copying, supervisor.runs_part(CHECKPOINT), supervisor.trouble) == (True, True, "")
        assert world.runners[1].clients is world.syncers[1].clients is not first
        assert world.closed == [first]
        await supervisor.end(1.0)
        await running

    in_virtual_time(main())


def test_copying_has_stopped_when_the_last_offsets_are_written(world: World, in_virtual_time: Run) -> None:
    async def main() -> None:
        supervisor = world.supervisor()
        running = asyncio.create_task(supervisor.run(nothing))
        stopped = replace(FLOW, parts=frozenset({CHECKPOINT}))
        seen = []

        def look() -> None:
            seen.append((supervisor.is_copying, supervisor.has_stopped_copying))

        supervisor.want(stopped)
        look()  # it may be about to start
        await a_moment()
        look()
        supervisor.want(FLOW)
        await a_moment()
        look()
        world.finish_takes = 1.0
        supervisor.want(stopped)
        await a_moment()
        look()
        await asyncio.sleep(1.1)
        look()
        assert seen == [(False, False), (False, True), (True, False), (False, False), (False, True)]
        assert world.log[-1] == "syncers 1 finish"
        supervisor.want(None)
        await running

    in_virtual_time(main())


def test_other_clusters_get_other_clients_and_the_old_ones_are_closed_last(world: World, in_virtual_time: Run) -> None:
    async def main() -> None:
        supervisor = world.supervisor()
        running = asyncio.create_task(supervisor.run(nothing))
        await a_moment()
        first = world.syncers[0].clients
        world.unreachable = True
        supervisor.want(replace(FLOW, target=Cluster("B", (("c", 9092),))))
        await a_moment()
        assert supervisor.trouble == "b:9092 is gone"
        assert supervisor.syncers is cast(Any, world.syncers[0])
        assert world.closed == [world.syncers[1].clients]  # the syncers of before run on
        world.unreachable = False
        await asyncio.sleep(10.0)
        assert supervisor.trouble == ""
        assert world.closed[1:] == [first]
        assert world.runners[1].clients is world.syncers[2].clients is not first
        await supervisor.end(1.0)
        await running

    in_virtual_time(main())


def test_a_flow_that_cannot_start_is_retried_and_reported_once(
    world: World, in_virtual_time: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "heliograph.service")

    async def main() -> None:
        world.unreachable = True
        supervisor = world.supervisor()
        running = asyncio.create_task(supervisor.run(nothing))
        await asyncio.sleep(35.0)
        assert len(world.syncers) == 4
        assert supervisor.trouble == "b:9092 is gone"
        assert lines_of(caplog, "heliograph.service.flow_supervisor") == [
            ("ERROR", "A->B: does not run and will be tried again: b:9092 is gone")
        ]
        world.unreachable = False
        await asyncio.sleep(10.0)
        assert (supervisor.trouble, supervisor.is_copying) == ("", True)
        await supervisor.end(1.0)
        await running

    in_virtual_time(main())


def test_copying_that_fails_ends_the_supervisor_with_the_error(world: World, in_virtual_time: Run) -> None:
    async def main() -> None:
        running = asyncio.create_task(world.supervisor().run(nothing))
        await a_moment()
        world.runners[0].error = RuntimeError("copying")
        world.runners[0].stops.set()
        with pytest.raises(RuntimeError, match="copying"):
            await running
        assert world.log[-2:] == ["copying ends", "syncers 0 end"]

    in_virtual_time(main())


def test_syncers_that_fail_end_the_supervisor_with_the_error(world: World, in_virtual_time: Run) -> None:
    async def main() -> None:
        running = asyncio.create_task(world.supervisor().run(nothing))
        await a_moment()
        world.syncers[0].fails.set()
        with pytest.raises(KeyError, match="syncer"):
            await running
        assert world.log[-1] == "copying ends"

    in_virtual_time(main())


@pytest.mark.parametrize("ignores_stop", [False, True], ids=["orderly", "stuck"])
def test_the_end_waits_for_leases_but_not_forever(world: World, in_virtual_time: Run, ignores_stop: bool) -> None:
    async def main() -> None:
        supervisor = world.supervisor()
        running = asyncio.create_task(supervisor.run(nothing))
        await a_moment()
        world.runners[0].ignores_stop = ignores_stop
        loop = asyncio.get_running_loop()
        started = loop.time()
        await supervisor.end(0.8)
        assert loop.time() - started == pytest.approx(0.8 if ignores_stop else 0.0)
        await running
        assert world.closed == []  # `finish` still writes
        await supervisor.finish()
        supervisor.close()
        assert world.log[-1] == "syncers 0 finish"
        assert world.closed == [world.syncers[0].clients]

    in_virtual_time(main())
