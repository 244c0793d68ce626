"""Batches of our own that are not where they belong: a broker that has forgotten a producer takes any of them."""

import itertools
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from copying.simulated import OURS, Logs, check_translation, values_of
from heliograph.model.flow import CONTINUE, FAIL, Policies
from heliograph.model.intervals import Interval

STRICT = Policies(FAIL, FAIL, FAIL, FAIL)
VALUES = [b"v%d" % number for number in range(200)]


def _copied(count: int = 100) -> Logs:
    """Of 130 records, so many are copied, and all are planned."""
    logs = Logs()
    logs.write(*VALUES[:count])
    logs.copy()
    logs.write(*VALUES[count:130])
    logs.record([interval for interval, _values in logs.plan()])
    return logs


def _check_all_is_there(logs: Logs) -> None:
    logs.copy()
    missing = Counter(value for _offset, value in values_of(logs.source))
    missing -= Counter(value for _offset, value in values_of(logs.mirror))
    assert not missing
    check_translation(logs)


def _finish(logs: Logs) -> None:
    _check_all_is_there(logs)
    assert logs.recover(STRICT).counts == {}


def _refused(logs: Logs, source_offset: int) -> None:
    for _lease in range(2):  # the next one finds the same
        refusal = logs.recover(STRICT).refusal
        assert refusal is not None
        assert (refusal.reason, refusal.source_offset) == ("out-of-sequence", source_offset)
    last_places = {value: offset for offset, value in values_of(logs.mirror)}
    for offset, value in values_of(logs.source):
        target = logs.intervals.target_of(offset, "id", logs.mirror_end)
        assert target is not None
        assert target <= last_places.get(value, logs.mirror_end), f"{target} is too late for source offset {offset}"


def test_missing_records_stop_the_partition() -> None:
    logs = _copied()
    logs.append(VALUES[110:120], 110)
    _refused(logs, 100)


def test_missing_records_are_copied_if_the_policy_allows_it() -> None:
    logs = _copied()
    logs.append(VALUES[110:120], 110)
    logs.append(VALUES[120:130], 120)
    found = logs.recover()
    assert found.position is not None
    assert (found.position.source, found.counts) == (100, {"copied-twice": 20})
    assert logs.foreign_offsets_before == -10  # as the broker expects number 130
    _finish(logs)


def test_repeated_records_stop_the_partition() -> None:
    logs = _copied(110)
    logs.append(VALUES[100:110], 100)
    _refused(logs, 110)


def test_repeated_records_are_counted_if_the_policy_allows_it() -> None:
    logs = _copied(110)
    logs.append(VALUES[100:110], 100)
    logs.append(VALUES[110:115], 110)
    found = logs.recover()
    assert found.position is not None
    assert (found.position.source, found.counts) == (115, {"copied-twice": 10})
    assert logs.foreign_offsets_before == 10
    _finish(logs)


def test_after_a_refusal_is_lifted_copying_continues_as_without_it() -> None:
    logs = _copied()
    logs.append(VALUES[110:120], 110)
    _refused(logs, 100)
    found = logs.recover()
    assert found.position is not None
    assert (found.position.source, found.counts) == (100, {"copied-twice": 10})
    _finish(logs)


def test_foreign_records_are_distinguished_from_own_missing_ones() -> None:
    logs = _copied()
    logs.append([b"theirs"] * 3, 0, producer=5)
    logs.append(VALUES[110:120], 110)
    found = logs.recover()
    assert found.counts == {"foreign-writer": 3, "copied-twice": 10}
    _finish(logs)


def test_a_batch_that_is_in_its_place_by_chance_hides_nothing() -> None:
    """One of ours is missing, the next is there twice: the second of these has the number that belongs there."""
    logs = _copied()
    logs.append(VALUES[110:120], 110)
    logs.append(VALUES[110:120], 110)
    logs.append([b"theirs"], 0, producer=5)
    found = logs.recover()
    assert found.position is not None
    assert (found.position.source, found.counts) == (100, {"foreign-writer": 1, "copied-twice": 20})
    _finish(logs)


@pytest.mark.parametrize("what", ["missing", "twice", "cut"])
def test_a_foreign_write_right_behind_hides_nothing(what: str) -> None:
    """It was decided to go back in the source, and before that is done the mirror gets records of others."""
    logs = _copied(110 if what == "twice" else 100)
    if what == "missing":
        logs.append(VALUES[110:120], 110)
    elif what == "twice":
        logs.append(VALUES[100:110], 100)
    else:
        logs.cut(90)
        logs.write(*(b"new%d" % number for number in range(60)))
    goes_on = logs.recover(cut_at=90 if what == "cut" else None).position
    assert goes_on is not None
    logs.append([b"theirs"], 0, producer=5)
    found = logs.recover()
    assert found.position is not None
    assert (found.position.source, found.counts) == (goes_on.source, {"foreign-writer": 1})
    _finish(logs)


