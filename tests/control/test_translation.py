"""Source offsets to mirror offsets by intervals, against a look at every record."""

from contextlib import suppress
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from heliograph.control.checkpoints import is_news
from heliograph.control.group_sync import TargetGroups, Verdict
from heliograph.model.intervals import ForeignRange, Interval, Intervals, NotLoaded
from heliograph.model.mm2_records import Checkpoint
from heliograph.wire.consumer_groups import Committed

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
def test_a_reader_resumes_at_the_first_record_that_it_has_not_read(
    log: tuple[list[int], list[Interval]], source: int, data: st.DataObject
) -> None:
    offsets, intervals = log
    end = data.draw(st.integers(0, len(offsets)), "copied so far")
    expected = next((at for at, offset in enumerate(offsets[:end]) if offset >= source), end)
    assert Intervals(intervals).target_of(source, _ID, end) == expected


@st.composite
def _histories(draw: st.DrawFn) -> tuple[list[tuple[str, int]], Intervals]:
    """A mirror of a source that was truncated or recreated now and then: for each of its records the source topic and
    offset that it has come from, as far as the source still has it; and the intervals that say so."""
    records: list[tuple[str, int]] = []
    intervals = Intervals()
    at, source_id = 0, "s0"
    for number, (step, gap, count) in enumerate(draw(st.lists(_steps, min_size=1, max_size=10))):
        if step == "again":
            at, source_id = 0, f"s{number}"
        elif step == "cut":
            at, gap = draw(st.integers(0, at)), 0  # a gap right behind a truncation looks like one before it
            records = [(origin, offset if origin != source_id or offset < at else -1) for origin, offset in records]
            intervals.put([Interval(len(records), at, 0, source_id)])
        at += gap
        intervals.put([Interval(len(records), at, count, source_id)])
        records += [(source_id, offset) for offset in range(at, at + count)]
        at += count
    return records, intervals


_steps = st.tuples(st.sampled_from(["on", "on", "on", "cut", "again"]), st.integers(0, 3), st.integers(1, 5))


@given(_histories(), st.integers(0, 60))
def test_the_same_where_the_source_was_truncated_or_recreated(
    history: tuple[list[tuple[str, int]], Intervals], source: int
) -> None:
    records, intervals = history
    now, end = records[-1][0], len(records)
    expected = next(
        (at for at, (incarnation, offset) in enumerate(records) if incarnation == now and offset >= source), end
    )
    assert intervals.target_of(source, now, end) == expected


def test_a_plan_that_was_not_appended_does_not_count() -> None:
    """50 to 59 were planned for mirror offset 10 on and did not come; then 50 to 54 were gone, and 55 to 59 came."""
    known = Intervals()
    for planned in (Interval(0, 0, 10, _ID), Interval(10, 50, 10, _ID), Interval(10, 55, 5, _ID)):
        known.put([planned])
    assert [known.target_of(source, _ID, 15) for source in (9, 10, 55, 57, 59, 60, 70)] == [9, 10, 10, 12, 14, 15, 15]


def test_a_decision_counts_at_once() -> None:
    cut_back = Intervals([Interval(0, 0, 100, _ID), Interval(100, 50, 0, _ID)])
    assert [cut_back.target_of(source, _ID, 100) for source in (49, 50, 70)] == [49, 100, 100]


@given(_histories(), st.integers(0, 60), st.integers(1, 3), st.integers(0, 60))
def test_pages_give_the_same_answers_as_a_list(
    history: tuple[list[tuple[str, int]], Intervals], source: int, page_size: int, target: int
) -> None:
    records, full = history
    now, end = records[-1][0], len(records)
    paged = Intervals(page_size=page_size)
    for interval in full:
        paged.put([interval])
    elsewhere = dict(enumerate(paged.packed()))
    stored = Intervals(
        pages=[replace(page, location=number, data=b"") for number, page in elsewhere.items()],
        loaded={number: page.data for number, page in elsewhere.items()},
    )
    for little in (paged, stored):
        assert list(little) == list(full)
        for source_id in (now, "unknown"):
            assert little.target_of(source, source_id, end) == full.target_of(source, source_id, end)
            assert little.foreign_range(source, source_id, end) == full.foreign_range(source, source_id, end)
        for question in (
            "covering",
            "beginning",
            "after",
            "own_end",
            "foreign_offsets_at",
            "foreign_offsets_constant_since",
        ):
            assert getattr(little, question)(target) == getattr(full, question)(target), question
        assert little.ours(target, 5) == full.ours(target, 5)
        assert little.stretches() == full.stretches()


@given(_histories(), st.integers(0, 60), st.integers(1, 3))
def test_pages_that_are_not_in_memory_raise_not_loaded(
    history: tuple[list[tuple[str, int]], Intervals], source: int, page_size: int
) -> None:
    """Every answer is that of all intervals, or says which page is missing; with that it can be had."""
    records, full = history
    now, end = records[-1][0], len(records)
    packed = Intervals(page_size=page_size)
    for interval in full:
        packed.put([interval])
    data: dict[int, bytes] = {}
    pages = [replace(page, location=number, data=b"") for number, page in enumerate(packed.packed())]
    stored, everything = Intervals(pages=pages, loaded=data), packed.packed()
    for _ in range(len(pages) + 1):
        try:
            assert stored.target_of(source, now, end) == full.target_of(source, now, end)
            return
        except NotLoaded as missing:
            data[missing.page.location] = everything[missing.page.location].data
    raise AssertionError("it asks for pages without end")


