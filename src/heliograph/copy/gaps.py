"""Filling gaps in mirrors that keep the source's offsets, with transactions on the target.

An empty transaction leaves one invisible offset in each of its partitions, so one serves all partitions that wait for a
gap; several run at a time. A crash leaves nothing behind that could land later at a wrong place: whoever fills a gap is
written down with it (`Intervals.filler`), and the next who resumes takes over those transactional ids first, which ends
their transactions, before it looks at where the mirror ends. An abort is as good a gap as a commit.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from heliograph.copy.cursor import Cursor
from heliograph.copy.keeping import Gap
from heliograph.wire.append import append
from heliograph.wire.batches import Batch, rewrite
from heliograph.wire.cluster import NO_ID, ClusterClient, Topic
from heliograph.wire.errors import BrokerError, WireError
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.recode import Builder, codec_of, records_of
from heliograph.wire.transactions import TransactionalId

_IDS = 8
# So many serve everybody, and the more wait, the more each of them serves; the others only help with wide gaps.
_FEW, _WIDE = 3, 5
_PARTITIONS_AT_ONCE = 1000
# Longer than any gap takes; if we die and nobody comes after us, the target ends the transaction by then.
_TIMEOUT = 60.0
_LOOK_AGAIN, _LOOK_AT_MOST = 0.0005, 10.0


@dataclass(frozen=True, slots=True)
class _Due:
    cursor: Cursor
    gap: Gap
    generation: int

    @property
    def place(self) -> tuple[str, int]:
        return self.cursor.key.mirror, self.cursor.key.partition

    @property
    def current(self) -> bool:
        return self.cursor.generation == self.generation

    def is_marked(self) -> bool:
        """A transaction for it has ended; whether it was the last that the gap needs."""
        if not self.current:
            return False
        self.cursor.marked += self.gap.count if self.gap.aborted else 1
        return self.cursor.marked == self.gap.count


def name_of_fillers(flow: str) -> str:
    """What all transactional ids of a flow begin with."""
    return f"heliograph.{flow}."


def filler_name(flow: str, lease: int) -> str:
    """What those of a lease begin with: the same for the lease that comes after it."""
    return f"{name_of_fillers(flow)}{lease}"


class Gaps:
    def __init__(
        self,
        target: ClusterClient,
        name: str,
        until: Callable[[], float],
        *,
        filled: Callable[[list[Cursor]], None],
        settled: Callable[[Cursor], None],
        lost: Callable[[Cursor, str, bool], None],
    ) -> None:
        self._target = target
        self.name = name
        self._until = until
        self._filled = filled
        self._settled = settled
        self._lost = lost
        self._ids = _ids(target, name)
        self._line: dict[Cursor, None] = {}
        self._idle: deque[asyncio.Future[None]] = deque()  # the one that has rested longest first
        self._busy = 0
        self.transactions = 0

    def offer(self, cursor: Cursor) -> None:
        """This cursor has a gap to fill."""
        self._line[cursor] = None
        self._wake_one()

    def _wake_one(self) -> None:
        if self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)

    async def fence(self, cursors: Iterable[Cursor]) -> None:
        """See that nothing comes any more of transactions that may have been under way for these."""
        names = {cursor.intervals.filler for cursor in cursors}
        ids = [one for name in names - {"", self.name} for one in _ids(self._target, name)]
        if self.name in names:
            ids += [one for one in self._ids if not one.ours]
        await asyncio.gather(*(one.take() for one in ids))

    async def work(self) -> None:
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
                one.cursor.filling += 1
            try:
                if not transaction.ours:
                    await transaction.take()
                await self._transact(transaction, due)
                self.transactions += 1
                await self._see([one for one in due if one.is_marked()])
            except WireError as error:
                transaction.let_go()
                for one in due:
                    if one.current:
                        self._lost(one.cursor, f"a gap of {one.gap.count} cannot be filled: {error}", False)
            finally:
                self._busy -= 1
                if not all(one.current for one in due):
                    transaction.let_go()  # whoever finds the mirror's end next must know what became of it
                for one in due:
                    one.cursor.filling -= 1
                    self._settled(one.cursor)

    def _in_time(self) -> None:
        """As for appends: another may have gone on since."""
        if time.monotonic() >= self._until():
            raise WireError("the lease has ended")

    def _next(self, least: int) -> list[_Due]:
        """All that wait for an offset without a record, and for so many at least."""
        due: list[_Due] = []
        for cursor in list(self._line):
            gap = cursor.gap
            if gap is None or gap.filler or cursor.asked >= gap.count:
                del self._line[cursor]
            elif gap.count - cursor.asked >= least and len(due) < _PARTITIONS_AT_ONCE:
                cursor.asked += gap.count if gap.aborted else 1
                due.append(_Due(cursor, gap, cursor.generation))
                if cursor.asked == gap.count:
                    del self._line[cursor]
        return due

    async def _transact(self, transaction: TransactionalId, due: list[_Due]) -> None:
        """One transaction for all of them, with the aborted records that some of them have. If we die in between,
        taking over the id puts the marker behind what was written: that is a gap, too."""
        self._in_time()
        places = [one.place for one in due]
        aborted = [one for one in due if one.gap.aborted]
        if not aborted:
            await transaction.mark(places)
            return
        await transaction.add(places)
        await asyncio.gather(*(self._write(transaction, one) for one in aborted))
        self._in_time()
        await transaction.end(commit=False)

    async def _write(self, transaction: TransactionalId, due: _Due) -> None:
        connection = await self._target.to(due.cursor.target_leader)
        at = due.cursor.append_at
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
            known.leaders[one.place[1]] = one.cursor.target_leader
        began = time.monotonic()
        pause = _LOOK_AGAIN
        while due and (waited := time.monotonic() - began) < _LOOK_AT_MOST:
            ends = await list_offsets(self._target, topics, [one.place for one in due], LATEST, False)
            there = [one for one in due if one.current and self._is_there(one, ends[one.place])]
            due = [one for one in due if one.current and one not in there]
            self._filled([one.cursor for one in there])
            if due:
                await asyncio.sleep(pause)
                pause = min(2 * pause, max(waited / 4, _LOOK_AGAIN))
        for one in due:
            self._lost(one.cursor, f"a gap of {one.gap.count} is not there after {_LOOK_AT_MOST:.0f} s", True)

    def _is_there(self, one: _Due, end: int | WireError) -> bool:
        wanted = one.cursor.append_at + one.gap.count
        if isinstance(end, WireError) or end < wanted:
            return False
        if end > wanted:
            one.cursor.position = None
            said = f"the mirror ends at {end} instead of {wanted} behind a gap"
            self._lost(one.cursor, f"{said}: somebody else writes to this mirror", True)
            return False
        one.cursor.filled()
        return True


def _ids(target: ClusterClient, name: str) -> list[TransactionalId]:
    return [TransactionalId(target, f"{name}.{number}", _TIMEOUT) for number in range(_IDS)]


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
