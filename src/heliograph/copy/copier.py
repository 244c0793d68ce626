"""The copier: runs one lease from start to end on one event loop.

Ties reader, writer and resume together, listens for commands and reports progress. Correct without anyone's help:
when it dies, is cut off or overlaps with another copier, the next one resumes from the target's log.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from heliograph.copy.clock import now
from heliograph.copy.counts import SOURCE, TARGET, Counts
from heliograph.copy.cursor import Budget, Cursor, Sent, State, Unrecorded
from heliograph.copy.dead_letters import park
from heliograph.copy.filler import MayNotBeCut, fill, keep_beginnings
from heliograph.copy.gaps import Gaps, filler_name
from heliograph.copy.intake import Rules
from heliograph.copy.ledger import Ledger
from heliograph.copy.limits import settle_limits
from heliograph.copy.log_levels import use_levels
from heliograph.copy.pace import Pace
from heliograph.copy.position import not_kept
from heliograph.copy.reader import Reader
from heliograph.copy.resume import resume
from heliograph.copy.signals import Change, Grant, Report, change_of, grant_to, is_end_of, levels_in
from heliograph.copy.work import Copied, MirrorPartition, Notice, Outcome, Progress, Refusal, Work, producer_id
from heliograph.copy.writer import Writer
from heliograph.model.flow import CONTINUE
from heliograph.model.internal_topics import COMMANDS, PROGRESS, signals_topic
from heliograph.model.intervals import Interval, NotLoaded
from heliograph.model.ledger_records import Entry
from heliograph.wire.append import takes_zstd
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.following import Follower
from heliograph.wire.records import own_topic, write

log = logging.getLogger(__name__)

_REPORT_EVERY = 0.5
_PARTITIONS_AT_ONCE = 1000  # in one report: a batch has a size limit
_INTERVALS_AT_ONCE = 50_000  # likewise
_ASK_BELOW = 0.75  # of its time: a lease that has less left asks for more with every report
_LOOK_AT_CLOCK = 1.0  # at least so often: our own timers stand still while the machine sleeps
_DRAIN = 1.0  # how long a lease that ends waits for what is under way
_CANCEL_EVERY = 0.1


class Copier:
    def __init__(self, work: Work, attempt: int = 0) -> None:
        self._work = work
        self._attempt = attempt
        flow = work.flow
        self._source = ClusterClient(flow.source)
        self._target = ClusterClient(flow.target)
        self._ledger = Ledger(self._target, flow.source.alias, work.ledger)
        self.budget = Budget(flow.buffer_memory)
        self._pace = Pace(work.bytes_per_second)
        self._park = flow.policies.refused_record == CONTINUE
        self._rules = Rules(flow.reading.committed_only, flow.writing.join_up_to, park=self._park)
        self._gaps = Gaps(
            self._target,
            filler_name(flow.name, work.number),
            lambda: self._until,
            filled=self._filled,
            settled=lambda cursor: self._settled([cursor]),
            lost=self._lost,
        )
        self._stays: Counter[MirrorPartition] = Counter()  # how often each has left
        self._leaving: dict[MirrorPartition, Cursor] = {}  # those that have, and may have something under way
        self.cursors = [self._cursor(key) for key in work.partitions]
        self._keeping = False
        self._filling: set[Cursor] = set()
        self._readers: dict[int, Reader] = {}
        self._writers: dict[int, Writer] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._fills: set[asyncio.Task[None]] = set()  # those of them that fill gaps
        self._failure: BaseException | None = None
        self._until = now() + work.seconds
        self._asked: list[float] = []  # when we asked for more time
        self._stop = asyncio.Event()
        self._resume_wake = asyncio.Event()
        self._to_record: dict[Cursor, None] = {}
        self._record_wake = asyncio.Event()
        self._notices: list[Notice] = []
        self.counts = Counts()
        self._away_until = {SOURCE: 0.0, TARGET: 0.0}  # by what its brokers say
        self._changed: set[Cursor] = set()

    def stop(self) -> None:
        self._stop.set()

    async def run(self) -> Outcome:
        """Copy until the lease's time is up or somebody says stop."""
        log.debug("%s: lease %s begins with %d partitions", self._work.flow.name, self._work.lease, len(self.cursors))
        try:
            self._start(self._keep_resuming())
            self._start(self._keep_recording())
            self._keep_offsets()
            self._start(self._listen())
            self._start(self._report())
            while not self._stop.is_set() and (left := self._until - now()) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, _LOOK_AT_CLOCK)):
                        await self._stop.wait()
            ended = "stopped" if self._stop.is_set() else "deadline"
            log.debug("%s: lease %s ends: %s", self._work.flow.name, self._work.lease, ended)
            await self._finish()
            if self._failure is not None:
                raise self._failure
            return Outcome(
                self._work.lease,
                ended,
                self.counts,
                {cursor.key: progress for cursor in self.cursors if (progress := _progress(cursor)) is not None},
                tuple(told for cursor in self.cursors if (told := cursor.refusal or cursor.trouble) is not None),
                tuple(self._notices),
                self._attempt,
            )
        finally:
            # asyncio.gather swallows a cancellation if one of its parts fails at the same moment: say it again.
            while going_on := [task for task in self._tasks if not task.done()]:
                for task in going_on:
                    task.cancel()
                await asyncio.wait(going_on, timeout=_CANCEL_EVERY)
            for writer in self._writers.values():
                await writer.close()
            self._source.close()
            self._target.close()

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        task.add_done_callback(self._ended)
        self._tasks.append(task)
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """None of the parts ends by itself; one that does has failed, and the lease with it."""
        if not task.cancelled() and task.exception() is not None:
            self._failure = self._failure or task.exception()
            self._stop.set()

    def _cursor(self, key: MirrorPartition) -> Cursor:
        flow = self._work.flow
        return Cursor(
            key,
            producer_id(flow.name, key),
            position=self._work.positions.get(key),
            copied=Copied(stay=self._stays[key]),
            kept_offsets=flow.kept_offsets if flow.keeps_offsets(key.topic) else None,
            filler=self._gaps.name,
        )

    def _keep_offsets(self) -> None:
        """Begin with what only mirrors need that have the source's offsets, if there are such."""
        kept = self._ledger.knows_gaps or any(cursor.kept_offsets is not None for cursor in self.cursors)
        if kept and not self._keeping:
            self._keeping = True
            self._fills.add(self._start(self._gaps.work()))
            self._start(keep_beginnings(lambda: self.cursors, self._target, self._ledger, self._notice))

    def _change(self, change: Change) -> None:
        """Other partitions from now on; those that stay notice nothing. One that is dropped and added is looked for in
        the logs: what was known of its mirror is not true any more."""
        told = self._work.flow.name, self._work.lease, len(change.added), len(change.dropped)
        log.debug("%s: lease %s goes on with %d partitions more and without %d", *told)
        dropped = set(change.dropped)
        self._leaving = {key: cursor for key, cursor in self._leaving.items() if not cursor.is_settled}
        for cursor in [one for one in self.cursors if one.key in dropped]:
            cursor.drop()
            self._stays[cursor.key] += 1
            self._leaving[cursor.key] = cursor
            if cursor.source_leader in self._readers:
                self._readers[cursor.source_leader].look_at(cursor)
        self.cursors = [one for one in self.cursors if one.key not in dropped]
        known = {one.key for one in self.cursors}
        for key in change.added:
            if key not in known:
                cursor = self._cursor(key)
                cursor.earlier = earlier = self._leaving.get(key)
                # What others have told at the start is out of date by now, and what we knew before another had it.
                cursor.position = earlier.position if earlier is not None and key in dropped else None
                cursor.familiar = False
                self.cursors.append(cursor)
        self._keep_offsets()
        self._resume_wake.set()

    async def _finish(self) -> None:
        """Read and send nothing new, and wait a little for the answers to what is under way."""
        for task in self._tasks:
            if task not in self._fills:
                task.cancel()
        for cursor in self.cursors:
            cursor.drop_queue()
            if cursor.filling:
                cursor.generation += 1  # the part of its gap that is under way is the last
        until = time.monotonic() + _DRAIN
        while any(cursor.in_flight or cursor.filling for cursor in self.cursors) and time.monotonic() < until:
            await asyncio.sleep(0.005)

    # --- what reader and writer call ------------------------------------------------------------------------

    def _queued(self, cursor: Cursor, must_be_recorded: bool) -> None:
        self._changed.add(cursor)
        if cursor.too_wide is not None:
            gap, cursor.too_wide = cursor.too_wide, None
            kind, count, text = not_kept(f"the source has a gap of {gap.count} offsets, which is too wide to be filled")
            self._notice(Notice(cursor.key, kind, count, gap.source_offset, gap.source_offset, text))
        if must_be_recorded:
            self._to_record[cursor] = None
            self._record_wake.set()
        self._offer(cursor)

    def _offer(self, cursor: Cursor) -> None:
        """Whatever comes next for this cursor, have it done."""
        gap = cursor.gap
        if gap is None:
            if cursor.queue:
                self._writer(cursor.target_leader).offer(cursor)
        elif not gap.filler:
            self._gaps.offer(cursor)
        elif cursor not in self._filling:
            self._filling.add(cursor)
            self._fills.add(self._start(self._fill(cursor)))

    def _filled(self, cursors: list[Cursor]) -> None:
        self._changed.update(cursors)
        writers = {cursor.target_leader: self._writer(cursor.target_leader) for cursor in cursors}
        for cursor in cursors:
            if cursor.gap is None:
                writers[cursor.target_leader].line_up(cursor)
            else:
                self._offer(cursor)
        for writer in writers.values():
            writer.pump()  # what goes on together stays together

    async def _fill(self, cursor: Cursor) -> None:
        """Bring a new mirror to where the source begins."""
        generation = cursor.generation
        cursor.filling += 1
        try:
            await fill(cursor, self._target, lambda: self._until)
            if cursor.generation == generation:
                cursor.filled()
        except WireError as error:
            cursor.fillable = not isinstance(error, MayNotBeCut)
            if cursor.generation == generation:
                self._lost(cursor, f"the mirror cannot be filled up: {error}", False)
        finally:
            cursor.filling -= 1
            self._filling.discard(cursor)
        self._filled([cursor])
        self._settled([cursor])

    def _landed(self, cursor: Cursor, sent: Sent) -> None:
        batch, copied = sent.parcel.batch, cursor.copied
        self.counts.append(batch.codec, sent.parcel.why_anew, batch.count, batch.size)
        copied.records += batch.count
        copied.size += batch.size
        copied.newest, copied.landed = batch.max_timestamp, int(time.time() * 1000)
        self._changed.add(cursor)

    def _settled(self, cursors: list[Cursor]) -> None:
        """An answer came in: there may be room to read more, or a cursor may be ready to resume."""
        for cursor in cursors:
            if cursor.state in (State.RESUMING, State.DROPPED):
                self._resume_wake.set()
            if cursor.source_leader in self._readers:
                self._readers[cursor.source_leader].room_for(cursor)
            if cursor.gap is not None:
                self._offer(cursor)
        for reader in self._readers.values():
            reader.wake()  # memory that one has given back may be what another waits for

    def _throttled(self, side: str, seconds: float) -> None:
        """A broker tells us to stay away. What several say at the same time counts once."""
        moment = time.monotonic()
        before = max(moment, self._away_until[side])
        self._away_until[side] = max(before, moment + seconds)
        self.counts.throttled[side] += self._away_until[side] - before

    def _notice(self, notice: Notice) -> None:
        self._notices.append(notice)

    def _lost(self, cursor: Cursor, why: str, suspicious: bool) -> None:
        """This cursor must find its position again. A suspicious cause ends our patience when it keeps coming back."""
        if cursor.state is not State.COPYING and cursor.state is not State.RESUMING:
            return
        log.debug("%s: %s finds its position anew: %s", self._work.flow.name, cursor.key, why)
        if not cursor.begin_again(why, suspicious):
            cursor.give_up("keeps-failing", why, cursor.fetch_at, cursor.append_at)
        self._changed.add(cursor)
        self._resume_wake.set()
        if cursor.source_leader in self._readers:
            self._readers[cursor.source_leader].look_at(cursor)

    # --- the parts ------------------------------------------------------------------------------------------

    def _writer(self, node: int) -> Writer:
        if node not in self._writers:
            self._writers[node] = Writer(
                self._target,
                node,
                self._work.flow.writing,
                lambda: self._until,
                self._park,
                landed=self._landed,
                settled=self._settled,
                throttled=lambda seconds: self._throttled(TARGET, seconds),
                lost=self._lost,
            )
        return self._writers[node]

    def _reader(self, node: int) -> Reader:
        if node not in self._readers:
            self._readers[node] = Reader(
                self._source,
                node,
                self._work.flow.reading,
                self.budget,
                self._pace,
                lambda: self._rules,
                moved=self._changed.add,
                queued=self._queued,
                throttled=lambda seconds: self._throttled(SOURCE, seconds),
                lost=self._lost,
            )
            self.budget.readers = len(self._readers)
            self._start(self._readers[node].run())
        return self._readers[node]

    async def _keep_resuming(self) -> None:
        while True:
            self._resume_wake.clear()
            moment = time.monotonic()
            waiting = [c for c in self.cursors if c.state is State.RESUMING and c.is_settled]
            due = [cursor for cursor in waiting if cursor.not_before <= moment]
            if due:
                await self._resume(due)
                continue
            pause = min((cursor.not_before for cursor in waiting), default=moment + 3600) - moment
            # Not wait_for: before Python 3.12 it can swallow a cancellation.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.001, pause)):
                    await self._resume_wake.wait()

    async def _resume(self, due: list[Cursor]) -> None:
        flow = self._work.flow
        try:
            if strangers := [cursor for cursor in due if not cursor.familiar]:
                await self._ledger.recall({(one.key.topic, one.key.partition) for one in strangers})
                for cursor in strangers:
                    cursor.familiar = True
            await settle_limits(due, self._target, flow.may_raise_limits, self._notice)
            ready = await resume(
                due,
                self._source,
                self._target,
                self._ledger,
                flow.policies,
                flow.reading,
                self._gaps,
                flow.buffer_memory,
                lost=self._lost,
                notice=self._notice,
            )
            for leader in {cursor.target_leader for cursor in ready}:
                zstd = takes_zstd(await self._target.to(leader))
                self._rules = replace(self._rules, zstd=self._rules.zstd and zstd)
        except (WireError, NotLoaded) as error:
            for cursor in due:  # those that have their position, too: nobody reads for them yet
                self._lost(cursor, f"positions cannot be found: {error}", False)
            return
        self._changed.update(due)
        for cursor in ready:
            self._reader(cursor.source_leader).look_at(cursor)
            self._offer(cursor)

    async def _keep_recording(self) -> None:
        """Write down what must be before it is sent, for all cursors that wait for it at once."""
        while True:
            self._record_wake.clear()
            due = [(cursor, cursor.generation, tuple(cursor.unrecorded)) for cursor in self._to_record]
            self._to_record.clear()
            if not due:
                await self._record_wake.wait()
            elif now() >= self._until:
                return  # as for appends: another may have copied on since
            else:
                await self._record(due)

    async def _record(self, due: list[tuple[Cursor, int, tuple[Unrecorded, ...]]]) -> None:
        try:
            for cursor, _generation, waiting in due:
                await self._put_aside(cursor, waiting)
            await self._ledger.write(
                [
                    Entry((cursor.key.topic, cursor.key.partition), cursor.mirror_id, some, one.filler)
                    for cursor, _generation, waiting in due
                    for one in waiting
                    for some in _batched(one.intervals, _INTERVALS_AT_ONCE)
                ]
            )
        except WireError as error:
            for cursor, generation, _waiting in due:
                if cursor.generation == generation:
                    self._lost(cursor, f"intervals cannot be written down: {error}", False)
            return
        for cursor, generation, waiting in due:
            if cursor.generation == generation:
                cursor.recorded(len(waiting))
                self._changed.add(cursor)
                self._offer(cursor)

    async def _put_aside(self, cursor: Cursor, waiting: tuple[Unrecorded, ...]) -> None:
        left_out = [one for each in waiting for one in each.left_out]
        if not left_out:
            return
        await park(self._target, self._work.flow, cursor.key, left_out)
        for one in left_out:
            cursor.unwanted.pop(one.record.offset, None)
            text = f"the record was put aside, as the target does not take it: {one.why}"
            self._notice(Notice(cursor.key, "parked", 1, one.record.offset, cursor.append_at, text))

    # --- signals --------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        topic = signals_topic(self._work.flow.source.alias)
        commands = Follower(self._target, topic, COMMANDS, self._work.commands_from, self._missed_commands)
        while True:
            try:
                async for records in commands.records():
                    for record in records:
                        if is_end_of(self._work.lease, record.key, record.value):
                            self._stop.set()
                        elif (grant := grant_to(self._work.lease, record.key, record.value)) is not None:
                            self._take(grant)
                        elif (change := change_of(self._work.lease, record.key, record.value)) is not None:
                            self._change(change)
                        elif (levels := levels_in(record.key, record.value)) is not None:
                            use_levels(levels)
            except WireError as error:
                log.debug("%s: commands cannot be read: %s", self._work.flow.name, error)
            await asyncio.sleep(1.0)

    def _missed_commands(self, why: str) -> None:
        said = "commands to it may be lost, and unless it is given more time it ends at its deadline"
        log.warning("%s: lease %s: %s; %s", self._work.flow.name, self._work.lease, why, said)

    def _take(self, grant: Grant) -> None:
        """More time, from when we asked. What comes after the deadline comes too late: our parts may have ended."""
        in_time = now() < self._until
        if in_time and grant.attempt == self._attempt and grant.ask <= len(self._asked):
            self._until = max(self._until, self._asked[grant.ask - 1] + self._work.seconds)
            self._pace.rate = grant.bytes_per_second

    def _some_changed(self) -> dict[MirrorPartition, Cursor]:
        """For one report. If a partition has left and come back, the last word of the one that left comes first."""
        some: dict[MirrorPartition, Cursor] = {}
        for cursor in sorted(self._changed, key=lambda one: one.state is not State.DROPPED):
            if len(some) == _PARTITIONS_AT_ONCE:
                break
            some.setdefault(cursor.key, cursor)
        return some

    async def _report(self) -> None:
        name = signals_topic(self._work.flow.source.alias)
        told: dict[MirrorPartition, Refusal | None] = {}
        noticed = 0
        known = False  # that this attempt is the one that runs
        while True:
            await asyncio.sleep(_REPORT_EVERY)
            stopped = {cursor.key: cursor.refusal or cursor.trouble for cursor in self.cursors}
            refusals = tuple(one for key, one in stopped.items() if one is not None and one != told.get(key))
            changed = self._some_changed()
            news = tuple(self._notices[noticed : noticed + _PARTITIONS_AT_ONCE])
            ask = self._ask()
            if known and not changed and not refusals and not news and not ask:
                continue
            self._changed.difference_update(changed.values())
            at = {key: progress for key, cursor in changed.items() if (progress := _progress(cursor)) is not None}
            report = Report(
                self._work.lease,
                self._attempt,
                ask,
                self.counts.copy(),
                at,
                refusals[:_PARTITIONS_AT_ONCE],
                news,
                noticed,
            )
            try:
                topic = await own_topic(self._target, name)
                await write(self._target, topic, PROGRESS, [report.to_record()])
                told.update({one.partition: one for one in report.refusals})
                noticed += len(news)
                known = True
            except WireError as error:
                self._changed.update(changed.values())
                log.debug("%s: progress cannot be reported: %s", self._work.flow.name, error)

    def _ask(self) -> int:
        """The number to ask for more time with, if it is time to ask, or else 0."""
        moment = now()
        if self._until - moment > self._work.seconds * _ASK_BELOW:
            return 0
        self._asked.append(moment)
        return len(self._asked)


def _batched(items: tuple[Interval, ...], size: int) -> Iterator[tuple[Interval, ...]]:
    return (items[at : at + size] for at in range(0, len(items), size))


def _progress(cursor: Cursor) -> Progress | None:
    if cursor.position is None or not cursor.has_started:
        return None
    behind = max(cursor.source_end, cursor.high_watermark)
    return Progress(cursor.position, cursor.source_end, replace(cursor.copied), cursor.source_start, behind)


def run_lease(work: Work, attempt: int) -> Outcome:
    """Run a lease to its end in this thread."""

    async def main() -> Outcome:
        return await Copier(work, attempt).run()

    return asyncio.run(main())
