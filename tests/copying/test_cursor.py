"""What a cursor holds back, and how far it says it has got."""

import pytest

from heliograph.copy.cursor import Budget, Chunk, Cursor
from heliograph.copy.intake import Intake, LeftOut, Parcel
from heliograph.copy.work import MirrorPartition, Position
from heliograph.model.intervals import Interval, Intervals
from heliograph.wire.recode import Builder, Plain


def _cursor(source: int = 100, target: int = 100) -> Cursor:
    cursor = Cursor(MirrorPartition("t", "A.t", 0), 1)
    cursor.intervals = Intervals([Interval(0, source - target)])
    cursor.start(Position(source, target, 3), 0)
    return cursor


def _parcel(*runs: tuple[int, int], next_source: int = 0) -> Parcel:
    builder = Builder(0)
    for _ in range(sum(count for _first, count in runs)):
        builder.add(Plain(0, 1, None, b"v", []))
    first, count = runs[-1]
    return Parcel(builder.build(runs[0][0], 3), runs, next_source or first + count, 3)


def _take(cursor: Cursor, *parcels: Parcel, next_source: int, left_out: tuple[int, ...] = ()) -> bool:
    refused = [LeftOut(Plain(offset, 1, None, b"v", []), "why") for offset in left_out]
    return cursor.take(Intake(list(parcels), refused, [], next_source, 3), Chunk(Budget(1000), 10, 1))


def test_what_goes_on_without_a_gap_is_not_written_down_and_may_be_sent() -> None:
    cursor = _cursor()
    assert not _take(cursor, _parcel((100, 10)), _parcel((110, 5)), next_source=115)
    assert cursor.may_send == 1


def test_what_comes_behind_a_gap_waits_until_it_is_written_down() -> None:
    cursor = _cursor()
    assert _take(cursor, _parcel((100, 10)), _parcel((112, 5)), next_source=117)
    assert cursor.may_send == 0
    (waiting,) = cursor.unrecorded
    assert [(one.target, one.source, one.count) for one in waiting.intervals] == [(100, 100, 10), (110, 112, 5)]
    cursor.intervals.put(waiting.intervals)
    cursor.recorded(1)
    assert cursor.may_send == 1
    assert not _take(cursor, _parcel((117, 5)), next_source=122)


def test_the_first_batch_after_a_start_and_after_a_pause_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that has forgotten us takes any sequence: if it refused the first, it would take the second instead."""
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    cursor = _cursor()
    _take(cursor, *(_parcel((100 + number, 1)) for number in range(20)), next_source=120)
    sent = cursor.pop()
    assert cursor.may_send == 0
    cursor.settle(sent)
    cursor.landed(sent)
    assert cursor.may_send == 5
    now += 0.9
    assert cursor.may_send == 5
    now += 0.2
    assert cursor.may_send == 1
    cursor.pop()
    assert cursor.may_send == 0


def test_a_record_that_is_being_parked_is_not_passed_over_before_it_is() -> None:
    cursor = _cursor()
    assert _take(cursor, next_source=101, left_out=(100,))
    assert cursor.position == Position(100, 100)
    cursor.recorded(1)
    assert cursor.position == Position(101, 100)


def test_what_was_fetched_before_a_fault_is_not_passed_over() -> None:
    """The connection is lost while something waits to be written down: whoever writes finds nothing left of it."""
    cursor = _cursor()
    assert _take(cursor, _parcel((102, 1)), next_source=103)
    cursor.begin_again("the connection was lost", suspicious=False)
    cursor.recorded(len(cursor.unrecorded))
    assert cursor.position == Position(100, 100)


def test_nor_does_a_parcel_on_its_way_stand_for_it() -> None:
    cursor = _cursor()
    _take(cursor, _parcel((100, 1)), next_source=101)
    sent = cursor.pop()
    _take(cursor, next_source=102, left_out=(101,))
    cursor.landed(sent)
    assert cursor.position == Position(101, 101)


def test_markers_behind_the_last_record_count_as_done() -> None:
    cursor = _cursor()
    _take(cursor, _parcel((100, 1)), next_source=101)
    sent = cursor.pop()
    assert not _take(cursor, next_source=103)
    cursor.settle(sent)
    cursor.landed(sent)
    assert cursor.position == Position(103, 101)
    assert not _take(cursor, next_source=105)
    assert cursor.position == Position(105, 101)


def test_what_waits_to_be_written_down_makes_all_that_follows_wait_too() -> None:
    """An earlier plan, written down and never carried out, may agree with what comes next by chance."""
    cursor = _cursor()
    cursor.intervals.put([Interval(105, 106, 15)])
    assert _take(cursor, _parcel((100, 20)), next_source=121)
    assert _take(cursor, _parcel((121, 5)), next_source=126)
    for one in cursor.unrecorded:
        cursor.intervals.put(one.intervals)
    found = cursor.intervals.covering(124)
    assert found is not None
    assert found.source_of(124) == 125


def test_it_is_not_settled_before_what_is_under_way_has_landed_or_what_an_earlier_one_has_left() -> None:
    cursor, following = _cursor(), _cursor()
    following.earlier = cursor
    _take(cursor, _parcel((100, 1)), next_source=101)
    sent = cursor.pop()
    cursor.filling += 1  # a gap, which has no sequence number
    cursor.drop()
    assert not following.is_settled
    cursor.settle(sent)
    assert not following.is_settled
    cursor.filling -= 1
    assert following.is_settled