@given(_histories(), st.integers(0, 60), st.integers(1, 6))
def test_an_excerpt_gives_the_same_answers_or_raises_not_loaded(
    history: tuple[list[tuple[str, int]], Intervals], target: int, most: int
) -> None:
    _records, full = history
    little = Intervals(pages=full.excerpt(target, most))
    assert len(little) == len(full)
    for question in ("covering", "beginning", "after", "own_end", "foreign_offsets_at"):
        for at in range(70):
            with suppress(NotLoaded):
                assert getattr(little, question)(at) == getattr(full, question)(at), question
    if most >= 4:
        last = full.covering(target - 1)
        assert little.covering(max(target - 1, 0)) == (last if last is not None else full.covering(0))


def test_ranges_that_others_have_copied_are_known() -> None:
    """MM2 before us, up to source offset 700; and between our first 10 records and the rest, up to 1510."""
    known = Intervals([Interval(500, 700, 10, _ID), Interval(1010, 1510, 0, _ID, foreign_offsets_before=500)])
    found = [known.foreign_range(source, _ID, 1100) for source in (0, 699, 700, 709, 710, 1509, 1510)]
    before, between = ForeignRange(0, 500, 700), ForeignRange(510, 1010, 1510)
    assert found == [before, before, None, None, between, between, None]
    assert known.foreign_range(5, "another", 1100) is None


def test_the_last_interval_holds_for_everything_that_follows() -> None:
    known = Intervals([Interval(0, 100, 0, _ID)])
    assert [known.target_of(source, _ID, 10) for source in (0, 100, 105, 110, 500)] == [0, 0, 5, 10, 10]


def test_only_the_present_incarnation_of_the_source_topic_counts() -> None:
    known = Intervals([Interval(0, 0, 5, "old"), Interval(5, 0, 5, _ID)])
    assert known.target_of(3, _ID, 10) == 8
    assert known.target_of(3, "other", 10) is None


def test_foreign_records_in_the_mirror_are_skipped() -> None:
    known = Intervals([Interval(0, 0, 5, _ID), Interval(8, 5, 5, _ID, foreign_offsets_before=3)])
    assert [known.target_of(source, _ID, 13) for source in (4, 5, 6)] == [4, 8, 9]


def test_positions_before_a_take_over_are_unknown() -> None:
    known = Intervals([Interval(5000, 7000, 0, _ID)])
    assert known.target_of(6000, _ID, 5000) is None
    assert [known.target_of(source, _ID, 5100) for source in (7000, 7050, 9000)] == [5000, 5050, 5100]


def test_foreign_records_between_intervals_are_read_again_rather_than_skipped() -> None:
    """Ours ends at mirror offset 1010; 500 records of MM2 follow, for 1000 source offsets with markers between."""
    known = Intervals([Interval(0, 1000, 0, _ID), Interval(1510, 3010, 0, _ID, foreign_offsets_before=500)])
    found = [known.target_of(source, _ID, 1600) for source in (2009, 2010, 2400, 3009, 3010, 3020)]
    assert found == [1009, 1010, 1010, 1010, 1510, 1520]


def test_a_checkpoint_beyond_where_the_group_belongs_is_replaced() -> None:
    def at(upstream: int, downstream: int) -> Checkpoint:
        return Checkpoint("g", "t", 0, upstream, downstream)

    assert not is_news(at(500, 500), at(500, 500), 600)
    assert not is_news(at(500, 500), at(510, 500), 600)
    assert is_news(at(500, 500), at(400, 450), 600)  # the group went back
    assert is_news(at(500, 500), at(500, 200), 600)  # the mirror was recreated, from a later source offset on
    assert not is_news(at(500, 500), at(500, 200), 600, exact=False)
    assert is_news(at(500, 500), at(500, 200), 300, exact=False)


def test_groups_go_forward_on_the_target_or_back_to_the_end() -> None:
    partition, group = ("t", 0), "g"
    cases = {
        None: Verdict.DUE,
        49: Verdict.DUE,
        50: Verdict.SYNCED,
        60: Verdict.AHEAD,
        70: Verdict.AHEAD,
        71: Verdict.DUE,
    }
    for before, wanted in cases.items():
        known = {} if before is None else {partition: Committed(before)}
        assert TargetGroups({group: "Empty"}, {group: known}, {partition: 70}).verdict(group, partition, 50) is wanted
    assert TargetGroups({group: "Empty"}, {group: {}}, {partition: 49}).verdict(group, partition, 50) is Verdict.BEYOND
    assert TargetGroups({group: "Empty"}, {group: {}}, {}).verdict(group, partition, 50) is Verdict.BEYOND
