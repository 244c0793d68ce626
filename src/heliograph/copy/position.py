"""The one rule of recovery: from the mirror's end to the source offset that comes next. Pure."""

from dataclasses import dataclass

from heliograph.copy.work import Position
from heliograph.model.intervals import Interval, covering


@dataclass(frozen=True, slots=True)
class Facts:
    """What was just read from both clusters about one partition."""

    source_start: int
    source_end: int
    mirror_start: int
    mirror_end: int
    source_id: str
    mirror_id: str


@dataclass(frozen=True, slots=True)
class Go:
    """Copy on from here. `new` is the interval to write down first, when a mirror begins."""

    position: Position
    new: Interval | None = None


@dataclass(frozen=True, slots=True)
class NoGo:
    """This partition cannot go on. `final` is false where a leader that lags behind could look the same."""

    reason: str
    text: str
    source_offset: int
    final: bool = True


def next_position(intervals: tuple[Interval, ...], facts: Facts) -> Go | NoGo:
    interval = covering(intervals, facts.mirror_id, facts.mirror_end)
    if interval is None:
        if facts.mirror_end > 0:
            return NoGo(
                "unknown-origin",
                f"the mirror holds records up to {facts.mirror_end - 1} that Heliograph has no account of having "
                "copied; use another mirror name, or delete the mirror to copy it afresh",
                facts.source_start,
            )
        return _begin(facts)
    source = interval.source_of(facts.mirror_end)
    if interval.source_id != facts.source_id and facts.mirror_end == interval.target == 0:
        return _begin(facts)  # nothing had been copied from the earlier one
    if interval.source_id != facts.source_id:
        return NoGo(
            "recreated-topic",
            "the source topic was deleted and created again; what the mirror holds came from the earlier one",
            source,
        )
    if source < facts.source_start:
        return NoGo(
            "data-loss",
            f"the source begins at {facts.source_start}: {facts.source_start - source} records from {source} on were "
            "deleted before they were copied",
            source,
        )
    if source > facts.source_end:
        return NoGo(
            "source-truncated",
            f"the source ends at {facts.source_end}, but the mirror already holds everything up to {source - 1}",
            source,
            final=False,
        )
    return Go(Position(source, facts.mirror_end))


def _begin(facts: Facts) -> Go:
    return Go(Position(facts.source_start, 0), Interval(0, facts.source_start, facts.source_id, facts.mirror_id))
