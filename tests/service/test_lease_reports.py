"""What running leases report is applied, and those that ask for more time get it unless everything must be checked."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import pytest

from heliograph.copy.counts import Counts
from heliograph.copy.signals import Report
from heliograph.copy.work import Progress
from heliograph.model.partitions import Position
from heliograph.model.problems import Refusal
from heliograph.service.lease_pool import LeasePool
from heliograph.service.lease_reports import LeaseReports
from heliograph.service.mirrors import Mirrors
from heliograph.service.running_lease import RunningLease
from heliograph.service.signals_channel import SignalsChannel
from heliograph.wire.records import Record
from logged import records_of
from service.fakes import FLOW, FakeCommands, FakeEngine, make_context, partitions

PARTITIONS = partitions(0, 1)


@dataclass
class FakeMirrors:
    have_ids: bool = True


class Scene:
    """One lease runs, with two partitions."""

    def __init__(self) -> None:
        self.context = make_context(FLOW)
        self.context.stats.retain(PARTITIONS)
        self.commands = FakeCommands()
        engine = FakeEngine()
        self.pool = LeasePool(self.context, self.commands, engine.run, engine.cancel)
        self.pool.assignor.reassign(PARTITIONS, 1, {})
        self.lease = RunningLease("lease", 0, tuple(PARTITIONS))
        self.pool.leases["lease"] = self.lease
        self.mirrors = FakeMirrors()
        signals, mirrors = cast(SignalsChannel, self.commands), cast(Mirrors, self.mirrors)
        self.reports = LeaseReports(self.context, self.pool, signals, mirrors)

    async def report(self, *values: Report | bytes, lease: str = "lease") -> None:
        records = [
            Record(0, 0, *(value.to_record() if isinstance(value, Report) else (lease.encode(), value)))
            for value in values
        ]
        await self.reports.handle(records)

    def granted(self) -> list[tuple[int, int]]:
        """Attempt and number of each request that was granted."""
        return [tuple(json.loads(value)["lease"][:2]) for key, value in self.commands.sent if key == b"grant"]


def ask(number: int, attempt: int = 0) -> Report:
    return Report("lease", attempt, number, Counts(), {}, ())


def test_a_lease_that_asks_for_more_time_gets_it() -> None:
    async def main() -> None:
        scene = Scene()
        overdue_in = scene.lease.overdue_in()
        await scene.report(ask(0))
        assert scene.granted() == []
        await scene.report(ask(1), ask(2))
        assert scene.granted() == [(0, 2)]
        assert scene.lease.overdue_in() > overdue_in + FLOW.lease_seconds
        assert scene.pool.measure().renewals == 1

    asyncio.run(main())


def _stop_a_partition(scene: Scene) -> None:
    scene.context.stats.refusals[PARTITIONS[0]] = Refusal(PARTITIONS[0], "hole", 1, 1, "a hole")


def _change_the_assignment(scene: Scene) -> None:
    scene.pool.assignor.reassign(partitions(0, 1, 2), 1, {})


def _assign_nothing(scene: Scene) -> None:
    scene.pool.assignor.reassign([], 1, {})


def _topics_without_ids(scene: Scene) -> None:
    scene.mirrors.have_ids = False


def _lose_signals(scene: Scene) -> None:
    scene.commands.lost_at = time.monotonic()


def _lose_a_command(scene: Scene) -> None:
    scene.lease.partitions_confirmed = False


def _retry_in_spark(scene: Scene) -> None:
    scene.lease.attempt = 1


def _let_it_grow_old(scene: Scene) -> None:
    scene.lease._started -= FLOW.lease_seconds * 16


@pytest.mark.parametrize(
    "happen",
    [
        _stop_a_partition,
        _change_the_assignment,
        _assign_nothing,
        _topics_without_ids,
        _lose_signals,
        _lose_a_command,
        _retry_in_spark,
        _let_it_grow_old,
    ],
)
def test_a_lease_is_not_renewed_where_the_next_one_must_check_everything(happen: Callable[[Scene], None]) -> None:
    async def main() -> None:
        scene = Scene()
        happen(scene)
        await scene.report(ask(1))
        assert scene.granted() == []

    asyncio.run(main())


def test_a_partition_that_only_waits_does_not_keep_its_lease_from_going_on() -> None:
    async def main() -> None:
        scene = Scene()
        waiting = Refusal(PARTITIONS[0], "missing", 1, 1, "no leader", final=False)
        scene.context.stats.refusals[PARTITIONS[0]] = waiting
        await scene.report(ask(1))
        assert scene.granted() == [(0, 1)]

    asyncio.run(main())


def test_nothing_is_renewed_while_the_flow_stops() -> None:
    async def main() -> None:
        scene = Scene()
        await scene.pool.stop()
        await scene.report(ask(1))
        assert scene.granted() == []

    asyncio.run(main())


def test_reports_of_other_leases_and_unreadable_ones_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        scene = Scene()
        progress = {PARTITIONS[0]: Progress(Position(3, 3), 5)}
        theirs = Report("another", 0, 1, Counts(), progress, ())
        ours = Report("lease", 0, 1, Counts(), progress, ())
        await scene.report(theirs)
        assert scene.context.stats.positions() == {}
        await scene.report(b"no JSON", b"[1, 2]", b"no JSON", ours)
        assert scene.context.stats.positions() == {PARTITIONS[0]: Position(3, 3)}
        assert scene.granted() == [(0, 1)]

    asyncio.run(main())
    messages = [record.message for record in records_of(caplog, "heliograph.service.lease_reports")]
    assert messages == ["A->B: a report of lease lease cannot be read"] * 2
