"""What a cursor holds back, and its position."""

import pytest

from fake_clock import FakeClock
from heliograph.copy.budget import Budget, Chunk
from heliograph.copy.classified import Classified, LeftOut, OutgoingBatch
from heliograph.copy.cursor import Cursor, ResumePoint
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.wire.recode import Builder, DecodedRecord


def _cursor(source: int = 100, target: int = 100) -> Cursor:
    cursor = Cursor(MirrorPartition("t", "A.t", 0), 1)
    cursor.start(ResumePoint(Position(source, target, 3), intervals=Intervals([Interval(0, source - target)])))
    return cursor


def _parcel(*runs: tuple[int, int], next_source: int = 0) -> OutgoingBatch:
    builder = Builder(0)
    for _ in range(sum(count for _first, count in runs)):
        builder.add(DecodedRecord(0, 1, None, b"v", []))
    first, count = runs[-1]
    return OutgoingBatch(builder.build(runs[0][0], 3), runs, next_source or first + count, 3)


def _take(cursor: Cursor, *outgoing: OutgoingBatch, next_source: int, left_out: tuple[int, ...] = ()) -> bool:
    refused = [LeftOut(DecodedRecord(offset, 1, None, b"v", []), "why") for offset in left_out]
    return cursor.take(Classified(list(outgoing), refused, [], next_source, 3), Chunk(Budget(1000), 10, 1))


def test_batches_without_a_gap_may_be_sent_without_a_ledger_entry() -> None:
    cursor = _cursor()
    assert not _take(cursor, _parcel((100, 10)), _parcel((110, 5)), next_source=115)
    assert cursor.sending.free_slots == 1


def test_batches_behind_a_gap_wait_for_their_ledger_entry() -> None:
    cursor = _cursor()
    assert _take(cursor, _parcel((100, 10)), _parcel((112, 5)), next_source=117)
    assert cursor.sending.free_slots == 0
    (waiting,) = cursor.sending.write_ahead
    assert [(interval.target, interval.source, interval.count) for interval in waiting.intervals] == [
        (100, 100, 10),
        (110, 112, 5),
    ]
    cursor.mirror.intervals.put(waiting.intervals)
    cursor.recorded(1)
    assert cursor.sending.free_slots == 1
    assert not _take(cursor, _parcel((117, 5)), next_source=122)


def test_the_first_batch_after_a_start_or_a_pause_is_sent_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that has forgotten us takes any sequence: if it refused the first, it would take the second instead."""
    clock = FakeClock(monkeypatch, "heliograph.copy.send_queue")
    cursor = _cursor()
    _take(cursor, *(_parcel((100 + number, 1)) for number in range(20)), next_source=120)
    sent = cursor.sending.pop(cursor.generation)
    assert cursor.sending.free_slots == 0
    cursor.sending.settle(sent)
    cursor.landed(sent)
    assert cursor.sending.free_slots == 5
    clock.now += 0.9
    assert cursor.sending.free_slots == 5
    clock.now += 0.2
    assert cursor.sending.free_slots == 1
    cursor.sending.pop(cursor.generation)
    assert cursor.sending.free_slots == 0


def test_the_position_waits_until_a_record_is_parked() -> None:
    cursor = _cursor()
    assert _take(cursor, next_source=101, left_out=(100,))
    assert cursor.position == Position(100, 100)
    cursor.recorded(1)
    assert cursor.position == Position(101, 100)


def test_the_position_does_not_skip_what_was_fetched_before_a_fault() -> None:
    """The connection is lost while something waits for the ledger: nothing of it is left when that is written."""
    cursor = _cursor()
    assert _take(cursor, _parcel((102, 1)), next_source=103)
    cursor.restart("the connection was lost", is_suspicious=False)
    cursor.recorded(len(cursor.sending.write_ahead))
    assert cursor.position == Position(100, 100)


def test_a_batch_in_flight_does_not_move_the_position_past_a_parked_record() -> None:
    cursor = _cursor()
    _take(cursor, _parcel((100, 1)), next_source=101)
    sent = cursor.sending.pop(cursor.generation)
    _take(cursor, next_source=102, left_out=(101,))
    cursor.landed(sent)
    assert cursor.position == Position(101, 101)


def test_markers_behind_the_last_record_move_the_position() -> None:
    cursor = _cursor()
    _take(cursor, _parcel((100, 1)), next_source=101)
    sent = cursor.sending.pop(cursor.generation)
    assert not _take(cursor, next_source=103)
    cursor.sending.settle(sent)
    cursor.landed(sent)
    assert cursor.position == Position(103, 101)
    assert not _take(cursor, next_source=105)
    assert cursor.position == Position(105, 101)


def test_batches_behind_a_waiting_ledger_entry_wait_too() -> None:
    """An earlier plan, written down and never carried out, may agree with what comes next by chance."""
    cursor = _cursor()
    cursor.mirror.intervals.put([Interval(105, 106, 15)])
    assert _take(cursor, _parcel((100, 20)), next_source=121)
    assert _take(cursor, _parcel((121, 5)), next_source=126)
    for unrecorded in cursor.sending.write_ahead:
        cursor.mirror.intervals.put(unrecorded.intervals)
    found = cursor.mirror.intervals.covering(124)
    assert found is not None
    assert found.source_of(124) == 125


def test_a_cursor_is_settled_when_its_batches_and_gaps_and_those_of_its_predecessor_are() -> None:
    cursor, following = _cursor(), _cursor()
    following.previous = cursor
    _take(cursor, _parcel((100, 1)), next_source=101)
    sent = cursor.sending.pop(cursor.generation)
    cursor.gap_fill.begin()  # markers have no sequence number
    cursor.drop()
    assert not following.is_settled
    cursor.sending.settle(sent)
    assert not following.is_settled
    cursor.gap_fill.end()
    assert following.is_settled
