"""Batches as bytes: splitting a chunk, rewriting the header."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record import MemoryRecords
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from heliograph.wire.batches import BadBatch, mirror_header, sequence, split
from heliograph.wire.records import Record, encode

_bytes = st.none() | st.binary(max_size=50)
_headers = st.lists(st.tuples(st.text(max_size=8), _bytes), max_size=3).map(tuple)
_records = st.lists(
    st.builds(Record, st.just(0), st.integers(-1, 2**45), _bytes, _bytes, _headers), min_size=1, max_size=20
)
_PRODUCER = (1 << 62) + 5


@given(_records, st.integers(0, 4))
def test_a_rewritten_batch_is_valid_and_keeps_every_record(records: list[Record], codec: int) -> None:
    (batch,) = split(encode(records, codec))
    again = bytes(mirror_header(batch, _PRODUCER, 77)) + bytes(batch.records)
    read = MemoryRecords(again).next_batch()
    assert read.validate_crc()
    assert (read.producer_id, read.producer_epoch, read.base_sequence) == (_PRODUCER, 0, 77)
    assert read.base_offset == 0
    assert [(record.timestamp, record.key, record.value, tuple(record.headers)) for record in read] == [
        (record.timestamp, record.key, record.value, record.headers) for record in records
    ]
    (parsed,) = split(again)
    assert parsed.has_valid_checksum()
    assert parsed.codec == batch.codec


def test_a_batch_that_the_fetch_has_cut_off_is_left_for_the_next_fetch() -> None:
    first, second = encode([Record(0, 1, b"k", b"v")]), encode([Record(0, 2, b"k", b"w" * 100)])
    for missing in (1, 60, len(second) - 1):
        assert [batch.max_timestamp for batch in split(first + second[:-missing])] == [1]
    assert len(list(split(first + second))) == 2


def test_the_checksum_detects_damage() -> None:
    whole = bytearray(encode([Record(0, 1, b"k", b"v" * 50)]))
    whole[-3] ^= 0x40
    (batch,) = split(bytes(whole))
    assert not batch.has_valid_checksum()


def test_an_impossible_length_is_an_error_and_not_an_endless_loop() -> None:
    whole = bytearray(encode([Record(0, 1, b"k", b"v")]))
    whole[8:12] = (3).to_bytes(4, "big")
    with pytest.raises(BadBatch):
        list(split(bytes(whole)))


def test_messages_of_the_old_formats_are_found_between_batches() -> None:
    old = LegacyRecordBatchBuilder(magic=1, compression_type=0, batch_size=1 << 20)
    for number in range(3):
        old.append(number, timestamp=5, key=b"k", value=b"v")
    new = encode([Record(0, 1, b"k", b"v")])
    found = list(split(new + bytes(old.build()) + new))
    assert [batch.magic for batch in found] == [2, 1, 1, 1, 2]
    assert [batch.next_offset for batch in found[1:4]] == [1, 2, 3]


def test_the_delete_horizon_flag_of_a_compacted_source_is_removed() -> None:
    whole = bytearray(encode([Record(0, 1, b"k", None)]))
    whole[22] |= 0x40
    (batch,) = split(bytes(whole))
    (sent,) = split(mirror_header(batch, _PRODUCER, 0) + bytes(batch.records))
    assert sent.attributes & 0x40 == 0
    assert sent.base_timestamp == batch.base_timestamp


def test_sequences_wrap_to_zero_after_the_largest() -> None:
    assert [sequence(2**31 - 1), sequence(2**31), sequence(2**33 + 7)] == [2**31 - 1, 0, 7]
