"""All flows of a deployment: one that fails ends it, and the others end in order. Without brokers."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from copying.simulation.clock import VirtualLoop, virtual_time
from heliograph.model.flow import SOURCE, Cluster, Flow
from heliograph.service import supervisor as supervisor_module
from heliograph.service.supervisor import SparkDied, Supervisor, UnreachableCluster


def flow(source: str, target: str) -> Flow:
    return Flow(Cluster(source, ((source, 9092),)), Cluster(target, ((target, 9092),)), parts=frozenset({SOURCE}))


class FakeEngine:
    is_up = is_alive = True

    def __init__(self, *_arguments: object) -> None:
        self.stopped = False
        engines.append(self)

    def start(self) -> None:
        pass

    async def wait_until_up(self) -> None:
        pass

    async def run(self, work: object) -> None: ...

    async def cancel(self, lease: str) -> None: ...

    async def stop(self, within: float) -> None:
        self.stopped = True


class FakeFlowSupervisor:
    runner = None

    def __init__(self, wanted: Flow, *_arguments: object) -> None:
        self.wanted: Flow | None = wanted
        self.name = wanted.name
        self.log: list[str] = []
        self.changed = asyncio.Event()
        self.error: Exception | None = None
        flows[self.name] = self

    def want(self, wanted: Flow | None) -> None:
        self.wanted = wanted
        if wanted is None:
            self.changed.set()

    def fail(self, error: Exception) -> None:
        self.error = error
        self.changed.set()

    async def run(self, ended: Callable[[], None]) -> None:
        self.log.append("runs")
        await self.changed.wait()
        if self.error is not None:
            raise self.error
        if self.wanted is None:
            ended()

    async def end(self, _within: float) -> None:
        self.log.append("end")
        self.changed.set()

    async def finish(self) -> None:
        self.log.append("finish")

    def close(self) -> None:
        self.log.append("close")


engines: list[FakeEngine] = []
flows: dict[str, FakeFlowSupervisor] = {}


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    engines.clear()
    flows.clear()
    monkeypatch.setattr(supervisor_module, "LeaseEngine", FakeEngine)
    monkeypatch.setattr(supervisor_module, "FlowSupervisor", FakeFlowSupervisor)


def run(what: Callable[[Supervisor, "asyncio.Task[None]"], object]) -> None:
    """While two flows run; `what` is called after a second of virtual time."""
    loop = VirtualLoop()

    async def main() -> None:
        supervisor = Supervisor([flow("A", "B"), flow("B", "C")], stays=True)
        running = asyncio.create_task(supervisor.run())
        await asyncio.sleep(1.0)
        what(supervisor, running)
        await asyncio.sleep(1.0)
        if not running.done():
            supervisor.stop()
        await running

    with virtual_time(loop):
        loop.run_until_complete(main())
    loop.close()


IN_ORDER = ["runs", "end", "finish", "close"]


def test_a_flow_that_fails_ends_all_with_its_error_and_the_others_in_order() -> None:
    with pytest.raises(KeyError, match="bug"):
        run(lambda _supervisor, _running: flows["A->B"].fail(KeyError("bug")))
    assert flows["A->B"].log == flows["B->C"].log == IN_ORDER
    assert engines[0].stopped


def test_a_jvm_that_dies_ends_all_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SparkDied):
        run(lambda _supervisor, _running: monkeypatch.setattr(FakeEngine, "is_alive", False))
    assert flows["B->C"].log == IN_ORDER


def test_stop_ends_all_in_order() -> None:
    run(lambda supervisor, _running: supervisor.stop())
    assert flows["A->B"].log == flows["B->C"].log == IN_ORDER
    assert engines[0].stopped


def test_flows_come_and_go_while_others_run() -> None:
    def change(supervisor: Supervisor, _running: object) -> None:
        supervisor.apply([flow("B", "C"), flow("C", "D")])

    run(change)
    assert flows["A->B"].log == ["runs"]  # it has ended by itself
    assert flows["B->C"].log == flows["C->D"].log == IN_ORDER


def test_a_cluster_that_does_not_answer_is_named_and_nothing_starts(closed_port: int) -> None:
    unreachable = Cluster("B", (("127.0.0.1", closed_port),))

    async def main() -> None:
        await Supervisor([replace(flow("A", "B"), source=replace(unreachable, alias="A"), target=unreachable)]).run()

    with pytest.raises(UnreachableCluster, match=r"cluster [AB] cannot be reached: 127\.0\.0\.1"):
        asyncio.run(main())
    assert flows["A->B"].log == ["end", "finish", "close"]
    assert engines[0].stopped
