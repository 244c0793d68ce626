"""Single records, for internal topics and for comparing logs. Never in the path of mirrored data."""

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from kafka.partitioner.default import murmur2
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder

from heliograph.wire.append import Appended, PartitionBatch, append
from heliograph.wire.batches import Batch, split
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import INVALID_TIMESTAMP, BrokerError, Unreachable, missing_right
from heliograph.wire.fetch import FetchPartition, Limits, fetch
from heliograph.wire.metadata import Topic
from heliograph.wire.offsets import EARLIEST, LATEST, one_offset

log = logging.getLogger(__name__)

_CHUNK = 1 << 20
_RECORDS_PER_BATCH = 500
_BYTES_PER_BATCH = 400_000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Record:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def encode(records: Iterable[Record], codec: int = 0) -> bytes:
    """One batch, to be appended with `append`; the records' offsets do not matter."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    for number, record in enumerate(records):
        builder.append(number, record.timestamp, record.key, record.value, list(record.headers))
    return bytes(builder.build())


def decode(data: bytes | memoryview, start: int = 0) -> Iterator[Record]:
    """The records of a fetched chunk from offset `start` on, without transaction markers."""
    chunk = MemoryRecords(bytes(data))
    while chunk.has_next():
        batch = chunk.next_batch()
        if getattr(batch, "is_control_batch", False):
            continue
        for record in batch:
            if record.offset >= start:
                yield Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))


async def own_topic(client: ClusterClient, name: str) -> Topic:
    """Metadata of an internal topic; raises its error."""
    topic = (await client.metadata([name])).topics[name]
    if topic.error:
        why = missing_right(topic.error, "Describe", f"topic {name}") or f"internal topic {name}"
        raise BrokerError(topic.error, why)
    return topic


def now() -> int:
    return int(time.time() * 1000)


async def write(
    client: ClusterClient, topic: Topic, partition: int, pairs: Iterable[tuple[bytes, bytes | None]]
) -> int:
    """Appends records with the current time to a partition; returns the offset of the first."""
    moment = now()
    return await write_records(client, topic, partition, [Record(0, moment, key, value) for key, value in pairs])


async def write_records(client: ClusterClient, topic: Topic, partition: int, records: Iterable[Record]) -> int:
    """Appends records; returns the offset of the first, -1 if there are none."""
    offsets = await append_records(client, topic, partition, records)
    return offsets[0] if offsets else -1


async def append_records(client: ClusterClient, topic: Topic, partition: int, records: Iterable[Record]) -> list[int]:
    """Appends records; returns their offsets. Many records become several batches, one after the other: when one fails,
    those before it are written."""
    connection = await client.connection(topic.leaders.get(partition, -1))
    timeout = client.cluster.request_timeout
    offsets: list[int] = []
    for batch in _batched(records):
        (answer,) = await append(connection, [PartitionBatch(topic.name, partition, [encode(batch)])], timeout)
        if answer.error:
            raise BrokerError(answer.error, _why(answer, topic, client))
        offsets += range(answer.base_offset, answer.base_offset + len(batch))
    return offsets


def _why(answer: Appended, topic: Topic, client: ClusterClient) -> str | None:
    """The records have the current time by this machine's clock."""
    if answer.error != INVALID_TIMESTAMP:
        return missing_right(answer.error, "Write", f"topic {topic.name}") or answer.message
    where = f"topic {topic.name} on {client.cluster.alias}"
    return f"{where} rejects records with the current time: this machine's clock is wrong, or the broker's"


def _batched(records: Iterable[Record]) -> Iterator[list[Record]]:
    """A broker limits the size of a batch."""
    batch: list[Record] = []
    size = 0
    for record in records:
        record_size = len(record.key or b"") + len(record.value or b"")
        if batch and (len(batch) >= _RECORDS_PER_BATCH or size + record_size > _BYTES_PER_BATCH):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += record_size
    if batch:
        yield batch


async def read_batches(
    client: ClusterClient, topic: Topic, partition: int, start: int, end: int
) -> AsyncIterator[Batch]:
    """The batches of one partition that hold the offsets from `start` up to `end`."""
    position = start
    while position < end:
        connection = await client.connection(topic.leaders.get(partition, -1))
        wanted = FetchPartition(topic.name, topic.id, partition, position, _CHUNK)
        (fetched,) = await fetch(connection, [wanted], Limits(_CHUNK, max_wait=1.0))
        if fetched.error:
            raise BrokerError(fetched.error, missing_right(fetched.error, "Read", f"topic {topic.name}"))
        before = position
        for batch in split(fetched.data):
            if batch.base_offset >= end:
                return
            if batch.next_offset <= position:
                continue  # compressed sets of the old formats begin before the fetch offset
            yield batch
            position = batch.next_offset
        if position == before:
            raise Unreachable(f"{topic.name}-{partition} gives no data at {position}, though it ends at {end}")


async def read(client: ClusterClient, topic: Topic, partition: int, start: int, end: int) -> AsyncIterator[Record]:
    """Every record of one partition from `start` up to `end`."""
    async for batch in read_batches(client, topic, partition, start, end):
        for record in decode(batch.data, start):
            if record.offset < end:
                yield record


async def read_all(client: ClusterClient, topic: Topic, partition: int) -> AsyncIterator[Record]:
    """Every record of one partition, as of now."""
    async for record in read(client, topic, partition, *await bounds(client, topic, partition)):
        yield record


async def read_kind(
    client: ClusterClient, topic: Topic, decode: Callable[[bytes, bytes], T], partition: int = 0
) -> AsyncIterator[T]:
    """Every record of one partition, decoded. One for which `decode` raises ValueError is logged and skipped."""
    async for record in read_all(client, topic, partition):
        if record.key is None or record.value is None:
            continue
        try:
            decoded = decode(record.key, record.value)
        except ValueError as error:
            log.warning(
                "record %d of %s-%d cannot be decoded; ignored: %s", record.offset, topic.name, partition, error
            )
            continue
        yield decoded


async def bounds(client: ClusterClient, topic: Topic, partition: int, committed: bool = True) -> tuple[int, int]:
    """First and next offset; with `committed` the end is the last stable offset."""
    start = await one_offset(client, topic, partition, EARLIEST, committed)
    return start, await one_offset(client, topic, partition, LATEST, committed)


def partition_for(key: bytes, count: int) -> int:
    """The partition that Kafka's default partitioner chooses for a key."""
    return (int(murmur2(key)) & 0x7FFFFFFF) % count
