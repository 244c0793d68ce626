"""The state of one partition inside a lease: what is fetched, what is under way, what is safely copied."""

import enum
import time
import uuid
from collections import deque
from dataclasses import dataclass, field

from heliograph.copy.work import MirrorPartition, Position, Refusal
from heliograph.wire.batches import Batch
from heliograph.wire.cluster import NO_ID

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
# A fault that would look the same if it were only passing is believed after so many tries in a row.
_PATIENCE = 5


class State(enum.Enum):
    RESUMING = "resuming"  # its position must be found in the target's log
    COPYING = "copying"
    REFUSED = "refused"


class Budget:
    """The bytes that a lease may hold, counted by fetched chunk: a chunk lives until its last batch is done."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0

    @property
    def room(self) -> int:
        return self.limit - self.held


@dataclass(slots=True, eq=False)
class Chunk:
    """Fetched bytes of one partition, given back to the budget when no batch needs them any more."""

    budget: Budget
    size: int
    users: int = 0

    def take(self) -> None:
        if self.users == 0:
            self.budget.held += self.size
        self.users += 1

    def release(self) -> None:
        self.users -= 1
        if self.users == 0:
            self.budget.held -= self.size


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """One batch that was handed to the target, and where it must land."""

    batch: Batch
    chunk: Chunk
    target_offset: int
    generation: int


@dataclass(slots=True, eq=False)
class Cursor:
    key: MirrorPartition
    producer_id: int
    state: State = State.RESUMING
    generation: int = 0  # grows with each fresh start, so that answers to an earlier one are not taken for ours
    source_leader: int = -1
    target_leader: int = -1
    source_id: uuid.UUID = NO_ID
    source_end: int = -1
    position: Position | None = None
    fetch_at: int = 0
    append_at: int = 0
    queue: deque[tuple[Batch, Chunk]] = field(default_factory=deque)
    queued_bytes: int = 0
    in_flight: deque[Sent] = field(default_factory=deque)
    in_line: bool = False  # stands in its target leader's line of partitions with something to send
    refusal: Refusal | None = None
    faults: int = 0  # in a row, without progress
    not_before: float = 0.0

    def start(self, position: Position) -> None:
        self.position = position
        self.fetch_at = position.source
        self.append_at = position.target
        self.state = State.COPYING

    @property
    def readable(self) -> bool:
        return self.state is State.COPYING and self.refusal is None

    def push(self, batch: Batch, chunk: Chunk) -> None:
        chunk.take()
        self.queue.append((batch, chunk))
        self.queued_bytes += batch.size
        self.fetch_at = batch.next_offset

    def pop(self) -> Sent:
        """Take the next batch to send; its place in the mirror is fixed by that."""
        batch, chunk = self.queue.popleft()
        self.queued_bytes -= batch.size
        sent = Sent(batch, chunk, self.append_at, self.generation)
        self.append_at += batch.count
        self.in_flight.append(sent)
        return sent

    def landed(self, sent: Sent) -> None:
        """The target holds this batch where it belongs."""
        self.position = Position(sent.batch.next_offset, sent.target_offset + sent.batch.count)
        self.faults = 0

    def settle(self, sent: Sent) -> None:
        """The answer for this batch has come, or never will."""
        self.in_flight.remove(sent)
        sent.chunk.release()

    def begin_again(self, patience_counts: bool = False) -> bool:
        """Drop what was fetched and find the position anew, after a growing pause.

        Answers whether that is still worth while: a fault that counts against our patience ends it some time.
        """
        self.drop_queue()
        self.generation += 1
        self.state = State.RESUMING
        self.faults += 1
        self.not_before = time.monotonic() + min(_FIRST_PAUSE * 2 ** (self.faults - 1), _LONGEST_PAUSE)
        return not (patience_counts and self.faults >= _PATIENCE)

    def refuse(self, reason: str, text: str, source_offset: int, target_offset: int) -> None:
        """Read no further. Batches before the refused one are still copied."""
        if self.refusal is None:
            self.refusal = Refusal(self.key, reason, source_offset, target_offset, text)

    def give_up(self, reason: str, text: str, source_offset: int, target_offset: int) -> None:
        """Copy nothing more, not even what is fetched."""
        self.refuse(reason, text, source_offset, target_offset)
        self.drop_queue()
        self.generation += 1
        self.state = State.REFUSED

    def drop_queue(self) -> None:
        for _batch, chunk in self.queue:
            chunk.release()
        self.queue.clear()
        self.queued_bytes = 0
