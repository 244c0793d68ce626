"""Re-encoding batches: those that a target would refuse as they are, and thin ones, which are joined.

With aiokafka's compiled codec. Keys, values, headers and timestamps stay the same, and so does the compression type
unless another one is asked for (`wire/recompress`).
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from aiokafka.record._crecords import DefaultRecordBatch, DefaultRecordBatchBuilder, LegacyRecordBatch

from heliograph.wire.batches import HEADER, LOG_OVERHEAD, BadBatch, Batch, one_batch

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
_CODEC = 0x07
_CODEC_AT = 22  # the lower byte of the attributes
_TIMES = struct.Struct(">qq")
_TIMES_AT = 27
# Of a batch's header: baseOffset, batchLength, partitionLeaderEpoch, magic, attributes, lastOffsetDelta, recordsCount
_SOME_FIELDS = struct.Struct(">qiib4xhi30xi")
_NO_TIME = -1
_NO_LIMIT = (1 << 31) - 1
_ABORT = b"\0\0"

# Levels of lz4. For a Java client 9, the default, is the fast compressor; every other one is a level of the high one.
_JAVA_FAST, _FAST, _LEAST_HIGH, _MOST_HIGH = 9, 1, 3, 12


def compress(data: bytes, codec: int, level: int | None = None) -> bytes:
    """Without a level, with the default level of Kafka's own producers."""
    if codec == GZIP:
        return bytes(gzip_encode(data, 6 if level is None or level < 1 else level))
    if codec == SNAPPY:
        return bytes(snappy_encode(data))
    if codec == LZ4:
        is_fast = level is None or level == _JAVA_FAST
        return bytes(lz4_encode(data, _FAST if is_fast else min(max(level or 0, _LEAST_HIGH), _MOST_HIGH)))
    return bytes(zstd_encode(data, 3 if level is None else level))


class DecodedRecord(NamedTuple):
    """A record as a consumer sees it. A timestamp of -1 means that it has none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def codec_of(batch: Batch) -> int:
    """The id of the compression type; formats 0 and 1 have it in another place."""
    return (batch.attributes if batch.magic == 2 else batch.data[17]) & _CODEC


def records_of(batch: Batch) -> Iterator[DecodedRecord]:
    """The records of a batch of any format, with the timestamps that consumers see: with LogAppendTime, the time of the
    append."""
    try:
        if batch.magic == 2:
            decoder: Any = DefaultRecordBatch(batch.data)
        else:
            decoder = LegacyRecordBatch(batch.data, batch.magic)
            if not decoder.validate_crc():
                raise BadBatch("the checksum does not match")
        for record in decoder:
            time = record.timestamp
            yield DecodedRecord(record.offset, -1 if time is None else time, record.key, record.value, record.headers)
    except BadBatch:
        raise
    except Exception as error:  # the decoders and compression libraries have no common error
        raise BadBatch(f"the records cannot be decoded: {error!r}") from error


def is_abort(batch: Batch) -> bool:
    """Whether a control batch is an abort marker."""
    marker = next(records_of(batch), None)
    return marker is not None and marker.key is not None and marker.key[2:4] == _ABORT


def join_thin(data: memoryview, at: int, thin: int, up_to: int) -> tuple[Batch, int] | None:
    """Joins the consecutive small batches from index `at` on, up to a size. Returns the batch and the index after the
    last of them; None if there is only one.

    Only batches that could be copied as they are: complete, of format 2, with the same compression and no other flag.
    For speed this does the work of `records_of` and `Builder` in one loop.
    """
    builder = Builder(codec := NONE)
    append = builder.append
    first = expected = -1
    count = batches = epoch = 0
    end = len(data)
    full = at + up_to + HEADER
    while end - at >= HEADER and at < full:
        base, length, leader, magic, attributes, last, records = _SOME_FIELDS.unpack_from(data, at)
        size = length + LOG_OVERHEAD
        if magic != 2 or not HEADER <= size <= min(thin, end - at) or attributes & ~_CODEC or records != last + 1:
            break
        if batches == 0:
            first, codec = base, attributes
        elif base != expected or attributes != codec:
            break
        decoder = DefaultRecordBatch(data[at : at + size])
        if not decoder.validate_crc():
            break  # reported when it is classified on its own
        try:
            decoded = list(decoder)
        except Exception:  # may still be copied as it is: a header key that is not UTF-8
            break
        if count == 0 and decoded[0].timestamp == _NO_TIME:
            break  # the compiled builder takes -1 for no timestamp given
        for record in decoded:
            append(count, record.timestamp, record.key, record.value, record.headers)
            count += 1
        at += size
        expected = base + records
        epoch = leader
        batches += 1
    if batches < 2:
        return None
    builder.count, builder.codec = count, codec
    return builder.build(first, epoch), at


class Builder:
    """Builds one batch from records."""

    def __init__(self, codec: int, largest: int = 0, level: int | None = None) -> None:
        self.codec = codec
        self._level = level
        # The compressed size is not known before: then the caller checks the limit at the end.
        limit = largest if largest and codec == NONE else _NO_LIMIT
        builder = DefaultRecordBatchBuilder(2, NONE, 0, -1, -1, -1, limit)
        self.append = builder.append
        self._size = builder.size
        self._build = builder.build
        self.count = 0
        self._time_shift = 0

    def add(self, record: DecodedRecord) -> bool:
        """Adds a record; False if the batch is full. The first record always fits."""
        if self.count == 0 and record.timestamp == _NO_TIME:
            self._time_shift = 1  # the compiled builder takes a first timestamp of -1 for none given
        timestamp = record.timestamp + self._time_shift
        if self.append(self.count, timestamp, record.key, record.value, record.headers) is None:
            return False
        self.count += 1
        return True

    def add_batch(self, batch: Batch, since: int, runs: list[list[int]]) -> bool:
        """Adds the records of a batch of format 2 from source offset `since` on, and their offsets to `runs` as
        [first, count]. For speed in one loop. Returns False and adds nothing where records without a timestamp need
        `add`.
        """
        try:
            decoded = [record for record in DefaultRecordBatch(batch.data) if record.offset >= since]
        except Exception as error:
            raise BadBatch(f"the records cannot be decoded: {error!r}") from error
        if self._time_shift or (self.count == 0 and decoded and decoded[0].timestamp == _NO_TIME):
            return False
        append, count = self.append, self.count
        expected = sum(runs[-1]) if runs else -1
        for record in decoded:
            append(count, record.timestamp, record.key, record.value, record.headers)
            count += 1
            if record.offset == expected:
                runs[-1][1] += 1
            else:
                runs.append([record.offset, 1])
            expected = record.offset + 1
        self.count = count
        return True

    @property
    def size(self) -> int:
        """Before compression."""
        return int(self._size())

    def build(self, source_offset: int, leader_epoch: int) -> Batch:
        """Returns the batch, with source offset and leader epoch of its origin."""
        data = self._build()
        if self.codec != NONE:
            data = data[:HEADER] + compress(bytes(data[HEADER:]), self.codec, self._level)
        first, last = _TIMES.unpack_from(data, _TIMES_AT)
        _TIMES.pack_into(data, _TIMES_AT, first - self._time_shift, last - self._time_shift)
        data[_CODEC_AT] = self.codec
        return one_batch(memoryview(data))._replace(base_offset=source_offset, leader_epoch=leader_epoch)
