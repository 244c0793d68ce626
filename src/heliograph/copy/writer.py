"""Appending: one outbox per target leader that sends queued batches, several requests in flight.

A Produce request may carry one batch per partition (INVALID_RECORD otherwise), so requests are filled across
partitions. A broker remembers the last five batches of a producer: with at most five under way per partition any of
them can be sent again without being added twice.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from heliograph.copy.cursor import Cursor, Sent, State
from heliograph.model.flow import Writing
from heliograph.wire.append import Appended, append
from heliograph.wire.batches import rewrite, sequence
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.errors import OUT_OF_ORDER_SEQUENCE_NUMBER, TRANSIENT, WireError, error_name

log = logging.getLogger(__name__)

_IN_FLIGHT = 5
_DUPLICATE_SEQUENCE_NUMBER = 46
_UNKNOWN_PRODUCER_ID = 59
# Somebody else, most likely an earlier lease of ours, got there first: look at the log's end and go on from it.
_SEQUENCE_ERRORS = frozenset({OUT_OF_ORDER_SEQUENCE_NUMBER, _DUPLICATE_SEQUENCE_NUMBER, _UNKNOWN_PRODUCER_ID})


class Writer:
    """Sends to one broker from the queues of its cursors."""

    def __init__(
        self,
        target: ClusterClient,
        node: int,
        writing: Writing,
        *,
        landed: Callable[[Cursor, Sent], None],
        settled: Callable[[Cursor], None],
        lost: Callable[[Cursor, str, bool], None],
    ) -> None:
        self._target = target
        self._node = node
        self._writing = writing
        self._landed = landed
        self._settled = settled
        self._lost = lost
        self._line: deque[Cursor] = deque()  # partitions with something to send, in turn
        self._under_way = 0
        self._connection: Connection | None = None
        self._opening: asyncio.Task[None] | None = None

    def offer(self, cursor: Cursor) -> None:
        """This cursor has something to send."""
        if not cursor.in_line:
            cursor.in_line = True
            self._line.append(cursor)
        self.pump()

    def pump(self) -> None:
        """Send as much as may be under way."""
        if self._connection is None or self._connection.closed:
            if self._line and (self._opening is None or self._opening.done()):
                self._opening = asyncio.get_running_loop().create_task(self._open())
            return
        while self._line and self._under_way < _IN_FLIGHT:
            if not self._send(self._connection):
                return

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)

    async def _open(self) -> None:
        try:
            self._connection = await self._target.to(self._node)
        except WireError as error:
            line, self._line = self._line, deque()
            for cursor in line:
                cursor.in_line = False
                if cursor.state is State.COPYING:
                    self._lost(cursor, f"target broker {self._node}: {error}", False)
            return
        self.pump()

    def _send(self, connection: Connection) -> bool:
        """One request, with one batch of each partition whose turn it is; whether there was anything to send."""
        request: list[tuple[Cursor, Sent]] = []
        size = 0
        waiting = []
        for _ in range(len(self._line)):
            cursor = self._line.popleft()
            if cursor.target_leader != self._node or cursor.state is not State.COPYING or not cursor.queue:
                cursor.in_line = False
                continue
            if len(cursor.in_flight) >= _IN_FLIGHT:
                waiting.append(cursor)
                continue
            if request and size + cursor.queue[0][0].size > self._writing.max_request_size:
                self._line.appendleft(cursor)
                break
            sent = cursor.pop()
            size += sent.batch.size
            request.append((cursor, sent))
        for cursor, _sent in request:
            if cursor.queue:
                self._line.append(cursor)
            else:
                cursor.in_line = False
        self._line.extend(waiting)
        if not request:
            return False
        batches = [
            (
                cursor.key.mirror,
                cursor.key.partition,
                (rewrite(sent.batch, cursor.producer_id, sequence(sent.target_offset)), sent.batch.records),
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
        answers = {} if failure is not None else {(one.topic, one.partition): one for one in done.result()}
        for cursor, sent in request:
            cursor.settle(sent)
            answer = answers.get((cursor.key.mirror, cursor.key.partition))
            if cursor.generation == sent.generation:
                if answer is None:
                    self._lost(cursor, f"target broker {self._node}: {failure}", False)
                else:
                    self._judge(cursor, sent, answer)
            self._settled(cursor)
        self.pump()

    def _judge(self, cursor: Cursor, sent: Sent, answer: Appended) -> None:
        source = sent.batch.base_offset
        if answer.error == 0 and answer.base_offset == sent.target_offset:
            cursor.landed(sent)
            self._landed(cursor, sent)
        elif answer.error == 0:
            cursor.give_up(
                "foreign-writer",
                f"the batch was appended at {answer.base_offset} instead of {sent.target_offset}: "
                "somebody else writes to this mirror",
                source,
                sent.target_offset,
            )
        elif answer.error in _SEQUENCE_ERRORS:
            self._lost(cursor, f"target: {error_name(answer.error)} at mirror offset {sent.target_offset}", True)
        elif answer.error in TRANSIENT:
            self._lost(cursor, f"target: {error_name(answer.error)}", False)
        else:
            said = f" ({answer.message})" if answer.message else ""
            cursor.give_up(
                "refused-by-target",
                f"the target refuses the batch of {sent.batch.count} records, {sent.batch.size} bytes: "
                f"{error_name(answer.error)}{said}",
                source,
                sent.target_offset,
            )
