"""What becomes of fetched batches, without a broker."""

from typing import Any

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from heliograph.copy.classified import Classified, Rules
from heliograph.copy.classify import classify
from heliograph.wire.batches import mirror_header, split
from heliograph.wire.kernels import loading
from heliograph.wire.recode import Builder, DecodedRecord, records_of

_LARGE = 270_000  # bytes of a batch that is not worth joining, in either way


@pytest.fixture(autouse=True, params=["compiled", "python"])
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether batches are joined by compiled code."""
    assert loading.load()
    if request.param == "python":
        monkeypatch.setattr(loading, "_join", None)
    return str(request.param)


def _batch(offsets: list[int], attributes: int = 0, producer: int = -1, size: int = 10, codec: int = 0) -> bytes:
    """A batch that holds these source offsets, as a broker would keep it: with holes where some are missing."""
    first = offsets[0]
    builder = Builder(codec)
    records = [DecodedRecord(0, 1000 + offset, b"k%d" % offset, b"v" * size, [("h", None)]) for offset in offsets]
    for record in records:
        builder.add(record)
    built = builder.build(first, 7)
    # The compiled builder numbers records without a gap; a broker's cleaner keeps the numbers. Few tests need that.
    whole = bytearray(mirror_header(built._replace(attributes=built.attributes | attributes), producer, 0))
    whole[0:8] = first.to_bytes(8, "big")
    whole[12:16] = (7).to_bytes(4, "big")
    data = bytes(whole) + bytes(built.records)
    if attributes & 0x10:  # `mirror_header` has taken the flag of transactions away
        (batch,) = split(data)
        data = _with_attributes(data, batch.attributes | 0x10)
    return data


def _with_attributes(data: bytes, attributes: int) -> bytes:
    from crc32c import crc32c

    whole = bytearray(data)
    whole[21:23] = attributes.to_bytes(2, "big")
    whole[17:21] = crc32c(bytes(whole[21:])).to_bytes(4, "big")
    return bytes(whole)


def _marker(offset: int, producer: int, commit: bool) -> bytes:
    builder = Builder(0)
    builder.add(DecodedRecord(0, 5, b"\0\0" + (b"\0\1" if commit else b"\0\0"), b"\0\0\0\0\0\0", []))
    built = builder.build(offset, 7)
    head = bytearray(mirror_header(built, producer, 0))
    head[0:8] = offset.to_bytes(8, "big")
    return _with_attributes(bytes(head) + bytes(built.records), 0x30)


def _offsets(classified: Classified) -> list[int]:
    return [first + n for outgoing in classified.outgoing for first, count in outgoing.runs for n in range(count)]


def _keys(classified: Classified) -> list[bytes | None]:
    return [record.key for outgoing in classified.outgoing for record in records_of(outgoing.batch)]


def test_whole_batches_are_sent_as_they_are() -> None:
    data = b"".join(_batch(list(range(at, at + 50)), size=_LARGE // 50) for at in (10, 60, 110))
    classified = classify(data, 10, -1, Rules())
    assert [outgoing.is_reencoded for outgoing in classified.outgoing] == [False] * 3
    assert b"".join(bytes(outgoing.batch.data) for outgoing in classified.outgoing) == data
    assert (classified.next_source, classified.epoch, classified.problem) == (160, 7, None)


def test_a_batch_between_joined_ones_does_not_keep_the_response_in_memory() -> None:
    data = _batch([0]) + _batch([1]) + _batch(list(range(2, 52)), size=_LARGE // 50)
    classified = classify(data, 0, -1, Rules())
    assert [outgoing.is_reencoded for outgoing in classified.outgoing] == [True, False]
    assert classified.leave_response(len(data)) == 0
    assert all(outgoing.has_own_bytes for outgoing in classified.outgoing)
    last = classified.outgoing[-1].batch.data
    assert last == data[-len(last) :]
    assert last.obj is not data


def test_a_response_is_kept_in_memory_if_most_of_it_is_sent_as_it_is() -> None:
    data = _batch(list(range(50)), size=_LARGE // 50)
    classified = classify(data, 0, -1, Rules())
    assert classified.leave_response(len(data)) == len(data)
    assert not classified.outgoing[0].has_own_bytes
    assert classified.leave_response(3 * len(data)) == 0  # most of it is of other partitions
    assert classified.outgoing[0].has_own_bytes


def test_small_batches_are_joined_and_their_records_stay_the_same() -> None:
    data = b"".join(_batch([offset]) for offset in range(10, 200))
    classified = classify(data, 10, -1, Rules())
    (outgoing,) = classified.outgoing
    assert (tuple(outgoing.runs), outgoing.next_source, outgoing.batch.count) == (((10, 190),), 200, 190)
    assert [record[1:] for record in records_of(outgoing.batch)] == [
        (1000 + offset, b"k%d" % offset, b"v" * 10, [("h", None)]) for offset in range(10, 200)
    ]


def test_a_single_small_batch_is_sent_as_it_is() -> None:
    data = _batch([10])
    (outgoing,) = classify(data, 10, -1, Rules()).outgoing
    assert not outgoing.is_reencoded
    assert bytes(outgoing.batch.data) == data


def test_small_batches_of_one_codec_are_joined_up_to_a_size() -> None:
    thin = [_batch([offset], size=100) for offset in range(100)]
    outgoing = classify(b"".join(thin), 0, -1, Rules(join_up_to=2000)).outgoing
    assert all(batch.batch.size <= 2200 for batch in outgoing)
    assert sum(batch.batch.count for batch in outgoing) == 100
    mixed = b"".join(_batch([offset], codec=offset // 5 % 2 * 3) for offset in range(20))
    assert [outgoing.batch.codec for outgoing in classify(mixed, 0, -1, Rules()).outgoing] == [
        "none",
        "lz4",
        "none",
        "lz4",
    ]


def test_a_large_batch_between_small_ones_stays_between_them() -> None:
    data = _batch([0]) + _batch([1]) + _batch(list(range(2, 60)), size=_LARGE // 58) + _batch([60]) + _batch([61])
    classified = classify(data, 0, -1, Rules())
    assert [outgoing.batch.count for outgoing in classified.outgoing] == [2, 58, 2]
    assert _offsets(classified) == list(range(62))
    assert [outgoing.next_source for outgoing in classified.outgoing] == [2, 60, 62]


def test_records_before_the_position_are_left_out() -> None:
    classified = classify(_batch(list(range(10, 60)), size=100), 40, -1, Rules())
    assert _offsets(classified) == list(range(40, 60))
    assert _keys(classified) == [b"k%d" % offset for offset in range(40, 60)]


def test_batches_before_the_position_do_not_move_it() -> None:
    classified = classify(_batch(list(range(10, 60))), 60, 3, Rules())
    assert (classified.outgoing, classified.next_source, classified.epoch) == ([], 60, 3)


def test_markers_are_left_out_and_move_the_position() -> None:
    data = (
        _batch([0, 1], 0x10, 9, size=_LARGE // 2)
        + _marker(2, 9, True)
        + _batch([3, 4], 0x10, 9, size=_LARGE // 2)
        + _marker(5, 9, True)
    )
    classified = classify(data, 0, -1, Rules())
    assert _offsets(classified) == [0, 1, 3, 4]
    assert [outgoing.next_source for outgoing in classified.outgoing] == [3, 6]
    assert classified.next_source == 6
    assert classify(_marker(5, 9, True), 5, -1, Rules()).next_source == 6


def test_aborted_records_are_left_out_up_to_their_marker() -> None:
    data = (
        _batch([0, 1], 0x10, 9)
        + _batch([2], 0x10, 8)
        + _marker(3, 9, False)
        + _batch([4], 0x10, 9)
        + _marker(5, 9, True)
        + _marker(6, 8, True)
    )
    assert _offsets(classify(data, 0, -1, Rules(), [(9, 0)])) == [2, 4]
    assert _offsets(classify(data, 0, -1, Rules(committed_only=False), [(9, 0)])) == [0, 1, 2, 4]


def test_a_marker_without_its_aborted_records_hides_nothing() -> None:
    data = _marker(3, 9, False) + _batch([4], 0x10, 9) + _marker(5, 9, True)
    assert _offsets(classify(data, 3, -1, Rules(), [(9, 0)])) == [4]


def test_a_committed_transaction_between_two_aborted_ones_of_a_producer_is_copied() -> None:
    data = (
        _batch([0], 0x10, 9)
        + _marker(1, 9, False)
        + _batch([2], 0x10, 9)
        + _marker(3, 9, True)
        + _batch([4], 0x10, 9)
        + _marker(5, 9, False)
    )
    assert _offsets(classify(data, 0, -1, Rules(), [(9, 4), (9, 0)])) == [2]


def test_a_batch_with_log_append_time_gets_the_times_that_consumers_saw() -> None:
    data = _with_attributes(_batch(list(range(5))), 0x08)
    (batch,) = split(data)
    (outgoing,) = classify(data, 0, -1, Rules()).outgoing
    assert not outgoing.batch.log_append_time
    assert {record.timestamp for record in records_of(outgoing.batch)} == {batch.max_timestamp}


def test_messages_of_old_formats_are_converted() -> None:
    for magic, codec, time_kept in ((0, 0, -1), (1, 0, 77), (1, 1, 77)):
        builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
        for number in range(5):
            builder.append(number, timestamp=77, key=b"k%d" % number, value=None)
        data = bytearray(builder.build())
        if codec:
            data[0:8] = (4).to_bytes(8, "big")  # as a broker does: the offset of a set is that of its last
        classified = classify(bytes(data) + _batch([5]), 0, -1, Rules())
        assert _keys(classified) == [b"k%d" % number for number in range(6)]
        assert next(records_of(classified.outgoing[0].batch)).timestamp == time_kept
        assert classified.next_source == 6


def test_a_batch_that_is_too_large_is_split_until_it_fits() -> None:
    for codec in range(5):
        noise = [DecodedRecord(0, 5, None, bytes((n * m) % 251 for m in range(400)), []) for n in range(64)]
        builder = Builder(codec)
        for record in noise:
            builder.add(record)
        built = builder.build(0, 7)
        head = bytearray(mirror_header(built, -1, 0))
        classified = classify(bytes(head) + bytes(built.records), 0, -1, Rules(max_batch_bytes=3000))
        assert classified.problem is None
        assert all(outgoing.batch.size <= 3000 for outgoing in classified.outgoing)
        assert len(classified.outgoing) > 1 or built.size <= 3000
        values = [record.value for outgoing in classified.outgoing for record in records_of(outgoing.batch)]
        assert values == [record.value for record in noise]
        assert _offsets(classified) == list(range(64))


def test_a_record_that_is_too_large_is_a_problem_or_is_parked() -> None:
    data = _batch([0, 1], size=600) + _batch([2], size=5000) + _batch([3, 4], size=600)
    classified = classify(data, 0, -1, Rules(max_batch_bytes=2000))
    assert classified.problem is not None
    assert (classified.problem[0], classified.next_source, _offsets(classified)) == ("too-large", 2, [0, 1])
    classified = classify(data, 0, -1, Rules(max_batch_bytes=2000, parks=True))
    assert classified.problem is None
    assert (_offsets(classified), classified.next_source) == ([0, 1, 3, 4], 5)
    assert [(left_out.record.offset, left_out.record.key) for left_out in classified.left_out] == [(2, b"k2")]


def test_records_that_the_target_refused_are_parked() -> None:
    classified = classify(_batch(list(range(5))), 0, -1, Rules(parks=True), refused_records={1: "why", 4: "why"})
    assert _offsets(classified) == [0, 2, 3]
    assert [left_out.record.offset for left_out in classified.left_out] == [1, 4]
    assert classified.next_source == 5


def test_records_can_be_sent_singly() -> None:
    classified = classify(_batch(list(range(6))), 0, -1, Rules(send_singly_until=4))
    assert [outgoing.batch.count for outgoing in classified.outgoing] == [1, 1, 1, 1, 2]
    assert [outgoing.next_source for outgoing in classified.outgoing] == [1, 2, 3, 4, 6]


def test_zstd_becomes_lz4_for_a_target_that_does_not_know_it() -> None:
    (outgoing,) = classify(_batch(list(range(50)), codec=4), 0, -1, Rules(zstd=False)).outgoing
    assert outgoing.batch.codec == "lz4"


def test_each_batch_has_its_reencode_reason() -> None:
    whole = _batch(list(range(5)), size=300)
    compacted = bytearray(whole)
    compacted[23:27] = (9).to_bytes(4, "big")  # it once reached to offset 9
    legacy = LegacyRecordBatchBuilder(magic=1, compression_type=0, batch_size=1 << 20)
    legacy.append(0, timestamp=77, key=b"k", value=None)

    def why(data: bytes, position: int = 0, rules: Rules | None = None, **others: Any) -> set[str]:
        return {
            outgoing.reencode_reason for outgoing in classify(data, position, -1, rules or Rules(), **others).outgoing
        }

    assert why(whole) == {""}
    assert why(_with_attributes(bytes(compacted), 0)) == {"holes"}
    assert why(whole, 3) == {"overlap"}
    assert why(_with_attributes(whole, 0x08)) == {"stamped"}
    assert why(bytes(legacy.build())) == {"old-format"}
    assert why(whole, rules=Rules(max_batch_bytes=1000)) == {"too-large"}
    assert why(whole, rules=Rules(send_singly_until=2)) == why(whole, refused_records={1: "why"}) == {"refused"}
    assert why(_batch(list(range(5)), codec=4), rules=Rules(zstd=False)) == {"no-zstd"}
    assert why(_batch([0]) + _batch([1])) == why(_batch([0], 0x10, 9) + _batch([1], 0x10, 9)) == {"thin"}


def test_batches_before_a_damaged_one_are_copied() -> None:
    bad = bytearray(_batch([2, 3]))
    bad[-1] ^= 1
    classified = classify(_batch([0, 1]) + bytes(bad) + _batch([4]), 0, -1, Rules())
    assert classified.problem is not None
    assert (classified.problem[0], classified.next_source, _offsets(classified)) == ("damaged", 2, [0, 1])


def test_records_without_a_timestamp_have_none_when_reencoded() -> None:
    builder = Builder(0)
    for moment in (-1, 5, -1, 9):
        builder.add(DecodedRecord(0, moment, None, b"", []))
    batch = builder.build(0, 0)
    assert [record.timestamp for record in records_of(batch)] == [-1, 5, -1, 9] or batch.base_timestamp == -1
    (again,) = split(mirror_header(batch, -1, 0) + bytes(batch.records))
    assert [record.timestamp for record in records_of(again)] == [-1, 5, -1, 9]


def test_no_record_is_copied_of_a_damaged_batch_that_must_be_reencoded() -> None:
    good = _with_attributes(_batch([0, 1, 2]), 0x08)
    broken = bytearray(_batch([3, 4, 5]))
    broken[broken.rindex(b"k5") - 5] += 2  # says that its last record is one byte longer than it is
    bad = _with_attributes(bytes(broken), 0x08)
    classified = classify(good + bad, 0, -1, Rules())
    assert classified.problem is not None
    assert (classified.problem[0], classified.next_source, _offsets(classified)) == ("damaged", 3, [0, 1, 2])
    assert [outgoing.next_source for outgoing in classified.outgoing] == [3]
    assert _keys(classified) == [b"k0", b"k1", b"k2"]


def test_batches_of_one_response_that_must_be_reencoded_are_joined() -> None:
    data = b"".join(_with_attributes(_batch(list(range(at, at + 20))), 0x08) for at in range(0, 400, 20))
    (outgoing,) = classify(data, 5, -1, Rules()).outgoing
    assert tuple(outgoing.runs) == ((5, 395),)
    assert len(classify(data, 5, -1, Rules(join_up_to=4000)).outgoing) > 2


def test_small_batches_of_transactions_are_joined_across_their_markers() -> None:
    data = b"".join(_batch([at], 0x10, 9) + _marker(at + 1, 9, True) for at in range(0, 40, 2))
    classified = classify(data, 0, -1, Rules())
    (outgoing,) = classified.outgoing
    assert _offsets(classified) == list(range(0, 40, 2))
    assert (outgoing.next_source, classified.next_source) == (40, 40)
    assert _keys(classified) == [b"k%d" % at for at in range(0, 40, 2)]


def test_small_zstd_batches_become_lz4_for_a_target_that_does_not_know_it() -> None:
    data = b"".join(_batch([at], codec=4) for at in range(10))
    classified = classify(data, 0, -1, Rules(zstd=False))
    assert {outgoing.batch.codec for outgoing in classified.outgoing} == {"lz4"}
    assert _offsets(classified) == list(range(10))


def _with_odd_header(offset: int, attributes: int = 0) -> bytes:
    """A good record whose header has a name that is not UTF-8, as clients in C can write it."""
    data = bytearray(_batch([offset]))
    at = bytes(data).rindex(b"h")
    data[at] = 0xFF
    return _with_attributes(bytes(data), attributes)


def test_a_small_batch_that_cannot_be_decoded_is_sent_as_it_is(code: str) -> None:
    odd = _with_odd_header(1)
    classified = classify(_batch([0]) + odd + _batch([2]) + _batch([3]), 0, -1, Rules())
    assert classified.problem is None
    assert _offsets(classified) == [0, 1, 2, 3]
    assert any(bytes(outgoing.batch.data) == odd for outgoing in classified.outgoing) == (code == "python")
    assert sum(bytes(outgoing.batch.records).count(b"\xff") for outgoing in classified.outgoing) == 1
    in_transaction = _with_odd_header(1, 0x10)
    classified = classify(_batch([0], 0x10, 9) + in_transaction, 0, -1, Rules())
    assert (classified.problem, _offsets(classified)) == (None, [0, 1])


def test_a_batch_that_must_be_reencoded_and_cannot_be_decoded_stops_the_partition(code: str) -> None:
    classified = classify(_batch([0]) + _with_odd_header(1, 0x08), 0, -1, Rules())
    if code == "compiled":  # names of headers are bytes like others
        assert (classified.problem, _offsets(classified)) == (None, [0, 1])
        return
    assert classified.problem is not None
    assert (classified.problem[0], classified.next_source, _offsets(classified)) == ("damaged", 1, [0])


def test_an_impossible_length_behind_a_small_batch_is_detected() -> None:
    for length in (-20, 0, 5, 40):
        bad = bytearray(_batch([1]))
        bad[8:12] = length.to_bytes(4, "big", signed=True)
        classified = classify(_batch([0]) + bytes(bad), 0, -1, Rules())
        assert classified.problem is not None
        assert (classified.problem[0], _offsets(classified)) == ("damaged", [0])


def test_records_without_a_timestamp_have_none_when_batches_are_joined() -> None:
    def at(offset: int, moment: int, attributes: int) -> bytes:
        builder = Builder(0)
        builder.add(DecodedRecord(0, moment, b"k", b"v", []))
        built = builder.build(offset, 7)
        head = bytearray(mirror_header(built, 9, 0))
        head[0:8] = offset.to_bytes(8, "big")
        return _with_attributes(bytes(head) + bytes(built.records), attributes)

    for attributes in (0, 0x10):
        for moments in ([-1, 10**12, -1], [10**12, -1, 5], [-1, -1, 7]):
            data = b"".join(at(offset, moment, attributes) for offset, moment in enumerate(moments))
            classified = classify(data, 0, -1, Rules())
            seen = [record.timestamp for outgoing in classified.outgoing for record in records_of(outgoing.batch)]
            assert seen == moments


def test_the_position_has_the_epoch_of_what_was_left_out() -> None:
    marker = bytearray(_marker(2, 9, True))
    marker[12:16] = (8).to_bytes(4, "big")
    (outgoing,) = classify(_batch([0, 1], 0x10, 9, size=800) + bytes(marker), 0, -1, Rules()).outgoing
    assert (outgoing.next_source, outgoing.epoch) == (3, 8)
