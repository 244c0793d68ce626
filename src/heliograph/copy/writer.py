"""Appending: one outbox per target leader that sends queued batches, several requests in flight.

A Produce request may carry one batch per partition (INVALID_RECORD otherwise), so requests are filled across
partitions. Nothing is sent after the lease's deadline: a copier that was frozen meanwhile and wakes up must not send
what another has copied since.
"""

import asyncio
import time
from collections import deque
from datetime import UTC, datetime

from heliograph.copy.callbacks import Callbacks
from heliograph.copy.counts import TARGET
from heliograph.copy.cursor import Cursor, State
from heliograph.copy.lease_clock import LeaseClock
from heliograph.copy.send_queue import Sent
from heliograph.model.flow import Writing
from heliograph.wire.append import Appended, append
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

_REQUESTS = 5
_DUPLICATE_SEQUENCE_NUMBER = 46
_UNKNOWN_PRODUCER_ID = 59
# Somebody else, most likely an earlier lease of ours, got there first: look at the log's end and go on from it.
_SEQUENCE_ERRORS = frozenset({OUT_OF_ORDER_SEQUENCE_NUMBER, _DUPLICATE_SEQUENCE_NUMBER, _UNKNOWN_PRODUCER_ID})
_TOO_LARGE = frozenset({MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE})
# It is the records' fault, not the sender's: others may be taken.
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
        callbacks: Callbacks,
    ) -> None:
        self._target = target
        self._node = node
        self._writing = writing
        self._clock = clock
        self._parks = parks
        self._callbacks = callbacks
        self._line: deque[Cursor] = deque()  # partitions with something to send, in turn
        self._in_line: set[Cursor] = set()
        self._under_way = 0
        self._throttled_until = 0.0
        self._connection: Connection | None = None
        self._opening: asyncio.Task[None] | None = None

    def offer(self, cursor: Cursor) -> None:
        """This cursor has something to send."""
        self.line_up(cursor)
        self.pump()

    def line_up(self, cursor: Cursor) -> None:
        if cursor not in self._in_line:
            self._in_line.add(cursor)
            self._line.append(cursor)

    def pump(self) -> None:
        """Send as much as may be under way."""
        if self._connection is None or self._connection.closed:
            if self._line and (self._opening is None or self._opening.done()):
                self._opening = asyncio.get_running_loop().create_task(self._open())
            return
        while self._line and self._under_way < _REQUESTS and self._may_send():
            if not self._send(self._connection):
                return

    def _may_send(self) -> bool:
        return self._throttled_until <= time.monotonic() and not self._clock.is_expired

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)

    async def _open(self) -> None:
        try:
            self._connection = await self._target.connection(self._node)
        except Exception as error:  # whatever it was, those who wait must hear of it
            line, self._line = self._line, deque()
            self._in_line.clear()
            for cursor in line:
                if self._mine(cursor):
                    self._callbacks.restart(cursor, f"target broker {self._node}: {error}", False)
            return
        self.pump()

    def _send(self, connection: Connection) -> bool:
        """One request, with one batch of each partition whose turn it is; whether there was anything to send."""
        request: list[tuple[Cursor, Sent]] = []
        size = 0
        for _ in range(len(self._line)):
            cursor = self._line.popleft()
            if not self._mine(cursor) or not cursor.sending.steps:
                self._in_line.remove(cursor)
                continue
            if cursor.sending.free_slots > 0:
                if request and size + cursor.sending.next_size > self._writing.max_request_size:
                    self._line.appendleft(cursor)
                    break
                sent = cursor.sending.pop(cursor.generation)
                size += sent.outgoing.batch.size
                request.append((cursor, sent))
            self._line.append(cursor)  # for its next turn; the empty ones leave the line then
        if not request:
            return False
        batches = [
            (
                cursor.key.mirror,
                cursor.key.partition,
                (cursor.sending.header(sent.outgoing.batch, sent.target_offset), sent.outgoing.batch.records),
            )
            for cursor, sent in request
        ]
        self._under_way += 1
        answer = append(connection, batches, self._writing.request_timeout)
        answer.add_done_callback(lambda done: self._answered(request, done))
        return True

    def _answered(self, request: list[tuple[Cursor, Sent]], done: "asyncio.Future[list[Appended]]") -> None:
        self._under_way -= 1
        failure = asyncio.CancelledError() if done.cancelled() else done.exception()
        answers = {} if failure is not None else {(answer.topic, answer.partition): answer for answer in done.result()}
        for cursor, sent in request:
            cursor.sending.settle(sent)
            answer = answers.get((cursor.key.mirror, cursor.key.partition))
            if cursor.generation != sent.generation:
                self._judge_late(cursor, sent, answer)
            elif answer is None:
                self._callbacks.restart(cursor, f"target broker {self._node}: {failure}", False)
            else:
                self._judge(cursor, sent, answer)
        self._callbacks.settled([cursor for cursor, _sent in request])
        self._heed(max((answer.throttled for answer in answers.values()), default=0.0))
        self.pump()

    def _heed(self, throttled: float) -> None:
        """A broker over its quota answers late and says for how long it will not listen."""
        if throttled > 0:
            self._callbacks.throttled(TARGET, throttled)
            self._throttled_until = time.monotonic() + throttled
            asyncio.get_running_loop().call_later(throttled + 0.001, self.pump)

    def _mine(self, cursor: Cursor) -> bool:
        return cursor.mirror.leader == self._node and cursor.state is State.COPYING

    def _judge_late(self, cursor: Cursor, sent: Sent, answer: Appended | None) -> None:
        """An answer for a batch from before the last fault: good or bad it changes nothing. If it went astray, looking
        at the mirror's last batch, which is done where the position is not known, will show it."""
        if answer is not None and answer.error == 0 and answer.base_offset != sent.target_offset:
            cursor.forget_position()

    def _astray(self, cursor: Cursor, sent: Sent, answer: Appended) -> None:
        """It landed in another place: somebody else writes here. Looking at the log tells what belongs to whom."""
        cursor.forget_position()
        text = f"the batch was appended at {answer.base_offset} instead of {sent.target_offset}"
        self._callbacks.restart(cursor, f"{text}: somebody else writes to this mirror, or it has lost records", True)

    def _judge(self, cursor: Cursor, sent: Sent, answer: Appended) -> None:
        batch, limit = sent.outgoing.batch, cursor.limits.max_batch_bytes
        if answer.error == 0 and answer.base_offset == sent.target_offset:
            cursor.landed(sent)
            self._callbacks.landed(cursor, sent)
        elif answer.error == 0:
            self._astray(cursor, sent, answer)
        elif answer.error in _SEQUENCE_ERRORS:
            self._callbacks.restart(
                cursor, f"target: {error_name(answer.error)} at mirror offset {sent.target_offset}", True
            )
        elif answer.error in TRANSIENT:
            self._callbacks.restart(cursor, f"target: {error_name(answer.error)}", False)
        elif answer.error in _TOO_LARGE and (not limit or batch.size > limit):
            cursor.limits.refuse_batch(batch.size)
            self._callbacks.restart(cursor, f"the mirror does not take a batch of {batch.size} bytes", False)
        elif answer.error in _RECORD_ERRORS and self._parks:
            self._single_out(cursor, sent, answer)
        else:
            cursor.give_up(
                "refused-by-target", _refused(batch, answer), sent.outgoing.source_offset, sent.target_offset
            )

    def _single_out(self, cursor: Cursor, sent: Sent, answer: Appended) -> None:
        """Find the records that are refused, so that the others can go on without them."""
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
    if answer.error == INVALID_TIMESTAMP:  # the broker's own words have its clock in them, and are others every time
        limits = "message.timestamp.after.max.ms and .before.max.ms of the mirror"
        return f"{refused}; its newest record is of {_moment(batch.max_timestamp)}, and {limits} are the limits"
    said = (f" ({answer.message})" if answer.message else "") + lacking(answer.error, "Write")
    blame = f"; to blame is record {answer.bad[0][0]} of the batch: {answer.bad[0][1]}" if answer.bad else ""
    return f"{refused}{said}{blame}"


def _moment(milliseconds: int) -> str:
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms after 1970"
