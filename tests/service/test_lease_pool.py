"""Leases start, end, fail and exchange partitions: with an engine and a ledger in memory."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from heliograph.model.flow import Flow
from heliograph.model.problems import Refusal
from heliograph.service.flow_context import FlowContext
from heliograph.service.lease_pool import LeasePool
from heliograph.wire.errors import Unreachable
from logged import lines_of
from service.fakes import FLOW, FakeCommands, FakeEngine, FakeLedger, make_context, partitions
from service.runner import until
from waiting import PATIENCE


class Scene:
    def __init__(self, flow: Flow) -> None:
        self.context: FlowContext = make_context(flow)
        self.commands = FakeCommands()
        self.engine = FakeEngine()
        self.pool = LeasePool(self.context, self.commands, self.engine.run, self.engine.cancel)

    async def assign(self, count: int) -> None:
        wanted = partitions(*range(count))
        self.context.stats.retain(wanted)
        await self.pool.assign(wanted)

    def running(self) -> list[str]:
        return [work.lease for work in self.engine.running()]

    @property
    def ledger(self) -> FakeLedger:
        ledger = self.context.ledger
        assert isinstance(ledger, FakeLedger)
        return ledger


@asynccontextmanager
async def pool_of(tasks_max: int, count: int, **settings: float) -> AsyncIterator[Scene]:
    """A pool that runs, with so many partitions; at the end it stops, and its leases obey."""
    scene = Scene(replace(FLOW, tasks_max=tasks_max, **settings))  # type: ignore[arg-type]
    await scene.assign(count)
    task = asyncio.create_task(scene.pool.run())
    try:
        yield scene
        assert not task.done(), task
    finally:
        await scene.pool.stop()
        scene.engine.end_all()
        async with asyncio.timeout(PATIENCE):
            await task
    assert scene.pool.leases == {}


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.service.lease_pool._PAUSE_AFTER_FAILURE", 0.0)
    monkeypatch.setattr("heliograph.service.lease_pool._POLL", 0.0)


def test_partitions_are_spread_over_leases_and_the_next_lease_resumes_where_the_last_one_ended() -> None:
    async def main() -> None:
        async with pool_of(2, 4) as scene:
            await until(lambda: len(scene.running()) == 2)
            first, second = scene.engine.running()
            assert sorted(first.partitions + second.partitions) == partitions(0, 1, 2, 3)
            assert (first.positions, first.seconds) == ({}, 600.0)
            scene.engine.end(first.lease, dict.fromkeys(first.partitions, 7))
            await until(lambda: len(scene.engine.works) == 3)
            third = scene.engine.works[-1]
            assert third.lease != first.lease
            assert third.partitions == first.partitions
            assert {at.source for at in third.positions.values()} == {7}
            handed: object = third.ledger
            assert handed == {("t", partition.partition): 7 for partition in third.partitions}

    asyncio.run(main())


def test_the_lease_after_a_refusal_gets_no_position_so_that_it_checks_whether_the_cause_is_gone() -> None:
    async def main() -> None:
        async with pool_of(1, 2) as scene:
            await until(lambda: len(scene.running()) == 1)
            (work,) = scene.engine.running()
            stopped, well = work.partitions
            refusal = Refusal(stopped, "hole", 7, 7, "a hole")
            scene.engine.end(work.lease, {stopped: 7, well: 7}, refusals=(refusal,))
            await until(lambda: len(scene.engine.works) == 2)
            assert list(scene.engine.works[-1].positions) == [well]

    asyncio.run(main())


def test_a_lease_that_gets_and_loses_partitions_goes_on() -> None:
    async def main() -> None:
        async with pool_of(1, 2) as scene:
            await until(lambda: len(scene.running()) == 1)
            (lease,) = scene.pool.leases.values()
            await scene.assign(3)
            assert (scene.commands.kinds(), lease.partitions) == (["change"], tuple(partitions(0, 1, 2)))
            await scene.assign(1)
            assert (scene.commands.kinds(), lease.partitions) == (["change"] * 2, tuple(partitions(0)))
            assert lease.removals == dict.fromkeys(partitions(1, 2), 1)
            assert scene.pool.measure().assignment_changes == 3

    asyncio.run(main())


def test_partitions_of_paused_topics_are_handed_to_nobody() -> None:
    async def main() -> None:
        async with pool_of(1, 2) as scene:
            await until(lambda: len(scene.running()) == 1)
            scene.context.flow = replace(scene.context.flow, paused_topics=frozenset({"t"}))
            await scene.assign(2)
            assert scene.commands.kinds() == ["end"]
            scene.engine.end_all()
            await until(lambda: not scene.running())
            scene.context.flow = replace(scene.context.flow, paused_topics=frozenset())
            await scene.assign(2)
            await until(lambda: len(scene.running()) == 1)

    asyncio.run(main())


def test_where_a_partition_moves_both_leases_end_and_none_starts_before_it_is_released() -> None:
    async def main() -> None:
        async with pool_of(1, 4) as scene:
            await until(lambda: len(scene.running()) == 1)
            (first,) = scene.running()
            scene.context.flow = replace(scene.context.flow, tasks_max=2)
            await scene.assign(4)
            assert scene.commands.sent == [(b"end", json.dumps([first]).encode())]
            for _ in range(20):
                await asyncio.sleep(0)
            assert len(scene.engine.works) == 1  # the second lease waits for the first
            scene.engine.end(first)
            await until(lambda: len(scene.running()) == 2)
            assert sorted(held for work in scene.engine.running() for held in work.partitions) == partitions(0, 1, 2, 3)

    asyncio.run(main())


def test_a_lease_that_waits_for_long_is_reported_and_so_is_that_it_no_longer_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("heliograph.service.lease_pool._ENDS_WITHIN", 0.0)
    caplog.set_level(logging.INFO)

    async def main() -> None:
        async with pool_of(1, 4) as scene:
            await until(lambda: len(scene.running()) == 1)
            scene.context.flow = replace(scene.context.flow, tasks_max=2)
            await scene.assign(4)
            await until(lambda: "waits for lease run-A->B-0-1 to end" in caplog.text)
            scene.engine.end_all()
            await until(lambda: "lease 1 has its partitions" in caplog.text)
            assert caplog.text.count("waits for lease") == 1

    asyncio.run(main())


def test_a_lease_that_fails_is_retried_and_its_error_is_shown_until_it_runs_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        async with pool_of(1, 1) as scene:
            for count in (1, 2, 3):
                await until(lambda count=count: len(scene.engine.works) == count)  # type: ignore[misc]
                scene.engine.fail(scene.running()[0], ValueError("first line\nlast line"))
            await until(lambda: len(scene.engine.works) == 4)
            assert scene.pool.failures.error_of(0) == "ValueError: last line"
            assert scene.pool.measure().failures == 3
            scene.engine.end_all()
            await until(lambda: scene.pool.failures.error_of(0) == "")

    asyncio.run(main())
    assert lines_of(caplog, "heliograph.service.lease_failures") == [
        ("ERROR", "A->B: lease 0 failed and will be tried again: ValueError: last line"),
        ("INFO", "A->B: lease 0 runs again"),
    ]


def test_a_ledger_that_cannot_be_read_delays_a_lease() -> None:
    async def main() -> None:
        scene = Scene(FLOW)
        scene.ledger.errors = [Unreachable("b:9092 does not answer")] * 3
        await scene.assign(1)
        task = asyncio.create_task(scene.pool.run())
        await until(lambda: len(scene.running()) == 1)
        assert scene.pool.measure().failures == 3
        await scene.pool.stop()
        scene.engine.end_all()
        await task

    asyncio.run(main())


def test_a_lease_that_does_not_end_by_its_deadline_is_cancelled_and_retried(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("heliograph.service.running_lease._OVERDUE", 0.02)

    async def main() -> None:
        async with pool_of(1, 1, lease_seconds=0.01) as scene:
            await until(lambda: len(scene.engine.works) >= 2)
            assert scene.engine.cancelled[0] == "run-A->B-0-1"
            assert scene.pool.measure().failures >= 1

    asyncio.run(main())
    assert "lease run-A->B-0-1 is overdue and is cancelled" in caplog.text


def test_a_renewed_lease_is_not_overdue(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("heliograph.service.running_lease.now", lambda: now)
    monkeypatch.setattr("heliograph.service.running_lease._OVERDUE", 0.05)

    async def main() -> None:
        nonlocal now
        async with pool_of(1, 1, lease_seconds=0.05) as scene:
            await until(lambda: len(scene.running()) == 1)
            (lease,) = scene.pool.leases.values()
            scene.context.flow = replace(scene.context.flow, lease_seconds=600.0)
            scene.pool.note_renewal(lease)
            now += 500.0
            await asyncio.sleep(0.2)  # twice as long as the pool waited before the renewal
            assert (scene.engine.cancelled, scene.pool.measure().renewals) == ([], 1)

    asyncio.run(main())


def test_restarting_ends_one_lease_after_the_other() -> None:
    async def main() -> None:
        async with pool_of(2, 2) as scene:
            await until(lambda: len(scene.running()) == 2)
            restarting = asyncio.create_task(scene.pool.restart(range(2)))
            for count in (1, 2):
                await until(lambda count=count: len(scene.commands.sent) == count)  # type: ignore[misc]
                (ended,) = json.loads(scene.commands.sent[-1][1])
                assert len(scene.running()) == 2  # the second is ended when the first has restarted
                scene.engine.end(ended)
                await until(lambda count=count: len(scene.engine.works) == 2 + count)  # type: ignore[misc]
            await restarting

    asyncio.run(main())


def test_a_lease_to_which_a_change_cannot_be_sent_is_marked_and_holds_what_it_gets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with pool_of(1, 2) as scene:
            await until(lambda: len(scene.running()) == 1)
            (lease,) = scene.pool.leases.values()
            scene.commands.fails = True
            await scene.assign(1)
            assert not lease.partitions_confirmed
            assert lease.partitions == tuple(partitions(0, 1))  # it may still copy what it was to drop
            scene.commands.fails = False

    asyncio.run(main())
    assert "the change of partitions cannot be sent to running leases" in caplog.text


def test_lost_mirrors_are_dropped_and_added_again_in_the_lease_that_holds_them() -> None:
    async def main() -> None:
        async with pool_of(1, 3) as scene:
            await until(lambda: len(scene.running()) == 1)
            (lease,) = scene.pool.leases.values()
            lost = partitions(1)
            await scene.pool.copy_again(lost)
            named = [["t", "A.t", 1]]
            assert json.loads(scene.commands.sent[0][1]) == {lease.id: [named, named]}
            assert lease.partitions == tuple(partitions(0, 1, 2))
            assert lease.removals == {lost[0]: 1}
            await scene.pool.copy_again(partitions(7))
            assert len(scene.commands.sent) == 1

    asyncio.run(main())


def test_a_limit_is_shared_by_the_leases() -> None:
    async def main() -> None:
        async with pool_of(2, 4, max_bytes_per_second=1000) as scene:
            await until(lambda: len(scene.running()) == 2)
            assert [work.bytes_per_second for work in scene.engine.running()] == [500.0, 500.0]

    asyncio.run(main())


def test_cancelling_the_pool_cancels_its_leases_and_counts_what_they_reported() -> None:
    async def main() -> None:
        scene = Scene(FLOW)
        await scene.assign(1)
        task = asyncio.create_task(scene.pool.run())
        await until(lambda: len(scene.running()) == 1)
        (lease,) = scene.pool.leases.values()
        lease.counts.append("none", "", 5, 100)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert scene.running() == []
        assert scene.context.stats.counts(scene.pool.leases.values()).records == 5

    asyncio.run(main())
