"""`compression.type`: batches get the compression that is asked for, and hold the same records. Without a broker."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from heliograph.copy.classified import Classified, Rules
from heliograph.copy.classify import classify
from heliograph.copy.target_limits import TargetLimits
from heliograph.model.compression import COMPRESSION_TYPES, Compression
from heliograph.wire import joining, recompress
from heliograph.wire.batches import HEADER, Batch, mirror_header, split
from heliograph.wire.kernels import loading
from heliograph.wire.recode import GZIP, LZ4, NONE, SNAPPY, ZSTD, DecodedRecord, codec_of, compress, records_of
from heliograph.wire.recompress import decompressed_parts

_CODECS = range(len(COMPRESSION_TYPES))
_LOG_APPEND_TIME, _TRANSACTIONAL, _CONTROL = 0x08, 0x10, 0x20
_BIG = 1 << 30


@pytest.fixture(autouse=True, scope="module", params=["compiled", "python"])
def code(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whether batches are joined by compiled code."""
    assert loading.load()
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "python":
            patch.setattr(loading, "_join", None)
        yield


def _records(first: int, count: int, size: int = 100) -> list[DecodedRecord]:
    numbers = range(first, first + count)
    return [DecodedRecord(number, 1000 + number, b"k%d" % number, b"v" * size, [("h", None)]) for number in numbers]


def _random_records(first: int, count: int) -> list[DecodedRecord]:
    """Their batches are too large to be joined with others, however they are compressed."""
    random = Random(first)
    return [record._replace(value=3 * random.randbytes(2400)) for record in _records(first, count)]


def _batch(records: Sequence[DecodedRecord], codec: int = NONE, attributes: int = 0, producer: int = -1) -> bytes:
    """A batch as a broker stores it, with holes where offsets are missing."""
    first = records[0].offset
    builder = DefaultRecordBatchBuilder(2, codec, bool(attributes & _TRANSACTIONAL), producer, 0, 0, _BIG)
    for record in records:
        builder.append(record.offset - first, record.timestamp, record.key, record.value, record.headers)
    whole = bytearray(builder.build())
    whole[0:8] = first.to_bytes(8, "big")
    whole[12:16] = (7).to_bytes(4, "big")
    whole[22] |= attributes
    whole[17:21] = crc32c(bytes(whole[21:])).to_bytes(4, "big")
    return bytes(whole)


def _marker(offset: int, producer: int, commit: bool) -> bytes:
    record = DecodedRecord(offset, 5, b"\0\0\0\1" if commit else b"\0\0\0\0", b"\0\0\0\0\0\0", [])
    return _batch([record], NONE, _TRANSACTIONAL | _CONTROL, producer)


def _copied(classified: Classified) -> list[DecodedRecord]:
    """The records that arrive at the target, with their source offsets."""
    copied = []
    for outgoing in classified.outgoing:
        (batch,) = split(mirror_header(outgoing.batch, 1, 0) + bytes(outgoing.batch.records))
        assert batch.has_valid_checksum()
        records = list(records_of(batch))
        assert [record.offset for record in records] == list(range(len(records))), "a broker refuses holes"
        offsets = [first + number for first, count in outgoing.runs for number in range(count)]
        copied += [record._replace(offset=offset) for record, offset in zip(records, offsets, strict=True)]
    return copied


def _codecs(classified: Classified) -> set[int]:
    return {codec_of(outgoing.batch) for outgoing in classified.outgoing}


def _bytes(classified: Classified) -> bytes:
    return b"".join(bytes(outgoing.batch.data) for outgoing in classified.outgoing)


# --- any log ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A batch of the log: `holes` are offsets that are left out after each record, in turn."""

    records: list[DecodedRecord]
    codec: int
    holes: list[int]
    is_stamped: bool = False
    ends: bool | None = None  # of a transaction, which commits or aborts after it; None: it is of none


_times = st.sampled_from([0, 1, 1_600_000_000_000, 1_700_000_000_123, 4_000_000_000_000])
_value = st.none() | st.binary(max_size=30) | st.integers(0, 5000).map(lambda size: b"x" * size)
_headers = st.lists(st.tuples(st.sampled_from(["", "h", "ü"]), st.none() | st.binary(max_size=5)), max_size=2)
_record = st.builds(DecodedRecord, st.just(0), _times, st.none() | st.binary(max_size=9), _value, _headers)
_step = st.builds(
    Step,
    st.lists(_record, min_size=1, max_size=30),
    st.sampled_from(_CODECS),
    st.lists(st.integers(0, 2), min_size=1, max_size=4) | st.just([0]),
    st.booleans(),
    st.none() | st.booleans(),
)


