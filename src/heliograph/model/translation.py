"""Translating source offsets of one partition to mirror offsets, by the intervals of the mirror."""

from dataclasses import dataclass

from heliograph.model.interval import Interval
from heliograph.model.interval_row import IntervalRow


@dataclass(frozen=True, slots=True)
class ForeignRange:
    """Mirror offsets from `start` up to `end` that another tool has copied, from before source offset `source_end`.
    Nothing says which record is which."""

    start: int
    end: int
    source_end: int


def target_of(row: IntervalRow, source: int, source_id: str, end: int) -> int | None:
    """Where a reader at this source offset resumes in the mirror, which ends at `end`: at the copy of the first record
    from there on, or at the end if that is not copied yet. None if it is not known (any more)."""
    interval, following = _around(row, source, source_id, end)
    if interval is None:
        if following is None:
            return None
        # What is before the first interval was copied by another tool.
        return None if following.target > 0 and not following.fill else _next(row, following, end).target
    if interval.source_id != source_id:  # before the topic was recreated
        return None if following is None else _next(row, following, end).target
    if following is None:
        return min(interval.target + source - interval.source, end)
    target = _within(interval, following, source)
    return _next(row, following, end).target if target is None else target


def foreign_range(row: IntervalRow, source: int, source_id: str, end: int) -> ForeignRange | None:
    """The range that another tool has copied and that this source offset falls into, if it does."""
    interval, following = _around(row, source, source_id, end)
    if interval is None:
        if following is None:
            return None
        is_foreign = following.target > 0 and not following.fill
        return ForeignRange(0, following.target, following.source) if is_foreign else None
    if (
        following is None
        or interval.source_id != source_id
        or following.foreign_offsets_before <= interval.foreign_offsets_before
    ):
        return None
    if following.source - interval.source == following.target - interval.target:
        return None  # a gap, on both sides
    ours = following.target - (following.foreign_offsets_before - interval.foreign_offsets_before)
    return ForeignRange(ours, following.target, following.source) if interval.source_of(ours) <= source else None


def _around(row: IntervalRow, source: int, source_id: str, end: int) -> tuple[Interval | None, Interval | None]:
    """Of the intervals of a mirror that ends at `end`: the last that does not begin after this source offset, and the
    one that follows it. The first may be the last interval of an earlier incarnation of the source topic."""
    until = row.find(end, _target)
    if until > 1:
        last = row.at(until - 1)
        if last.target == end and last.decision < 0:
            until -= 1  # only planned: it may never be appended, or differently
    following = until
    for start in reversed(row.stretch_starts()):
        if start >= until:
            continue
        begins = row.at(start)
        if begins.source_id != source_id:
            return row.at(following - 1), row.at(following) if following < until else None
        if begins.source <= source:
            number = row.find(source, _source, start, following)
            return row.at(number - 1), row.at(number) if number < until else None
        following = start
    return None, row.at(following) if following < until else None


def _next(row: IntervalRow, following: Interval, end: int) -> Interval:
    """The interval that the next record is in, if that is not before `following`: a later one if the source was
    truncated since to that offset or an earlier one."""
    for start in row.stretch_starts():
        begins = row.at(start)
        exists = begins.target < end or begins.decision >= 0
        if following.target < begins.target <= end and exists and _begins_again(begins, following):
            following = begins
    return following


def _within(interval: Interval, following: Interval, source: int) -> int | None:
    """The mirror offset within an interval; None between it and the next. Foreign records between them may be
    another tool's copies of the source's: then the answer is their start, so that they are read again, not skipped."""
    if interval.source - interval.target == following.source - following.target:
        return interval.target + source - interval.source
    ours = following.target - max(0, following.foreign_offsets_before - interval.foreign_offsets_before)
    count = min(ours - interval.target, following.source - interval.source)
    if source - interval.source < count:
        return interval.target + source - interval.source
    return (
        ours
        if following.foreign_offsets_before > interval.foreign_offsets_before
        and interval.source + count < following.source
        else None
    )


def _begins_again(interval: Interval, earlier: Interval) -> bool:
    return interval.source_id == earlier.source_id and interval.source <= earlier.source


def _target(interval: Interval) -> int:
    return interval.target


def _source(interval: Interval) -> int:
    return interval.source
