"""A cursor with the position that was found for it, while that is being verified."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from heliograph.copy.cursor import Cursor, ResumePoint
from heliograph.copy.position import Event, PartitionFacts, Resume
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.partitions import Position, TopicPartition
from heliograph.wire.batches import Batch, sequence


@dataclass(slots=True, eq=False)
class Candidate:
    cursor: Cursor
    facts: PartitionFacts
    decision: Resume
    intervals: Intervals  # of the mirror, as far as they are in the ledger
    seen: int  # the journal offset up to which they were read
    epoch: int = -1  # leader epoch of the source's last copied record
    corrections: list[Interval] = field(default_factory=list)  # to be recorded before copying
    verify_again: bool = False  # the corrections are recorded first, and then all is looked at again

    @property
    def source_partition(self) -> TopicPartition:
        return self.cursor.key.topic, self.cursor.key.partition

    @property
    def mirror_partition(self) -> TopicPartition:
        return self.cursor.key.mirror, self.cursor.key.partition

    @property
    def producer_id(self) -> int:
        return self.cursor.sending.producer_id

    @property
    def truncated_at(self) -> int | None:
        """Where the broker says that the source's log is another one."""
        return self.cursor.source.truncated_at

    def source_of(self, mirror_offset: int) -> int | None:
        """The source offset of a copied record; None where the source cannot have it any more."""
        interval = self.intervals.covering(mirror_offset)
        if interval is None or interval.source_id != self.facts.source_id:
            return None
        source = interval.source_of(mirror_offset)
        return source if source >= self.facts.source_start else None

    def has_expected_sequence(self, batch: Batch, foreign_offsets_before: int) -> bool:
        """Whether a batch of the mirror has the producer id and the sequence number that ours would have there."""
        expected = sequence(batch.base_offset - foreign_offsets_before)
        return batch.producer_id == self.producer_id and batch.base_sequence == expected

    @property
    def own_end(self) -> int:
        """The mirror offset after our last record; only gaps come after it, if the mirror has the source's offsets."""
        return self.intervals.own_end(self.facts.mirror_end)

    @property
    def last_source(self) -> int | None:
        return self.source_of(self.own_end - 1)

    @property
    def is_empty(self) -> bool:
        """The mirror holds nothing to compare: it is new, or retention has deleted everything."""
        first = self.intervals.first()
        return self.own_end <= max(self.facts.mirror_start, first.target if first is not None else 0)

    @property
    def needs_verification(self) -> bool:
        if self.decision.is_diverged or self.truncated_at is not None:
            return True
        # Without topic ids and leader epochs only the records show whether it is still the same log.
        is_known = self.decision.position == self.cursor.position and bool(self.facts.source_id)
        must_verify = self.cursor.retry.must_verify
        return not self.is_empty and (must_verify or (not is_known and not self.decision.is_decided))

    def continue_at(
        self, source: int, foreign_offsets_before: int, events: Iterable[Event], verify_again: bool = False
    ) -> None:
        """Replace the decision: a new interval begins at the mirror's end, with this source offset."""
        end = self.facts.mirror_end
        new = Interval(end, source, 0, self.facts.source_id, foreign_offsets_before)
        self.decision = Resume(Position(source, end), new, foreign_offsets_before, events=tuple(events))
        self.verify_again = verify_again

    def verified(self, epoch: int) -> None:
        """The last copied record is what the source has, with this leader epoch."""
        self.epoch = epoch

    def reload(self, intervals: Intervals) -> None:
        """More pages were read: verify from the beginning."""
        self.intervals = intervals
        self.corrections.clear()

    @property
    def resume_point(self) -> ResumePoint:
        decision, facts = self.decision, self.facts
        new = decision.new
        is_filling = new is not None and new.fill
        return ResumePoint(
            replace(decision.position, epoch=self.epoch),
            decision.foreign_offsets_before,
            decision.preserves_offsets,
            self.intervals,
            self.seen,
            facts.source_start,
            facts.mirror_start,
            facts.mirror_start == facts.mirror_end or is_filling,
            max(self.intervals.filled_before, new.target if new is not None and new.fill else 0),
        )
