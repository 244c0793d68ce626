"""Record batches as bytes: finds them, reads their headers, writes the header that a mirror needs.

Nothing here decodes a record. The layout (61 bytes of header) is Kafka's DefaultRecordBatch; the broker's rules
that decide what must change are in the docstring of `mirror_header`.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crc32c import crc32c

HEADER = 61
LOG_OVERHEAD = 12  # baseOffset and batchLength, which batchLength does not count
_CRC_FROM = 21
_MAGIC_AT = 16  # in all formats

# baseOffset, (batchLength), partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp,
# maxTimestamp, producerId, producerEpoch, baseSequence, recordsCount
_LAYOUT = struct.Struct(">q4xibIhiqqqhii")
_BEFORE_CRC = struct.Struct(">qiibI")
_AFTER_CRC = struct.Struct(">hiqqqhii")
SEQUENCES = 1 << 31

_CODEC_AND_TIME = 0x0F
_TIMESTAMP_TYPE = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_DELETE_HORIZON = 0x40

CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


class BadBatch(ValueError):
    """Bytes are not a valid record batch: wrong checksum, impossible length."""


class Batch(NamedTuple):
    """A record batch. `data` is a view of the memory that it was fetched into.

    A message of the old formats 0 and 1 (which may be a compressed set of them) is a batch of its own, of which only
    offset, magic and bytes are valid; its offset is that of its last record.
    """

    base_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not needed
    data: memoryview

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def codec(self) -> str:
        return CODECS.get(self.attributes & 7, "unknown")

    @property
    def log_append_time(self) -> bool:
        return bool(self.attributes & _TIMESTAMP_TYPE)

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def control(self) -> bool:
        return bool(self.attributes & _CONTROL)

    @property
    def dense(self) -> bool:
        """Whether every offset from first to last has a record; not so after compaction."""
        return self.count == self.last_offset_delta + 1

    def with_own_bytes(self) -> "Batch":
        """With bytes of its own, so that the rest of what was fetched need not be kept in memory."""
        return self._replace(data=memoryview(bytes(self.data)))

    @property
    def keeps_others(self) -> bool:
        """Whether it is the smaller part of the bytes that it keeps in memory."""
        return memoryview(self.data.obj).nbytes > 2 * self.size

    def has_valid_checksum(self) -> bool:
        return crc32c(self.data[_CRC_FROM:]) == self.crc

    def same_records(self, other: "Batch") -> bool:
        """Whether both hold the same records, bytes and times, compressed in the same way."""
        own_fields = (self.count, self.base_timestamp, self.max_timestamp, self.attributes & _CODEC_AND_TIME)
        other_fields = (other.count, other.base_timestamp, other.max_timestamp, other.attributes & _CODEC_AND_TIME)
        return own_fields == other_fields and self.records == other.records

    @property
    def records(self) -> memoryview:
        """The records section, which a copy keeps byte for byte."""
        return self.data[HEADER:]


def split(data: bytes | memoryview) -> Iterator[Batch]:
    """The complete batches of a fetched chunk; one that the fetch's size limit cuts off is left out."""
    view = memoryview(data)
    at = 0
    while (batch := batch_at(view, at)) is not None:
        yield batch
        at += batch.size


def batch_at(view: memoryview, at: int) -> Batch | None:
    """The batch that begins at index `at`, if it is complete."""
    left = len(view) - at
    if left <= _MAGIC_AT:
        return None
    size = LOG_OVERHEAD + int.from_bytes(view[at + 8 : at + 12], "big", signed=True)
    if size <= _MAGIC_AT or (size < HEADER and view[at + _MAGIC_AT] == 2):
        raise BadBatch(f"a record batch has an impossible length of {size} bytes")
    return one_batch(view[at : at + size]) if size <= left else None


def one_batch(data: memoryview) -> Batch:
    """The batch that consists of these bytes."""
    if data[_MAGIC_AT] == 2:
        return Batch._make((*_LAYOUT.unpack_from(data), data))
    offset = int.from_bytes(data[:8], "big", signed=True)
    return Batch(offset, -1, data[_MAGIC_AT], 0, 0, 0, -1, -1, -1, -1, -1, 0, data)


def joined_batch(
    data: memoryview, base_offset: int, leader_epoch: int, base_timestamp: int, max_timestamp: int, count: int
) -> Batch:
    """Fills in the header at the start of `data`, before its records. Its checksum is 0: the header that is sent comes
    from `mirror_header`."""
    fields = 0, count - 1, base_timestamp, max_timestamp, -1, -1, -1, count
    _BEFORE_CRC.pack_into(data, 0, base_offset, len(data) - LOG_OVERHEAD, leader_epoch, 2, 0)
    _AFTER_CRC.pack_into(data, _CRC_FROM, *fields)
    return Batch(base_offset, leader_epoch, 2, 0, *fields, data)


def sequence(offset: int) -> int:
    """The sequence number that belongs to a mirror offset: sequences wrap at 2**31."""
    return offset % SEQUENCES


def mirror_header(batch: Batch, producer_id: int, base_sequence: int, transaction_epoch: int | None = None) -> bytes:
    """The header to send before `batch.records`; with an epoch, as part of that producer's transaction.

    The sequence number belongs to the mirror offset, so a broker refuses a batch that is sent again elsewhere.

    - baseOffset must be 0 (INVALID_RECORD otherwise); the leader epoch is overwritten by the broker.
    - The producer fields become ours: the source's would be taken for a retry of a local producer, or be refused.
    - The delete-horizon flag is removed: the target's cleaner would drop tombstones early. Timestamps stay.
    - The transactional flag is removed (INVALID_TXN_STATE): what is copied is committed, and needs no transaction here.
      It stays for aborted batches, which are aborted again.
    - Everything else, and all bytes after the header, stay; the checksum covers the new header and the old records.
    """
    attributes = batch.attributes & ~(_DELETE_HORIZON | _TRANSACTIONAL)
    if transaction_epoch is not None:
        attributes |= _TRANSACTIONAL
    covered = _AFTER_CRC.pack(
        attributes,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        producer_id,
        transaction_epoch or 0,
        base_sequence,
        batch.count,
    )
    crc = crc32c(batch.records, crc32c(covered))
    return _BEFORE_CRC.pack(0, batch.size - LOG_OVERHEAD, -1, 2, crc) + covered
