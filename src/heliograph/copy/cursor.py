"""The state of one partition inside a lease: what is fetched, what is under way, what is safely copied."""

import enum
import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from heliograph.copy.classify import Classified, LeftOut, OutgoingBatch
from heliograph.copy.keeping import Gap, Step, lay_out, planned
from heliograph.copy.work import Copied
from heliograph.model.flow import KeptOffsets
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.problems import Refusal
from heliograph.wire.cluster import NO_ID, id_text

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
# A fault that would look the same if it were only passing is believed after so many tries in a row.
_PATIENCE = 7
# Faults pass within seconds when a leader moves; what lasts longer is told.
_TELL_AFTER = 5.0
# A broker remembers the last five batches of a producer: any of so many can be sent again without being added twice.
_IN_FLIGHT = 5
# For so long after a batch a broker is taken to know its producer. It costs a round trip after each such pause.
_REMEMBERED = 1.0


class State(enum.Enum):
    RESUMING = "resuming"  # its position must be found in the target's log
    COPYING = "copying"
    REFUSED = "refused"
    DROPPED = "dropped"  # somebody else's business now


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

    def crowds(self, before: set[int]) -> set[int]:
        """Target leaders for which so much is held that others would go short; they are until half of it is gone."""
        share = self.limit // max(1, len(self.held_for))
        return {leader for leader, held in self.held_for.items() if held >= (share / 2 if leader in before else share)}

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
    """One parcel that was handed to the target, and where it must land."""

    parcel: OutgoingBatch
    chunk: Chunk
    target_offset: int
    generation: int


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """What must be written down before parcels from mirror offset `target` on may be sent."""

    target: int
    intervals: tuple[Interval, ...]
    left_out: tuple[LeftOut, ...] = ()
    filler: str = ""  # who fills the gaps between them


