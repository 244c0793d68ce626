"""Writes what batches wait for: parks records that the mirror refuses, and writes intervals to the ledger."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heliograph.copy.callbacks import Callbacks
from heliograph.copy.cursor import Cursor
from heliograph.copy.dead_letters import park
from heliograph.copy.lease_clock import LeaseClock
from heliograph.copy.ledger import OVERTAKEN, Ledger
from heliograph.copy.write_ahead import Unrecorded
from heliograph.model.flow import Flow
from heliograph.model.intervals import Interval
from heliograph.model.ledger_records import JournalEntry
from heliograph.model.problems import Notice
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError

_MAX_INTERVALS = 50_000  # in one entry: a batch has a size limit


@dataclass(frozen=True, slots=True)
class _Due:
    cursor: Cursor
    generation: int
    waiting: tuple[Unrecorded, ...]

    @property
    def is_current(self) -> bool:
        return self.cursor.generation == self.generation


class LedgerWriter:
    def __init__(
        self, flow: Flow, target: ClusterClient, ledger: Ledger, clock: LeaseClock, callbacks: Callbacks
    ) -> None:
        self._flow = flow
        self._target = target
        self._ledger = ledger
        self._clock = clock
        self._callbacks = callbacks
        self._cursors: dict[Cursor, None] = {}
        self._wake = asyncio.Event()

    def add(self, cursor: Cursor) -> None:
        """This cursor has something in its write-ahead queue."""
        self._cursors[cursor] = None
        self._wake.set()

    async def run(self) -> None:
        """Write what must be written before batches are sent, for all cursors that wait for it at once."""
        while True:
            self._wake.clear()
            due = [_Due(cursor, cursor.generation, tuple(cursor.sending.write_ahead)) for cursor in self._cursors]
            self._cursors.clear()
            if not due:
                await self._wake.wait()
            elif self._clock.is_expired:
                return  # as for appends: another lease may have copied on since
            else:
                await self._record(due)

    async def _record(self, due: list[_Due]) -> None:
        for recording in due:
            try:
                await self._park(recording.cursor, recording.waiting)
            except WireError as error:
                if recording.is_current:
                    self._callbacks.restart(recording.cursor, f"refused records cannot be parked: {error}", False)
        try:
            entries = [(recording, entry) for recording in due if recording.is_current for entry in _entries(recording)]
            counts = await self._ledger.append([entry for _recording, entry in entries])
            written = zip(entries, counts, strict=True)
            overtaken = {recording.cursor for (recording, _entry), is_counted in written if not is_counted}
        except WireError as error:
            for recording in due:
                if recording.is_current:
                    self._callbacks.restart(
                        recording.cursor, f"intervals cannot be written to the ledger: {error}", False
                    )
            return
        for recording in due:
            if not recording.is_current:
                continue
            if recording.cursor in overtaken:
                self._callbacks.restart(recording.cursor, OVERTAKEN, False)
                continue
            recording.cursor.recorded(len(recording.waiting))
            self._callbacks.recorded(recording.cursor)

    async def _park(self, cursor: Cursor, waiting: tuple[Unrecorded, ...]) -> None:
        left_out = [record for unrecorded in waiting for record in unrecorded.left_out]
        if not left_out:
            return
        await park(self._target, self._flow, cursor.key, left_out)
        for parked in left_out:
            offset = parked.record.offset
            cursor.limits.forget_record(offset)
            text = f"the record was parked, as the target refuses it: {parked.why}"
            self._callbacks.notice(Notice(cursor.key, "parked", 1, offset, cursor.sending.append_at, text))


def _entries(due: _Due) -> Iterator[JournalEntry]:
    key = due.cursor.key
    for unrecorded in due.waiting:
        for part in _split(unrecorded.intervals):
            partition, mirror = (key.topic, key.partition), due.cursor.mirror
            yield JournalEntry(partition, mirror.topic_id, part, unrecorded.filler, mirror.seen)


def _split(intervals: Sequence[Interval]) -> Iterator[Sequence[Interval]]:
    return (intervals[at : at + _MAX_INTERVALS] for at in range(0, len(intervals), _MAX_INTERVALS))
