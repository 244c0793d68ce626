"""The rule for positions that an operator sets."""

from dataclasses import replace

import pytest

from heliograph.copy.altered_position import AlteredPosition, NotAlterable, altered_position
from heliograph.copy.copied_records import CopiedRecords
from heliograph.copy.position import PartitionFacts, Resume, next_position
from heliograph.model.flow import FAIL, Policies
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.partitions import Position

STRICT = Policies(data_loss=FAIL)
FACTS = PartitionFacts(10, 90, 0, 40, "s", "m")  # the source has 10 to 89, the mirror 0 to 39


def _known() -> Intervals:
    return Intervals([Interval(0, 10, 0, "s")])


def _set(known: Intervals, facts: PartitionFacts, source: int | None, policies: Policies = STRICT) -> AlteredPosition:
    """Applies it to the intervals, as the ledger does."""
    altered = altered_position(known, facts, policies, source)
    if altered.decision is not None:
        known.put([altered.decision])
    return altered


def _translated(known: Intervals, mirror_end: int, *offsets: int) -> list[int | None]:
    return [known.target_of(offset, "s", mirror_end) for offset in offsets]


def test_copying_continues_at_the_new_offset_whatever_was_decided_before() -> None:
    known = _known()
    for source in (70, 20, 10, 90, 60):
        altered = _set(known, FACTS, source)
        assert (altered.source, altered.decision) == (source, Interval(40, source, 0, "s"))
        assert next_position(known, FACTS, STRICT) == Resume(Position(source, 40), is_decided=True)
    assert _set(known, FACTS, 50).before == 60
    assert next_position(known, FACTS, STRICT) == Resume(Position(50, 40), is_decided=True)


def test_the_offset_at_which_copying_continues_anyway_needs_no_decision() -> None:
    assert altered_position(_known(), FACTS, STRICT, 50) == AlteredPosition(50, 50, None)
    new = PartitionFacts(10, 90, 0, 0, "s", "m")
    assert altered_position(Intervals(), new, STRICT, None) == AlteredPosition(10, 10, None)


def test_groups_are_translated_exactly_after_records_were_skipped() -> None:
    known = _known()
    _set(known, FACTS, 70)
    assert _translated(known, 40, 30, 49, 50, 60, 70, 80) == [20, 39, 40, 40, 40, 40]
    assert _translated(known, 45, 30, 49, 50, 69, 70, 72, 80) == [20, 39, 40, 40, 40, 42, 45]


def test_groups_are_translated_to_the_latest_copy_after_records_were_copied_again() -> None:
    known = _known()
    _set(known, FACTS, 20)
    assert _translated(known, 40, 15, 19, 20, 30, 50) == [5, 9, 40, 40, 40]
    assert _translated(known, 55, 15, 19, 20, 30, 40, 50) == [5, 9, 40, 50, 55, 55]
    assert _translated(known, 80, 19, 20, 50, 59) == [9, 40, 70, 79]


def test_a_reset_begins_as_a_new_mirror_would() -> None:
    assert altered_position(_known(), FACTS, STRICT, None).source == 10
    assert altered_position(_known(), replace(FACTS, from_the_end=True), STRICT, None).source == 90


def test_an_offset_that_the_source_has_deleted_means_its_first() -> None:
    assert altered_position(_known(), FACTS, STRICT, 3).source == 10


def test_an_offset_after_the_sources_end_is_refused() -> None:
    with pytest.raises(NotAlterable, match="the source ends at offset 90, and 91 would be copied next"):
        altered_position(_known(), FACTS, STRICT, 91)


def test_a_mirror_with_the_sources_offsets_is_left_alone() -> None:
    facts = PartitionFacts(0, 90, 0, 40, "s", "m", most_filler=100)
    known = Intervals([Interval(0, 0, 0, "s")])
    assert altered_position(known, facts, STRICT, 40).decision is None
    with pytest.raises(NotAlterable, match="the mirror has the source's offsets"):
        altered_position(known, facts, STRICT, 60)
    with pytest.raises(NotAlterable, match="delete the mirror to copy it again"):
        altered_position(known, facts, STRICT, None)
    with pytest.raises(NotAlterable, match="the mirror has the source's offsets"):
        altered_position(Intervals(), PartitionFacts(0, 90, 0, 0, "s", "m", most_filler=100), STRICT, 60)


def test_a_partition_that_lost_records_or_whose_topic_was_recreated_continues_where_asked() -> None:
    lost = replace(FACTS, source_start=60)
    known = _known()
    assert _set(known, lost, 60).decision == Interval(40, 60, 0, "s")
    assert next_position(known, lost, STRICT) == Resume(Position(60, 40), is_decided=True)
    recreated = PartitionFacts(0, 5, 0, 40, "s2", "m")
    known = _known()
    assert _set(known, recreated, 2).decision == Interval(40, 2, 0, "s2")
    assert next_position(known, recreated, STRICT) == Resume(Position(2, 40), is_decided=True)
    truncated = replace(FACTS, source_end=45)
    known = _known()
    assert _set(known, truncated, 45).decision == Interval(40, 45, 0, "s")
    assert next_position(known, truncated, STRICT) == Resume(Position(45, 40), is_decided=True)


def test_a_mirror_that_others_have_filled_is_left_alone() -> None:
    with pytest.raises(NotAlterable, match="the mirror holds 40 records that the ledger has no entry for"):
        altered_position(Intervals(), FACTS, STRICT, 20)


def test_offsets_of_others_in_the_mirror_still_count() -> None:
    known = Intervals([Interval(0, 10, 5, "s"), Interval(10, 15, 0, "s", 5)])
    assert altered_position(known, FACTS, STRICT, 70).decision == Interval(40, 70, 0, "s", 5)


def test_records_that_were_skipped_are_not_missing_when_logs_are_compared() -> None:
    known = _known()
    _set(known, FACTS, 70)
    copied = CopiedRecords(list(known), None, replace(FACTS, mirror_end=60))
    assert [copied.lacks_source(offset) for offset in (49, 50, 69, 70, 89, 90)] == [False] * 5 + [True]
    gap = CopiedRecords([Interval(0, 10, 40, "s"), Interval(40, 70, 20, "s")], None, replace(FACTS, mirror_end=60))
    assert [offset for offset in range(10, 90) if gap.lacks_source(offset)] == list(range(50, 70))
