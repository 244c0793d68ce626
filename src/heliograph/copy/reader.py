"""Reading: one loop per source broker, which fetches for all its partitions that have room for more.

The broker remembers what is fetched (a fetch session), so a request costs what has changed since the last one: which
cursors moved, filled up or have room again. Idle partitions cost nothing.

With `client.rack`, leaders name a replica in that rack to fetch from instead (KIP-392). What a follower says about the
log is never believed but the records: a lagging one answers OFFSET_OUT_OF_RANGE, or that the log was truncated. After
any error of a follower the leader is asked, without the rack, and decides.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable

from heliograph.copy.budget import Budget, Chunk
from heliograph.copy.callbacks import Callbacks
from heliograph.copy.classified import Rules
from heliograph.copy.classify import classify
from heliograph.copy.counts import SOURCE
from heliograph.copy.cursor import Cursor
from heliograph.copy.partition_logs import FetchFrom
from heliograph.copy.rate_limiter import RateLimiter
from heliograph.copy.tracing import span
from heliograph.model.flow import Reading
from heliograph.model.partitions import TopicPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import OFFSET_OUT_OF_RANGE, TRANSIENT, WireError, error_name, lacking
from heliograph.wire.fetch import READ_COMMITTED, READ_UNCOMMITTED, FetchPartition, FetchSession, Limits
from heliograph.wire.fetch_response import Fetched

log = logging.getLogger(__name__)

# While a full partition waits for its appends, the others do not long-poll.
_SHORT_WAIT = 0.005
_SMALLEST_FETCH = 64 * 1024
# Seconds until leaders are asked again which replica is the nearest. The first is the metadata.max.age.ms of consumers.
_FOLLOWER_FOR = 300.0
_AVOID_FOLLOWERS_FOR = 60.0


class Reader:
    """Fetches from one broker into its cursors' queues."""

    def __init__(
        self,
        source: ClusterClient,
        fetch_from: FetchFrom,
        reading: Reading,
        budget: Budget,
        rate_limiter: RateLimiter,
        rules: Callable[[], Rules],
        callbacks: Callbacks,
    ) -> None:
        self._source = source
        self._fetch_from = fetch_from
        self._node = fetch_from.node
        self._reading = reading
        self._budget = budget
        self._rate_limiter = rate_limiter
        self._rules = rules
        self._callbacks = callbacks
        self._cursors: dict[TopicPartition, Cursor] = {}
        self._fetched: dict[TopicPartition, tuple[Cursor, int]] = {}  # in the session, with the cursor's generation
        self._changed: dict[Cursor, None] = {}  # the session may have to be changed for them
        self._dropped: set[TopicPartition] = set()  # to be removed from the session
        self._full: set[Cursor] = set()  # readable, but without room
        self._overloaded: set[int] = set()  # target leaders whose share of memory is used up
        self._wake = asyncio.Event()
        self._ask_leaders_at = 0.0

    def update(self, cursor: Cursor) -> None:
        """Something about this cursor changed: whether it is readable, from where, or its room."""
        self._cursors[_partition_of(cursor)] = cursor
        self._changed[cursor] = None
        self._wake.set()

    def room_freed(self, cursor: Cursor) -> None:
        """A batch of this cursor is not held any more."""
        if cursor in self._full or not cursor.is_readable:
            self._changed[cursor] = None

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        while True:
            try:
                connection = await self._source.dedicated_connection(self._node)
            except WireError as error:
                self._give_back_all(f"source broker {self._node}: {error}")
                await self._idle()
                continue
            isolation = READ_COMMITTED if self._reading.committed_only else READ_UNCOMMITTED
            session = FetchSession(connection, isolation, self._reading.rack if self._fetch_from.with_rack else "")
            self._ask_leaders_at = self._next_time_to_ask()
            self._changed = dict.fromkeys(self._cursors.values())
            self._fetched.clear()
            self._dropped.clear()
            try:
                while True:
                    await self._round(session)
            except WireError as error:
                self._give_back_all(f"source broker {self._node}: {error}")
            finally:
                connection.close()

    async def _round(self, session: FetchSession) -> None:
        if not self._enough_memory():
            await self._idle()
            return
        if time.monotonic() >= self._ask_leaders_at:
            self._ask_leaders()
        wanted = self._session_changes()
        if not self._fetched:
            is_unused = not self._cursors
            await self._idle()
            if is_unused:
                self._ask_leaders_at = self._next_time_to_ask()
            return
        await self._rate_limiter.wait()
        is_short = bool(self._full)
        size = self._rate_limiter.limit(min(self._reading.fetch_max_bytes, self._budget.allowance))
        limits = Limits(
            max(size, 1),
            1 if is_short else self._reading.fetch_min_bytes,
            _SHORT_WAIT if is_short else self._reading.fetch_max_wait,
        )
        begin = time.monotonic()
        self._budget.reserve(size)  # until the response arrives and is counted itself
        try:
            answers = await session.fetch(wanted, self._dropped, limits)
            self._dropped.clear()
        finally:
            self._budget.unreserve(size)
        received = sum(len(answer.data) for answer in answers)
        span("fetch", f"fetch from broker {self._node}", begin, bytes=received, partitions=len(answers))
        begin = time.monotonic()
        self._take(wanted, answers)
        span("classify", f"{received} bytes", begin)
        del answers  # a throttled reader keeps nothing of them in memory
        self._rate_limiter.spent(received)
        if session.throttled:
            self._callbacks.throttled(SOURCE, session.throttled)
            await asyncio.sleep(session.throttled)  # the broker would only delay the next request

    async def _idle(self) -> None:
        self._wake.clear()
        await self._wake.wait()

    def _enough_memory(self) -> bool:
        return self._budget.allowance >= min(_SMALLEST_FETCH, self._budget.limit // (2 * self._budget.readers))

    def _session_changes(self) -> list[FetchPartition]:
        """The partitions to fetch from a new offset; those to remove are added to `_dropped`."""
        self._update_overloaded()
        wanted = []
        changed, self._changed = self._changed, {}
        for cursor in changed:
            partition = _partition_of(cursor)
            self._full.discard(cursor)
            is_mine = self._is_mine(cursor)
            if is_mine and self._has_room(cursor):
                wanted.append(self._fetch_partition(cursor))
                self._fetched[partition] = (cursor, cursor.generation)
                self._dropped.discard(partition)
                continue
            if is_mine:
                self._full.add(cursor)
            else:
                self._cursors.pop(partition, None)
            if self._fetched.pop(partition, None) is not None:
                self._dropped.add(partition)
        return wanted

    def _update_overloaded(self) -> None:
        overloaded = self._budget.overloaded_leaders(self._overloaded)
        for leader in overloaded ^ self._overloaded:
            for cursor in self._cursors.values():
                if cursor.mirror.leader == leader:
                    self._changed[cursor] = None
        self._overloaded = overloaded

    def _has_room(self, cursor: Cursor) -> bool:
        return (
            cursor.sending.queued_bytes < 2 * self._reading.max_partition_fetch_bytes
            and cursor.mirror.leader not in self._overloaded
        )

    def _fetch_partition(self, cursor: Cursor) -> FetchPartition:
        size = self._reading.max_partition_fetch_bytes
        return FetchPartition(
            cursor.key.topic,
            cursor.source.topic_id,
            cursor.key.partition,
            cursor.source.fetch_at,
            size,
            cursor.source.fetch_epoch,
        )

    def _take(self, wanted: list[FetchPartition], answers: list[Fetched]) -> None:
        silent = {fetch.place for fetch in wanted}
        for answer in answers:
            partition = (answer.topic, answer.partition)
            silent.discard(partition)
            cursor, generation = self._fetched.get(partition, (None, 0))
            if cursor is not None and cursor.generation == generation and self._is_mine(cursor):
                self._take_answer(cursor, answer)
        for partition in silent:  # fetched, and nothing new: all is copied
            cursor, generation = self._fetched.get(partition, (None, 0))
            if cursor is not None and cursor.generation == generation:
                _succeed_if_idle(cursor)

    def _take_answer(self, cursor: Cursor, answer: Fetched) -> None:
        if cursor.source.is_read_from_follower and (answer.error or answer.diverged is not None):
            why = error_name(answer.error) if answer.error else f"its log differs from offset {answer.diverged} on"
            self._avoid_followers(cursor, why)
            return
        if answer.error == OFFSET_OUT_OF_RANGE:
            # Retention has overtaken us or the source was truncated: finding the position from the logs alone shows
            # which.
            cursor.forget_position()
            self._callbacks.restart(cursor, f"source offset {cursor.source.fetch_at} is out of range", True)
            return
        if answer.error in TRANSIENT:
            self._callbacks.restart(cursor, f"source: {error_name(answer.error)}", False)
            return
        if answer.diverged is not None:
            cursor.source.truncated(answer.diverged)
            cursor.forget_position()
            self._callbacks.restart(
                cursor, f"the source was truncated to offset {answer.diverged} and written again", False
            )
            return
        if answer.error:
            text = f"the source refuses to be read: {error_name(answer.error)}{lacking(answer.error, 'Read')}"
            cursor.refuse("source-error", text, cursor.source.fetch_at, cursor.sending.append_at)
            self.update(cursor)
            return
        if cursor.source.observe(answer.log_start, answer.end, answer.high_watermark):
            self._callbacks.changed(cursor)
        if self._has_nearer_replica(answer):
            log.debug("%s is fetched from broker %d, a replica in our rack", cursor.key, answer.preferred_replica)
            cursor.source.read_from(answer.preferred_replica)
            self._move(cursor)
        elif answer.data:
            self._queue(cursor, answer)
        else:
            _succeed_if_idle(cursor)

    def _queue(self, cursor: Cursor, answer: Fetched) -> None:
        source, limits = cursor.source, cursor.limits
        rules = limits.rules(self._rules(), cursor.mirror.preserves_offsets)
        classified = classify(
            answer.data, source.fetch_at, source.fetch_epoch, rules, answer.aborted, limits.refused_records
        )
        self._callbacks.fetched(len(answer.data))
        held = classified.leave_response(max(answer.response_size, len(answer.data)))
        chunk = Chunk(self._budget, held, cursor.mirror.leader)
        must_be_recorded = cursor.take(classified, chunk)
        if classified.problem is not None:
            reason, text = classified.problem
            text += f"; {limits.why_not_raised}" if limits.why_not_raised else ""
            cursor.refuse(reason, text, source.fetch_at, cursor.sending.plan_at)
        self.update(cursor)
        self._callbacks.queued(cursor, must_be_recorded)

    def _is_mine(self, cursor: Cursor) -> bool:
        return cursor.source.fetch_from == self._fetch_from and cursor.is_readable

    def _give_back_all(self, reason: str) -> None:
        """The broker cannot be reached."""
        for cursor in list(self._cursors.values()):
            if not self._is_mine(cursor):
                continue
            if cursor.source.is_read_from_follower:
                self._avoid_followers(cursor, reason)
            else:
                self._callbacks.restart(cursor, reason, False)

    # --- replicas -------------------------------------------------------------------------------------------------

    def _has_nearer_replica(self, answer: Fetched) -> bool:
        is_asked_for = bool(self._reading.rack) and self._fetch_from.with_rack
        return is_asked_for and answer.preferred_replica not in (-1, self._node)

    def _avoid_followers(self, cursor: Cursor, why: str) -> None:
        """Let the leader decide. What was fetched so far is good."""
        log.debug("%s is fetched from its leader for a while: broker %d: %s", cursor.key, self._node, why)
        cursor.source.avoid_followers()
        self._move(cursor)

    def _ask_leaders(self) -> None:
        """Let leaders say again which replica is the nearest. Only the reader that fetches a partition moves it: two
        that fetch it at the same time would copy records twice."""
        self._ask_leaders_at = self._next_time_to_ask()
        for cursor in list(self._cursors.values()):
            is_settled = self._fetch_from.with_rack and not cursor.source.is_read_from_follower
            if self._is_mine(cursor) and not is_settled:
                cursor.source.ask_leader()
                self._move(cursor)

    def _next_time_to_ask(self) -> float:
        if not self._reading.rack:
            return math.inf
        return time.monotonic() + (_FOLLOWER_FOR if self._fetch_from.with_rack else _AVOID_FOLLOWERS_FOR)

    def _move(self, cursor: Cursor) -> None:
        self.update(cursor)  # removes it from the session
        self._callbacks.moved(cursor)


def _partition_of(cursor: Cursor) -> TopicPartition:
    return cursor.key.topic, cursor.key.partition


def _succeed_if_idle(cursor: Cursor) -> None:
    if cursor.sending.is_idle:
        cursor.retry.succeeded()
