"""The one rule of recovery: from the mirror's end to the source offset that comes next. Pure."""

from dataclasses import dataclass

from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.partitions import Position

Event = tuple[str, int, str]
UNKNOWN_ORIGIN = "unknown-origin"
NOT_KEPT = "offsets-not-kept"


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """What was just read from both clusters about one partition.

    `earlier_mirror`: records were copied to a mirror of this name that is gone. `sure`: what looks like a source that
    has lost its end has looked so several times, so it is not a leader that lags behind. `most_filler`: up to how many
    offsets may be filled so that the mirror has the source's offsets; None where it need not.
    """

    source_start: int
    source_end: int
    mirror_start: int
    mirror_end: int
    source_id: str
    mirror_id: str
    earlier_mirror: bool = False
    sure: bool = False
    seen: Position | None = None  # where this run last knew itself to be
    from_the_end: bool = False  # where a mirror that never was begins
    most_filler: int | None = None


@dataclass(frozen=True, slots=True)
class Resume:
    """Resume from here. `new` is the interval to write ahead, where one begins; for `foreign_offsets_before` see there.

    `diverged`: the source does not have any more what was copied last, so the place to go on from must be looked for.
    `decided`: how to go on from the mirror's end was decided, written down and told before. `keeps`: the mirror has the
    source's offsets; where it ends before the position, that is to be filled first. `events`: what was passed over,
    each with a word, a number of records and a sentence.
    """

    position: Position
    new: Interval | None = None
    foreign_offsets_before: int = 0
    diverged: bool = False
    decided: bool = False
    keeps: bool = False
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Blocked:
    """This partition cannot go on. `final` is false where a leader that lags behind could look the same."""

    reason: str
    text: str
    source_offset: int
    final: bool = True
    suspicious: bool = True  # whether it may not look so for long


def next_position(intervals: Intervals, facts: PartitionFacts, policies: Policies) -> Resume | Blocked:
    # That of the last record, which is there: what was planned behind it may never have come, and look otherwise now.
    interval = intervals.covering(max(facts.mirror_end - 1, 0))
    ahead = intervals.after(facts.mirror_end)
    if ahead is not None and ahead.fill and ahead.source_id == facts.source_id:  # not filled up to there yet
        return _begin(facts, max(ahead.source, facts.source_start), ahead.foreign_offsets_before, keep=True, fill=True)
    taken_over = interval is None and facts.mirror_end > 0
    if interval is None:  # perhaps others have filled the mirror up to here, and it was decided how to go on
        interval = intervals.beginning(facts.mirror_end)
    if interval is None:
        if facts.mirror_end > 0:
            how = "delete the mirror to copy it afresh, or use another mirror name"
            if facts.earlier_mirror:
                how = "it was deleted and made again, perhaps while a batch was on its way; delete it once more"
            text = f"the mirror holds {facts.mirror_end} records that Heliograph has no account of having copied; {how}"
            return Blocked(UNKNOWN_ORIGIN, text, facts.source_start)
        gone = ("mirror-recreated", 0, "the mirror was deleted; it is copied again from the source's start")
        if facts.earlier_mirror:
            return _begin(facts, facts.source_start, 0, gone, keep=True)
        return _begin(facts, facts.source_end if facts.from_the_end else facts.source_start, 0, keep=True)
    source, shift = interval.source_of(facts.mirror_end), intervals.foreign_offsets_at(facts.mirror_end)
    beginning = intervals.beginning(facts.mirror_end)
    decided = False
    if beginning is not None and beginning.source_id == facts.source_id:
        decided = taken_over or not (beginning.kept and interval.kept)  # or it only says that a gap ends here
        interval, source, shift = beginning, beginning.source, beginning.foreign_offsets_before
    kept = source == facts.mirror_end
    keeps = kept and facts.most_filler is not None
    if (
        # What this run has seen to be empty of records behind the last copied one need not be looked at again.
        facts.seen is not None
        and not keeps
        and facts.seen.target == facts.mirror_end
        and source < facts.seen.source <= facts.source_end
    ):
        source = facts.seen.source
    if interval.source_id != facts.source_id and facts.mirror_end == interval.target == 0:
        return _begin(facts, facts.source_start, 0, keep=True)  # nothing had been copied from the earlier one
    if interval.source_id != facts.source_id:
        text = "the source topic was deleted and created again; what the mirror holds came from the earlier one"
        if policies.recreated_topic != CONTINUE:
            return Blocked("recreated-topic", text, source)
        event = ("recreated-topic", 0, f"{text}; goes on with the new")
        return _begin(facts, facts.source_start, shift, event)
    if source < facts.source_start:
        lost = lost_records(source, facts)
        if policies.data_loss != CONTINUE:
            return Blocked("data-loss", lost[2], source)
        return _begin(facts, facts.source_start, shift, lost, keep=kept)
    if source > facts.source_end and taken_over:  # from a tool that reads what is not committed yet
        text = (
            f"readers of the source come to offset {facts.source_end} only, and everything up to {source - 1} is here"
        )
        return Blocked("open-transaction", text, source, final=False, suspicious=False)
    if source > facts.source_end and not facts.sure:
        return Blocked(
            "source-truncated",
            f"the source ends at {facts.source_end}, but the mirror already holds everything up to {source - 1}",
            source,
            final=False,
        )
    at = Position(source, facts.mirror_end)
    events: tuple[Event, ...] = ()
    if not kept and facts.most_filler is not None and facts.seen is None:  # said once in a run
        events = (not_kept("the mirror was begun or gone on with at other offsets than the source's"),)
    return Resume(at, None, shift, source > facts.source_end, decided, keeps, events)


def lost_records(source: int, facts: PartitionFacts) -> Event:
    """That the source has deleted what comes next."""
    lost = facts.source_start - source
    text = f"the source begins at {facts.source_start}: {lost} records from {source} on were deleted before they were "
    return "data-loss", lost, f"{text}copied"


def not_kept(what: str) -> Event:
    """That the mirror cannot have the source's offsets from here on."""
    return NOT_KEPT, 0, f"{what}; from here on the mirror's offsets are translated instead of kept"


def _begin(
    facts: PartitionFacts, source: int, shift: int, *events: Event, keep: bool = False, fill: bool = False
) -> Resume:
    """With `keep`, nothing speaks against going on with the source's offsets if that is wanted; with `fill`, the mirror
    was being filled up for that."""
    end, missing, most = facts.mirror_end, source - facts.mirror_end, facts.most_filler
    at = Position(source, end)
    if keep and most is not None:
        if 0 <= missing <= most:
            new = Interval(source, source, 0, facts.source_id, shift, fill or missing > 0)
            return Resume(at, new, shift, keeps=True, events=events)
        limit = f"{most} may be filled up" if most else "nothing may be cut off it, so it cannot be filled up"
        many = f"the mirror ends {missing} offsets before the source's {source}, and {limit}"
        few = f"the source begins at offset {source}, and the mirror ends at {end} already"
        events = (*events, not_kept(many if missing > 0 else few))
    return Resume(at, Interval(end, source, 0, facts.source_id, shift, fill), shift, events=events)