def test_a_plan_after_going_back_counts() -> None:
    logs = _copied()
    logs.cut(90)
    logs.write(*(b"new%d" % number for number in range(60)))
    assert logs.recover(cut_at=90).counts == {"source-truncated": 10}
    logs.record([interval for interval, _values in logs.plan()])  # and then the copier dies
    found = logs.recover(STRICT)
    assert found.position is not None
    assert (found.position.source, found.counts) == (90, {})
    _finish(logs)


def test_missing_records_that_the_source_has_deleted_are_reported_as_lost() -> None:
    logs = _copied()
    logs.append(VALUES[110:120], 110)
    logs.source_start = 105
    for _lease in range(2):
        refusal = logs.recover(Policies(FAIL, FAIL, CONTINUE, FAIL)).refusal
        assert refusal is not None
        assert (refusal.reason, refusal.source_offset) == ("data-loss", 100)
    found = logs.recover()
    assert found.position is not None
    assert (found.position.source, found.counts) == (105, {"data-loss": 5, "copied-twice": 10})
    logs.copy()
    assert {value for _offset, value in values_of(logs.mirror)} == {*VALUES[:100], *VALUES[105:130]}
    assert logs.recover(STRICT).counts == {}


def test_records_that_compaction_removed_from_the_mirror_are_not_missing() -> None:
    logs = Logs()
    for number in range(5):
        logs.write(*VALUES[10 * number : 10 * number + 10])
        logs.copy()
    del logs.mirror[3]
    logs.append([b"theirs"], 0, producer=5)
    assert logs.recover().counts == {"foreign-writer": 1}
    logs.write(*VALUES[50:60])
    logs.copy()
    assert logs.recover(STRICT).counts == {}


def test_a_correction_reaches_before_the_batches_that_were_read() -> None:
    """Copying went back before: what the mirror holds from the earlier truncation on is searched again, and those
    records keep their number of foreign offsets."""
    logs = Logs()
    logs.write(*VALUES[:10])
    logs.copy()
    logs.append([b"theirs"], 0, producer=5)
    logs.cut(6)
    logs.write(b"new0")
    logs.recover(cut_at=6)
    logs.copy()
    logs.write(b"new1")
    logs.copy()
    logs.append([b"theirs"] * 4, 0, producer=5)
    logs.append([b"new1"], 11)  # a second time
    assert logs.recover().counts == {"foreign-writer": 4, "copied-twice": 5}
    logs.cut(6)
    logs.write(b"new2")
    found = logs.recover(cut_at=6)
    assert found.position is not None
    assert found.position.source == 6  # none of the records before that is copied again
    _finish(logs)


_events = st.lists(
    st.tuples(st.sampled_from(["land", "refuse", "land again", "others", "marker", "cut"]), st.integers(1, 5)),
    max_size=6,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(_events, min_size=1, max_size=4))
def test_no_record_is_left_out_whichever_batches_land(rounds: list[list[tuple[str, int]]]) -> None:
    """In each round a copier sends on, and some batches are refused, land late or twice, or between those of others;
    the source gets markers and is cut back. Then the position is found, and all is copied."""
    logs, fresh = Logs(), itertools.count()
    logs.write(*(b"first%d" % number for number in range(10)))
    logs.copy()
    reported = 0
    for events in rounds:
        cut_at = _happen(logs, events, fresh)
        last = [batch for batch in logs.mirror if batch.producer_id == OURS][-1]
        seen = any(event in ("refuse", "land again") for event, _size in events)
        # A copier that gets the response for each batch verifies before the numbers can be right again.
        assume(not seen or last.base_sequence != last.base_offset - logs.foreign_offsets_before)
        found = logs.recover(cut_at=cut_at)
        reported += sum(found.counts.values())
        _check_all_is_there(logs)
        more = sum(1 for _ in values_of(logs.mirror)) - sum(1 for _ in values_of(logs.source))
        assert more == reported if len(rounds) == 1 and cut_at is None else more <= reported


def _happen(logs: Logs, events: list[tuple[str, int]], fresh: Iterator[int]) -> int | None:
    """Where the source was cut back, if it was."""
    number = logs.mirror_end - logs.foreign_offsets_before
    sent: list[tuple[int, list[bytes]]] = []
    for event, size in events:
        if event == "marker":
            logs.write(None)
        elif event == "others":
            logs.append([b"theirs"] * size, 0, producer=5)
        elif event == "cut":
            cut_at = max(1, logs.source_end - size)
            logs.cut(cut_at)
            logs.write(b"%d" % next(fresh))
            return cut_at
        elif event == "land again":
            for first, values in sent[-size:][:1]:
                logs.append(values, first)
        else:
            values = [b"%d" % next(fresh) for _ in range(size)]
            logs.record(
                [
                    Interval(
                        number + logs.foreign_offsets_before, logs.source_end, size, "id", logs.foreign_offsets_before
                    )
                ]
            )
            logs.write(*values)
            if event == "land":
                logs.append(values, number)
            sent.append((number, values))
            number += size
    return None
