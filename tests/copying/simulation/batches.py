"""Record batches as a broker stores them: made from records, with holes, or as markers of transactions."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from aiokafka.record._crecords import DefaultRecordBatchBuilder
from crc32c import crc32c

from heliograph.wire.batches import HEADER, LOG_OVERHEAD, Batch, one_batch
from heliograph.wire.recode import records_of

_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_HEADER = struct.Struct(">hiqqqhii")  # from the attributes on
_CRC_FROM = 21


@dataclass(frozen=True)
class Stored:
    """One record, with a value that no other has."""

    offset: int
    timestamp: int
    value: bytes


@dataclass(frozen=True)
class Producer:
    id: int = -1
    epoch: int = -1
    sequence: int = -1
    transactional: bool = False


PLAIN = Producer()


def build(
    base: int, end: int, epoch: int, records: Sequence[Stored], producer: Producer = PLAIN, marker: bool | None = None
) -> Batch:
    """The batch that reaches from `base` to before `end`; `marker` is whether it commits or aborts."""
    if marker is not None:
        body = [(0, records[0].timestamp, struct.pack(">hh", 0, int(marker)), struct.pack(">hi", 0, 0))]
    else:
        body = [(record.offset - base, record.timestamp, b"k", record.value) for record in records]
    flags = (_TRANSACTIONAL if producer.transactional else 0) | (_CONTROL if marker is not None else 0)
    times = [record.timestamp for record in records] or [0]
    covered = _HEADER.pack(
        flags, end - base - 1, times[0], max(times), producer.id, producer.epoch, producer.sequence, len(records)
    )
    covered += _encoded(tuple(body))
    head = struct.pack(">qiibI", base, HEADER - LOG_OVERHEAD + len(covered) - _HEADER.size, epoch, 2, crc32c(covered))
    return one_batch(memoryview(head + covered))


@lru_cache(maxsize=1024)
def _encoded(body: tuple[tuple[int, int, bytes, bytes], ...]) -> bytes:
    if not body:
        return b""
    builder: Any = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
    for delta, timestamp, key, value in body:
        builder.append(delta, timestamp, key, value, [])
    return bytes(builder.build()[HEADER:])


def placed(data: bytes, base: int, epoch: int) -> Batch:
    """A batch as it was sent, at the place where it is appended."""
    return one_batch(memoryview(struct.pack(">q", base) + data[8:12] + struct.pack(">i", epoch) + data[16:]))


def records_in(batch: Batch) -> list[Stored]:
    if batch.control or not batch.count:
        return []
    return _decoded(bytes(batch.data))


@lru_cache(maxsize=4096)
def _decoded(data: bytes) -> list[Stored]:
    batch = one_batch(memoryview(data))
    return [Stored(record.offset, record.timestamp, record.value or b"") for record in records_of(batch)]
