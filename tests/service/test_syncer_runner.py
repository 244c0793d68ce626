"""Syncers that fail, are slow, recover, or are due early; in virtual time, without brokers."""

import asyncio
import logging
from collections.abc import Callable, Iterator

import pytest

from copying.simulation.clock import VirtualLoop, virtual_time
from heliograph.service.syncer_runner import Syncer, SyncerRunner
from heliograph.wire.errors import Unreachable
from logged import lines_of, records_of


class FakeSyncer(Syncer):
    """Notes when it runs. `does` gets the number of the run."""

    def __init__(self, clock: VirtualLoop, name: str, interval: float) -> None:
        super().__init__(interval)
        self.name = name
        self.clock = clock
        self.runs: list[float] = []
        self.seconds = 0.0
        self.error_of: Callable[[int], Exception | None] = lambda _run: None

    async def run(self) -> None:
        self.runs.append(self.clock.now)
        number = len(self.runs)
        await asyncio.sleep(self.seconds)
        if (error := self.error_of(number)) is not None:
            raise error


@pytest.fixture
def clock() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    with virtual_time(loop):
        yield loop
    loop.close()


def run_for(clock: VirtualLoop, seconds: float, *syncers: Syncer) -> SyncerRunner:
    runner = SyncerRunner("A->B", syncers, lambda: 0)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(seconds):
                await runner.run()

    clock.run_until_complete(main())
    return runner


def texts(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return lines_of(caplog, "heliograph.service.syncer_runner")


@pytest.fixture(autouse=True)
def _all_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "heliograph.service")


def test_each_syncer_runs_at_once_and_then_at_its_interval(clock: VirtualLoop) -> None:
    often, seldom = FakeSyncer(clock, "heartbeats", 1.0), FakeSyncer(clock, "groups", 60.0)
    run_for(clock, 119.5, often, seldom)
    assert often.runs == [float(second) for second in range(120)]
    assert seldom.runs == [0.0, 60.0]


def test_a_slow_syncer_does_not_hold_up_others_and_does_not_run_twice_at_once(
    clock: VirtualLoop, caplog: pytest.LogCaptureFixture
) -> None:
    slow, other = FakeSyncer(clock, "topic settings", 5.0), FakeSyncer(clock, "heartbeats", 1.0)
    slow.seconds = 12.0
    run_for(clock, 30.5, slow, other)
    assert slow.runs == [0.0, 12.0, 24.0]
    assert len(other.runs) == 31
    assert texts(caplog) == [("INFO", "A->B: syncing topic settings took 12.0 s and about 0 requests")] * 2


def test_a_failure_is_logged_once_and_retried_and_its_end_is_logged(
    clock: VirtualLoop, caplog: pytest.LogCaptureFixture
) -> None:
    syncer = FakeSyncer(clock, "checkpoints", 10.0)
    errors = {1: Unreachable("a:9092 is gone"), 2: Unreachable("b:9092 is gone"), 3: Unreachable("a:9092 is gone")}
    syncer.error_of = errors.get
    runner = run_for(clock, 25.0, syncer)
    assert syncer.runs == [0.0, 10.0, 20.0]
    assert runner.errors("checkpoints", "groups") == "checkpoints: a:9092 is gone"
    (measure,) = runner.measures()
    assert (measure.failing, measure.since) == (True, None)
    assert texts(caplog) == [
        ("WARNING", "A->B: checkpoints could not be synced and will be tried again: a:9092 is gone"),
        ("WARNING", "A->B: checkpoints could not be synced and will be tried again: b:9092 is gone"),
    ]
    caplog.clear()
    clock.run_until_complete(runner.attempt(syncer))
    clock.run_for(3.0)
    assert runner.errors("checkpoints") == ""
    (measure,) = runner.measures()
    assert (measure.failing, measure.since) == (False, 3.0)
    assert texts(caplog) == [("INFO", "A->B: syncing checkpoints succeeds again")]


def test_an_unexpected_error_is_logged_with_its_traceback_and_retried(
    clock: VirtualLoop, caplog: pytest.LogCaptureFixture
) -> None:
    syncer = FakeSyncer(clock, "groups", 10.0)
    syncer.error_of = lambda _run: KeyError("offset")
    run_for(clock, 15.0, syncer)
    assert len(syncer.runs) == 2
    (record,) = records_of(caplog, "heliograph.service.syncer_runner")
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert record.exc_info[0] is KeyError


def test_a_syncer_can_be_due_before_its_interval_is_over(clock: VirtualLoop) -> None:
    class Early(FakeSyncer):
        check_interval = 5.0

        async def is_due_early(self) -> bool:
            return 20.0 <= self.clock.now < 25.0

    syncer = Early(clock, "checkpoints", 60.0)
    run_for(clock, 90.0, syncer)
    assert syncer.runs == [0.0, 20.0, 80.0]


def test_the_first_run_can_wait_for_something(clock: VirtualLoop) -> None:
    ready = asyncio.Event()

    class Dependent(FakeSyncer):
        async def wait_until_ready(self) -> None:
            await ready.wait()

    first, second = FakeSyncer(clock, "checkpoints", 60.0), Dependent(clock, "group offsets", 10.0)
    first.seconds = 7.0
    first.error_of = lambda _run: ready.set()  # after its run
    run_for(clock, 20.0, first, second)
    assert second.runs == [7.0, 17.0]


def test_a_bug_outside_of_run_ends_the_runner(clock: VirtualLoop) -> None:
    class Broken(FakeSyncer):
        check_interval = 5.0

        async def is_due_early(self) -> bool:
            raise KeyError("mirror")

    runner = SyncerRunner("A->B", [Broken(clock, "checkpoints", 60.0), FakeSyncer(clock, "groups", 1.0)], lambda: 0)
    with pytest.raises(ExceptionGroup) as raised:
        clock.run_until_complete(runner.run())
    assert raised.group_contains(KeyError)
    assert clock.now == 5.0


class _LosesCancellation(Syncer):
    """As asyncio.gather does, if one of its parts fails at the moment of the cancellation."""

    name = "loses cancellation"

    async def run(self) -> None:
        try:
            await asyncio.sleep(3600.0)
        except asyncio.CancelledError:
            raise Unreachable("b:9092 does not answer") from None


def test_syncers_end_when_they_are_cancelled_though_the_cancellation_is_lost(clock: VirtualLoop) -> None:
    run_for(clock, 5.0, _LosesCancellation(10.0))
    assert clock.now < 10.0
