"""Reading: one loop per source leader that fetches for all its partitions that have room for more."""

import asyncio
from collections.abc import Callable, Iterable

from heliograph.copy.checks import objection
from heliograph.copy.cursor import Budget, Chunk, Cursor
from heliograph.model.flow import Reading
from heliograph.wire.batches import BadBatch, split
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import OFFSET_OUT_OF_RANGE, TRANSIENT, WireError, error_name
from heliograph.wire.fetch import Fetched, Wanted, fetch

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
        cursors: Callable[[int], Iterable[Cursor]],
        *,
        queued: Callable[[Cursor], None],
        lost: Callable[[Cursor, str, bool], None],
    ) -> None:
        self._source = source
        self._node = node
        self._reading = reading
        self._budget = budget
        self._cursors = cursors
        self._queued = queued
        self._lost = lost
        self._turn = 0
        self.wake = asyncio.Event()

    async def run(self) -> None:
        while True:
            try:
                connection = await self._source.extra(self._node)
            except WireError as error:
                self._lose_all(f"source broker {self._node}: {error}")
                await self._idle()
                continue
            try:
                while True:
                    wanted, short = self._wanted()
                    if not wanted:
                        await self._idle()
                        continue
                    size = min(self._reading.fetch_max_bytes, self._budget.allowance)
                    self._budget.held += size  # spoken for until the answer is here and counts itself
                    try:
                        answers = await fetch(
                            connection,
                            [ask for _cursor, ask, _generation in wanted],
                            max_bytes=size,
                            min_bytes=1 if short else self._reading.fetch_min_bytes,
                            max_wait=_SHORT_WAIT if short else self._reading.fetch_max_wait,
                        )
                    finally:
                        self._budget.held -= size
                    self._take(wanted, answers)
            except WireError as error:
                self._lose_all(f"source broker {self._node}: {error}")
            finally:
                connection.close()

    async def _idle(self) -> None:
        self.wake.clear()
        await self.wake.wait()

    def _wanted(self) -> tuple[list[tuple[Cursor, Wanted, int]], bool]:
        """The next request's partitions, and whether others would like to be in it but have no room."""
        mine = [cursor for cursor in self._cursors(self._node) if cursor.readable]
        if self._budget.allowance < min(_SMALLEST_FETCH, self._budget.limit // (2 * self._budget.readers)):
            return [], True
        size = self._reading.max_partition_fetch_bytes
        ready = [
            cursor
            for cursor in mine
            if cursor.queued_bytes < 2 * size and not self._budget.crowded(cursor.target_leader)
        ]
        # A broker fills its answer in the order of the request: begin with another partition each time.
        self._turn += 1
        turn = self._turn % max(1, len(ready))
        return [(cursor, _ask(cursor, size), cursor.generation) for cursor in ready[turn:] + ready[:turn]], len(
            ready
        ) < len(mine)

    def _take(self, wanted: list[tuple[Cursor, Wanted, int]], answers: list[Fetched]) -> None:
        asked = {(ask.topic, ask.partition): (cursor, generation) for cursor, ask, generation in wanted}
        for answer in answers:
            cursor, generation = asked[answer.topic, answer.partition]
            if cursor.generation == generation and cursor.readable:
                self._take_one(cursor, answer)

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
            cursor.refuse(
                "source-truncated",
                f"the source was cut back to offset {answer.diverged} when its leader changed, and written anew from "
                "there; the mirror holds records that the source has lost",
                cursor.fetch_at,
                cursor.append_at,
            )
            return
        if answer.error:
            name = error_name(answer.error)
            cursor.refuse("source-error", f"the source refuses to be read: {name}", cursor.fetch_at, cursor.append_at)
            return
        cursor.source_end = answer.end
        if answer.data:
            self._queue(cursor, answer.data)
        elif not cursor.queue and not cursor.in_flight:
            cursor.is_well()

    def _queue(self, cursor: Cursor, data: bytes) -> None:
        chunk = Chunk(self._budget, len(data), cursor.target_leader)
        ahead = sum(batch.count for batch, _chunk in cursor.queue)
        try:
            for batch in split(data):
                problem = objection(batch, cursor.fetch_at)
                if problem is not None:
                    cursor.refuse(*problem, cursor.fetch_at, cursor.append_at + ahead)
                    break
                # The header will be written anew, checksum included: damage must be found before that hides it.
                if not batch.intact():
                    raise BadBatch("the checksum does not match")
                cursor.push(batch, chunk)
                ahead += batch.count
        except BadBatch as error:
            text = f"damaged data from the source: {error}"
            cursor.refuse("damaged", text, cursor.fetch_at, cursor.append_at + ahead)
        if cursor.queue:
            self._queued(cursor)

    def _lose_all(self, reason: str) -> None:
        for cursor in list(self._cursors(self._node)):
            if cursor.readable:
                self._lost(cursor, reason, False)


def _ask(cursor: Cursor, size: int) -> Wanted:
    return Wanted(cursor.key.topic, cursor.source_id, cursor.key.partition, cursor.fetch_at, size, cursor.epoch)
