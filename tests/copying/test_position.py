"""The rule that turns the mirror's end into a source offset."""

from heliograph.copy.position import Blocked, PartitionFacts, Resume, next_position
from heliograph.model.flow import CONTINUE, FAIL, Policies
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.partitions import MirrorPartition, Position, producer_id

STRICT = Policies(data_loss=FAIL)
LENIENT = Policies(CONTINUE, CONTINUE, CONTINUE, CONTINUE)


def _facts(
    source: tuple[int, int], mirror: tuple[int, int], source_id: str = "s", mirror_id: str = "m"
) -> PartitionFacts:
    return PartitionFacts(*source, *mirror, source_id, mirror_id)


def test_an_empty_mirror_begins_at_the_sources_start_and_records_that() -> None:
    assert next_position(Intervals(), _facts((40, 90), (0, 0)), STRICT) == Resume(
        Position(40, 0), Interval(0, 40, 0, "s")
    )


def test_a_new_mirror_may_begin_at_the_sources_end_but_not_one_that_was_deleted() -> None:
    new = PartitionFacts(40, 90, 0, 0, "s", "m", from_the_end=True)
    assert next_position(Intervals(), new, STRICT) == Resume(Position(90, 0), Interval(0, 90, 0, "s"))
    deleted = PartitionFacts(40, 90, 0, 0, "s", "m", has_earlier_mirror=True, from_the_end=True)
    decision = next_position(Intervals(), deleted, STRICT)
    assert isinstance(decision, Resume)
    assert decision.position == Position(40, 0)


def test_a_mirror_that_others_have_filled_continues_as_decided() -> None:
    taken_over = Intervals([Interval(500, 740, 0, "s")])
    assert next_position(taken_over, _facts((0, 900), (0, 500)), STRICT) == Resume(Position(740, 500), is_decided=True)
    assert next_position(taken_over, _facts((0, 900), (0, 510)), STRICT) == Resume(Position(750, 510))
    assert _refused(next_position(taken_over, _facts((0, 900), (0, 490)), STRICT)) == ("unknown-origin", 0)
    waits = next_position(taken_over, _facts((0, 700), (0, 500)), LENIENT)
    assert isinstance(waits, Blocked)
    assert (waits.reason, waits.final) == ("open-transaction", False)


def test_a_mirror_continues_where_its_log_ends() -> None:
    known = Intervals([Interval(0, 40, 0, "s")])
    assert next_position(known, _facts((40, 90), (0, 12)), STRICT) == Resume(Position(52, 12))


def test_the_mirrors_own_retention_changes_nothing() -> None:
    known = Intervals([Interval(0, 40, 0, "s")])
    assert next_position(known, _facts((40, 90), (12, 12)), STRICT) == Resume(Position(52, 12))


def test_the_last_interval_that_has_records_counts() -> None:
    known = Intervals([Interval(0, 40, 10, "s"), Interval(10, 100, 10, "s"), Interval(20, 300, 0, "s")])
    assert next_position(known, _facts((0, 900), (0, 19)), STRICT) == Resume(Position(109, 19))
    assert next_position(known, _facts((0, 900), (0, 21)), STRICT) == Resume(Position(301, 21))


def test_a_mirror_truncated_to_what_others_have_written_continues_after_the_last_own_record() -> None:
    known = Intervals([Interval(0, 40, 10, "s"), Interval(15, 50, 10, "s", 5)])
    for end in (10, 11, 14):
        assert next_position(known, _facts((0, 900), (0, end)), STRICT) == Resume(
            Position(50, end), foreign_offsets_before=end - 10
        )
    assert next_position(known, _facts((0, 900), (0, 8)), STRICT) == Resume(Position(48, 8))
    only_others = Intervals([Interval(0, 0, 0, "s"), Interval(5, 0, 3, "s", 5)])
    assert next_position(only_others, _facts((0, 900), (0, 3)), STRICT) == Resume(
        Position(0, 3), foreign_offsets_before=3
    )


def test_a_mirror_that_ends_in_a_filled_gap_continues_within_it() -> None:
    known = Intervals([Interval(0, 0, 10, "s"), Interval(15, 15, 10, "s", 5)])
    assert next_position(known, _facts((0, 900), (0, 12)), STRICT) == Resume(Position(12, 12), foreign_offsets_before=2)


def test_an_interval_without_records_that_was_only_planned_does_not_count() -> None:
    known = Intervals([Interval(0, 40, 20, "s"), Interval(20, 300, 10, "s")])
    assert next_position(known, _facts((0, 900), (0, 20)), STRICT) == Resume(Position(60, 20))


def test_a_deleted_mirror_begins_again_and_reports_that() -> None:
    facts = PartitionFacts(50, 90, 0, 0, "s", "m", has_earlier_mirror=True)
    decision = next_position(Intervals(), facts, STRICT)
    assert isinstance(decision, Resume)
    assert (decision.position, decision.new) == (Position(50, 0), Interval(0, 50, 0, "s"))
    assert [event[0] for event in decision.events] == ["mirror-recreated"]


