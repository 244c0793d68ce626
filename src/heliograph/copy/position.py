"""The one rule of recovery: from the mirror's end to the source offset that comes next. Pure."""

from dataclasses import dataclass

from heliograph.copy.work import Position
from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import Interval, Intervals


@dataclass(frozen=True, slots=True)
class Facts:
    """What was just read from both clusters about one partition.

    `earlier_mirror`: records were copied to a mirror of this name that is gone. `sure`: what looks like a source that
    has lost its end has looked so several times, so it is not a leader that lags behind.
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


@dataclass(frozen=True, slots=True)
class Go:
    """Copy on from here. `new` is the interval to write down first, where one begins; `shift` is explained there.

    `diverged`: the source does not have any more what was copied last, so the place to go on from must be looked for.
    `event`: a word, a number of records and a sentence about what was passed over.
    """

    position: Position
    new: Interval | None = None
    shift: int = 0
    diverged: bool = False
    event: tuple[str, int, str] | None = None


@dataclass(frozen=True, slots=True)
class NoGo:
    """This partition cannot go on. `final` is false where a leader that lags behind could look the same."""

    reason: str
    text: str
    source_offset: int
    final: bool = True


def next_position(intervals: Intervals, facts: Facts, policies: Policies) -> Go | NoGo:
    # That of the last record, which is there: what was planned behind it may never have come, and look otherwise now.
    interval = intervals.covering(max(facts.mirror_end - 1, 0))
    if interval is None:
        if facts.mirror_end > 0:
            return NoGo(
                "unknown-origin",
                f"the mirror holds records up to {facts.mirror_end - 1} that Heliograph has no account of having "
                "copied; use another mirror name, or delete the mirror to copy it afresh",
                facts.source_start,
            )
        gone = ("mirror-recreated", 0, "the mirror was deleted; it is copied again from the source's start")
        return _begin(facts, facts.source_start, 0, gone if facts.earlier_mirror else None)
    source, shift = interval.source_of(facts.mirror_end), interval.shift
    decided = intervals.beginning(facts.mirror_end)
    if decided is not None and decided.source_id == facts.source_id:
        interval, source, shift = decided, decided.source, decided.shift
    elif (
        # What this run has seen to be empty of records behind the last copied one need not be looked at again.
        facts.seen is not None
        and facts.seen.target == facts.mirror_end
        and source < facts.seen.source <= facts.source_end
    ):
        source = facts.seen.source
    if interval.source_id != facts.source_id and facts.mirror_end == interval.target == 0:
        return _begin(facts, facts.source_start, 0)  # nothing had been copied from the earlier one
    if interval.source_id != facts.source_id:
        text = "the source topic was deleted and created again; what the mirror holds came from the earlier one"
        if policies.recreated_topic != CONTINUE:
            return NoGo("recreated-topic", text, source)
        return _begin(
            facts, facts.source_start, interval.shift, ("recreated-topic", 0, f"{text}; goes on with the new")
        )
    if source < facts.source_start:
        lost = facts.source_start - source
        text = (
            f"the source begins at {facts.source_start}: {lost} records from {source} on were deleted before they were "
            "copied"
        )
        if policies.data_loss != CONTINUE:
            return NoGo("data-loss", text, source)
        return _begin(facts, facts.source_start, shift, ("data-loss", lost, text))
    if source > facts.source_end and not facts.sure:
        return NoGo(
            "source-truncated",
            f"the source ends at {facts.source_end}, but the mirror already holds everything up to {source - 1}",
            source,
            final=False,
        )
    return Go(Position(source, facts.mirror_end), shift=shift, diverged=source > facts.source_end)


def _begin(facts: Facts, source: int, shift: int, event: tuple[str, int, str] | None = None) -> Go:
    new = Interval(facts.mirror_end, source, 0, facts.source_id, shift)
    return Go(Position(source, facts.mirror_end), new, shift, event=event)
