"""The rule for positions that an operator sets: what to write to the ledger so that copying continues there. Pure."""

from dataclasses import dataclass, replace

from heliograph.copy.position import Blocked, PartitionFacts, Resume, next_position
from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import Interval, Intervals

# Whoever sets a position decides what the policies are for.
_DECIDED = Policies(CONTINUE, CONTINUE, CONTINUE, CONTINUE)


class NotAlterable(Exception):
    """Why copying cannot continue at a source offset."""


@dataclass(frozen=True, slots=True)
class AlteredPosition:
    """Copying continues at source offset `source` instead of `before`, from the mirror's end on. `decision` is the
    interval to write to the ledger; None if copying continues there anyway."""

    before: int
    source: int
    decision: Interval | None


def altered_position(
    intervals: Intervals, facts: PartitionFacts, policies: Policies, source: int | None
) -> AlteredPosition:
    """`source` is the next source offset to copy; None: the one that a new mirror would begin with. One that the source
    has deleted means its first. Raises NotAlterable."""
    at = next_position(intervals, replace(facts, is_sure=True), _DECIDED)
    if isinstance(at, Blocked):
        raise NotAlterable(at.text)
    if source is None:
        source = facts.source_end if facts.from_the_end else facts.source_start
    if source > facts.source_end:
        raise NotAlterable(f"the source ends at offset {facts.source_end}, and {source} would be copied next")
    source = max(source, facts.source_start)
    before = at.position.source
    now = next_position(intervals, facts, policies)
    if isinstance(now, Resume) and now.position.source == source and not now.is_diverged:
        return AlteredPosition(before, source, None)
    if at.preserves_offsets:
        raise NotAlterable(
            f"the mirror has the source's offsets (heliograph.offsets = preserve), and with source offset {source} at "
            f"mirror offset {facts.mirror_end} it would have others; delete the mirror to copy it again"
        )
    decision = Interval(facts.mirror_end, source, 0, facts.source_id, at.foreign_offsets_before)
    return AlteredPosition(before, source, decision)
