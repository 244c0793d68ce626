"""One flow of a running deployment: prepares the target, hands out leases, follows what they report."""

import asyncio
import itertools
import json
import logging
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from heliograph.control.internal_topic_setup import MissingTopics, ensure_signals_topic
from heliograph.control.preserve_check import check
from heliograph.copy.counts import Counts
from heliograph.copy.log_levels import levels
from heliograph.copy.position import UNKNOWN_ORIGIN
from heliograph.copy.signals import Change, Grant, Report, change_command, end_command, grant_command, levels_command
from heliograph.copy.work import Outcome, Work
from heliograph.model.flow import Flow
from heliograph.model.internal_topics import COMMANDS, PROGRESS, STATUS, signals_topic
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service.assignment import Assignment, assign
from heliograph.service.error_log import ErrorLog
from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_stats import SHOWN, FlowStats
from heliograph.service.flow_status import FlowStatus, MirrorStatus, state_of, to_json
from heliograph.service.measures import Leases, Measure
from heliograph.service.mirror_check import MISSING, look_at_mirrors
from heliograph.service.mirrors import Mirrors
from heliograph.service.other_runs import OtherRuns
from heliograph.service.running_lease import Lease, rearranged
from heliograph.wire.cluster import Topic
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError, WireError
from heliograph.wire.following import Follower
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.records import Record, own_topic, read, write

log = logging.getLogger(__name__)

RunLease = Callable[[Work], Awaitable[Outcome]]
CancelLease = Callable[[str], Awaitable[None]]
_PAUSE_AFTER_FAILURE = 1.0
# A lease goes on when it asks, for so many times its length at most: then all is looked at anew.
_RENEWALS = 15
# How often to look whether the source has other topics or partitions; less often where looking takes long.
_LOOK_EVERY = 5.0
_LOOK_COST = 50
_LOOK_AT_LEAST_EVERY = 60.0  # at mirrors, however long that takes
# Leases are not rearranged for their load more often than this.
_REARRANGE_EVERY = 30.0
_STATUS_EVERY = 5.0
_NAMED = 5  # partitions in a line of the log
_ASK_SOURCE_WITHIN = 5.0  # the status must be written though the source does not answer
# How long a lease may take to end before the next one is told to.
_ENDS_WITHIN = 5.0


def needs_another(before: Flow, now: Flow) -> bool:
    """Whether a runner of the one flow cannot go on with the other: other connections, other names, other offsets."""
    told = ("source", "target", "policy", "connect_offsets", "kept_offsets")
    return any(getattr(before, name) != getattr(now, name) for name in told)


def _known_to_leases(flow: Flow) -> tuple[object, ...]:
    return (
        flow.reading,
        flow.writing,
        flow.buffer_memory,
        flow.lease_seconds,
        flow.max_bytes_per_second,
        flow.may_raise_limits,
        flow.policies,
    )


@dataclass(frozen=True, slots=True)
class Task:
    """What one lease is to copy, and how it is doing: as Connect would say of a task."""

    partitions: tuple[MirrorPartition, ...]
    running: bool
    trouble: str = ""