@dataclass(slots=True, eq=False)
class Cursor:
    key: MirrorPartition
    producer_id: int
    state: State = State.RESUMING
    generation: int = 0  # grows with each fresh start, so that answers to an earlier one are not taken for ours
    source_leader: int = -1
    target_leader: int = -1
    source_id: uuid.UUID = NO_ID
    mirror_id: str = ""
    intervals: Intervals = field(default_factory=Intervals)  # as far as they are written down
    foreign_offsets_before: int = 0  # see Interval; where the next parcel to be sent will be appended
    keeps: bool = False  # the mirror has the source's offsets
    kept_offsets: KeptOffsets | None = None  # if it shall have
    filler: str = ""  # under which name gaps are filled
    fillable: bool = True  # whether its beginning may be filled up: that what is written for it can be cut off
    copies_aborted: bool = True  # or the target does not take them, and they are a gap like any other
    bare: bool = False  # nothing stands in the mirror that is to stay
    too_wide: Gap | None = None  # for which the source's offsets were given up
    source_start: int = 0
    mirror_start: int = 0
    cut_before: int = 0  # filler of the mirror ends here
    source_end: int = -1
    high_watermark: int = -1  # of the source: beyond its end while transactions are open
    position: Position | None = None
    has_started: bool = False  # else the position is what others have told, and may be out of date
    copied: Copied = field(default_factory=Copied)
    fetch_at: int = 0
    epoch: int = -1  # leader epoch of the last record before fetch_at
    append_at: int = 0
    plan_at: int = 0  # where the next parcel to be queued will be appended
    plan_shift: int = 0  # and the shift there
    queue: deque[tuple[Step, Chunk | None]] = field(default_factory=deque)
    queued_bytes: int = 0
    in_flight: deque[Sent] = field(default_factory=deque)
    unrecorded: deque[Unrecorded] = field(default_factory=deque)
    filling: int = 0  # transactions under way for the gap that comes next
    asked: int = 0  # offsets of that gap for which there is one
    marked: int = 0  # and for which it has ended
    proven_at: float | None = None  # when the target has last taken a batch since the start: it knew our sequence then
    largest: int = 0  # the mirror's limit for batches, once it has been met
    too_large: int = 0  # size of a batch that the mirror did not take
    unwanted: dict[int, str] = field(default_factory=dict)  # source offsets that the target refuses, and why
    alone_before: int = 0  # source offset up to which records are sent one by one, to find those that are refused
    earlier: "Cursor | None" = None  # of the same partition in this lease: what it has under way comes first
    familiar: bool = True  # whether the ledger was asked for all that is known about it
    cut_at: int | None = None  # the source says that its log is another one from here on
    unsure: bool = False  # whether the source still has what was copied last must be looked at, come what may
    refusal: Refusal | None = None
    trouble: Refusal | None = None  # what keeps it waiting, when that takes long
    faults: int = 0  # in a row, without progress
    suspicions: int = 0  # those of them that may be more than passing
    unwell_since: float = 0.0
    not_before: float = 0.0

    def start(self, position: Position, shift: int, keeps: bool = False) -> None:
        self.position = replace(position, mirror_id=self.mirror_id)
        self.has_started = True
        self.earlier = None
        self.foreign_offsets_before = self.plan_shift = shift
        self.fetch_at = position.source
        self.epoch = position.epoch
        self.append_at = self.plan_at = position.target
        self.proven_at = None
        self.cut_at = None
        self.unsure = False
        self.keeps = keeps
        self.state = State.COPYING
        if keeps and position.source > position.target:
            self.position = None  # until it is filled up to there
            self._queue([Gap(position.target, position.source - position.target, filler=True)])

    @property
    def readable(self) -> bool:
        return self.state is State.COPYING and self.refusal is None

    @property
    def source_id_hex(self) -> str:
        return id_text(self.source_id)

    def take(self, intake: Classified, chunk: Chunk) -> bool:
        """Queue what was fetched; whether something must be written down before it may be sent."""
        waiting = len(self.unrecorded)
        if intake.left_out:
            self.unrecorded.append(Unrecorded(self.plan_at, (), tuple(intake.left_out)))
        parcels = self._take_kept(intake, chunk) if self.keeps else intake.parcels
        self._note(self._plan(parcels))
        self._queue(parcels, chunk)
        self.fetch_at = intake.next_source
        self.epoch = intake.epoch
        if not parcels and not self.keeps and not self.unrecorded:
            self.pass_over()
        return len(self.unrecorded) > waiting

    def _take_kept(self, intake: Classified, chunk: Chunk) -> list[OutgoingBatch]:
        """Queue records and gaps up to a gap that is too wide to be filled; what comes behind that is returned."""
        assert self.kept_offsets is not None
        steps = lay_out(intake, self.plan_at, intake.aborted if self.copies_aborted else ())
        wide = _too_wide(steps, self.kept_offsets.most_gap)
        if wide == 0 and self.bare and self.fillable and steps[0].count <= self.kept_offsets.most_filler:
            begin = self.plan_at + steps[0].count
            self._note([Interval(begin, begin, 0, self.source_id_hex, self.plan_shift, fill=True)])
            self.cut_before = begin
            self._queue([Gap(self.plan_at, steps.pop(0).count, filler=True)])
            wide = _too_wide(steps, self.kept_offsets.most_gap)
        kept = steps[:wide]
        if kept:
            self._note(planned(kept, self.plan_at, self.source_id_hex, self.plan_shift), self.filler)
            self._queue(kept, chunk)
        if wide is None:
            return []
        gap = steps[wide]
        assert isinstance(gap, Gap)
        self.keeps, self.too_wide = False, gap
        return [step for step in steps[wide:] if isinstance(step, OutgoingBatch)]

    def _note(self, plan: list[Interval], filler: str = "") -> None:
        """Have it written down if it is not: what waits for that may change what the intervals say about it."""
        gaps = len(plan) > 1
        theirs = bool(filler) and gaps and self.intervals.filler != filler
        if plan and (self.unrecorded or theirs or not self.intervals.agree(plan)):
            self.unrecorded.append(Unrecorded(self.plan_at, tuple(plan), filler=filler if gaps else ""))

    def _queue(self, steps: Sequence[Step], chunk: Chunk | None = None) -> None:
        for step in steps:
            held = chunk if isinstance(step, OutgoingBatch) or step.aborted else None
            if held is not None:
                if isinstance(step, OutgoingBatch) and step.fresh:
                    held = Chunk(held.budget, step.size, held.leader)
                held.take()
            self.queue.append((step, held))
            self.queued_bytes += step.size
            self.plan_at += step.count
            if isinstance(step, Gap) and not step.filler:
                self.plan_shift += step.count
            self.bare = self.bare and isinstance(step, Gap) and step.filler

    def _plan(self, parcels: list[OutgoingBatch]) -> list[Interval]:
        """Where the records of these parcels will be, one behind the other."""
        plan: list[list[int]] = []
        at = self.plan_at
        for parcel in parcels:
            for source, count in parcel.runs:
                if plan and plan[-1][1] + plan[-1][2] == source:
                    plan[-1][2] += count
                else:
                    plan.append([at, source, count])
                at += count
        return [Interval(target, source, count, self.source_id_hex, self.plan_shift) for target, source, count in plan]

    def recorded(self, count: int) -> None:
        """So much of what waited to be written down is."""
        for _ in range(count):
            self.unrecorded.popleft()
        # Where all that was fetched has just been dropped, nothing is passed over.
        if self.state is State.COPYING and not self.unrecorded and not self.keeps:
            self.pass_over()

    def pass_over(self) -> None:
        """Nothing is left to copy before fetch_at but what is on its way: the last of that now stands for all."""
        last = self.queue[-1][0] if self.queue else self.in_flight[-1].parcel if self.in_flight else None
        if last is not None:
            last.next_source, last.epoch = self.fetch_at, self.epoch
        elif self.position is not None:
            self.position = replace(self.position, source=self.fetch_at, epoch=self.epoch)

    @property
    def may_send(self) -> int:
        """How many more batches may be under way.

        A broker that does not know our producer id takes any sequence as its first. If it refused the first batch, one
        right behind would land in its place; so the first goes alone. It may forget us, too: it looks every some
        minutes, and goes by the records' own times. So the first after a pause goes alone as well.
        """
        if self._must_be_recorded or isinstance(self.queue[0][0], Gap):
            return 0
        proven = self.proven_at is not None and time.monotonic() - self.proven_at < _REMEMBERED
        return (_IN_FLIGHT if proven else 1) - len(self.in_flight)

    @property
    def _must_be_recorded(self) -> bool:
        return bool(self.unrecorded) and self.append_at >= self.unrecorded[0].target

    @property
    def gap(self) -> Gap | None:
        """The gap that is to be filled now: what comes before it has landed, and it is written down."""
        if self.state is not State.COPYING or not self.queue or self.in_flight or self._must_be_recorded:
            return None
        step = self.queue[0][0]
        return step if isinstance(step, Gap) else None

    def filled(self) -> None:
        """The gap is there, and the mirror ends where it ends."""
        gap, chunk = self.queue.popleft()
        assert isinstance(gap, Gap)
        if chunk is not None:
            chunk.release()
        self.queued_bytes -= gap.size
        self.append_at += gap.count if not gap.filler else 0
        self.foreign_offsets_before += gap.count if not gap.filler else 0
        self.asked = self.marked = 0
        self.position = Position(gap.next_source, self.append_at, gap.epoch, self.mirror_id)
        self.is_well()

    def pop(self) -> Sent:
        """Take the next parcel to send; its place in the mirror is fixed by that."""
        parcel, chunk = self.queue.popleft()
        assert isinstance(parcel, OutgoingBatch)
        assert chunk is not None
        self.queued_bytes -= parcel.size
        sent = Sent(parcel, chunk, self.append_at, self.generation)
        self.append_at += parcel.batch.count
        self.in_flight.append(sent)
        return sent

    def landed(self, sent: Sent) -> None:
        """The target holds this batch where it belongs."""
        parcel = sent.parcel
        end = sent.target_offset + parcel.batch.count
        self.position = Position(parcel.next_source, end, parcel.epoch, self.mirror_id)
        self.proven_at = time.monotonic()
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

    def drop(self) -> None:
        """Leave it. What is under way may still land, and does no harm."""
        self.drop_queue()
        self.generation += 1
        self.state = State.DROPPED

    @property
    def is_settled(self) -> bool:
        """Nothing of this partition is under way any more, so that its mirror does not change under our eyes."""
        mine = not self.in_flight and not self.filling
        return mine and (self.earlier is None or self.earlier.is_settled)

    def drop_queue(self) -> None:
        for _step, chunk in self.queue:
            if chunk is not None:
                chunk.release()
        self.queue.clear()
        self.asked = self.marked = 0
        self.queued_bytes = 0
        self.unrecorded.clear()


def _too_wide(steps: list[Step], most: int) -> int | None:
    """The first gap that takes more transactions than it may."""
    for at, step in enumerate(steps):
        if isinstance(step, Gap) and not step.aborted and step.count > most:
            return at
    return None
