"""Intervals against the simplest model: a table with one row per mirror offset."""

from hypothesis import given
from hypothesis import strategies as st

from heliograph.model.intervals import Interval, Intervals
from heliograph.model.ledger_records import Author, JournalEntry, about, from_record, to_record


@st.composite
def _rows(draw: st.DrawFn) -> tuple[Interval, ...]:
    target, source = draw(st.integers(0, 40)), draw(st.integers(0, 1000))
    found = []
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(1, 10))
        found.append(Interval(target, source, count, "s"))
        target, source = target + count, source + count + draw(st.integers(1, 5))
    return tuple(found)


def _table(rows: list[tuple[Interval, ...]]) -> dict[int, int]:
    table: dict[int, int] = {}
    for row in rows:
        for interval in row:
            table.update({target: interval.source_of(target) for target in range(interval.target, interval.end)})
    return table


@given(st.lists(_rows(), max_size=8))
def test_the_last_put_wins_where_it_overlaps_and_only_there(rows: list[tuple[Interval, ...]]) -> None:
    intervals = Intervals()
    for row in rows:
        intervals.put(row)
    for target, source in _table(rows).items():
        found = intervals.covering(target)
        assert found is not None
        assert found.source_of(target) == source
    known = list(intervals)
    assert [interval.target for interval in known] == sorted({interval.target for interval in known})


@given(st.lists(_rows(), max_size=8), _rows())
def test_a_plan_is_known_exactly_if_every_offset_of_it_is(
    rows: list[tuple[Interval, ...]], plan: tuple[Interval, ...]
) -> None:
    intervals = Intervals()
    for row in rows:
        intervals.put(row)
    known = {}
    for target in range(plan[0].target, plan[-1].end):
        found = intervals.covering(target)
        known[target] = found.source_of(target) if found else None
    assert intervals.agree(plan) == (known == _table([plan]))
    intervals.put(plan)
    assert intervals.agree(plan)
    assert tuple(_within(intervals, plan[0].target, plan[-1].end)) == plan


@given(_rows(), st.text(max_size=20), st.integers(0, 5000), st.integers(0, 9))
def test_intervals_are_decoded_as_they_were_encoded(
    rows: tuple[Interval, ...], topic: str, partition: int, shift: int
) -> None:
    shifted = tuple(Interval(interval.target, interval.source, interval.count, "s", shift) for interval in rows)
    entry = JournalEntry((topic, partition), "m", shifted)
    key, value = to_record(entry, "author", 7)
    assert (from_record(key, value), about(key)) == (entry, ((topic, partition), Author("author", 7)))


def test_the_last_interval_holds_until_another_begins() -> None:
    intervals = Intervals()
    intervals.put([Interval(0, 100)])
    assert intervals.agree([Interval(0, 100, 5000)])
    intervals.put([Interval(50, 200, 10)])
    assert intervals.agree([Interval(0, 100, 50), Interval(50, 200, 500)])
    assert not intervals.agree([Interval(0, 100, 51)])


def test_a_new_start_at_the_same_offset_replaces_the_old_one() -> None:
    intervals = Intervals()
    intervals.put([Interval(0, 100)])
    intervals.put([Interval(0, 150)])
    assert list(intervals) == [Interval(0, 150)]


def _within(intervals: Intervals, start: int, end: int) -> list[Interval]:
    """What is known about a stretch of the mirror, cut to its size."""
    found = []
    while start < end:
        interval, following = intervals.covering(start), intervals.after(start)
        assert interval is not None
        until = end if following is None else min(end, following.target)
        found.append(interval.part(start, until))
        start = until
    return found