def _log(steps: list[Step], start: int) -> tuple[bytes, list[tuple[int, int]], list[DecodedRecord]]:
    """The bytes of a log, its aborted transactions, and the records that a read-committed consumer sees."""
    data, at = b"", start
    aborted: list[tuple[int, int]] = []
    seen: list[DecodedRecord] = []
    for producer, step in enumerate(steps, 100):
        records = []
        for number, record in enumerate(step.records):
            records.append(record._replace(offset=at))
            at += 1 + step.holes[number % len(step.holes)]
        attributes = _LOG_APPEND_TIME if step.is_stamped else 0
        if step.ends is None:
            data += _batch(records, step.codec, attributes)
        else:
            data += _batch(records, step.codec, attributes | _TRANSACTIONAL, producer)
            data += _marker(at, producer, step.ends)
            at += 1
        if step.ends is False:
            aborted.append((producer, records[0].offset))
            continue
        newest = max(record.timestamp for record in records)
        seen += [record._replace(timestamp=newest) if step.is_stamped else record for record in records]
    return data, aborted, seen


@settings(max_examples=150, deadline=None)
@given(
    st.lists(_step, min_size=1, max_size=8),
    st.sampled_from(_CODECS),
    st.sampled_from([0, 500, 900_000]),
    st.sampled_from([0, 0, 2000]),
    st.booleans(),
    st.integers(0, 40),
)
def test_records_offsets_and_gaps_of_any_log_stay(
    steps: list[Step], codec: int, join_up_to: int, limit: int, preserves: bool, skipped: int
) -> None:
    data, aborted, seen = _log(steps, 10)
    rules = Rules(join_up_to=join_up_to, max_batch_bytes=limit, parks=True, preserve_offsets=preserves)
    asked = replace(rules, compression=Compression(COMPRESSION_TYPES[codec]), split_over=join_up_to or 900_000)
    plain, recoded = (classify(data, 10 + skipped, -1, either, aborted) for either in (rules, asked))
    for classified in (plain, recoded):
        assert classified.problem is None
        left_out = {left_out.record.offset for left_out in classified.left_out}
        expected = [record for record in seen if record.offset >= 10 + skipped and record.offset not in left_out]
        assert _copied(classified) == expected
    assert (recoded.next_source, recoded.epoch) == (plain.next_source, plain.epoch)
    for outgoing in recoded.outgoing:
        if codec_of(outgoing.batch) != codec:  # compressed, it would be larger
            assert codec_of(outgoing.batch) == NONE
            records = bytes(outgoing.batch.records)
            assert len(compress(records, codec)) >= len(records)
    assert [list(records_of(batch)) for batch in recoded.aborted] == [
        list(records_of(batch)) for batch in plain.aborted
    ]
    if limit:
        assert all(outgoing.size <= limit for outgoing in (*plain.outgoing, *recoded.outgoing))


# --- what is joined, kept and split -------------------------------------------------------------------------------


def _asked(codec: int, level: int | None = None) -> Rules:
    return Rules(compression=Compression(COMPRESSION_TYPES[codec], level))


def test_without_the_setting_every_batch_keeps_its_compression_and_its_bytes() -> None:
    data = b"".join(_batch(_random_records(40 * codec, 40), codec) for codec in _CODECS)
    assert _bytes(classify(data, 0, -1, Rules())) == data


@pytest.mark.parametrize("codec", _CODECS)
def test_batches_of_that_type_keep_their_bytes(codec: int) -> None:
    data = _batch(_random_records(0, 40), codec) + _batch(_random_records(40, 40), codec)
    classified = classify(data, 0, -1, _asked(codec))
    assert _bytes(classified) == data
    assert not any(outgoing.is_reencoded for outgoing in classified.outgoing)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_small_neighbours_are_joined_and_keep_their_compression(codec: int) -> None:
    batches = [_batch(_records(first, 10), codec) for first in range(0, 500, 10)]
    classified = classify(b"".join(batches), 0, -1, Rules())
    assert [outgoing.count for outgoing in classified.outgoing] == [500]
    assert _codecs(classified) == {codec}
    assert _copied(classified) == _records(0, 500)


