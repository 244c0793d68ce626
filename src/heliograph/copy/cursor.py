"""The state of one partition inside a lease: what is fetched, what is on its way, what is safely copied.

A cursor is made of small parts, each with its own fields and methods: both logs, the send queue, the write-ahead queue,
the gap that is being filled, the retry state and the target's limits. Others call their methods and assign no fields.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from heliograph.copy.budget import Chunk
from heliograph.copy.classified import Classified, OutgoingBatch
from heliograph.copy.gap_fill import GapFill
from heliograph.copy.offset_layout import Gap, Step, lay_out, plan_of_layout
from heliograph.copy.partition_logs import MirrorLog, SourceLog
from heliograph.copy.retry_state import RetryState
from heliograph.copy.send_queue import SendQueue, Sent
from heliograph.copy.survey import Survey
from heliograph.copy.target_limits import TargetLimits
from heliograph.copy.work import Copied
from heliograph.copy.write_ahead import plan_of
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.problems import Refusal


class State(enum.Enum):
    RESUMING = "resuming"  # its position must be found in the target's log
    COPYING = "copying"
    REFUSED = "refused"
    DROPPED = "dropped"  # not assigned to this lease any more


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """From where and how a cursor copies, as `resume` found it."""

    position: Position
    foreign_offsets_before: int = 0
    preserves_offsets: bool = False
    intervals: Intervals = field(default_factory=Intervals)
    seen: int = 0  # the journal offset up to which they were read
    source_start: int = 0
    mirror_start: int = 0
    mirror_is_empty: bool = False
    filler_end: int = 0


class Cursor:
    __slots__ = (
        "copied",
        "gap_fill",
        "generation",
        "has_started",
        "key",
        "limits",
        "mirror",
        "position",
        "previous",
        "refusal",
        "retry",
        "sending",
        "source",
        "state",
    )

    def __init__(
        self,
        key: MirrorPartition,
        producer_id: int,
        gap_fill: GapFill | None = None,
        *,
        position: Position | None = None,
        stay: int = 0,
        previous: "Cursor | None" = None,
        ledger_loaded: bool = True,
        retry: RetryState | None = None,
    ) -> None:
        self.key = key
        self.state = State.RESUMING
        self.generation = 0  # grows with each restart, so that responses to an earlier one are recognized
        self.source = SourceLog()
        self.mirror = MirrorLog(ledger_loaded=ledger_loaded)
        self.sending = SendQueue(producer_id)
        self.gap_fill = gap_fill or GapFill()
        self.retry = retry or RetryState()
        self.limits = TargetLimits()
        self.position = position
        self.has_started = False  # until then the position comes from others, and may be out of date
        self.copied = Copied(stay=stay)
        self.refusal: Refusal | None = None
        self.previous = previous  # of the same partition in this lease: what it has in flight comes first

    # --- resuming ---------------------------------------------------------------------------------------------------

    def locate(self, survey: Survey) -> None:
        """Apply where both logs are now."""
        self.source.locate(survey.source_leader, survey.source_topic_id, survey.facts.source_end)
        self.mirror.locate(survey.mirror_leader, survey.facts.mirror_id)
        if self.position is not None and self.position.mirror_id != survey.facts.mirror_id:
            self.position = None  # of a mirror that was deleted

    def start(self, point: ResumePoint) -> None:
        """Copy from here on."""
        position, preserves = point.position, point.preserves_offsets
        self.position = replace(position, mirror_id=self.mirror.topic_id)
        self.has_started = True
        self.previous = None
        self.source.resume(point.source_start, position.source, position.epoch)
        self.mirror.resume(
            point.mirror_start, point.filler_end, point.mirror_is_empty, preserves, point.intervals, point.seen
        )
        self.sending.start(position.target, point.foreign_offsets_before)
        self.retry.started()
        self.state = State.COPYING
        if preserves and position.source > position.target:
            self.position = None  # until it is filled up to there
            self._queue([Gap(position.target, position.source - position.target, filler=True)])

    def forget_position(self) -> None:
        """The next restart finds the position in the logs alone."""
        self.position = None

    # --- copying ----------------------------------------------------------------------------------------------------

    @property
    def is_readable(self) -> bool:
        return self.state is State.COPYING and self.refusal is None

    def take(self, classified: Classified, chunk: Chunk) -> bool:
        """Queue what was fetched. Returns whether something must be in the ledger before it may be sent."""
        sending, mirror = self.sending, self.mirror
        waiting = len(sending.write_ahead)
        if classified.left_out:
            sending.write_ahead.add_left_out(sending.plan_at, classified.left_out)
        batches = self._take_preserving(classified, chunk) if mirror.preserves_offsets else classified.outgoing
        plan = plan_of(batches, sending.plan_at, self.source.id, sending.planned_foreign_offsets)
        sending.plan(plan, mirror.intervals)
        self._queue(batches, chunk)
        self.source.fetched(classified.next_source, classified.epoch)
        if not batches and not mirror.preserves_offsets and not sending.write_ahead:
            self._pass_over()
        return len(sending.write_ahead) > waiting

    def _take_preserving(self, classified: Classified, chunk: Chunk) -> list[OutgoingBatch]:
        """Queue records and gaps up to a gap that is too wide to be filled. Returns the batches after that."""
        settings, sending, mirror = self.gap_fill.settings, self.sending, self.mirror
        assert settings is not None
        steps = lay_out(classified, sending.plan_at, classified.aborted if self.gap_fill.copies_aborted else ())
        wide = _too_wide(steps, settings.most_gap)
        can_fill = mirror.is_empty and self.gap_fill.can_fill_start
        if wide == 0 and can_fill and steps[0].count <= settings.most_filler:
            begin = sending.plan_at + steps[0].count
            fill = Interval(begin, begin, 0, self.source.id, sending.planned_foreign_offsets, fill=True)
            sending.plan([fill], mirror.intervals)
            mirror.fill_until(begin)
            self._queue([Gap(sending.plan_at, steps.pop(0).count, filler=True)])
            wide = _too_wide(steps, settings.most_gap)
        preserved = steps[:wide]
        if preserved:
            plan = plan_of_layout(preserved, sending.plan_at, self.source.id, sending.planned_foreign_offsets)
            sending.plan(plan, mirror.intervals, self.gap_fill.name)
            self._queue(preserved, chunk)
        if wide is None:
            return []
        gap = steps[wide]
        assert isinstance(gap, Gap)
        mirror.stop_preserving()
        self.gap_fill.give_up(gap)
        return [step for step in steps[wide:] if isinstance(step, OutgoingBatch)]

    def _queue(self, steps: Sequence[Step], chunk: Chunk | None = None) -> None:
        self.sending.add(steps, chunk)
        self.mirror.queued(steps)

    def recorded(self, count: int) -> None:
        """The first `count` entries of the write-ahead queue are in the ledger."""
        self.sending.write_ahead.written(count)
        # Where all that was fetched has just been dropped, nothing is passed over.
        if self.state is State.COPYING and not self.sending.write_ahead and not self.mirror.preserves_offsets:
            self._pass_over()

    def _pass_over(self) -> None:
        """Nothing is left to copy before `fetch_at` but what is on its way: the last of that now covers it."""
        last, at, epoch = self.sending.last, self.source.fetch_at, self.source.fetch_epoch
        if last is not None:
            last.next_source, last.epoch = at, epoch
        elif self.position is not None:
            self.position = replace(self.position, source=at, epoch=epoch)

    @property
    def gap(self) -> Gap | None:
        """The gap to fill now."""
        return self.sending.next_gap if self.state is State.COPYING else None

    def filled(self) -> None:
        """The gap is in the mirror, which ends where the gap ends."""
        gap = self.sending.pop_gap()
        self.gap_fill.reset()
        self.position = Position(gap.next_source, self.sending.append_at, gap.epoch, self.mirror.topic_id)
        self.retry.succeeded()

    def landed(self, sent: Sent) -> None:
        """The mirror holds this batch at its offset."""
        outgoing = sent.outgoing
        end = sent.target_offset + outgoing.batch.count
        self.position = Position(outgoing.next_source, end, outgoing.epoch, self.mirror.topic_id)
        self.sending.confirm_sequence()
        self.retry.succeeded()

    # --- leaving off ------------------------------------------------------------------------------------------------

    def restart(self, why: str, is_suspicious: bool) -> bool:
        """Drop what was fetched and find the position again, after a backoff.

        Returns whether to try again: a suspicious fault that keeps coming back is permanent.
        """
        self._abandon(State.RESUMING)
        self.refusal = None  # it will be met again
        return self.retry.failed(why, is_suspicious, self.key, self.position)

    def refuse(self, reason: str, text: str, source_offset: int, target_offset: int) -> None:
        """Read no further. Batches before the refused one are still copied."""
        if self.refusal is None:
            self.refusal = Refusal(self.key, reason, source_offset, target_offset, text)

    def give_up(self, reason: str, text: str, source_offset: int, target_offset: int) -> None:
        """Copy nothing more, not even what is fetched."""
        self.refuse(reason, text, source_offset, target_offset)
        self._abandon(State.REFUSED)

    def drop(self) -> None:
        """The partition has left the lease. What is in flight may still land, which does no harm."""
        self._abandon(State.DROPPED)

    def _abandon(self, state: State) -> None:
        self._clear_queue()
        self.generation += 1
        self.state = state

    def finish(self) -> None:
        """Send nothing new. The part of a gap that is being filled is the last."""
        self._clear_queue()
        if self.gap_fill.in_flight:
            self.generation += 1

    def _clear_queue(self) -> None:
        self.sending.clear()
        self.gap_fill.reset()

    @property
    def is_settled(self) -> bool:
        """Nothing of this partition is in flight any more, so its mirror does not change while we look at it."""
        is_quiet = not self.sending.in_flight and not self.gap_fill.in_flight
        return is_quiet and (self.previous is None or self.previous.is_settled)


def _too_wide(steps: list[Step], most: int) -> int | None:
    """The first gap that takes more transactions than it may."""
    for at, step in enumerate(steps):
        if isinstance(step, Gap) and not step.aborted and step.count > most:
            return at
    return None
