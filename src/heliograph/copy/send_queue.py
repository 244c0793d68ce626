"""What is on its way to one mirror partition: queued batches and gaps, what they wait for, and batches in flight."""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from heliograph.copy.budget import Chunk
from heliograph.copy.classified import OutgoingBatch
from heliograph.copy.offset_layout import Gap, Step
from heliograph.copy.write_ahead import WriteAheadQueue
from heliograph.model.intervals import Interval, Intervals
from heliograph.wire.batches import Batch, mirror_header, sequence

# A broker remembers the last five batches of a producer: any of them can be sent again without being added twice.
_MAX_IN_FLIGHT = 5
# For this long after a batch a broker is expected to know its producer. Each longer pause costs one round trip.
_CONFIRMED_FOR = 1.0


@dataclass(slots=True, eq=False)
class Sent:
    """A batch that was sent to the target, and the mirror offset where it must land."""

    outgoing: OutgoingBatch
    chunk: Chunk
    target_offset: int
    generation: int


class SendQueue:
    """Batches and gaps in the order of their mirror offsets, without anything between them."""

    __slots__ = (
        "append_at",
        "foreign_offsets_before",
        "in_flight",
        "plan_at",
        "planned_foreign_offsets",
        "producer_id",
        "queued_bytes",
        "sequence_confirmed_at",
        "steps",
        "write_ahead",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.steps: deque[tuple[Step, Chunk | None]] = deque()
        self.write_ahead = WriteAheadQueue()
        self.queued_bytes = 0
        self.in_flight: deque[Sent] = deque()
        self.append_at = 0  # the mirror offset of the next step to be sent
        self.foreign_offsets_before = 0  # see Interval; at `append_at`
        self.plan_at = 0  # the mirror offset of the next step to be queued
        self.planned_foreign_offsets = 0  # likewise, at `plan_at`
        self.sequence_confirmed_at: float | None = None  # when the target last took a batch since the start

    def start(self, mirror_offset: int, foreign_offsets_before: int) -> None:
        self.append_at = self.plan_at = mirror_offset
        self.foreign_offsets_before = self.planned_foreign_offsets = foreign_offsets_before
        self.sequence_confirmed_at = None

    @property
    def is_idle(self) -> bool:
        """Nothing is queued or in flight."""
        return not self.steps and not self.in_flight

    @property
    def offsets_on_their_way(self) -> int:
        """Of the mirror: queued or in flight."""
        queued = self.plan_at - self.append_at if self.steps else 0
        return queued + sum(sent.outgoing.batch.count for sent in self.in_flight)

    @property
    def last(self) -> Step | None:
        """The last step on its way."""
        return self.steps[-1][0] if self.steps else self.in_flight[-1].outgoing if self.in_flight else None

    @property
    def next_gap(self) -> Gap | None:
        """The gap to fill now: all before it has landed, and the ledger has it."""
        if not self.steps or self.in_flight or self._is_blocked:
            return None
        step = self.steps[0][0]
        return step if isinstance(step, Gap) else None

    @property
    def next_size(self) -> int:
        return self.steps[0][0].size

    @property
    def _is_blocked(self) -> bool:
        return self.write_ahead.blocks(self.append_at)

    def plan(self, plan: Sequence[Interval], recorded: Intervals, filler: str = "") -> None:
        """What is queued next will have these intervals."""
        self.write_ahead.add_plan(self.plan_at, plan, recorded, filler)

    def add(self, steps: Sequence[Step], chunk: Chunk | None = None) -> None:
        for step in steps:
            held = chunk if isinstance(step, OutgoingBatch) or step.aborted else None
            if held is not None:
                if isinstance(step, OutgoingBatch) and step.has_own_bytes:
                    held = Chunk(held.budget, step.size, held.leader)
                held.acquire()
            self.steps.append((step, held))
            self.queued_bytes += step.size
            self.plan_at += step.count
            if isinstance(step, Gap) and not step.filler:
                self.planned_foreign_offsets += step.count

    @property
    def free_slots(self) -> int:
        """How many more batches may be in flight.

        A broker that does not know our producer id takes any sequence as its first. If it refused the first batch, the
        one right after it would land in its place; so the first goes alone. It may forget us, too: it checks every few
        minutes, and goes by the records' own times. So the first after a pause goes alone as well.
        """
        if self._is_blocked or isinstance(self.steps[0][0], Gap):
            return 0
        confirmed_at = self.sequence_confirmed_at
        is_confirmed = confirmed_at is not None and time.monotonic() - confirmed_at < _CONFIRMED_FOR
        return (_MAX_IN_FLIGHT if is_confirmed else 1) - len(self.in_flight)

    def pop(self, generation: int) -> Sent:
        """Take the next batch to send; this fixes its mirror offset."""
        outgoing, chunk = self.steps.popleft()
        assert isinstance(outgoing, OutgoingBatch)
        assert chunk is not None
        self.queued_bytes -= outgoing.size
        sent = Sent(outgoing, chunk, self.append_at, generation)
        self.append_at += outgoing.batch.count
        self.in_flight.append(sent)
        return sent

    def header(self, batch: Batch, mirror_offset: int) -> bytes:
        """The batch header with our producer id, and the sequence number that belongs to this mirror offset."""
        return mirror_header(batch, self.producer_id, sequence(mirror_offset - self.foreign_offsets_before))

    def settle(self, sent: Sent) -> None:
        """The response for this batch has arrived, or never will."""
        self.in_flight.remove(sent)
        sent.chunk.release()

    def confirm_sequence(self) -> None:
        """The target has taken a batch, so it knows our producer id."""
        self.sequence_confirmed_at = time.monotonic()

    def filler_appended(self, count: int) -> None:
        """`count` offsets of the filler gap that comes next are appended."""
        self.append_at += count

    def pop_gap(self) -> Gap:
        """The gap that comes next is filled."""
        gap, chunk = self.steps.popleft()
        assert isinstance(gap, Gap)
        if chunk is not None:
            chunk.release()
        self.queued_bytes -= gap.size
        if not gap.filler:
            self.append_at += gap.count
            self.foreign_offsets_before += gap.count
        return gap

    def clear(self) -> None:
        """Drop what is queued. What is in flight stays."""
        for _step, chunk in self.steps:
            if chunk is not None:
                chunk.release()
        self.steps.clear()
        self.queued_bytes = 0
        self.write_ahead.clear()