def test_what_comes_between_small_compressed_batches_keeps_its_place() -> None:
    small = [_batch(_records(first, 10), LZ4) for first in range(0, 60, 10)]
    large = _batch(_random_records(20, 10), LZ4)
    other = _batch(_records(50, 10), ZSTD)
    classified = classify(b"".join([*small[:2], large, *small[3:5], other]), 0, -1, Rules())
    assert [outgoing.count for outgoing in classified.outgoing] == [20, 10, 20, 10]
    assert bytes(classified.outgoing[1].batch.data) == large
    assert _copied(classified) == [*_records(0, 20), *_random_records(20, 10), *_records(30, 30)]


def test_a_damaged_batch_among_small_compressed_ones_stops_before_it() -> None:
    batches = [bytearray(_batch(_records(first, 10), LZ4)) for first in range(0, 40, 10)]
    batches[2][-1] ^= 1
    classified = classify(b"".join(batches), 0, -1, Rules())
    assert classified.problem is not None
    assert classified.next_source == 20
    assert _copied(classified) == _records(0, 20)


def test_what_decompresses_to_more_than_batch_size_is_sent_as_it_is() -> None:
    batches = [_batch(_records(first, 10, 40_000), LZ4) for first in range(0, 40, 10)]
    classified = classify(b"".join(batches), 0, -1, Rules(join_up_to=50_000))
    assert _bytes(classified) == b"".join(batches)


