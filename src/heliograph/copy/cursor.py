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
# Faults pass within seconds when a leader moves; what lasts longer is told.
_TELL_AFTER = 5.0
# A broker remembers the last five batches of a producer: any of so many can be sent again without being added twice.
_IN_FLIGHT = 5


class State(enum.Enum):
    RESUMING = "resuming"  # its position must be found in the target's log
    COPYING = "copying"
    REFUSED = "refused"


class Budget:
    """The bytes that a lease may hold, counted by fetched chunk: a chunk lives until its last batch is done.

    Shared out evenly, so that neither one source broker's answer nor one slow target broker's queue takes it all.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self.readers = 1
        self.held_for: dict[int, int] = {}  # target leader -> bytes

    @property
    def allowance(self) -> int:
        """What one reader may ask for now."""
        return min(self.limit - self.held, self.limit // self.readers)

    def crowded(self, leader: int) -> bool:
        return self.held_for.get(leader, 0) >= self.limit // max(1, len(self.held_for))

    def hold(self, size: int, leader: int) -> None:
        self.held += size
        self.held_for[leader] = self.held_for.get(leader, 0) + size


@dataclass(slots=True, eq=False)
class Chunk:
    """Fetched bytes of one partition, given back to the budget when no batch needs them any more."""

    budget: Budget
    size: int
    leader: int
    users: int = 0

    def take(self) -> None:
        if self.users == 0:
            self.budget.hold(self.size, self.leader)
        self.users += 1

    def release(self) -> None:
        self.users -= 1
        if self.users == 0:
            self.budget.hold(-self.size, self.leader)


@dataclass(slots=True, eq=False)
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
    epoch: int = -1  # leader epoch of the last record before fetch_at
    append_at: int = 0
    queue: deque[tuple[Batch, Chunk]] = field(default_factory=deque)
    queued_bytes: int = 0
    in_flight: deque[Sent] = field(default_factory=deque)
    proven: bool = False  # the target has taken a batch since the last start, so it knows our sequence
    refusal: Refusal | None = None
    trouble: Refusal | None = None  # what keeps it waiting, when that takes long
    faults: int = 0  # in a row, without progress
    suspicions: int = 0  # those of them that may be more than passing
    unwell_since: float = 0.0
    not_before: float = 0.0

    def start(self, position: Position) -> None:
        self.position = position
        self.fetch_at = position.source
        self.epoch = position.epoch
        self.append_at = position.target
        self.proven = False
        self.state = State.COPYING

    @property
    def readable(self) -> bool:
        return self.state is State.COPYING and self.refusal is None

    def push(self, batch: Batch, chunk: Chunk) -> None:
        chunk.take()
        self.queue.append((batch, chunk))
        self.queued_bytes += batch.size
        self.fetch_at = batch.next_offset
        self.epoch = batch.leader_epoch

    @property
    def may_send(self) -> int:
        """How many more batches may be under way.

        A broker that does not know our producer id takes any sequence as its first. If it refused the first batch, one
        right behind would land in its place; so the first goes alone.
        """
        return (_IN_FLIGHT if self.proven else 1) - len(self.in_flight)

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
        self.position = Position(sent.batch.next_offset, sent.target_offset + sent.batch.count, sent.batch.leader_epoch)
        self.proven = True
        self.is_well()

    def is_well(self) -> None:
        """It goes forward, or has nothing to do."""
        self.faults = self.suspicions = 0
        self.trouble = None

    def settle(self, sent: Sent) -> None:
        """The answer for this batch has come, or never will."""
        self.in_flight.remove(sent)
        sent.chunk.release()

    def begin_again(self, why: str, suspicious: bool) -> bool:
        """Drop what was fetched and find the position anew, after a growing pause.

        Answers whether that is still worth while: a suspicious cause, when it keeps coming back, is believed some time.
        """
        self.drop_queue()
        self.generation += 1
        self.state = State.RESUMING
        self.refusal = None  # it will be met again
        now = time.monotonic()
        if self.faults == 0:
            self.unwell_since = now
        self.faults += 1
        self.suspicions += suspicious
        self.not_before = now + min(_FIRST_PAUSE * 2 ** (self.faults - 1), _LONGEST_PAUSE)
        if now - self.unwell_since > _TELL_AFTER:
            at = self.position or Position(-1, -1)
            self.trouble = Refusal(self.key, "waiting", at.source, at.target, why, final=False)
        return self.suspicions < _PATIENCE

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
