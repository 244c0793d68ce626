"""Appending: one writer per target leader, which sends queued batches with several requests in flight.

A Produce request may hold one batch per partition only (INVALID_RECORD otherwise), so requests are filled across
partitions. Nothing is sent after the lease's deadline: a copier that was frozen and wakes up must not send what another
has copied since.
"""

import asyncio
import time
from collections import deque
from datetime import UTC, datetime
from functools import partial

from heliograph.copy.callbacks import Callbacks
from heliograph.copy.counts import TARGET
from heliograph.copy.cursor import Cursor, State
from heliograph.copy.lease_clock import LeaseClock
from heliograph.copy.send_queue import Sent
from heliograph.copy.tasks import Tasks
from heliograph.copy.tracing import span
from heliograph.model.flow import Writing
from heliograph.wire.append import Appended, PartitionBatch, append
from heliograph.wire.batches import Batch
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.errors import (
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    RECORD_LIST_TOO_LARGE,
    TRANSIENT,
    UNSUPPORTED_COMPRESSION_TYPE,
    error_name,
    lacking,
)

_MAX_REQUESTS = 5
_DUPLICATE_SEQUENCE_NUMBER = 46
_UNKNOWN_PRODUCER_ID = 59
# Another producer, most likely an earlier lease of ours, has appended first: resume from the log's end.
_SEQUENCE_ERRORS = frozenset({OUT_OF_ORDER_SEQUENCE_NUMBER, _DUPLICATE_SEQUENCE_NUMBER, _UNKNOWN_PRODUCER_ID})
_TOO_LARGE = frozenset({MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE})
# The records are refused, not the producer: other records may be accepted.
_RECORD_ERRORS = frozenset({INVALID_RECORD, INVALID_TIMESTAMP, UNSUPPORTED_COMPRESSION_TYPE, *_TOO_LARGE})


