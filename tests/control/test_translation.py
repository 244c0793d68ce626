"""Source offsets to mirror offsets by intervals, against the obvious way: looking at every record."""

from hypothesis import given
from hypothesis import strategies as st

from heliograph.model.intervals import Interval, Intervals

_ID = "a" * 32


@st.composite
def _logs(draw: st.DrawFn) -> tuple[list[int], list[Interval]]:
    """The source offsets of the mirror's records, one after the other, and the intervals that say so."""
    offsets: list[int] = []
    intervals: list[Interval] = []
    at = draw(st.integers(0, 5))
    for gap, count in draw(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5)), min_size=1, max_size=8)):
        intervals.append(Interval(len(offsets), at, count, _ID))
        offsets += range(at, at + count)
        at += count + gap
    return offsets, intervals


@given(_logs(), st.integers(0, 80), st.data())
def test_a_reader_goes_on_at_the_first_record_that_it_has_not_read(
    log: tuple[list[int], list[Interval]], source: int, data: st.DataObject
) -> None:
    offsets, intervals = log
    end = data.draw(st.integers(0, len(offsets)), "copied so far")
    expected = next((at for at, offset in enumerate(offsets[:end]) if offset >= source), end)
    assert Intervals(intervals).target_of(source, _ID, end) == expected


def test_an_interval_without_an_end_holds_for_all_that_follows() -> None:
    known = Intervals([Interval(0, 100, 0, _ID)])
    assert [known.target_of(source, _ID, 10) for source in (0, 100, 105, 110, 500)] == [0, 0, 5, 10, 10]


def test_only_the_present_incarnation_of_the_source_topic_counts() -> None:
    known = Intervals([Interval(0, 0, 5, "old"), Interval(5, 0, 5, _ID)])
    assert known.target_of(3, _ID, 10) == 8
    assert known.target_of(3, "other", 10) is None


def test_records_of_others_in_the_mirror_are_passed_over() -> None:
    known = Intervals([Interval(0, 0, 5, _ID), Interval(8, 5, 5, _ID, shift=3)])
    assert [known.target_of(source, _ID, 13) for source in (4, 5, 6)] == [4, 8, 9]


def test_what_was_forgotten_is_not_made_up() -> None:
    known = Intervals(keep=2)
    for number in range(8):
        known.put([Interval(number, 10 * number, 1, _ID)])
    assert known.forgotten_before > 0
    assert known.target_of(0, _ID, 8) is None
    assert known.target_of(70, _ID, 8) == 7


def test_positions_before_a_take_over_are_not_made_up() -> None:
    known = Intervals([Interval(5000, 7000, 0, _ID)])
    assert known.target_of(6000, _ID, 5000) is None
    assert [known.target_of(source, _ID, 5100) for source in (7000, 7050, 9000)] == [5000, 5050, 5100]


def test_what_another_tool_has_copied_between_is_rather_read_again_than_passed_over() -> None:
    """Ours ends at mirror offset 1010; 500 records of MM2 follow, for 1000 source offsets with markers between."""
    known = Intervals([Interval(0, 1000, 0, _ID), Interval(1510, 3010, 0, _ID, shift=500)])
    found = [known.target_of(source, _ID, 1600) for source in (2009, 2010, 2400, 3009, 3010, 3020)]
    assert found == [1009, 1010, 1010, 1010, 1510, 1520]
