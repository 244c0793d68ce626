"""One flow of a running deployment: prepares the target, hands out leases, follows what they report."""

import asyncio
import itertools
import json
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from heliograph.control.takeover import StillRunning, take_over, tell
from heliograph.control.topics import Synced, sync_topics
from heliograph.copy.ledger import Ledger
from heliograph.copy.position import UNKNOWN_ORIGIN
from heliograph.copy.signals import Grant, Report, end_command, grant_command
from heliograph.copy.work import MirrorPartition, Notice, Outcome, Position, Progress, Refusal, Work
from heliograph.model.flow import Flow
from heliograph.model.internal_topics import COMMANDS, PROGRESS, STATUS, signals_topic
from heliograph.service.assignment import Assignment, assign
from heliograph.service.cycles import comes_home
from heliograph.service.lease import Lease
from heliograph.service.load import Load
from heliograph.service.status import FlowStatus, Rate, state_of, to_json
from heliograph.wire.cluster import ClusterClient, Topic
from heliograph.wire.errors import WireError
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.records import own_topic, tail, write

log = logging.getLogger(__name__)

RunLease = Callable[[Work], Awaitable[Outcome]]
CancelLease = Callable[[str], Awaitable[None]]
_PAUSE_AFTER_FAILURE = 1.0
# A lease goes on when it asks, for so many times its length at most: then all is looked at anew.
_RENEWALS = 15
# How often to look whether the source has other topics or partitions; less often where looking takes long.
_LOOK_EVERY = 5.0
_LOOK_COST = 50
# Leases are not rearranged for their load more often than this.
_REARRANGE_EVERY = 30.0
_STATUS_EVERY = 5.0
_SHOWN = 200  # refusals and notices in a written status


