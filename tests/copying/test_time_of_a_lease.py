"""A lease ends at its deadline, unless it asks for more time and is granted it."""

import asyncio
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from copying.lease import only, prepare, settled, until
from heliograph.copy.copier import Copier
from heliograph.copy.lease_clock import LeaseClock
from heliograph.copy.signals import Grant, Report, grant_command
from heliograph.copy.work import Outcome, Work
from heliograph.model.flow import Flow
from heliograph.model.internal_topics import COMMANDS, PROGRESS, signals_topic
from heliograph.service.running_lease import RunningLease
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.following import Follower
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.records import own_topic, write
from logs import PATIENCE, Pair, some_records

_SECONDS = 5.0


_STOPPED_AFTER = 30.0  # if its deadline does not end it


def _run(flow: Flow, answer: Callable[[Report], Grant | None]) -> tuple[Outcome, float]:
    """A lease of two seconds in its second attempt, with answers to its requests for time. Returns how long it ran."""

    async def main() -> tuple[Outcome, float]:
        partitions = await prepare(flow)
        client = ClusterClient(flow.target)
        await client.connect()
        signals = await own_topic(client, signals_topic(flow.source.alias))
        both = [(signals.name, COMMANDS), (signals.name, PROGRESS)]
        ends = await list_offsets(client, {signals.name: signals}, both, LATEST, False)
        commands, progress = (ends[key] for key in both)
        assert isinstance(commands, int)
        assert isinstance(progress, int)
        copier = Copier(Work(flow, "renewed", _SECONDS, partitions, commands_from=commands), attempt=1)

        async def grant() -> None:
            async for records in Follower(client, signals.name, PROGRESS, progress, print).records():
                for record in records:
                    assert record.key is not None
                    assert record.value is not None
                    report = Report.from_record(record.key, record.value)
                    granted = answer(report) if report.ask else None
                    if granted is not None:
                        await write(client, signals, COMMANDS, [grant_command({report.lease: granted})])

        began = time.monotonic()
        granting = asyncio.create_task(grant())
        asyncio.get_running_loop().call_later(_STOPPED_AFTER, copier.stop)
        try:
            outcome = await copier.run()
            return outcome, time.monotonic() - began
        finally:
            granting.cancel()
            await asyncio.gather(granting, return_exceptions=True)
            client.close()

    return asyncio.run(main())


def test_a_lease_that_is_granted_more_time_continues(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    asked_at: list[float] = []

    def answer(report: Report) -> Grant | None:
        asked_at.append(time.monotonic())
        if len(asked_at) == 3:
            threading.Thread(target=pair.a.write, args=(topic, some_records(20))).start()
        return Grant(report.attempt, report.ask, 0.0) if time.monotonic() - asked_at[0] < 6.0 else None

    outcome, lasted = _run(only(pair.flow(), topic), answer)
    assert 2 * _SECONDS < lasted < _STOPPED_AFTER  # it is granted no time after six seconds
    assert outcome.records == 20


def test_a_lease_asks_when_a_quarter_of_its_time_is_over_and_until_it_is_granted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moment = 1000.0
    monkeypatch.setattr("heliograph.copy.lease_clock.now", lambda: moment)
    clock = LeaseClock(100.0, attempt=1)
    moment += 24.0
    assert clock.ask() == 0
    moment += 1.0
    assert clock.ask() == 1
    moment += 10.0
    assert clock.ask() == 2
    assert not clock.extend(Grant(0, 2, 0.0))  # of another attempt
    assert not clock.extend(Grant(1, 3, 0.0))  # it has not asked so often
    assert clock.extend(Grant(1, 1, 0.0))
    assert (clock.left, clock.ask()) == (90.0, 0)
    moment += 90.0
    assert clock.is_expired
    assert not clock.extend(Grant(1, 2, 0.0))


def test_time_granted_to_another_attempt_does_not_count(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    _outcome, lasted = _run(only(pair.flow(), topic), lambda report: Grant(0, report.ask, 0.0))
    assert lasted < _STOPPED_AFTER


_NEEDS_CLOCK = pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="no clock counts the time of sleep")


@_NEEDS_CLOCK
def test_the_driver_uses_the_same_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = 0.0
    boot_clock = SimpleNamespace(clock_gettime=lambda clock: time.clock_gettime(clock) + slept)
    monkeypatch.setattr("heliograph.copy.clock.time", boot_clock)
    lease = RunningLease("lease", 0, ())
    lease.extend(600.0)
    assert lease.overdue_in() > 600.0
    slept = 3600.0
    assert lease.overdue_in() == 0.0


@_NEEDS_CLOCK
def test_a_lease_has_ended_after_the_machine_has_slept_beyond_its_deadline(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The boot clock shows the time, while the monotonic clock has stopped."""
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    flow = only(pair.flow(), topic)
    slept = 0.0
    boot_clock = SimpleNamespace(clock_gettime=lambda clock: time.clock_gettime(clock) + slept)
    monkeypatch.setattr("heliograph.copy.clock.time", boot_clock)

    async def main() -> None:
        nonlocal slept
        copier = Copier(Work(flow, "sleeping", 600.0, await prepare(flow)))
        lease = asyncio.create_task(copier.run())
        await until(lambda: settled(copier))
        slept = 3600.0
        await asyncio.to_thread(pair.a.write, topic, some_records(10))
        async with asyncio.timeout(PATIENCE):
            await lease

    asyncio.run(main())
    assert pair.b.bounds(f"A.{topic}") == (0, 10)  # another may have copied the rest


def test_granted_time_counts_from_the_request(pair: Pair, topic: str) -> None:
    pair.a.create(topic)

    flow = only(pair.flow(), topic)

    async def grant(report: Report) -> None:
        client = ClusterClient(flow.target)
        await client.connect()
        command = grant_command({report.lease: Grant(report.attempt, report.ask, 0.0)})
        await write(client, await own_topic(client, signals_topic(flow.source.alias)), COMMANDS, [command])
        client.close()

    def answer(report: Report) -> None:
        if report.ask == 1:
            return
        granting = threading.Thread(target=lambda: asyncio.run(grant(report)))
        granting.start()
        time.sleep(_SECONDS)  # as if the process were stopped: the copier is on this loop
        granting.join(PATIENCE)

    _outcome, lasted = _run(flow, answer)
    assert lasted < _STOPPED_AFTER
