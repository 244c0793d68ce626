"""Decoding batches and encoding their records again: for what a target would not take as it is, and for thin batches.

With aiokafka's compiled codec. Keys, values, headers and times stay as they are; compression stays the same in kind.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from aiokafka.record._crecords import DefaultRecordBatch, DefaultRecordBatchBuilder, LegacyRecordBatch

from heliograph.wire.batches import HEADER, BadBatch, Batch, one_batch

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
_CODEC = 0x07
_CODEC_AT = 22  # the lower byte of the attributes
_TIMES = struct.Struct(">qq")
_TIMES_AT = 27
_NO_LIMIT = (1 << 31) - 1
_ABORT = b"\0\0"

# Levels that Kafka's own producers use by default.
_COMPRESS = {
    GZIP: lambda data: gzip_encode(data, 6),
    SNAPPY: snappy_encode,
    LZ4: lambda data: lz4_encode(data, 1),
    ZSTD: lambda data: zstd_encode(data, 3),
}


class Plain(NamedTuple):
    """A record as a consumer sees it. A time of -1 means that it has none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def codec_of(batch: Batch) -> int:
    """The number of its compression; the formats 0 and 1 keep it in another place."""
    return (batch.attributes if batch.magic == 2 else batch.data[17]) & _CODEC


def records_of(batch: Batch) -> Iterator[Plain]:
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
            yield Plain(one.offset, -1 if time is None else time, one.key, one.value, one.headers)
    except BadBatch:
        raise
    except Exception as error:  # the decoders, compression libraries among them, have no common error
        raise BadBatch(f"the records cannot be decoded: {error!r}") from error


def is_abort(batch: Batch) -> bool:
    """Whether a control batch says that its producer's transaction was aborted."""
    marker = next(records_of(batch), None)
    return marker is not None and marker.key is not None and marker.key[2:4] == _ABORT


class Builder:
    """Puts records together to one batch."""

    def __init__(self, codec: int, largest: int = 0) -> None:
        self._codec = codec
        # What compression will make of it is not known before: then the limit is checked at the end, by the caller.
        limit = largest if largest and codec == NONE else _NO_LIMIT
        self._builder = DefaultRecordBatchBuilder(2, NONE, 0, -1, -1, -1, limit)
        self.count = 0
        self._later = 0

    def add(self, one: Plain) -> bool:
        """Whether it fitted in; the first always does."""
        if self.count == 0 and one.timestamp == -1:
            self._later = 1  # the compiled builder takes a first time of -1 for none given
        added = self._builder.append(self.count, one.timestamp + self._later, one.key, one.value, one.headers)
        if added is None:
            return False
        self.count += 1
        return True

    @property
    def size(self) -> int:
        """Before compression."""
        return int(self._builder.size())

    def build(self, source_offset: int, leader_epoch: int) -> Batch:
        """The batch, with source offset and epoch of its origin in the header for those who ask."""
        data = self._builder.build()
        if self._codec != NONE:
            data = data[:HEADER] + _COMPRESS[self._codec](bytes(data[HEADER:]))
        first, last = _TIMES.unpack_from(data, _TIMES_AT)
        _TIMES.pack_into(data, _TIMES_AT, first - self._later, last - self._later)
        data[_CODEC_AT] = self._codec
        return one_batch(memoryview(data))._replace(base_offset=source_offset, leader_epoch=leader_epoch)