class FlowRunner:
    def __init__(
        self, flow: Flow, flows: tuple[Flow, ...], run_lease: RunLease, cancel_lease: CancelLease, run_id: str
    ) -> None:
        self.flow = flow
        self._flows = flows
        self._run_lease = run_lease
        self._cancel_lease = cancel_lease
        self._run_id = run_id
        self._source = ClusterClient(flow.source)
        self._target = ClusterClient(flow.target)
        self._ledger = Ledger(self._target, flow.source.alias)
        self._signals = signals_topic(flow.source.alias)
        self._synced = Synced({}, {})
        self._known_shape: dict[str, tuple[str, int]] = {}
        self._topics_have_ids = False
        self._looked_at: set[MirrorPartition] = set()  # whether they are to be taken over from MM2
        self._partitions: tuple[MirrorPartition, ...] = ()
        self._assignment: Assignment = ()
        self._assigned = asyncio.Event()
        self._leases: dict[str, Lease] = {}  # those that run
        self._records = 0
        self._size = 0
        self._rate = Rate()
        self._progress: dict[MirrorPartition, Progress] = {}
        self._refusals: dict[MirrorPartition, Refusal] = {}
        self._notices: deque[Notice] = deque(maxlen=_SHOWN)
        self._events: Counter[str] = Counter()
        self._records_of_events: Counter[str] = Counter()
        self._load = Load()
        self._rearranged = 0.0
        self._look = asyncio.Event()
        self._commands_from = 0
        self._progress_from = 0
        self._started = False
        self._stopping = False
        self._goals: dict[MirrorPartition, int] | None = None

    # --- before the first lease -----------------------------------------------------------------------------

    async def connect(self) -> None:
        await asyncio.gather(self._source.connect(), self._target.connect())

    async def prepare(self) -> None:
        """Make the mirrors ready, and read what earlier runs have written down."""
        await self._ledger.catch_up()
        await self._refresh()
        topic = await own_topic(self._target, self._signals)
        places = [(self._signals, COMMANDS), (self._signals, PROGRESS)]
        ends = await list_offsets(self._target, {self._signals: topic}, places, LATEST, False)
        self._commands_from, self._progress_from = (_number(ends[place]) for place in places)

    async def set_goals(self) -> None:
        """Remember where the source ends now; `caught_up` is measured against it."""
        places = [(one.topic, one.partition) for one in self._partitions]
        topics = (await self._source.metadata({topic for topic, _partition in places})).topics
        ends = await list_offsets(self._source, topics, places, LATEST, True)
        self._goals = {one: _number(ends[one.topic, one.partition]) for one in self._partitions}

    # --- running --------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep leases going until `stop`; then return when the last one has ended."""
        self._started = True
        helpers = [
            asyncio.create_task(one) for one in (self._follow_progress(), self._keep_refreshing(), self._keep_telling())
        ]
        try:
            await asyncio.gather(*(self._lease_loop(number) for number in range(self.flow.tasks_max)))
        finally:
            for task in helpers:
                task.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)

    async def stop(self) -> None:
        """Ask all running leases to end. They would at their deadline anyway."""
        self._stopping = True
        self._assigned.set()
        await self._end(list(self._leases))

    def close(self) -> None:
        self._source.close()
        self._target.close()

    async def _lease_loop(self, number: int) -> None:
        for count in itertools.count(1):
            while not self._stopping and number >= len(self._assignment):
                self._assigned.clear()
                await self._assigned.wait()
            try:
                if not self._stopping:
                    await self._ledger.catch_up()
                if self._stopping:
                    return
                if number < len(self._assignment):
                    name = f"{self._run_id}-{self.flow.name}-{number}-{count}"
                    await self._one_lease(Lease(name, number, self._assignment[number]))
            except Exception as error:
                if self._stopping:
                    return
                log.error("%s: lease %d failed and will be tried again: %s", self.flow.name, number, _one_line(error))
                await asyncio.sleep(_PAUSE_AFTER_FAILURE)

    async def _one_lease(self, lease: Lease) -> None:
        # What it is told and that it runs are noted in one step, so that a command to end it cannot fall in between.
        work = self._work(lease.id, lease.partitions)
        lease.goes_on(work.seconds)
        self._leases[lease.id] = lease
        try:
            outcome = await self._outcome(work, lease)
        except BaseException:
            # No outcome came: what it last reported is copied all the same.
            self._records += lease.records
            self._size += lease.size
            raise
        else:
            self._account(outcome, lease)
        finally:
            del self._leases[lease.id]

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

    def _work(self, lease: str, partitions: tuple[MirrorPartition, ...]) -> Work:
        return Work(
            self.flow,
            lease,
            self.flow.lease_seconds,
            partitions,
            {
                one: at.position
                for one in partitions
                if (at := self._progress.get(one)) is not None and one not in self._refusals  # those are looked at anew
            },
            {(one.topic, one.partition): self._ledger.all_of((one.topic, one.partition)) for one in partitions},
            self._ledger.next_offset,
            self._commands_from,
            self._pace_of(partitions),
        )

    def _pace_of(self, partitions: tuple[MirrorPartition, ...]) -> float:
        limit = self.flow.max_bytes_per_second
        return limit * self._load.share(partitions, self._partitions) if limit else 0.0

    def _account(self, outcome: Outcome, lease: Lease) -> None:
        self._records += outcome.records
        self._size += outcome.size
        self._progress.update(outcome.progress)
        refused = {one.partition: one for one in outcome.refusals}
        for partition in self._refusals.keys() & outcome.progress.keys() - refused.keys():
            refusal = self._refusals[partition]
            # A lease that ended before it met the refusal again is no proof that it is gone.
            if not refusal.final or outcome.progress[partition].position.source > refusal.source_offset:
                del self._refusals[partition]
                log.info("%s: %s is being copied again", self.flow.name, partition)
        self._note_refusals(outcome.refusals)
        self._note_notices(lease, 0, outcome.notices)
        self._load.note(outcome.progress)

    def _note_notices(self, lease: Lease, first: int, notices: tuple[Notice, ...]) -> None:
        """A lease's outcome repeats what its reports have said: each notice counts once."""
        for one in notices[max(0, lease.notices - first) :]:
            log.warning("%s: %s", self.flow.name, one)
            self._notices.append(one)
            self._events[one.kind] += 1
            self._records_of_events[one.kind] += one.count
        lease.notices = max(lease.notices, first + len(notices))

    def _note_refusals(self, refusals: tuple[Refusal, ...]) -> None:
        for one in refusals:
            if self._refusals.get(one.partition) != one:
                log.log(logging.ERROR if one.final else logging.WARNING, "%s: %s", self.flow.name, one)
                if not one.final:
                    self._look.set()  # a mirror may be missing
            self._refusals[one.partition] = one

    async def _follow_progress(self) -> None:
        while True:
            try:
                topic = await own_topic(self._target, self._signals)
                async for records in tail(self._target, topic, PROGRESS, self._progress_from):
                    asking: dict[str, tuple[int, int]] = {}  # lease -> attempt, ask
                    for record in records:
                        self._progress_from = record.offset + 1
                        if record.key is not None and record.value is not None:
                            report = Report.from_record(record.key, record.value)
                            if self._hear(report) and report.ask:
                                asking[report.lease] = (report.attempt, report.ask)
                    await self._grant(asking)
            except WireError as error:
                log.debug("%s: progress cannot be read: %s", self.flow.name, error)
            except Exception:
                log.exception("%s: progress cannot be understood", self.flow.name)
            await asyncio.sleep(1.0)

    def _hear(self, report: Report) -> bool:
        """Whether it was to be listened to: not another run's, nor one whose outcome has said more already."""
        lease = self._leases.get(report.lease)
        if lease is None or report.attempt < lease.attempt:
            return False
        if report.attempt > lease.attempt:  # Spark has started it again: what it did before counts, too
            self._records += lease.records
            self._size += lease.size
            lease.attempt, lease.notices = report.attempt, 0
        lease.records, lease.size = report.records, report.size
        self._progress.update(report.changed)
        self._load.note(report.changed)
        self._note_refusals(report.refusals)
        self._note_notices(lease, report.first_notice, report.notices)
        self._cured(report.changed)
        return True

    async def _grant(self, asking: Mapping[str, tuple[int, int]]) -> None:
        """More time for the leases that ask for it, unless there is a reason to begin anew."""
        stopped = {one.partition for one in self._refusals.values() if one.final}
        grants = {
            lease.id: Grant(attempt, ask, self._pace_of(lease.partitions))
            for lease, (attempt, ask) in ((self._leases[name], asked) for name, asked in asking.items())
            if attempt == lease.attempt and self._may_go_on(lease, stopped)
        }
        if grants and not self._stopping:
            await self._command(grant_command(grants))
            for lease in grants.keys() & self._leases.keys():
                self._leases[lease].goes_on(self.flow.lease_seconds)

    def _may_go_on(self, lease: Lease, stopped: set[MirrorPartition]) -> bool:
        """Not if its partitions are shared out otherwise by now, or some were stopped: the next lease sees whether the

        cause is gone. Nor with topics that have no id (brokers before 2.8): the next one sees whether they were deleted
        and made again.
        """
        return (
            self._assignment[lease.number : lease.number + 1] == (lease.partitions,)
            and lease.age() < self.flow.lease_seconds * _RENEWALS
            and self._topics_have_ids
            and stopped.isdisjoint(lease.partitions)
        )

    def _cured(self, changed: Mapping[MirrorPartition, Progress]) -> None:
        """What was waiting and moves again waits no longer."""
        for partition in self._refusals.keys() & changed.keys():
            refusal = self._refusals[partition]
            if not refusal.final and changed[partition].position.source > refusal.source_offset >= 0:
                del self._refusals[partition]

    # --- topics ---------------------------------------------------------------------------------------------

    async def _keep_refreshing(self) -> None:
        """Now and then as the file says, and at once when the source's topics are seen to have changed."""
        every = self.flow.refresh_topics_every
        if every is None:
            return
        last, pause = time.monotonic(), min(_LOOK_EVERY, every)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._look.wait()
            began = time.monotonic()
            try:
                topics = (await self._source.metadata(None)).topics
                due = began - last >= every
                if due or self._look.is_set() or self._shape(topics) != self._known_shape:
                    self._look.clear()
                    last = began
                    await self._refresh(topics)
                elif began - self._rearranged >= _REARRANGE_EVERY:
                    await self._arrange()
            except WireError as error:
                log.warning("%s: topics could not be refreshed: %s", self.flow.name, error)
            except Exception:
                log.exception("%s: topics could not be refreshed", self.flow.name)
            took = time.monotonic() - began
            pause = min(max(_LOOK_EVERY, _LOOK_COST * took), every)
            await asyncio.sleep(min(1.0, pause))  # however often it is asked for

    def _shape(self, topics: Mapping[str, Topic]) -> dict[str, tuple[str, int]]:
        """What decides which mirrors there must be."""
        return {
            name: (topic.id.hex, len(topic.leaders))
            for name, topic in topics.items()
            if not topic.internal and not topic.error and self.flow.selects(name)
        }

    async def _refresh(self, topics: Mapping[str, Topic] | None = None) -> None:
        if topics is None:
            topics = (await self._source.metadata(None)).topics
        if not topics and self._partitions:
            log.warning("%s: the source lists no topic at all, which is not believed", self.flow.name)
            return
        circles = {name: _circle(path) for name in topics if (path := comes_home(name, self.flow, self._flows))}
        rest = {name: topic for name, topic in topics.items() if name not in circles}
        synced = await sync_topics(self.flow, self._source, self._target, rest)
        synced.failed.update(circles)
        for name, why in synced.failed.items():
            if self._synced.failed.get(name) != why:
                log.error("%s: topic %s is not mirrored: %s", self.flow.name, name, why)
        for name in self._synced.partitions.keys() - synced.partitions.keys() - synced.failed.keys():
            log.warning("%s: topic %s is gone from the source; its mirror stays as it is", self.flow.name, name)
        self._synced = synced
        self._known_shape = self._shape(topics)
        self._topics_have_ids = all(topics[name].id.int for name in self._known_shape)
        self._partitions = tuple(
            MirrorPartition(name, self.flow.mirror_name(name), partition)
            for name, count in synced.partitions.items()
            for partition in range(count)
        )
        kept = set(self._partitions)
        for known in (self._progress, self._refusals, self._goals or {}):
            for one in known.keys() - kept:
                del known[one]
        self._looked_at &= kept
        await self._take_over()
        await self._arrange()

    async def _take_over(self) -> None:
        """From MM2, what is new to us. What could not be taken over is looked at again with the next refresh."""
        fresh = [
            one
            for one in self._partitions
            if one not in self._looked_at
            or ((refusal := self._refusals.get(one)) is not None and refusal.reason == UNKNOWN_ORIGIN)
        ]
        try:
            outcome = await take_over(self.flow, self._source, self._target, self._ledger, fresh)
        except StillRunning as running:
            if not self._started:
                raise
            log.error("%s: %s", self.flow.name, running)
            return
        tell(self.flow, outcome)
        self._looked_at.update(set(fresh) - outcome.refused.keys())

    async def _arrange(self) -> None:
        """Share the partitions out anew, and end the leases that have others now."""
        before = self._assignment
        self._rearranged = time.monotonic()
        self._load.forget(self._partitions)
        self._assignment = assign(self._partitions, before, self.flow.tasks_max, self._load.per_second())
        self._assigned.set()
        changed = [
            lease.id
            for lease in self._leases.values()
            if self._assignment[lease.number : lease.number + 1] != before[lease.number : lease.number + 1]
        ]
        await self._end(changed)

    async def _end(self, leases: list[str]) -> None:
        if not leases:
            return
        try:
            await self._command(end_command(leases))
        except WireError as error:
            log.warning("%s: running leases could not be told to end: %s", self.flow.name, error)

    async def _command(self, command: tuple[bytes, bytes]) -> None:
        topic = await own_topic(self._target, self._signals)
        at = await write(self._target, topic, COMMANDS, [command])
        self._commands_from = max(self._commands_from, at + 1)

    async def _keep_telling(self) -> None:
        """Write the status down for those who look from outside."""
        while True:
            value = json.dumps(to_json(self.status(_SHOWN)), separators=(",", ":")).encode()
            try:
                topic = await own_topic(self._target, self._signals)
                await write(self._target, topic, STATUS, [(b"status", value)])
            except WireError as error:
                log.debug("%s: the status cannot be written: %s", self.flow.name, error)
            await asyncio.sleep(_STATUS_EVERY)

    # --- what others see ------------------------------------------------------------------------------------

    def positions(self) -> dict[MirrorPartition, Position]:
        """Where copying stands, as far as it is known."""
        return {one: at.position for one, at in self._progress.items()}

    def caught_up(self) -> bool:
        """Whether every partition has reached its goal or can not."""
        return self._goals is not None and all(
            ((at := self._progress.get(one)) is not None and at.position.source >= goal)
            or ((refusal := self._refusals.get(one)) is not None and refusal.final)
            for one, goal in self._goals.items()
        )

    def behind(self) -> list[MirrorPartition]:
        """Partitions that did not reach their goal."""
        return [
            one
            for one, goal in (self._goals or {}).items()
            if (at := self._progress.get(one)) is None or at.position.source < goal
        ]

    def sample(self) -> None:
        """Take note of the totals, for the rates."""
        self._rate.note(*self._totals())

    def _totals(self) -> tuple[int, int]:
        running = self._leases.values()
        return self._records + sum(one.records for one in running), self._size + sum(one.size for one in running)

    def status(self, most: int | None = None) -> FlowStatus:
        """With `most`, at most so many refusals and notices."""
        records, size = self._totals()
        records_rate, bytes_rate = self._rate.per_second()
        known = self._started and all(one in self._progress for one in self._partitions)
        lag = sum(max(0, at.source_end - at.position.source) for at in self._progress.values())
        states = Counter(state_of(self._progress.get(one), self._refusals.get(one)) for one in self._partitions)
        return FlowStatus(
            self.flow.name,
            len(self._synced.partitions),
            len(self._partitions),
            len(self._leases),
            records,
            size,
            records_rate,
            bytes_rate,
            lag if known else None,
            tuple(itertools.islice(self._refusals.values(), most)),
            self._synced.failed,
            dict(states),
            dict(self._events),
            dict(self._records_of_events),
            tuple(self._notices),
        )


def _circle(path: tuple[str, ...]) -> str:
    return f"{' and '.join(path)} would copy it in a circle onto itself; let `topics` of one of them leave it out"


def _number(found: int | WireError) -> int:
    if isinstance(found, WireError):
        raise found
    return found


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:300]
