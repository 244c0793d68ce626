"""Decoding batches and encoding their records again: for what a target would not take as it is, and for thin batches.

With aiokafka's compiled codec. Keys, values, headers and times stay as they are; compression stays the same in kind.
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

# Levels that Kafka's own producers use by default.
_COMPRESS = {
    GZIP: lambda data: gzip_encode(data, 6),
    SNAPPY: snappy_encode,
    LZ4: lambda data: lz4_encode(data, 1),
    ZSTD: lambda data: zstd_encode(data, 3),
}


class DecodedRecord(NamedTuple):
    """A record as a consumer sees it. A time of -1 means that it has none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def codec_of(batch: Batch) -> int:
    """The number of its compression; the formats 0 and 1 keep it in another place."""
    return (batch.attributes if batch.magic == 2 else batch.data[17]) & _CODEC


def records_of(batch: Batch) -> Iterator[DecodedRecord]:
    """The records of a batch of any format, with the times that consumers see: of a batch that was stamped on arrival,
    that of its arrival."""
    try:
        if batch.magic == 2:
            decoder: Any = DefaultRecordBatch(batch.data)
        else:
            decoder = LegacyRecordBatch(batch.data, batch.magic)
            if not decoder.validate_crc():
                raise BadBatch("the checksum does not match")
        for one in decoder:
            time = one.timestamp
            yield DecodedRecord(one.offset, -1 if time is None else time, one.key, one.value, one.headers)
    except BadBatch:
        raise
    except Exception as error:  # the decoders, compression libraries among them, have no common error
        raise BadBatch(f"the records cannot be decoded: {error!r}") from error


def is_abort(batch: Batch) -> bool:
    """Whether a control batch says that its producer's transaction was aborted."""
    marker = next(records_of(batch), None)
    return marker is not None and marker.key is not None and marker.key[2:4] == _ABORT


class Joined(NamedTuple):
    """One batch out of several, and where in the data the first of them that is not in it begins."""

    batch: Batch
    end: int


def join_thin(data: memoryview, at: int, thin: int, up_to: int) -> Joined | None:
    """Put the small batches that stand one behind the other at `at` together, up to a size; None if there is but one.

    Only those that could go as they are: whole, of format 2, with the same compression and no other flag. For speed
    this does by itself what `records_of` and `Builder` do, in one loop: an append costs as much as some dozens of
    rounds of it.
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
            break  # whoever looks at it next will say so
        try:
            decoded = list(decoder)
        except Exception:  # odd, but it may go as it is: a header's name that is not UTF-8
            break
        if count == 0 and decoded[0].timestamp == _NO_TIME:
            break  # the compiled builder takes that for none given
        for one in decoded:
            append(count, one.timestamp, one.key, one.value, one.headers)
            count += 1
        at += size
        expected = base + records
        epoch = leader
        batches += 1
    if batches < 2:
        return None
    builder.count, builder.codec = count, codec
    return Joined(builder.build(first, epoch), at)


class Builder:
    """Puts records together to one batch."""

    def __init__(self, codec: int, largest: int = 0) -> None:
        self.codec = codec
        # What compression will make of it is not known before: then the limit is checked at the end, by the caller.
        limit = largest if largest and codec == NONE else _NO_LIMIT
        builder = DefaultRecordBatchBuilder(2, NONE, 0, -1, -1, -1, limit)
        self.append = builder.append
        self._size = builder.size
        self._build = builder.build
        self.count = 0
        self._later = 0

    def add(self, one: DecodedRecord) -> bool:
        """Whether it fitted in; the first always does."""
        if self.count == 0 and one.timestamp == _NO_TIME:
            self._later = 1  # the compiled builder takes a first time of -1 for none given
        if self.append(self.count, one.timestamp + self._later, one.key, one.value, one.headers) is None:
            return False
        self.count += 1
        return True

    def add_batch(self, batch: Batch, since: int, runs: list[list[int]]) -> bool:
        """Add the records of a batch of format 2 from source offset `since` on, noting their offsets in `runs` as
        [first, count]. For speed in one loop; False, and nothing is added, where records without a time need more care.
        """
        try:
            decoded = [one for one in DefaultRecordBatch(batch.data) if one.offset >= since]
        except Exception as error:
            raise BadBatch(f"the records cannot be decoded: {error!r}") from error
        if self._later or (self.count == 0 and decoded and decoded[0].timestamp == _NO_TIME):
            return False
        append, count = self.append, self.count
        expected = sum(runs[-1]) if runs else -1
        for one in decoded:
            append(count, one.timestamp, one.key, one.value, one.headers)
            count += 1
            if one.offset == expected:
                runs[-1][1] += 1
            else:
                runs.append([one.offset, 1])
            expected = one.offset + 1
        self.count = count
        return True

    @property
    def size(self) -> int:
        """Before compression."""
        return int(self._size())

    def build(self, source_offset: int, leader_epoch: int) -> Batch:
        """The batch, with source offset and epoch of its origin in the header for those who ask."""
        data = self._build()
        if self.codec != NONE:
            data = data[:HEADER] + _COMPRESS[self.codec](bytes(data[HEADER:]))
        first, last = _TIMES.unpack_from(data, _TIMES_AT)
        _TIMES.pack_into(data, _TIMES_AT, first - self._later, last - self._later)
        data[_CODEC_AT] = self.codec
        return one_batch(memoryview(data))._replace(base_offset=source_offset, leader_epoch=leader_epoch)