class FlowRunner:
    def __init__(
        self,
        flow: Flow,
        flows: tuple[Flow, ...],
        run_lease: RunLease,
        cancel_lease: CancelLease,
        run_id: str,
        clients: FlowClients | None = None,
    ) -> None:
        self.flow = flow
        self._run_lease = run_lease
        self._cancel_lease = cancel_lease
        self._run_id = run_id
        self._own_clients = FlowClients(flow) if clients is None else None
        clients = clients or self._own_clients
        assert clients is not None
        self._source, self._target, self._ledger = clients.source, clients.target, clients.ledger
        self._signals = signals_topic(flow.source.alias)
        self._mirrors = Mirrors(flow, flows, self._source, self._target, self._ledger)
        self._assignment: Assignment = ()
        self._assigned = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []
        self._leases: dict[str, Lease] = {}  # those that run
        self._lease_failures = 0
        self._renewals = 0
        self._complaints = ErrorLog()
        self._failed: dict[int, str] = {}  # number of a lease -> what became of it, until it runs again
        self._look = asyncio.Event()
        self._refreshing = asyncio.Lock()
        self._account = FlowStats(flow.name, self._look.set)
        self._rearranged = 0.0  # when it was last looked at
        self._arrangements = 0
        self._arranged = time.monotonic()  # when the last of them was made
        self._commands_from = 0
        self._progress = Follower(self._target, self._signals, PROGRESS, 0, self._missed_signals)
        self._status_from = 0
        self._other_runs = OtherRuns(flow.name, run_id, _STATUS_EVERY)
        self._signals_lost = float("-inf")  # when that was last noticed
        self._started = False
        self._stop = asyncio.Event()
        self._goals: dict[MirrorPartition, int] | None = None

    # --- before the first lease -----------------------------------------------------------------------------

    async def connect(self) -> None:
        await asyncio.gather(self._source.connect(), self._target.connect())

    async def prepare(self) -> None:
        """Make the mirrors ready, and read what earlier runs have written down."""
        await self._ledger.catch_up()
        await self._refresh()
        if self.flow.kept_offsets.topics is not None:
            kept = [one for one in self._mirrors.synced.partitions if self.flow.keeps_offsets(one)]
            await check(self.flow, self._target, [self.flow.mirror_name(one) for one in kept])
        topic = await own_topic(self._target, self._signals)
        places = [(self._signals, partition) for partition in (COMMANDS, PROGRESS, STATUS)]
        ends = await list_offsets(self._target, {self._signals: topic}, places, LATEST, False)
        self._commands_from, self._progress.position, self._status_from = (_number(ends[place]) for place in places)

    async def set_goals(self) -> None:
        """Remember where the source ends now; `caught_up` is measured against it."""
        copied = [one for lease in self._assignment for one in lease]
        places = [(one.topic, one.partition) for one in copied]
        topics = (await self._source.metadata({topic for topic, _partition in places})).topics
        ends = await list_offsets(self._source, topics, places, LATEST, True)
        self._goals = {one: _number(ends[one.topic, one.partition]) for one in copied}

    # --- running --------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep leases going until `stop`; then return when the last one has ended."""
        self._started = True
        helpers = [
            asyncio.create_task(one)
            for one in (
                self._follow_progress(),
                self._keep_refreshing(),
                self._keep_checking_mirrors(),
                self._keep_telling(),
            )
        ]
        try:
            self._enough_loops()
            await self._stop.wait()
            await asyncio.gather(*self._loops)
        finally:
            for task in (*helpers, *self._loops):
                task.cancel()
            await asyncio.gather(*helpers, *self._loops, return_exceptions=True)

    async def stop(self) -> None:
        """Ask all running leases to end. They would at their deadline anyway."""
        self._stop.set()
        self._assigned.set()
        await self._end(list(self._leases))

    async def change(self, flow: Flow) -> None:
        """Go on with other settings. What leases need not know takes effect while they run."""
        before, self.flow, self._mirrors.flow = self.flow, flow, flow
        self._look.set()  # for the one who looks for topics: its interval may be another
        try:
            await self._refresh()
        finally:
            if _known_to_leases(before) != _known_to_leases(flow):
                await self.begin_anew(range(len(self._assignment)))

    async def begin_anew(self, numbers: Collection[int]) -> None:
        """Have leases end and begin again: one after the other, so that not all pause at once."""
        for lease in [one for one in self._leases.values() if one.number in numbers]:
            await self._end([lease.id])
            deadline = time.monotonic() + _ENDS_WITHIN
            while lease.id in self._leases and time.monotonic() < deadline:
                await asyncio.sleep(0.02)

    async def look_again(self) -> None:
        """See now which topics there are."""
        await self._refresh()

    def know(self, flows: tuple[Flow, ...]) -> None:
        """All flows that copy."""
        if self._mirrors.flows != flows:
            self._mirrors.flows = flows
            self._look.set()

    def _enough_loops(self) -> None:
        while self._started and len(self._loops) < len(self._assignment):
            self._loops.append(asyncio.create_task(self._lease_loop(len(self._loops))))

    def close(self) -> None:
        if self._own_clients is not None:
            self._own_clients.close()

    async def _lease_loop(self, number: int) -> None:
        for count in itertools.count(1):
            while not self._stop.is_set() and number >= len(self._assignment):
                self._assigned.clear()
                await self._assigned.wait()
            try:
                if not self._stop.is_set():
                    await self._ledger.catch_up()
                await self._until_let_go(number)
                if self._stop.is_set():
                    return
                if number < len(self._assignment):
                    name = f"{self._run_id}-{self.flow.name}-{number}-{count}"
                    await self._one_lease(Lease(name, number, self._assignment[number]))
            except Exception as error:
                if self._stop.is_set():
                    return
                self._failed[number] = why = _one_line(error)
                self._lease_failures += 1
                if self._complaints.is_new(number, why):
                    log.error("%s: lease %d failed and will be tried again: %s", self.flow.name, number, why)
                await asyncio.sleep(_PAUSE_AFTER_FAILURE)

    async def _until_let_go(self, number: int) -> None:
        """Wait until no other lease holds a partition that this one is to copy. One that was told to end and has not
        heard it ends at its deadline, as it gets no more time."""
        began = time.monotonic()
        while not self._stop.is_set() and (holder := self._holder_of(number)) is not None:
            waited = time.monotonic() - began
            if waited > _ENDS_WITHIN and self._complaints.is_new(("let go", number), holder.id):
                said = "%s: lease %d waits for lease %s to end, which still holds partitions that are to move"
                log.warning(said, self.flow.name, number, holder.id)
            await asyncio.sleep(0.02)
        if self._complaints.recovered(("let go", number)):
            log.info("%s: lease %d waits no longer", self.flow.name, number)

    def _holder_of(self, number: int) -> Lease | None:
        wanted = set(self._assignment[number]) if number < len(self._assignment) else set()
        others = (one for one in self._leases.values() if one.number != number)
        return next((one for one in others if not wanted.isdisjoint(one.partitions)), None)

    async def _one_lease(self, lease: Lease) -> None:
        # What it is told and that it runs are noted in one step, so that a command to end it cannot fall in between.
        work = self._work(lease)
        lease.goes_on(work.seconds)
        self._leases[lease.id] = lease
        try:
            outcome = await self._outcome(work, lease)
        except BaseException:
            self._account.count_reported(lease)
            raise
        else:
            self._account.count(outcome, lease)
            self._runs_again(lease)
        finally:
            del self._leases[lease.id]

    def _runs_again(self, lease: Lease) -> None:
        self._failed.pop(lease.number, None)
        if self._complaints.recovered(lease.number):
            log.info("%s: lease %d runs again", self.flow.name, lease.number)

    async def _outcome(self, work: Work, lease: Lease) -> Outcome:
        outcome = asyncio.ensure_future(self._run_lease(work))
        try:
            while not (await asyncio.wait([outcome], timeout=lease.overdue_in()))[0]:
                if not lease.overdue_in():
                    log.warning("%s: lease %s is overdue and is cancelled", self.flow.name, lease.id)
                    await self._cancel_lease(lease.id)
                    break
            return await outcome
        finally:
            outcome.cancel()

    def _work(self, lease: Lease) -> Work:
        progress, refusals = self._account.progress, self._account.refusals
        return Work(
            self.flow,
            lease.id,
            self.flow.lease_seconds,
            lease.partitions,
            {
                one: at.position
                for one in lease.partitions
                if (at := progress.get(one)) is not None and one not in refusals  # those are looked at anew
            },
            self._ledger.hand_over(
                {
                    (one.topic, one.partition): progress[one].position.target if one in progress else None
                    for one in lease.partitions
                }
            ),
            self._commands_from,
            self._pace_of(lease),
            lease.number,
            levels(),
        )

    def _pace_of(self, lease: Lease) -> float:
        limit = self.flow.max_bytes_per_second
        return limit * self._account.load.share(lease.partitions, self._mirrors.partitions) if limit else 0.0

    async def _follow_progress(self) -> None:
        while True:
            try:
                async for records in self._progress.records():
                    await self._grant(self._hear(records))
            except WireError as error:
                log.debug("%s: progress cannot be read: %s", self.flow.name, error)
                if isinstance(error, BrokerError) and error.code == UNKNOWN_TOPIC_OR_PARTITION:
                    await self._make_signals()
            except Exception:
                log.exception("%s: progress cannot be understood", self.flow.name)
            await asyncio.sleep(1.0)

    def _hear(self, records: list[Record]) -> dict[str, tuple[int, int]]:
        """What running leases report; those that ask for more time are returned, with their attempt and the ask."""
        asking: dict[str, tuple[int, int]] = {}
        for record in records:
            key, value = record.key or b"", record.value
            lease = self._leases.get(key.decode(errors="replace"))
            if lease is None or value is None:
                continue  # another run's, perhaps of another version, or of a lease that has ended
            try:
                report = Report.from_record(key, value)
                heard = self._account.hear(report, lease)
            except Exception:
                log.exception("%s: a report of lease %s cannot be understood", self.flow.name, lease.id)
                continue
            if heard:
                self._failed.pop(lease.number, None)
                if report.ask:
                    asking[report.lease] = (report.attempt, report.ask)
        return asking

    async def _make_signals(self) -> None:
        """The topic through which leases are talked to is missing, or a partition of it: have another."""
        try:
            missing = (await self._target.metadata([self._signals])).topics[self._signals].error
            if missing and self._complaints.is_new("signals", "missing"):
                log.warning("%s: internal topic %s is missing: it is created again", self.flow.name, self._signals)
            await ensure_signals_topic(self.flow, self._target)
            self._complaints.recovered("signals")
        except (WireError, MissingTopics) as error:
            if self._complaints.is_new("signals", str(error)):
                log.warning("%s: leases cannot be heard: %s", self.flow.name, error)

    def _missed_signals(self, why: str) -> None:
        said = "reports and commands may be lost, so leases that run end at their deadlines and begin anew"
        log.warning("%s: %s; %s", self.flow.name, why, said)
        self._commands_from = 0
        self._signals_lost = time.monotonic()

    async def _grant(self, asking: Mapping[str, tuple[int, int]]) -> None:
        """More time for the leases that ask for it, unless there is a reason to begin anew."""
        stopped = self._account.stopped()
        grants = {
            lease.id: Grant(attempt, ask, self._pace_of(lease))
            for lease, (attempt, ask) in ((self._leases[name], asked) for name, asked in asking.items())
            if attempt == lease.attempt and self._may_go_on(lease, stopped)
        }
        if grants and not self._stop.is_set():
            await self._command(grant_command(grants))
            for lease in [self._leases[name] for name in grants.keys() & self._leases.keys()]:
                lease.goes_on(self.flow.lease_seconds)
                self._runs_again(lease)
                self._renewals += 1

    def _may_go_on(self, lease: Lease, stopped: set[MirrorPartition]) -> bool:
        """Whether it may have more time, and nothing must be looked at anew.

        That must be where partitions are shared out otherwise by now; where some were stopped, to see whether the cause
        is gone; where topics have no id, to see whether they were deleted and made again; and where a command may have
        been lost.
        """
        return (
            lease.number < len(self._assignment)
            and set(self._assignment[lease.number]) == set(lease.partitions)
            and lease.age() < min(self.flow.lease_seconds * _RENEWALS, time.monotonic() - self._signals_lost)
            and self._mirrors.have_ids
            and lease.is_in_step
            and stopped.isdisjoint(lease.partitions)
        )

    # --- topics ---------------------------------------------------------------------------------------------

    async def _keep_refreshing(self) -> None:
        """Now and then as the file says, and at once when the source's topics are seen to have changed."""
        last, pause = time.monotonic(), _LOOK_EVERY
        while True:
            every = self.flow.refresh_topics_every
            with suppress(TimeoutError):
                async with asyncio.timeout(None if every is None else min(pause, every)):
                    await self._look.wait()
            every = self.flow.refresh_topics_every
            if every is None:
                self._look.clear()
                continue
            began = time.monotonic()
            try:
                topics = (await self._source.metadata(None)).topics
                due = began - last >= every
                if due or self._look.is_set() or self._mirrors.are_others(topics):
                    self._look.clear()
                    last = began
                    await self._refresh(topics)
                elif began - self._rearranged >= _REARRANGE_EVERY:
                    await self._arrange()
                if self._complaints.recovered("topics"):
                    log.info("%s: topics are refreshed again", self.flow.name)
            except WireError as error:
                if self._complaints.is_new("topics", str(error)):
                    log.warning("%s: topics could not be refreshed: %s", self.flow.name, error)
            except Exception:
                log.exception("%s: topics could not be refreshed", self.flow.name)
            took = time.monotonic() - began
            pause = min(max(_LOOK_EVERY, _LOOK_COST * took), every)
            await asyncio.sleep(min(1.0, pause))  # however often it is asked for

    async def _refresh(self, topics: Mapping[str, Topic] | None = None) -> None:
        async with self._refreshing:
            await self._refresh_now(topics)

    async def _refresh_now(self, topics: Mapping[str, Topic] | None) -> None:
        if not await self._mirrors.refresh(topics):
            return
        self._account.keep(self._mirrors.partitions)
        if self._goals is not None:
            kept = set(self._mirrors.partitions)
            self._goals = {one: goal for one, goal in self._goals.items() if one in kept}
        unknown = {one for one, why in self._account.refusals.items() if why.reason == UNKNOWN_ORIGIN}
        await self._mirrors.take_over(unknown, at_start=not self._started)
        await self._arrange()

    async def _arrange(self) -> None:
        """Share the partitions out anew. Leases that only get or lose some go on with what they keep; where partitions
        move from one to another, both end, so that the one has let go before the other begins."""
        self._rearranged = time.monotonic()
        load, paused = self._account.load, self.flow.paused_topics
        load.forget(self._mirrors.partitions)
        partitions = [one for one in self._mirrors.partitions if one.topic not in paused]
        self._account.stalled.keep(partitions)
        before = self._assignment
        self._assignment = assign(partitions, before, self.flow.tasks_max, load.per_second())
        if self._assignment != before:
            self._arrangements += 1
            self._arranged = time.monotonic()
        self._enough_loops()
        self._assigned.set()
        changes, ending = rearranged(list(self._leases.values()), self._assignment)
        for name, change in changes.items():
            self._leases[name].partitions += change.added  # it holds them from now on, whenever it hears of them
        await self._end(ending)
        if changes:
            await self._change(changes)

    async def _change(self, changes: Mapping[str, Change]) -> None:
        """Tell leases that go on which partitions they have more or less."""
        for lease in await self._tell(changes):
            dropped = set(changes[lease.id].dropped)
            lease.partitions = tuple(one for one in lease.partitions if one not in dropped)

    async def _tell(self, changes: Mapping[str, Change]) -> list[Lease]:
        """The leases that were told of their partitions. Those that could not be end soon: they get no more time."""
        leases = [self._leases[name] for name in changes if name in self._leases]
        for lease in leases:
            lease.stays.update(changes[lease.id].dropped)
        try:
            await self._command(change_command(changes))
        except WireError as error:
            log.warning("%s: running leases could not be told of their partitions: %s", self.flow.name, error)
            for lease in leases:
                lease.is_in_step = False
            return []
        return leases

    async def _keep_checking_mirrors(self) -> None:
        """See whether the target holds what was copied: while the source is quiet, no copier would notice."""
        pause = _LOOK_EVERY
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            try:
                await self._check_mirrors()
            except WireError as error:
                log.debug("%s: mirrors cannot be looked at: %s", self.flow.name, error)
            except Exception:
                log.exception("%s: mirrors cannot be looked at", self.flow.name)
            pause = min(max(_LOOK_EVERY, _LOOK_COST * (time.monotonic() - began)), _LOOK_AT_LEAST_EVERY)

    async def _check_mirrors(self) -> bool:
        """Whether all mirrors hold what was copied to them. The others are copied again."""
        said = self.positions()
        contradicted = await look_at_mirrors(self._target, said)
        now = self.positions()
        found = {one: why for one, why in contradicted.items() if now.get(one) is said[one]}  # no lease has noticed it
        if not found:
            return not contradicted
        self._account.forget(found)
        if MISSING in found.values():
            self._look.set()  # it is created again
        log.info("%s: copied again, as their mirrors do not hold what was copied: %s", self.flow.name, _listed(found))
        changes = {
            lease.id: Change(lost, lost)
            for lease in self._leases.values()
            if (lost := tuple(one for one in lease.partitions if one in found))
        }
        if changes:
            await self._tell(changes)
        return False

    async def _end(self, leases: list[str]) -> None:
        if not leases:
            return
        try:
            await self._command(end_command(leases))
        except WireError as error:
            log.warning("%s: running leases could not be told to end: %s", self.flow.name, error)

    async def _command(self, command: tuple[bytes, bytes]) -> None:
        topic = await own_topic(self._target, self._signals)
        self._commands_from = await write(self._target, topic, COMMANDS, [command]) + 1

    async def _keep_telling(self) -> None:
        """Write the status down for those who look from outside, and log levels for the leases if they are others."""
        known = levels()
        while True:
            await self._look_at_transactions()
            try:
                value = json.dumps(to_json(self.status(SHOWN)), separators=(",", ":")).encode()
                topic = await own_topic(self._target, self._signals)
                at = await write(self._target, topic, STATUS, [(b"status", value)])
                await self._look_for_others(topic, at)
                if known != (now := levels()):
                    await self._command(levels_command(now))
                    known = now
                self._complaints.recovered("status")
            except WireError as error:
                # Leases cannot report, either: nothing else would tell that they are not heard.
                lasting = isinstance(error, BrokerError) and not error.transient
                loud = lasting and self._complaints.is_new("status", str(error))
                log.log(
                    logging.WARNING if loud else logging.DEBUG,
                    "%s: status and progress cannot be written to %s: %s",
                    *(self.flow.name, self._signals, error),
                )
            except Exception as error:
                if self._complaints.is_new("status", repr(error)):
                    log.exception("%s: the status cannot be told", self.flow.name)
            await asyncio.sleep(_STATUS_EVERY)

    async def _look_at_transactions(self) -> None:
        try:
            async with asyncio.timeout(_ASK_SOURCE_WITHIN):
                await self._account.stalled.look(self._source)
        except (TimeoutError, WireError) as error:
            log.debug("%s: open transactions cannot be asked for: %r", self.flow.name, error)
        except Exception:
            log.exception("%s: open transactions cannot be told", self.flow.name)

    @property
    def open_for(self) -> float:
        """Seconds that the last stable offset of a partition stands still, while records are behind it; the longest."""
        return self._account.stalled.seconds()

    async def _look_for_others(self, topic: Topic, at: int) -> None:
        """What other processes have written between our last status and this one, at this offset."""
        start, self._status_from = self._status_from, at + 1
        if start < at:
            self._other_runs.hear([record async for record in read(self._target, topic, STATUS, start, at)])

    # --- what others see ------------------------------------------------------------------------------------

    def tasks(self) -> list[Task]:
        """The leases that there should be. One is in trouble if it failed, or if a partition of it is stopped."""
        return [
            Task(partitions, self._started, self._failed.get(number) or self._stopped_in(partitions))
            for number, partitions in enumerate(self._assignment)
        ]

    def _stopped_in(self, partitions: Collection[MirrorPartition]) -> str:
        refusals = self._account.refusals
        if not refusals:
            return ""
        stopped = [refusals[one] for one in partitions if one in refusals and refusals[one].final]
        return "\n".join(map(str, stopped[:SHOWN]))

    def mirrors(self) -> list[MirrorStatus]:
        """Each topic of the flow and its partitions' states."""
        account = self._account
        found: dict[str, MirrorStatus] = {}
        for one in self._mirrors.partitions:
            mirror = found.setdefault(one.topic, MirrorStatus(one.topic, one.mirror))
            at, refusal = account.progress.get(one), account.refusals.get(one)
            error = str(refusal) if refusal is not None else ""
            mirror.add(self._state_of(one), at, error, account.tallies.get(one))
        for topic, why in self._mirrors.synced.failed.items():
            found.setdefault(topic, MirrorStatus(topic, self.flow.mirror_name(topic))).errors.append(why)
        return list(found.values())

    def measures(self) -> list[Measure]:
        """Every partition in numbers."""
        account = self._account
        return [
            Measure(one, self._state_of(one), account.progress.get(one), account.tallies.get(one))
            for one in self._mirrors.partitions
        ]

    def counts(self) -> Counts:
        """All that was done since the flow runs."""
        return self._account.counts(self._leases.values())

    @property
    def too_wide(self) -> int:
        """Mirrors with more partitions than their topics."""
        return len(self._mirrors.synced.too_wide)

    def leases(self) -> Leases:
        running = [one.age() for one in self._leases.values() if one.runs]
        return Leases(
            len(self._assignment),
            len(running),
            max(running, default=0.0),
            self._lease_failures,
            self._renewals,
            self._arrangements,
            time.monotonic() - self._arranged,
        )

    def _state_of(self, one: MirrorPartition) -> str:
        if one.topic in self.flow.paused_topics:
            return "paused"
        return state_of(self._account.progress.get(one), self._account.refusals.get(one))

    def positions(self) -> dict[MirrorPartition, Position]:
        """Where copying stands, as far as it is known."""
        return {one: at.position for one, at in self._account.progress.items()}

    async def caught_up(self) -> bool:
        """Whether every partition has reached its goal or can not, and the mirrors hold it."""
        if self._goals is None or not set(self.behind()) <= self._account.stopped():
            return False
        try:
            return await self._check_mirrors()
        except WireError as error:
            log.debug("%s: mirrors cannot be looked at: %s", self.flow.name, error)
            return False

    def behind(self) -> list[MirrorPartition]:
        """Partitions that did not reach their goal."""
        return [
            one
            for one, goal in (self._goals or {}).items()
            if (at := self._account.progress.get(one)) is None or at.position.source < goal
        ]

    def sample(self) -> None:
        """Take note of the totals, for the rates."""
        counts = self.counts()
        self._account.rate.note(counts.records, counts.size)

    def status(self, most: int | None = None) -> FlowStatus:
        """With `most`, at most so many refusals and notices."""
        account, partitions = self._account, self._mirrors.partitions
        counts = self.counts()
        records_rate, bytes_rate = account.rate.per_second()
        paused = self.flow.paused_topics
        known = self._started and all(one in account.progress or one.topic in paused for one in partitions)
        lag = sum(max(0, at.source_end - at.position.source) for at in account.progress.values())
        states = Counter(map(self._state_of, partitions))
        return FlowStatus(
            self.flow.name,
            len(self._mirrors.synced.partitions),
            len(partitions),
            sum(one.runs for one in self._leases.values()),
            counts.records,
            counts.size,
            records_rate,
            bytes_rate,
            lag if known else None,
            tuple(itertools.islice(account.refusals.values(), most)),
            self._mirrors.synced.failed,
            dict(states),
            dict(account.events),
            dict(account.records_of_events),
            tuple(account.notices),
            self._run_id,
            socket.gethostname(),
            self._other_runs.running(),
            tuple(itertools.islice(account.stalled.told(), most)),
        )


def _listed(found: Mapping[MirrorPartition, str]) -> str:
    named = [f"{one} (mirror {why})" for one, why in sorted(found.items())[:_NAMED]]
    more = len(found) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _number(found: int | WireError) -> int:
    if isinstance(found, WireError):
        raise found
    return found


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:300]
