"""Reading: one loop per source leader that fetches for all its partitions that have room for more.

The broker remembers what is asked for (a fetch session), so a round costs what has changed since the last one: which
cursors moved, filled up or have room again. Idle partitions cost nothing.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from heliograph.copy.classify import Rules, classify
from heliograph.copy.cursor import Budget, Chunk, Cursor
from heliograph.copy.pace import Pace
from heliograph.model.flow import Reading
from heliograph.model.partitions import TopicPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import OFFSET_OUT_OF_RANGE, TRANSIENT, WireError, error_name, lacking
from heliograph.wire.fetch import READ_COMMITTED, READ_UNCOMMITTED, Fetched, FetchPartition, FetchSession, Limits

# While a partition that is full now waits for its appends, do not sit out a long poll for the others.
_SHORT_WAIT = 0.005
_SMALLEST_FETCH = 64 * 1024


class Reader:
    """Fetches from one broker into its cursors' queues."""

    def __init__(
        self,
        source: ClusterClient,
        node: int,
        reading: Reading,
        budget: Budget,
        pace: Pace,
        rules: Callable[[], Rules],
        *,
        moved: Callable[[Cursor], None],
        queued: Callable[[Cursor, bool], None],
        throttled: Callable[[float], None],
        lost: Callable[[Cursor, str, bool], None],
    ) -> None:
        self._source = source
        self._node = node
        self._reading = reading
        self._budget = budget
        self._pace = pace
        self._rules = rules
        self._moved = moved
        self._queued = queued
        self._throttled = throttled
        self._lost = lost
        self._cursors: dict[TopicPartition, Cursor] = {}
        self._asked: dict[TopicPartition, tuple[Cursor, int]] = {}  # with the generation that asked
        self._changed: dict[Cursor, None] = {}  # whose ask may be another one than the broker knows
        self._dropped: set[TopicPartition] = set()  # that the broker need not remember any more
        self._full: set[Cursor] = set()  # would read on if there were room
        self._crowded: set[int] = set()  # target leaders whose share of memory is used up
        self._wake = asyncio.Event()

    def look_at(self, cursor: Cursor) -> None:
        """Something about this cursor changed: it may read from here, or not any more, or has room again."""
        self._cursors[_place(cursor)] = cursor
        self._changed[cursor] = None
        self._wake.set()

    def room_for(self, cursor: Cursor) -> None:
        """A batch of this cursor is done with."""
        if cursor in self._full or not cursor.readable:
            self._changed[cursor] = None

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        while True:
            try:
                connection = await self._source.dedicated_connection(self._node)
            except WireError as error:
                self._lose_all(f"source broker {self._node}: {error}")
                await self._idle()
                continue
            isolation = READ_COMMITTED if self._reading.committed_only else READ_UNCOMMITTED
            session = FetchSession(connection, isolation)
            self._changed = dict.fromkeys(self._cursors.values())
            self._asked.clear()
            self._dropped.clear()
            try:
                while True:
                    await self._round(session)
            except WireError as error:
                self._lose_all(f"source broker {self._node}: {error}")
            finally:
                connection.close()

    async def _round(self, session: FetchSession) -> None:
        if not self._enough_memory():
            await self._idle()
            return
        wanted = self._news()
        if not self._asked:
            await self._idle()
            return
        await self._pace.wait()
        short = bool(self._full)
        size = self._pace.most(min(self._reading.fetch_max_bytes, self._budget.allowance))
        limits = Limits(
            max(size, 1),
            1 if short else self._reading.fetch_min_bytes,
            _SHORT_WAIT if short else self._reading.fetch_max_wait,
        )
        self._budget.held += size  # spoken for until the answer is here and counts itself
        try:
            answers = await session.fetch(wanted, self._dropped, limits)
            self._dropped.clear()
        finally:
            self._budget.held -= size
        self._take(wanted, answers)
        self._pace.spent(sum(len(one.data) for one in answers))
        if session.throttled:
            self._throttled(session.throttled)
            await asyncio.sleep(session.throttled)  # the broker would only keep the next request waiting

    async def _idle(self) -> None:
        self._wake.clear()
        await self._wake.wait()

    def _enough_memory(self) -> bool:
        return self._budget.allowance >= min(_SMALLEST_FETCH, self._budget.limit // (2 * self._budget.readers))

    def _news(self) -> list[FetchPartition]:
        """Partitions to ask for from a new place; others are noted to be left out."""
        self._note_crowds()
        wanted = []
        changed, self._changed = self._changed, {}
        for cursor in changed:
            place = _place(cursor)
            self._full.discard(cursor)
            mine = cursor.source_leader == self._node and cursor.readable
            if mine and self._has_room(cursor):
                wanted.append(self._ask(cursor))
                self._asked[place] = (cursor, cursor.generation)
                self._dropped.discard(place)
                continue
            if mine:
                self._full.add(cursor)
            else:
                self._cursors.pop(place, None)
            if self._asked.pop(place, None) is not None:
                self._dropped.add(place)
        return wanted

    def _note_crowds(self) -> None:
        crowded = self._budget.crowds(self._crowded)
        for leader in crowded ^ self._crowded:
            for cursor in self._cursors.values():
                if cursor.target_leader == leader:
                    self._changed[cursor] = None
        self._crowded = crowded

    def _has_room(self, cursor: Cursor) -> bool:
        return (
            cursor.queued_bytes < 2 * self._reading.max_partition_fetch_bytes
            and cursor.target_leader not in self._crowded
        )

    def _ask(self, cursor: Cursor) -> FetchPartition:
        size = self._reading.max_partition_fetch_bytes
        return FetchPartition(
            cursor.key.topic, cursor.source_id, cursor.key.partition, cursor.fetch_at, size, cursor.epoch
        )

    def _take(self, wanted: list[FetchPartition], answers: list[Fetched]) -> None:
        silent = {one.place for one in wanted}
        for answer in answers:
            place = (answer.topic, answer.partition)
            silent.discard(place)
            cursor, generation = self._asked.get(place, (None, 0))
            if cursor is not None and cursor.generation == generation and cursor.readable:
                self._take_one(cursor, answer)
        for place in silent:  # asked for, and nothing to say: all is copied
            cursor, generation = self._asked.get(place, (None, 0))
            if cursor is not None and cursor.generation == generation:
                _rest(cursor)

    def _take_one(self, cursor: Cursor, answer: Fetched) -> None:
        if answer.error == OFFSET_OUT_OF_RANGE:
            # Retention has overtaken us or the source lost its end; finding the position anew, from the logs alone,
            # tells which.
            cursor.position = None
            self._lost(cursor, f"the source has no offset {cursor.fetch_at} now", True)
            return
        if answer.error in TRANSIENT:
            self._lost(cursor, f"source: {error_name(answer.error)}", False)
            return
        if answer.diverged is not None:
            cursor.cut_at = answer.diverged
            cursor.position = None
            self._lost(cursor, f"the source was cut back to {answer.diverged} and written anew", False)
            return
        if answer.error:
            said = f"the source refuses to be read: {error_name(answer.error)}{lacking(answer.error, 'Read')}"
            cursor.refuse("source-error", said, cursor.fetch_at, cursor.append_at)
            self.look_at(cursor)
            return
        if (cursor.source_end, cursor.high_watermark) != (answer.end, answer.high_watermark):
            cursor.source_end, cursor.high_watermark = answer.end, answer.high_watermark
            self._moved(cursor)
        cursor.source_start = max(cursor.source_start, answer.log_start)
        if answer.data:
            self._queue(cursor, answer)
        else:
            _rest(cursor)

    def _queue(self, cursor: Cursor, answer: Fetched) -> None:
        rules = self._rules()
        if cursor.largest or cursor.alone_before or cursor.keeps:
            rules = replace(rules, largest=cursor.largest, alone_before=cursor.alone_before, keep=cursor.keeps)
        intake = classify(answer.data, cursor.fetch_at, cursor.epoch, rules, answer.aborted, cursor.unwanted)
        chunk = Chunk(self._budget, len(answer.data), cursor.target_leader)
        must_be_recorded = cursor.take(intake, chunk)
        if intake.problem is not None:
            cursor.refuse(*intake.problem, cursor.fetch_at, cursor.plan_at)
        self.look_at(cursor)
        self._queued(cursor, must_be_recorded)

    def _lose_all(self, reason: str) -> None:
        for cursor in list(self._cursors.values()):
            if cursor.source_leader == self._node and cursor.readable:
                self._lost(cursor, reason, False)


def _place(cursor: Cursor) -> TopicPartition:
    return cursor.key.topic, cursor.key.partition


def _rest(cursor: Cursor) -> None:
    if not cursor.queue and not cursor.in_flight:
        cursor.is_well()
