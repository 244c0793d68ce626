"""Fills gaps in mirrors that have the source's offsets, with transaction markers on the target.

The marker that ends a transaction takes an offset that no consumer sees. With ClusterAction on the target, markers are
written without transactions, as many as needed. Otherwise an empty transaction leaves one in each of its partitions:
it serves all partitions that wait for a gap, and several run at a time. Aborted records always take a transaction.

After a crash no open transaction can end at a wrong offset: the ledger names who fills a gap (`Intervals.filler`), and
the next copier that resumes initializes those transactional ids first, which ends their transactions, before it reads
the mirror's end. An abort leaves the same gap as a commit.
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
from heliograph.wire.append import PartitionBatch, append
from heliograph.wire.batches import BadBatch, Batch, mirror_header
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError, WireError
from heliograph.wire.metadata import NO_ID, Topic
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.recode import Builder, codec_of, records_of
from heliograph.wire.transactions import MarkersNotAllowed, TransactionalId, write_markers

log = logging.getLogger(__name__)

_IDS = 8
# This many transactional ids serve all partitions: the more wait, the more each serves. The others help with wide gaps.
_FEW, _WIDE = 3, 5
_PARTITIONS_AT_ONCE = 1000
_MARKERS_AT_ONCE = 2000
_CONFIRMED_MARKERS = 16  # a response has one result per producer id: more markers are not confirmed one by one
# Longer than any gap takes. If we die and no copier follows, the target ends the transaction by then.
TIMEOUT = 60.0
_POLL, _POLL_FOR = 0.0005, 10.0
_MARKERS_LAND_WITHIN = 2.0


@dataclass(frozen=True, slots=True)
class _Part:
    """The part of a gap that is filled now."""

    cursor: Cursor
    gap: Gap
    generation: int
    count: int  # of its offsets

    @property
    def partition(self) -> tuple[str, int]:
        return self.cursor.key.mirror, self.cursor.key.partition

    @property
    def is_current(self) -> bool:
        return self.cursor.generation == self.generation

    def mark(self) -> bool:
        """The transactions have ended. Returns whether the gap needs no more."""
        if not self.is_current:
            return False
        self.cursor.gap_fill.mark(self.count)
        return self.cursor.gap_fill.marked == self.gap.count


def transactional_id_prefix(flow: str) -> str:
    """The prefix of all transactional ids of a flow."""
    return f"heliograph.{flow}."


def lease_transactional_id_prefix(flow: str, lease: int) -> str:
    """The prefix of those of a lease: the same for the lease that comes after it."""
    return f"{transactional_id_prefix(flow)}{lease}"


class GapFiller:
    def __init__(self, target: ClusterClient, name: str, clock: LeaseClock, callbacks: Callbacks) -> None:
        self._target = target
        self.name = name
        self._clock = clock
        self._callbacks = callbacks
        self._ids = _ids(target, name)
        self._waiting: dict[Cursor, None] = {}
        self._idle: deque[asyncio.Future[None]] = deque()  # longest idle first
        self._busy = 0
        self._used: dict[Cursor, set[TransactionalId]] = {}  # for the gap that comes next
        self._can_write_markers = True  # without a transaction, until the target refuses
        self._marker_ids = [derived_id(f"{name}/{number}") for number in range(_CONFIRMED_MARKERS)]

    def offer(self, cursor: Cursor) -> None:
        """This cursor has a gap to fill."""
        self._waiting[cursor] = None
        self._wake_one()

    def _wake_one(self) -> None:
        if self._idle:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)

    async def fence(self, uncertain: Mapping[Cursor, set[str]]) -> dict[Cursor, WireError]:
        """End transactions that may be open for these cursors, by the names under which their gaps were filled. Returns
        the cursors for which that failed."""
        for cursor in uncertain:
            for transactional_id in self._used.pop(cursor, ()):
                transactional_id.invalidate()
        names = set().union(*uncertain.values())
        outcome = zip(names, await asyncio.gather(*(self._end_all(name) for name in names)), strict=True)
        failed = {name: error for name, error in outcome if error is not None}
        return {cursor: failed[name] for cursor, used in uncertain.items() for name in used & failed.keys()}

    async def _end_all(self, name: str) -> WireError | None:
        own = [transactional_id for transactional_id in self._ids if not transactional_id.ours]
        ids = own if name == self.name else _ids(self._target, name)

        async def init(transactional_id: TransactionalId) -> None:
            async with transactional_id.lock:
                if not transactional_id.ours:
                    await transactional_id.init_producer()

        outcome = await asyncio.gather(*(init(transactional_id) for transactional_id in ids), return_exceptions=True)
        for error in outcome:
            if isinstance(error, BaseException) and not isinstance(error, WireError):
                raise error
        return next((error for error in outcome if isinstance(error, WireError)), None)

    async def run(self) -> None:
        """Fill gaps. Never returns."""
        await asyncio.gather(*(self._fill_with(transactional_id) for transactional_id in self._ids))

    async def _fill_with(self, transaction: TransactionalId) -> None:
        while True:
            await asyncio.sleep(0)  # so that all cursors of one event share a transaction
            parts = self._next(_WIDE if self._busy >= _FEW else 1)
            if not parts:
                idle = asyncio.get_running_loop().create_future()
                self._idle.append(idle)
                await idle
                continue
            self._busy += 1
            if self._waiting:
                self._wake_one()  # there may be work for another transactional id
            for part in parts:
                part.cursor.gap_fill.begin()
            try:
                async with transaction.lock:
                    await self._fill(transaction, parts)
            finally:
                self._busy -= 1
                for part in parts:
                    part.cursor.gap_fill.end()
                    self._callbacks.settled([part.cursor])

    async def _fill(self, transaction: TransactionalId, parts: list[_Part]) -> None:
        try:
            certain = await self._end_transactions(transaction, parts)
        except WireError as error:
            transaction.invalidate()
            self._lose(parts, f"{error}")
            return
        marked = [part for part in parts if part.mark()]
        self._complete([part for part in marked if part in certain])
        await self._wait_until_visible([part for part in marked if part not in certain])

    def _lose(self, parts: list[_Part], why: str) -> None:
        for part in parts:
            if part.is_current:
                self._callbacks.restart(part.cursor, f"a gap of {part.gap.count} cannot be filled: {why}", False)

    def _check_deadline(self) -> None:
        """Raises a WireError after the deadline: another lease may have copied on since."""
        if self._clock.is_expired:
            raise WireError("the lease has ended")

    def _next(self, least: int) -> list[_Part]:
        """The cursors that wait for at least this many offsets of a gap."""
        parts: list[_Part] = []
        for cursor in list(self._waiting):
            gap = cursor.gap
            if gap is None or gap.filler or cursor.gap_fill.requested >= gap.count:
                del self._waiting[cursor]
            elif gap.count - cursor.gap_fill.requested >= least and len(parts) < _PARTITIONS_AT_ONCE:
                most = _MARKERS_AT_ONCE if self._can_write_markers else 1
                count = gap.count if gap.aborted else min(gap.count - cursor.gap_fill.requested, most)
                cursor.gap_fill.request(count)
                parts.append(_Part(cursor, gap, cursor.generation, count))
                if cursor.gap_fill.requested == gap.count:
                    del self._waiting[cursor]
        return parts

    async def _end_transactions(self, transaction: TransactionalId, parts: list[_Part]) -> set[_Part]:
        """End as many transactions as each needs now. Returns the parts that are certain to be in the mirror."""
        certain: set[_Part] = set()
        if self._can_write_markers and (plain := [part for part in parts if not part.gap.aborted]):
            try:
                await self._mark(plain)
            except MarkersNotAllowed as error:
                self._can_write_markers = False
                log.debug("gaps are filled with transactions, as the target refuses single markers: %s", error)
                raise
            certain.update(part for part in plain if part.count == part.gap.count <= _CONFIRMED_MARKERS)
            parts = [part for part in parts if part.gap.aborted]
        if parts:
            await self._transact(transaction, parts)
        return certain

    def _complete(self, parts: list[_Part]) -> None:
        for part in parts:
            part.cursor.filled()
            self._used.pop(part.cursor, None)
        if parts:
            self._callbacks.gaps_filled([part.cursor for part in parts])

    async def _mark(self, parts: list[_Part]) -> None:
        by_leader: dict[int, dict[tuple[str, int], int]] = {}
        for part in parts:
            by_leader.setdefault(part.cursor.mirror.leader, {})[part.partition] = part.count
        self._check_deadline()

        async def write(leader: int, counts: dict[tuple[str, int], int]) -> None:
            await write_markers(await self._target.connection(leader), self._marker_ids, counts)

        writes = (write(leader, counts) for leader, counts in by_leader.items())
        outcome = dict(zip(by_leader, await asyncio.gather(*writes, return_exceptions=True), strict=True))
        for error in outcome.values():
            if isinstance(error, MarkersNotAllowed) or not isinstance(error, (WireError, NoneType)):
                raise error
        for part in parts:
            if isinstance(error := outcome[part.cursor.mirror.leader], WireError):
                self._lose([part], f"{error}")
                # If only the response is missing, the markers may still be written to the log.
                part.cursor.retry.postpone(_MARKERS_LAND_WITHIN)

    async def _transact(self, transaction: TransactionalId, parts: list[_Part]) -> None:
        """Run one transaction for all of them, with the aborted records that some of them have. If we die in between,
        or records are refused, the marker comes after what was written: that is a gap, too."""
        if not transaction.ours:
            await transaction.init_producer()
        self._check_deadline()
        for part in parts:
            self._used.setdefault(part.cursor, set()).add(transaction)
        partitions = [part.partition for part in parts]
        aborted = [part for part in parts if part.gap.aborted]
        if not aborted:
            await transaction.mark(partitions)
            return
        await transaction.add(partitions)
        outcome = await asyncio.gather(*(self._write(transaction, part) for part in aborted), return_exceptions=True)
        self._check_deadline()
        await transaction.end(commit=False)
        for part, error in zip(aborted, outcome, strict=True):
            if isinstance(error, BaseException) and not isinstance(error, (WireError, BadBatch)):
                raise error
            if error is not None:
                if isinstance(error, BadBatch) or (isinstance(error, BrokerError) and not error.transient):
                    part.cursor.gap_fill.refuse_aborted()
                transaction.invalidate()
                self._lose([part], f"{error}")

    async def _write(self, transaction: TransactionalId, part: _Part) -> None:
        connection = await self._target.connection(part.cursor.mirror.leader)
        at = part.cursor.sending.append_at
        for batch in _all_but_the_last(part.gap):
            self._check_deadline()
            sequence = transaction.sequence(part.partition, batch.count)
            header = mirror_header(batch, transaction.producer_id, sequence, transaction.epoch)
            batches = [PartitionBatch(*part.partition, (header, batch.records))]
            (answer,) = await append(connection, batches, self._target.cluster.request_timeout, transaction.name)
            if answer.error:
                raise BrokerError(answer.error, answer.message)
            if answer.base_offset != at:
                raise WireError(f"aborted records were appended at {answer.base_offset} instead of {at}")
            at += batch.count

    async def _wait_until_visible(self, parts: list[_Part]) -> None:
        """Wait until the mirrors end where their gaps end: EndTxn is answered before its markers are in the log."""
        topics: dict[str, Topic] = {}
        for part in parts:
            known = topics.setdefault(part.partition[0], Topic(part.partition[0], NO_ID, False, {}))
            known.leaders[part.partition[1]] = part.cursor.mirror.leader
        began = time.monotonic()
        pause = _POLL
        while parts and (waited := time.monotonic() - began) < _POLL_FOR:
            ends = await list_offsets(self._target, topics, [part.partition for part in parts], LATEST, False)
            landed = [part for part in parts if part.is_current and self._has_landed(part, ends[part.partition])]
            parts = [part for part in parts if part.is_current and part not in landed]
            self._complete(landed)
            if parts:
                await asyncio.sleep(pause)
                pause = min(2 * pause, max(waited / 4, _POLL))
        for part in parts:
            why = f"a gap of {part.gap.count} is not in the mirror after {_POLL_FOR:.0f} s"
            self._callbacks.restart(part.cursor, why, True)

    def _has_landed(self, part: _Part, end: int | WireError) -> bool:
        wanted = part.cursor.sending.append_at + part.gap.count
        if isinstance(end, WireError) or end < wanted:
            return False
        if end > wanted:
            part.cursor.forget_position()
            text = f"the mirror ends at {end} instead of {wanted} behind a gap"
            self._callbacks.restart(part.cursor, f"{text}: another producer writes to this mirror", True)
            return False
        return True


def _ids(target: ClusterClient, name: str) -> list[TransactionalId]:
    return [TransactionalId(target, f"{name}.{number}", TIMEOUT) for number in range(_IDS)]


def _all_but_the_last(gap: Gap) -> list[Batch]:
    """The aborted records of a gap, without the one whose offset the marker takes, if it takes one."""
    until = gap.source_offset + gap.count - 1
    batches = []
    for batch in gap.aborted:
        if batch.base_offset >= gap.source_offset and batch.next_offset <= until and not batch.log_append_time:
            batches.append(batch)
            continue
        builder = Builder(codec_of(batch))
        for record in records_of(batch):
            if gap.source_offset <= record.offset < until:
                builder.add(record)
        if builder.count:
            batches.append(builder.build(gap.source_offset, batch.leader_epoch))
    return batches