def _refused(decision: Resume | Blocked) -> tuple[str, int]:
    assert isinstance(decision, Blocked)
    return decision.reason, decision.source_offset


def test_records_of_unknown_origin_in_the_mirror_are_refused() -> None:
    assert _refused(next_position(Intervals(), _facts((0, 90), (0, 5)), STRICT)) == ("unknown-origin", 0)


def test_a_recreated_source_topic_is_refused() -> None:
    known = Intervals([Interval(0, 0, 0, "earlier")])
    assert _refused(next_position(known, _facts((0, 90), (0, 5)), STRICT)) == ("recreated-topic", 5)


def test_records_that_retention_deleted_first_stop_the_partition() -> None:
    known = Intervals([Interval(0, 0, 0, "s")])
    assert _refused(next_position(known, _facts((9, 90), (0, 5)), STRICT)) == ("data-loss", 5)


def test_with_continue_copying_continues_and_reports_what_was_skipped() -> None:
    lost = next_position(Intervals([Interval(0, 0, 0, "s")]), _facts((9, 90), (0, 5)), LENIENT)
    assert isinstance(lost, Resume)
    assert (lost.position, lost.new) == (Position(9, 5), Interval(5, 9, 0, "s"))
    assert [event[:2] for event in lost.events] == [("data-loss", 4)]
    again = next_position(Intervals([Interval(0, 0, 0, "earlier")]), _facts((2, 90), (0, 5)), LENIENT)
    assert isinstance(again, Resume)
    assert (again.position, again.new) == (Position(2, 5), Interval(5, 2, 0, "s"))
    assert [event[0] for event in again.events] == ["recreated-topic"]


def test_a_source_that_ends_before_the_mirror_is_retried_first() -> None:
    known = Intervals([Interval(0, 0, 0, "s")])
    decision = next_position(known, _facts((0, 4), (0, 5)), STRICT)
    assert _refused(decision) == ("source-truncated", 5)
    assert isinstance(decision, Blocked)
    assert not decision.final


def test_producer_ids_are_stable_distinct_and_far_from_those_of_brokers() -> None:
    ids = {
        producer_id(flow, MirrorPartition(topic, topic, partition))
        for flow in ("A->B", "B->A")
        for topic in ("orders", "payments")
        for partition in range(500)
    }
    assert len(ids) == 2000
    assert all(2**62 <= id_ < 2**63 for id_ in ids)
    assert producer_id("A->B", MirrorPartition("orders", "A.orders", 0)) == 5708051862755281001


def test_a_decision_at_the_mirrors_end_is_not_made_again() -> None:
    known = Intervals([Interval(0, 0, 0, "s")])
    facts = _facts((9, 90), (0, 5))
    first = next_position(known, facts, LENIENT)
    assert isinstance(first, Resume)
    assert first.new is not None
    known.put([first.new])
    again = next_position(known, facts, LENIENT)
    assert again == Resume(Position(9, 5), is_decided=True)


def test_offsets_that_this_run_found_empty_are_not_lost_records() -> None:
    """The last record is at 99, its transaction's marker at 100; then retention takes everything."""
    known = Intervals([Interval(0, 0, 0, "s")])
    facts = PartitionFacts(101, 101, 100, 100, "s", "m", last_position=Position(101, 100))
    assert next_position(known, facts, STRICT) == Resume(Position(101, 100))


def test_a_decision_holds_until_its_first_record_lands() -> None:
    """It was decided to go back to source offset 40, and planned; then everything ended before the first append."""
    intervals = Intervals()
    intervals.put([Interval(0, 0, 100, "id")])
    intervals.put([Interval(100, 40, 0, "id")])
    intervals.put([Interval(100, 40, 5, "id"), Interval(105, 50, 5, "id")])
    facts = PartitionFacts(0, 200, 0, 100, "id", "m")
    decision = next_position(intervals, facts, Policies())
    assert isinstance(decision, Resume)
    assert decision.position == Position(40, 100)
    paged = Intervals(pages=intervals.packed())
    assert next_position(paged, facts, Policies()) == decision


def test_the_rest_of_an_earlier_plan_decides_nothing() -> None:
    """The second of two plans leaves a record out: the first then seems to have one more behind it."""
    intervals = Intervals()
    intervals.put([Interval(0, 0, 0, "id")])
    intervals.put([Interval(0, 0, 30, "id")])
    intervals.put([Interval(10, 10, 7, "id"), Interval(17, 18, 12, "id")])
    decision = next_position(intervals, PartitionFacts(0, 35, 0, 29, "id", "m"), Policies())
    assert isinstance(decision, Resume)
    assert decision.position == Position(30, 29)
