"""What is copied after an unclean election on the source, where the source does not have any more what was copied."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from copying import simulated
from copying.simulated import LENIENT, Logs, Simulated, check_translation, values_of
from heliograph.copy.candidate import Candidate
from heliograph.copy.tail_match import MirrorTail
from heliograph.model.flow import Policies
from heliograph.wire.recode import DecodedRecord

Records = Sequence[bytes | None]


def _numbered(name: str, count: int) -> list[bytes]:
    return [b"%s%d" % (name.encode(), number) for number in range(count)]


def _cut_and_rewritten(before: Records, lost: Records, after: Records) -> Logs:
    """A source of which `lost` was copied, and replaced then."""
    logs = Logs()
    logs.write(*before, *lost)
    logs.copy()
    logs.cut(len(before))
    logs.write(*after)
    return logs


def _check_all_is_there(logs: Logs) -> None:
    logs.copy()
    missing = Counter(value for _offset, value in values_of(logs.source))
    missing -= Counter(value for _offset, value in values_of(logs.mirror))
    assert not missing
    check_translation(logs)


OLD, SENT = _numbered("old", 100), _numbered("r", 10)


@pytest.mark.parametrize(
    ("after", "goes_on", "twice", "only_in_mirror"),
    [
        ([b"x", *SENT], 100, 10, 0),
        ([*SENT, b"x"], 110, 0, 0),
        ([*SENT[:4], b"x", *SENT[4:]], 104, 6, 0),
        ([*SENT[:4], b"x", *SENT[5:]], 104, 5, 1),  # behind x all stand at the same offsets as before
        ([None, b"x", *SENT[2:]], 100, 8, 2),
        ([b"x", None, *SENT[2:]], 100, 8, 2),
        ([*SENT[5:], *SENT[:5]], 105, 5, 0),
        ([*SENT[2:], b"x"], 108, 0, 2),
        ([*_numbered("x", 500), *SENT], 100, 10, 0),
        ([None, *SENT[:9], None, b"x"], 110, 0, 1),
        ([b"x"], 100, 0, 10),
        ([], 100, 0, 10),
    ],
)
def test_copying_continues_with_the_first_record_that_was_not_copied(
    after: list[bytes | None], goes_on: int, twice: int, only_in_mirror: int
) -> None:
    logs = _cut_and_rewritten(OLD, SENT, after)
    found = logs.recover(cut_at=100)
    assert found.position is not None
    assert (found.position.source, found.position.target) == (goes_on, 110)
    assert found.counts.get("copied-twice", 0) == twice
    assert found.counts.get("source-truncated", 0) == only_in_mirror
    _check_all_is_there(logs)
    assert logs.recover().counts == {}


def test_the_mirrors_last_record_shows_that_the_source_was_truncated() -> None:
    logs = _cut_and_rewritten(OLD, SENT, [b"x", *SENT])
    found = logs.recover()
    assert found.position is not None
    assert (found.position.source, found.counts) == (100, {"copied-twice": 10})
    _check_all_is_there(logs)


def test_a_place_where_both_logs_agree_by_chance_hides_no_record_before_it() -> None:
    logs = _cut_and_rewritten(OLD, SENT, [b"x", *SENT[1:9], b"y"])
    found = logs.recover()  # nobody has seen the cut: only the last record tells
    assert found.position is not None
    assert (found.position.source, found.counts) == (100, {"source-truncated": 2, "copied-twice": 8})
    _check_all_is_there(logs)


@pytest.mark.parametrize("compacted", [1, 5, 9])
def test_a_truncation_is_detected_where_compaction_has_removed_what_the_last_batch_can_be_compared_with(
    compacted: int,
) -> None:
    logs = _cut_and_rewritten(OLD, SENT, [*_numbered("x", 10), b"y"])
    logs.compact(110 - compacted, 110)
    found = logs.recover()
    assert found.position is not None
    assert (found.position.source, found.counts) == (100, {"source-truncated": 10})
    _check_all_is_there(logs)


def test_compaction_alone_is_no_truncation() -> None:
    logs = _cut_and_rewritten(OLD, SENT, [*SENT, b"y"])
    logs.compact(102, 110)
    found = logs.recover()
    assert found.position is not None
    assert (found.position.source, found.counts) == (110, {})
    _check_all_is_there(logs)


def test_the_partition_stops_where_the_policy_says_fail() -> None:
    logs = _cut_and_rewritten(OLD, SENT, [b"x", *SENT])
    refusal = logs.recover(Policies(data_loss="fail"), cut_at=100).refusal
    assert refusal is not None
    assert refusal.reason == "source-truncated"


def test_records_that_are_too_many_to_search_are_copied_again_and_counted() -> None:
    logs = _cut_and_rewritten(OLD, SENT, [*SENT[:4], b"x", *SENT[4:]])
    found = logs.recover(cut_at=100, search_bytes=1000)
    assert found.position is not None
    assert (found.position.source, found.counts) == (100, {"source-truncated": 0, "copied-twice": 10})
    assert "heliograph.buffer.memory" in found.texts[1]
    _check_all_is_there(logs)


def test_the_notice_names_the_offset_up_to_which_the_source_was_searched() -> None:
    lines = [b"x" * 100 + b"%d" % number for number in range(500)]
    logs = _cut_and_rewritten(OLD, SENT, [*lines, *SENT])
    found = logs.recover(cut_at=100, search_bytes=20_000)
    assert found.counts == {"source-truncated": 10}
    assert "up to which it was searched" in found.texts[0]
    _check_all_is_there(logs)


def test_logs_are_compared_back_only_as_far_as_the_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = _cut_and_rewritten(_numbered("old", 5000), SENT, [b"x", *SENT])
    read: list[int] = []

    class Counted(Simulated):
        def source_records(self, one: Candidate, start: int, end: int) -> AsyncIterator[DecodedRecord]:
            read.append(end - start)
            return super().source_records(one, start, end)

    monkeypatch.setattr(simulated, "Simulated", Counted)
    found = logs.recover(cut_at=5000, search_bytes=20_000)
    assert found.position is not None
    assert (found.position.source, found.counts) == (5000, {"source-truncated": 0, "copied-twice": 10})
    assert sum(read) < 2000


def test_records_that_retention_deleted_as_well_are_reported() -> None:
    logs = _cut_and_rewritten(OLD, SENT, _numbered("x", 100))
    logs.source_start = 150
    found = logs.recover(cut_at=100)
    assert found.position is not None
    assert (found.position.source, found.counts) == (150, {"data-loss": 50, "source-truncated": 0})


def test_a_truncation_before_an_earlier_one_is_detected() -> None:
    logs = _cut_and_rewritten(OLD, _numbered("a", 20), _numbered("b", 30))
    assert logs.recover(cut_at=100).counts == {"source-truncated": 20}
    logs.copy()
    logs.cut(90)
    logs.write(b"x", *OLD[91:], *_numbered("a", 20), None, *_numbered("c", 9))
    found = logs.recover(cut_at=90)
    assert found.position is not None
    assert found.position.source == 90
    assert found.counts == {"source-truncated": 31, "copied-twice": 29}
    _check_all_is_there(logs)


def test_equal_records_are_matched_in_linear_time() -> None:
    many = 200_000
    tail = MirrorTail([(place, b"a" if place % 2 else b"b") for place in range(many)], 0)
    for offset in range(many):
        tail.match(offset, b"a")
    assert (tail.matched, tail.twice, tail.only_in_mirror) == (many // 2, 0, many // 2)


_records = st.lists(st.sampled_from([None, *(b"%d" % number for number in range(6))]), max_size=12)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(_records, st.lists(st.tuples(st.integers(0, 100), _records, st.booleans()), min_size=1, max_size=4))
def test_no_record_is_left_out_however_the_source_is_truncated(
    before: list[bytes | None], rounds: list[tuple[int, list[bytes | None], bool]]
) -> None:
    """Records are few, so that the same ones come at other places and at the same ones."""
    logs = Logs()
    logs.write(b"first", *before)
    logs.copy()
    reported = 0
    for cut, after, distinct in rounds:
        offset = 1 + cut * (logs.source_end - 1) // 100
        logs.cut(offset)
        logs.write(*(value if value is None or not distinct else b"%s-%d" % (value, cut) for value in after))
        found = logs.recover(LENIENT, cut_at=offset)
        reported += sum(found.counts.values())
        _check_all_is_there(logs)
        more = sum(1 for _ in values_of(logs.mirror)) - sum(1 for _ in values_of(logs.source))
        assert more <= reported
        if len(rounds) == 1:
            assert more == reported