class Writer:
    """Sends to one broker from the queues of its cursors."""

    def __init__(
        self,
        target: ClusterClient,
        node: int,
        writing: Writing,
        clock: LeaseClock,
        parks: bool,
        tasks: Tasks,
        callbacks: Callbacks,
    ) -> None:
        self._target = target
        self._node = node
        self._writing = writing
        self._clock = clock
        self._parks = parks
        self._tasks = tasks
        self._callbacks = callbacks
        self._queue: deque[Cursor] = deque()  # cursors with something to send, in turn
        self._queued: set[Cursor] = set()
        self._in_flight = 0
        self._throttled_until = 0.0
        self._connection: Connection | None = None
        self._is_connecting = False

    def offer(self, cursor: Cursor) -> None:
        """This cursor has something to send."""
        self.enqueue(cursor)
        self.pump()

    def enqueue(self, cursor: Cursor) -> None:
        if cursor not in self._queued:
            self._queued.add(cursor)
            self._queue.append(cursor)

    def pump(self) -> None:
        """Send as much as may be in flight."""
        if self._connection is None or self._connection.closed:
            if self._queue and not self._is_connecting:
                self._is_connecting = True
                self._tasks.start(self._connect())
            return
        while self._queue and self._in_flight < _MAX_REQUESTS and self._may_send():
            if not self._send(self._connection):
                return

    def _may_send(self) -> bool:
        return self._throttled_until <= time.monotonic() and not self._clock.is_expired

    async def _connect(self) -> None:
        try:
            self._connection = await self._target.connection(self._node)
        except Exception as error:  # after any error, cursors that wait must be restarted
            waiting, self._queue = self._queue, deque()
            self._queued.clear()
            for cursor in waiting:
                if self._is_mine(cursor):
                    self._callbacks.restart(cursor, f"target broker {self._node}: {error}", False)
            return
        finally:
            self._is_connecting = False
        self.pump()

    def _send(self, connection: Connection) -> bool:
        """Send one request, with one batch of each partition whose turn it is. Returns whether there was any."""
        request: list[tuple[Cursor, Sent]] = []
        size = 0
        for _ in range(len(self._queue)):
            cursor = self._queue.popleft()
            if not self._is_mine(cursor) or not cursor.sending.steps:
                self._queued.remove(cursor)
                continue
            if cursor.sending.free_slots > 0:
                if request and size + cursor.sending.next_size > self._writing.max_request_size:
                    self._queue.appendleft(cursor)
                    break
                sent = cursor.sending.pop(cursor.generation)
                size += sent.outgoing.batch.size
                request.append((cursor, sent))
            self._queue.append(cursor)  # for its next turn; empty ones leave the queue then
        if not request:
            return False
        batches = [
            PartitionBatch(
                cursor.key.mirror,
                cursor.key.partition,
                (cursor.sending.header(sent.outgoing.batch, sent.target_offset), sent.outgoing.batch.records),
                cursor.mirror.topic_id,
            )
            for cursor, sent in request
        ]
        self._in_flight += 1
        answer = append(connection, batches, self._writing.request_timeout)
        answer.add_done_callback(self._tasks.guard(partial(self._answered, request, time.monotonic())))
        return True

    def _answered(
        self, request: list[tuple[Cursor, Sent]], sent_at: float, done: "asyncio.Future[list[Appended]]"
    ) -> None:
        self._in_flight -= 1
        span("append", f"append to broker {self._node}", sent_at, batches=len(request))
        failure = asyncio.CancelledError() if done.cancelled() else done.exception()
        if failure is None:
            self._callbacks.answered(time.monotonic() - sent_at)
        answers = {} if failure is not None else {(answer.topic, answer.partition): answer for answer in done.result()}
        for cursor, sent in request:
            cursor.sending.settle(sent)
            answer = answers.get((cursor.key.mirror, cursor.key.partition))
            if cursor.generation != sent.generation:
                self._handle_late(cursor, sent, answer)
            elif answer is None:
                self._callbacks.restart(cursor, f"target broker {self._node}: {failure}", False)
            else:
                self._handle(cursor, sent, answer)
        self._callbacks.settled([cursor for cursor, _sent in request])
        self._pause(max((answer.throttled for answer in answers.values()), default=0.0))
        self.pump()

    def _pause(self, throttled: float) -> None:
        """Send nothing while the broker throttles us."""
        if throttled > 0:
            self._callbacks.throttled(TARGET, throttled)
            self._throttled_until = time.monotonic() + throttled
            asyncio.get_running_loop().call_later(throttled + 0.001, self._tasks.guard(self.pump))

    def _is_mine(self, cursor: Cursor) -> bool:
        return cursor.mirror.leader == self._node and cursor.state is State.COPYING

    def _handle_late(self, cursor: Cursor, sent: Sent, answer: Appended | None) -> None:
        """A response for a batch from before the last restart changes nothing. If the batch landed elsewhere, the look
        at the mirror's last batch, which follows where the position is not known, will show it."""
        if answer is not None and answer.error == 0 and answer.base_offset != sent.target_offset:
            cursor.forget_position()

    def _handle_misplaced(self, cursor: Cursor, sent: Sent, answer: Appended) -> None:
        """It landed at another offset: somebody else writes to the mirror. The log shows what belongs to whom."""
        cursor.forget_position()
        text = f"the batch was appended at {answer.base_offset} instead of {sent.target_offset}"
        self._callbacks.restart(cursor, f"{text}: another producer writes to this mirror, or it has lost records", True)

    def _handle(self, cursor: Cursor, sent: Sent, answer: Appended) -> None:
        batch, limit = sent.outgoing.batch, cursor.limits.max_batch_bytes
        if answer.error == 0 and answer.base_offset == sent.target_offset:
            cursor.landed(sent)
            self._callbacks.landed(cursor, sent)
        elif answer.error == 0:
            self._handle_misplaced(cursor, sent, answer)
        elif answer.error in _SEQUENCE_ERRORS:
            self._callbacks.restart(
                cursor, f"target: {error_name(answer.error)} at mirror offset {sent.target_offset}", True
            )
        elif answer.error in TRANSIENT:
            self._callbacks.restart(cursor, f"target: {error_name(answer.error)}", False)
        elif answer.error in _TOO_LARGE and (not limit or batch.size > limit):
            cursor.limits.refuse_batch(batch.size, sent.outgoing.is_reencoded)
            self._callbacks.restart(cursor, f"the mirror refuses a batch of {batch.size} bytes", False)
        elif answer.error in _RECORD_ERRORS and self._parks:
            self._find_refused_records(cursor, sent, answer)
        else:
            cursor.give_up(
                "refused-by-target", _refused(batch, answer), sent.outgoing.source_offset, sent.target_offset
            )

    def _find_refused_records(self, cursor: Cursor, sent: Sent, answer: Appended) -> None:
        """Find the records that are refused, so that the others can be copied without them."""
        offsets = [first + number for first, count in sent.outgoing.runs for number in range(count)]
        why = error_name(answer.error)
        if answer.bad:
            for index, text in answer.bad:
                cursor.limits.refuse_record(offsets[index], f"{why}: {text}")
        elif len(offsets) == 1:
            cursor.limits.refuse_record(offsets[0], f"{why}: {answer.message or 'refused by the target'}")
        else:
            cursor.limits.send_singly_before(sent.outgoing.next_source)
        self._callbacks.restart(cursor, f"the target refuses records: {why}", False)


def _refused(batch: Batch, answer: Appended) -> str:
    refused = f"the target refuses the batch of {batch.count} records, {batch.size} bytes: {error_name(answer.error)}"
    if answer.error == INVALID_TIMESTAMP:  # the broker's message contains its clock, so it would be new every time
        limits = "message.timestamp.after.max.ms and .before.max.ms of the mirror"
        return f"{refused}; its newest record is of {_time_text(batch.max_timestamp)}, and {limits} are the limits"
    message = (f" ({answer.message})" if answer.message else "") + lacking(answer.error, "Write")
    record = f"; it refuses record {answer.bad[0][0]} of the batch: {answer.bad[0][1]}" if answer.bad else ""
    return f"{refused}{message}{record}"


def _time_text(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms after 1970"