def test_what_cannot_be_joined_is_decompressed_once_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Aborted and committed transactions in turn, and a mirror that takes small batches only."""
    decompressed: list[int] = []

    def counted(batch: Batch) -> bytearray | None:
        decompressed.append(batch.base_offset)
        return recompress.decompressed(batch)

    monkeypatch.setattr(joining, "decompressed", counted)
    batches = [_batch(_records(number, 1), LZ4, _TRANSACTIONAL, 1 + number % 2) for number in range(200)]
    preserving = classify(b"".join(batches), 0, -1, Rules(preserve_offsets=True), [(1, 0)])
    assert [record.offset for record in _copied(preserving)] == list(range(1, 200, 2))
    data = b"".join(_batch(_records(number, 1), LZ4) for number in range(200))
    small = classify(data, 0, -1, Rules(max_batch_bytes=400))
    assert _copied(small) == _records(0, 200)
    assert all(outgoing.size <= 400 for outgoing in small.outgoing)
    assert len(decompressed) < 1000


def test_batches_of_other_types_are_joined_up_to_batch_size() -> None:
    batches = [_batch(_records(at, 20, 1000), GZIP if at % 40 else LZ4) for at in range(0, 400, 20)]
    classified = classify(b"".join(batches), 0, -1, replace(_asked(ZSTD), join_up_to=150_000))
    assert {outgoing.reencode_reason for outgoing in classified.outgoing} <= {"thin", "compression"}
    assert _copied(classified) == _records(0, 400, 1000)
    if loading.compiled_join() is not None:
        assert [outgoing.count for outgoing in classified.outgoing] == [140, 140, 120]


def test_nothing_is_joined_without_joining() -> None:
    data = b"".join(_batch(_records(at, 5), GZIP) for at in range(0, 20, 5))
    classified = classify(data, 0, -1, replace(_asked(LZ4), join_up_to=0))
    assert [(outgoing.count, outgoing.reencode_reason) for outgoing in classified.outgoing] == [(5, "compression")] * 4


@pytest.mark.parametrize("codec", [NONE, LZ4])
def test_what_grows_beyond_batch_size_is_split(codec: int) -> None:
    records = [record._replace(value=record.offset.to_bytes(2, "big") * 10_000) for record in _records(0, 200)]
    data = _batch(records, GZIP)
    limit = 300_000 if codec == NONE else len(data) // 2
    classified = classify(data, 0, -1, replace(_asked(codec), split_over=limit))
    assert len(classified.outgoing) > 1
    assert max(outgoing.size for outgoing in classified.outgoing) <= limit
    assert _copied(classified) == records
    assert [outgoing.next_source for outgoing in classified.outgoing][-1] == classified.next_source == 200


def test_a_mirror_that_refuses_such_a_batch_gets_smaller_ones() -> None:
    limits = TargetLimits()
    limits.refuse_batch(500_000, is_reencoded=True)
    limits.settle_join_size(100_000)
    rules = limits.rules(replace(_asked(NONE), join_up_to=0), preserve_offsets=False)
    classified = classify(_batch(_records(0, 500, 1000), GZIP), 0, -1, rules)
    assert max(outgoing.size for outgoing in classified.outgoing) <= 100_000
    assert _copied(classified) == _records(0, 500, 1000)


def test_a_single_record_that_is_too_large_only_without_its_compression_is_refused() -> None:
    rules = replace(_asked(NONE), max_batch_bytes=10_000)
    classified = classify(_batch(_records(0, 1, 50_000), GZIP), 0, -1, rules)
    assert classified.problem is not None
    assert classified.problem[0] == "too-large"
    classified = classify(
        _batch(_records(0, 1, 50_000)), 0, -1, replace(rules, compression=Compression(COMPRESSION_TYPES[LZ4]))
    )
    assert _copied(classified) == _records(0, 1, 50_000)


def test_a_batch_that_compression_makes_larger_stays_without_it() -> None:
    record = _records(0, 1)[0]._replace(value=Random(1).randbytes(100_000))
    data = _batch([record])
    rules = replace(_asked(LZ4), max_batch_bytes=len(data))
    assert _bytes(classify(data, 0, -1, rules)) == data


def test_zstd_is_lz4_for_a_target_that_does_not_know_it() -> None:
    data = _batch(_records(0, 50)) + _batch(_records(50, 50), ZSTD)
    assert _codecs(classify(data, 0, -1, replace(_asked(ZSTD), zstd=False))) == {LZ4}


def test_what_is_decompressed_is_not_kept_in_memory_for_a_part_of_it() -> None:
    data = b"".join(_batch(_records(at, 300, 1000), GZIP) for at in range(0, 3000, 300))
    classified = classify(data, 0, -1, replace(_asked(NONE), join_up_to=0))
    before = _bytes(classified)
    assert len(classified.outgoing) == 10
    assert any(outgoing.batch.keeps_others for outgoing in classified.outgoing)
    assert classified.leave_response(len(data)) == 0
    assert not any(outgoing.batch.keeps_others for outgoing in classified.outgoing)
    assert _bytes(classified) == before


def test_a_level_changes_the_size_only() -> None:
    records = [record._replace(value=b"%d" % (record.offset**3) * 10) for record in _records(0, 2000)]
    for codec, low, high in ((GZIP, 1, 9), (LZ4, 9, 17), (ZSTD, 1, 19)):
        weak, strong = (classify(_batch(records), 0, -1, _asked(codec, level)) for level in (low, high))
        assert _copied(weak) == _copied(strong) == records
        assert len(_bytes(strong)) < len(_bytes(weak))


def test_old_formats_get_that_compression_too() -> None:
    legacy = LegacyRecordBatchBuilder(magic=1, compression_type=GZIP, batch_size=1 << 20)
    for number in range(20):
        legacy.append(number, timestamp=77, key=b"k", value=b"v")
    classified = classify(bytes(legacy.build()), 0, -1, _asked(ZSTD))
    assert (_codecs(classified), len(_copied(classified))) == ({ZSTD}, 20)


def test_a_batch_that_cannot_be_decompressed_is_sent_as_it_is() -> None:
    whole = bytearray(_batch(_records(0, 5)))
    whole[22] = GZIP  # it is not
    whole[17:21] = crc32c(bytes(whole[21:])).to_bytes(4, "big")
    assert _bytes(classify(bytes(whole), 0, -1, replace(_asked(LZ4), join_up_to=0))) == bytes(whole)


def test_damage_is_found_before_a_new_checksum_hides_it() -> None:
    bad = bytearray(_batch(_records(5, 5), GZIP))
    bad[-9] ^= 1
    classified = classify(_batch(_records(0, 5), GZIP) + bytes(bad), 0, -1, _asked(LZ4))
    assert classified.problem is not None
    assert (classified.problem[0], classified.next_source) == ("damaged", 5)
    assert _copied(classified) == _records(0, 5)


def test_decompressed_parts_are_bounded() -> None:
    data = memoryview(b"".join(_batch(_records(at, 1, 1 << 20), ZSTD) for at in range(20)) + bytes(HEADER))
    parts = list(decompressed_parts(data, LZ4))
    batches: list[Batch] = [batch for part in parts[:-1] for batch in split(part)]
    assert [batch.base_offset for batch in batches] == list(range(20))
    assert max(len(part) for part in parts) < 6 << 20
