"""Changes the compression type of batches. Records are neither decoded nor changed: only what holds them is."""

import struct
from collections.abc import Callable, Iterator

from aiokafka.codec import gzip_decode, lz4_decode, snappy_decode, zstd_decode
from crc32c import crc32c

from heliograph.model.compression import Compression
from heliograph.wire.batches import HEADER, LOG_OVERHEAD, BadBatch, Batch, batch_at, one_batch
from heliograph.wire.recode import GZIP, LZ4, NONE, SNAPPY, ZSTD, codec_of, compress

_CODEC = 0x07
_LENGTH_AT, _CRC_AT, _ATTRIBUTES_AT = 8, 17, 21
_SHORT, _INT, _UNSIGNED = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">I")
# Records that compress well take many times the memory: so many bytes of them are decompressed at a time.
_PART = 4 * 1024 * 1024
_LARGEST = 1 << 30  # bytes of an uncompressed batch
_DECOMPRESS: dict[int, Callable[[bytes], bytes]] = {
    GZIP: gzip_decode,
    SNAPPY: snappy_decode,
    LZ4: lz4_decode,
    ZSTD: zstd_decode,
}


def decompressed_parts(data: memoryview, kept_codec: int) -> Iterator[memoryview]:
    """The batches of a fetched chunk in order, in parts, with all batches decompressed that are compressed with another
    codec than `kept_codec`. All others are as they were fetched, also those that cannot be decompressed: damaged ones,
    and those of the old formats. A part consists of whole batches."""
    at = since = 0  # from `since` up to `at` are batches that stay as they are
    made = bytearray()
    while (batch := good_batch_at(data, at)) is not None:
        plain = None if codec_of(batch) == kept_codec else decompressed(batch)
        if plain is not None and not made and since < at:
            yield data[since:at]
        is_added = plain is not None or (bool(made) and batch.control)  # a transaction's marker separates nothing
        if is_added:
            made += plain or batch.data
        if made and (not is_added or len(made) >= _PART):
            yield memoryview(made)
            made, since = bytearray(), at + batch.size if is_added else at
        at += batch.size
    if made:
        yield memoryview(made)
        since = at
    if since < len(data):
        yield data[since:]


def good_batch_at(data: memoryview, at: int) -> Batch | None:
    """The batch at this index, unless it is incomplete or its length is impossible."""
    try:
        return batch_at(data, at)
    except BadBatch:
        return None  # reported by whoever reads the rest


def compressed(batch: Batch, compression: Compression) -> Batch:
    """An uncompressed batch with this compression, unless that would make it larger. Its checksum is not valid: the
    header that is sent comes from `mirror_header`."""
    records = compress(bytes(batch.records), compression.codec, compression.level)
    if len(records) >= len(batch.records):
        return batch
    data = _with_codec(batch, compression.codec, len(records))
    data += records
    return one_batch(memoryview(data))._replace(base_offset=batch.base_offset, leader_epoch=batch.leader_epoch)


def decompressed(batch: Batch) -> bytearray | None:
    """The bytes of the same batch without compression; None if it has none, is damaged or of an old format."""
    codec = codec_of(batch)
    # The checksum is written again: damage must be found before that hides it.
    if batch.magic != 2 or codec not in _DECOMPRESS or not batch.has_valid_checksum():
        return None
    try:
        records = _DECOMPRESS[codec](bytes(batch.records))
    except Exception:  # the compression libraries have no common error
        return None
    if len(records) > _LARGEST:
        return None
    data = _with_codec(batch, NONE, len(records))
    data += records
    _UNSIGNED.pack_into(data, _CRC_AT, crc32c(memoryview(data)[_ATTRIBUTES_AT:]))
    return data


def _with_codec(batch: Batch, codec: int, size: int) -> bytearray:
    """The header of a batch whose records take `size` bytes with this codec."""
    header = bytearray(batch.data[:HEADER])
    _INT.pack_into(header, _LENGTH_AT, HEADER - LOG_OVERHEAD + size)
    _SHORT.pack_into(header, _ATTRIBUTES_AT, (batch.attributes & ~_CODEC) | codec)
    return header
