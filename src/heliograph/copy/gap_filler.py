"""Filling gaps in mirrors that keep the source's offsets, with ends of transactions on the target.

The marker that ends a transaction is an offset that nobody sees. Where we may (ClusterAction on the target), markers
are written by themselves, as many as it takes. Else an empty transaction leaves one in each of its partitions: one
serves all partitions that wait for a gap, and several run at a time. Aborted records take a transaction in any case.

A crash leaves nothing behind that could land later at a wrong place: whoever fills a gap is written down with it
(`Intervals.filler`), and the next who resumes takes over those transactional ids first, which ends their transactions,
before it looks at where the mirror ends. An abort is as good a gap as a commit.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType

from heliograph.copy.callbacks import Callbacks
from heliograph.copy.cursor import Cursor
from heliograph.copy.lease_clock import LeaseClock
from heliograph.copy.offset_layout import Gap
from heliograph.model.partitions import derived_id
from heliograph.wire.append import append
from heliograph.wire.batches import BadBatch, Batch, rewrite
from heliograph.wire.cluster import NO_ID, ClusterClient, Topic
from heliograph.wire.errors import BrokerError, WireError
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.recode import Builder, codec_of, records_of
from heliograph.wire.transactions import MarkersNotAllowed, TransactionalId, write_markers

log = logging.getLogger(__name__)

_IDS = 8
# So many serve everybody, and the more wait, the more each of them serves; the others only help with wide gaps.
_FEW, _WIDE = 3, 5
_PARTITIONS_AT_ONCE = 1000
_MARKERS_AT_ONCE = 2000
_MARKERS_TOLD = 16  # a broker's answer has one word for each producer id: of more markers it does not tell of each
# Longer than any gap takes; if we die and nobody comes after us, the target ends the transaction by then.
TIMEOUT = 60.0
_LOOK_AGAIN, _LOOK_AT_MOST = 0.0005, 10.0
_LET_THEM_LAND = 2.0


@dataclass(frozen=True, slots=True)
class _Due:
    cursor: Cursor
    gap: Gap
    generation: int
    count: int  # of its offsets that are filled now

    @property
    def place(self) -> tuple[str, int]:
        return self.cursor.key.mirror, self.cursor.key.partition

    @property
    def current(self) -> bool:
        return self.cursor.generation == self.generation

    def counted(self) -> bool:
        """Count what has ended for it; whether the gap needs no more."""
        if not self.current:
            return False
        self.cursor.gap_fill.mark(self.count)
        return self.cursor.gap_fill.marked == self.gap.count


def transactional_id_prefix(flow: str) -> str:
    """What all transactional ids of a flow begin with."""
    return f"heliograph.{flow}."


def lease_transactional_id_prefix(flow: str, lease: int) -> str:
    """What those of a lease begin with: the same for the lease that comes after it."""
    return f"{transactional_id_prefix(flow)}{lease}"


class GapFiller:
    def __init__(
        self,
        target: ClusterClient,
        name: str,
        clock: LeaseClock,
        callbacks: Callbacks,
    ) -> None:
        self._target = target
        self.name = name
        self._clock = clock
        self._callbacks = callbacks
        self._ids = _ids(target, name)
        self._line: dict[Cursor, None] = {}
        self._idle: deque[asyncio.Future[None]] = deque()  # the one that has rested longest first
        self._busy = 0
        self._served: dict[Cursor, set[TransactionalId]] = {}  # who has had a part in the gap that comes next
        self._may_mark = True  # without a transaction, until we are told otherwise
        self._marker_ids = [derived_id(f"{name}/{number}") for number in range(_MARKERS_TOLD)]

    def offer(self, cursor: Cursor) -> None:
        """This cursor has a gap to fill."""
        self._line[cursor] = None
        self._wake_one()

    def _wake_one(self) -> None:
        if self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)

    async def fence(self, doubtful: Mapping[Cursor, set[str]]) -> dict[Cursor, WireError]:
        """See that nothing comes any more of transactions that may have been under way for these, by the names under
        which their gaps were filled. What went wrong with whom is returned."""
        for cursor in doubtful:
            for one in self._served.pop(cursor, ()):
                one.invalidate()
        names = set().union(*doubtful.values())
        outcome = zip(names, await asyncio.gather(*(self._end_all(name) for name in names)), strict=True)
        failed = {name: error for name, error in outcome if error is not None}
        return {cursor: failed[name] for cursor, theirs in doubtful.items() for name in theirs & failed.keys()}

    async def _end_all(self, name: str) -> WireError | None:
        ids = [one for one in self._ids if not one.ours] if name == self.name else _ids(self._target, name)

        async def take(one: TransactionalId) -> None:
            async with one.lock:
                if not one.ours:
                    await one.init_producer()

        outcome = await asyncio.gather(*(take(one) for one in ids), return_exceptions=True)
        for error in outcome:
            if isinstance(error, BaseException) and not isinstance(error, WireError):
                raise error
        return next((error for error in outcome if isinstance(error, WireError)), None)

    async def run(self) -> None:
        """Fill gaps, for ever."""
        await asyncio.gather(*(self._fill_on(one) for one in self._ids))

    async def _fill_on(self, transaction: TransactionalId) -> None:
        while True:
            await asyncio.sleep(0)  # so that all who come at the same time are served together
            due = self._next(_WIDE if self._busy >= _FEW else 1)
            if not due:
                idle = asyncio.get_running_loop().create_future()
                self._idle.append(idle)
                await idle
                continue
            self._busy += 1
            if self._line:
                self._wake_one()  # there may be work for others
            for one in due:
                one.cursor.gap_fill.begin()
            try:
                async with transaction.lock:
                    await self._fill(transaction, due)
            finally:
                self._busy -= 1
                for one in due:
                    one.cursor.gap_fill.end()
                    self._callbacks.settled([one.cursor])

    async def _fill(self, transaction: TransactionalId, due: list[_Due]) -> None:
        try:
            certain = await self._end_transactions(transaction, due)
        except WireError as error:
            transaction.invalidate()
            self._lose(due, f"{error}")
            return
        marked = [one for one in due if one.counted()]
        self._are_there([one for one in marked if one in certain])
        await self._see([one for one in marked if one not in certain])

    def _lose(self, due: list[_Due], why: str) -> None:
        for one in due:
            if one.current:
                self._callbacks.restart(one.cursor, f"a gap of {one.gap.count} cannot be filled: {why}", False)

    def _in_time(self) -> None:
        """As for appends: another may have gone on since."""
        if self._clock.is_expired:
            raise WireError("the lease has ended")

    def _next(self, least: int) -> list[_Due]:
        """All that wait for an offset without a record, and for so many at least."""
        due: list[_Due] = []
        for cursor in list(self._line):
            gap = cursor.gap
            if gap is None or gap.filler or cursor.gap_fill.requested >= gap.count:
                del self._line[cursor]
            elif gap.count - cursor.gap_fill.requested >= least and len(due) < _PARTITIONS_AT_ONCE:
                most = _MARKERS_AT_ONCE if self._may_mark else 1
                count = gap.count if gap.aborted else min(gap.count - cursor.gap_fill.requested, most)
                cursor.gap_fill.request(count)
                due.append(_Due(cursor, gap, cursor.generation, count))
                if cursor.gap_fill.requested == gap.count:
                    del self._line[cursor]
        return due

    async def _end_transactions(self, transaction: TransactionalId, due: list[_Due]) -> set[_Due]:
        """For each of them as many as it needs now. Those are returned that are certain to be there."""
        certain: set[_Due] = set()
        if self._may_mark and (plain := [one for one in due if not one.gap.aborted]):
            try:
                await self._mark(plain)
            except MarkersNotAllowed as error:
                self._may_mark = False
                log.debug("gaps are filled with transactions, as markers may not be written by themselves: %s", error)
                raise
            certain.update(one for one in plain if one.count == one.gap.count <= _MARKERS_TOLD)
            due = [one for one in due if one.gap.aborted]
        if due:
            await self._transact(transaction, due)
        return certain

    def _are_there(self, due: list[_Due]) -> None:
        for one in due:
            one.cursor.filled()
            self._served.pop(one.cursor, None)
        if due:
            self._callbacks.gaps_filled([one.cursor for one in due])

    async def _mark(self, due: list[_Due]) -> None:
        by_leader: dict[int, dict[tuple[str, int], int]] = {}
        for one in due:
            by_leader.setdefault(one.cursor.mirror.leader, {})[one.place] = one.count
        self._in_time()

        async def write(leader: int, counts: dict[tuple[str, int], int]) -> None:
            await write_markers(await self._target.connection(leader), self._marker_ids, counts)

        writes = (write(leader, counts) for leader, counts in by_leader.items())
        outcome = dict(zip(by_leader, await asyncio.gather(*writes, return_exceptions=True), strict=True))
        for error in outcome.values():
            if isinstance(error, MarkersNotAllowed) or not isinstance(error, (WireError, NoneType)):
                raise error
        for one in due:
            if isinstance(error := outcome[one.cursor.mirror.leader], WireError):
                self._lose([one], f"{error}")
                # If the answer is what is missing, the markers may still be on their way into the log.
                one.cursor.retry.postpone(_LET_THEM_LAND)

    async def _transact(self, transaction: TransactionalId, due: list[_Due]) -> None:
        """One transaction for all of them, with the aborted records that some of them have. If we die in between, or
        some of the records are refused, the marker comes behind what was written: that is a gap, too."""
        if not transaction.ours:
            await transaction.init_producer()
        self._in_time()
        for one in due:
            self._served.setdefault(one.cursor, set()).add(transaction)
        places = [one.place for one in due]
        aborted = [one for one in due if one.gap.aborted]
        if not aborted:
            await transaction.mark(places)
            return
        await transaction.add(places)
        outcome = await asyncio.gather(*(self._write(transaction, one) for one in aborted), return_exceptions=True)
        self._in_time()
        await transaction.end(commit=False)
        for one, error in zip(aborted, outcome, strict=True):
            if isinstance(error, BaseException) and not isinstance(error, (WireError, BadBatch)):
                raise error
            if error is not None:
                if isinstance(error, BadBatch) or (isinstance(error, BrokerError) and not error.transient):
                    one.cursor.gap_fill.refuse_aborted()
                transaction.invalidate()
                self._lose([one], f"{error}")

    async def _write(self, transaction: TransactionalId, due: _Due) -> None:
        connection = await self._target.connection(due.cursor.mirror.leader)
        at = due.cursor.sending.append_at
        for batch in _all_but_the_last(due.gap):
            self._in_time()
            sequence = transaction.sequence(due.place, batch.count)
            header = rewrite(batch, transaction.producer_id, sequence, transaction.epoch)
            parts = [(*due.place, (header, batch.records))]
            (answer,) = await append(connection, parts, self._target.cluster.request_timeout, transaction.name)
            if answer.error:
                raise BrokerError(answer.error, answer.message)
            if answer.base_offset != at:
                raise WireError(f"aborted records were appended at {answer.base_offset} instead of {at}")
            at += batch.count

    async def _see(self, due: list[_Due]) -> None:
        """Wait until the mirrors end where their gaps end: a transaction has ended before its markers are there."""
        topics: dict[str, Topic] = {}
        for one in due:
            known = topics.setdefault(one.place[0], Topic(one.place[0], NO_ID, False, {}))
            known.leaders[one.place[1]] = one.cursor.mirror.leader
        began = time.monotonic()
        pause = _LOOK_AGAIN
        while due and (waited := time.monotonic() - began) < _LOOK_AT_MOST:
            ends = await list_offsets(self._target, topics, [one.place for one in due], LATEST, False)
            there = [one for one in due if one.current and self._is_there(one, ends[one.place])]
            due = [one for one in due if one.current and one not in there]
            self._are_there(there)
            if due:
                await asyncio.sleep(pause)
                pause = min(2 * pause, max(waited / 4, _LOOK_AGAIN))
        for one in due:
            self._callbacks.restart(
                one.cursor, f"a gap of {one.gap.count} is not there after {_LOOK_AT_MOST:.0f} s", True
            )

    def _is_there(self, one: _Due, end: int | WireError) -> bool:
        wanted = one.cursor.sending.append_at + one.gap.count
        if isinstance(end, WireError) or end < wanted:
            return False
        if end > wanted:
            one.cursor.forget_position()
            said = f"the mirror ends at {end} instead of {wanted} behind a gap"
            self._callbacks.restart(one.cursor, f"{said}: somebody else writes to this mirror", True)
            return False
        return True


def _ids(target: ClusterClient, name: str) -> list[TransactionalId]:
    return [TransactionalId(target, f"{name}.{number}", TIMEOUT) for number in range(_IDS)]


def _all_but_the_last(gap: Gap) -> list[Batch]:
    """The aborted records of a gap, without the one whose place the marker takes, if it takes one."""
    until = gap.source_offset + gap.count - 1
    found = []
    for batch in gap.aborted:
        if batch.base_offset >= gap.source_offset and batch.next_offset <= until and not batch.log_append_time:
            found.append(batch)
            continue
        builder = Builder(codec_of(batch))
        for record in records_of(batch):
            if gap.source_offset <= record.offset < until:
                builder.add(record)
        if builder.count:
            found.append(builder.build(gap.source_offset, batch.leader_epoch))
    return found
