"""Single records, for our own internal topics and for comparing logs. Never on the way of mirrored data."""

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from kafka.partitioner.default import murmur2
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatchBuilder

from heliograph.model.mm2_records import BadRecord
from heliograph.wire.append import Appended, append
from heliograph.wire.batches import Batch, split
from heliograph.wire.cluster import ClusterClient, Topic
from heliograph.wire.errors import INVALID_TIMESTAMP, BrokerError, Unreachable
from heliograph.wire.fetch import FetchPartition, Limits, fetch
from heliograph.wire.offsets import EARLIEST, LATEST, one_offset

log = logging.getLogger(__name__)

_CHUNK = 1 << 20
_RECORDS_AT_ONCE = 500
_BYTES_AT_ONCE = 400_000
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
    for number, one in enumerate(records):
        builder.append(number, one.timestamp, one.key, one.value, list(one.headers))
    return bytes(builder.build())


def decode(data: bytes | memoryview, start: int = 0) -> Iterator[Record]:
    """The records of a fetched chunk from offset `start` on; markers of transactions are left out."""
    chunk = MemoryRecords(bytes(data))
    while chunk.has_next():
        batch = chunk.next_batch()
        if getattr(batch, "is_control_batch", False):
            continue
        for one in batch:
            if one.offset >= start:
                yield Record(one.offset, one.timestamp, one.key, one.value, tuple(one.headers))


async def own_topic(client: ClusterClient, name: str) -> Topic:
    """One of our internal topics, as the cluster knows it now."""
    topic = (await client.metadata([name])).topics[name]
    if topic.error:
        raise BrokerError(topic.error, f"internal topic {name}")
    return topic


def now() -> int:
    return int(time.time() * 1000)


async def write(
    client: ClusterClient, topic: Topic, partition: int, pairs: Iterable[tuple[bytes, bytes | None]]
) -> int:
    """Append small records of this moment to one partition; the offset of the first is returned."""
    moment = now()
    return await write_records(client, topic, partition, [Record(0, moment, key, value) for key, value in pairs])


async def write_records(client: ClusterClient, topic: Topic, partition: int, records: Iterable[Record]) -> int:
    """Append records; the offset of the first is returned."""
    offsets = await append_records(client, topic, partition, records)
    return offsets[0] if offsets else -1


async def append_records(client: ClusterClient, topic: Topic, partition: int, records: Iterable[Record]) -> list[int]:
    """Append records; their offsets are returned. In several batches if there are many, one after the other: when one
    fails, those before it are written."""
    connection = await client.connection(topic.leaders.get(partition, -1))
    timeout = client.cluster.request_timeout
    offsets: list[int] = []
    for some in _batched(records):
        (answer,) = await append(connection, [(topic.name, partition, [encode(some)])], timeout)
        if answer.error:
            raise BrokerError(answer.error, _why(answer, topic, client))
        offsets += range(answer.base_offset, answer.base_offset + len(some))
    return offsets


def _why(answer: Appended, topic: Topic, client: ClusterClient) -> str | None:
    """All that is written so is of this moment, by this machine's clock."""
    if answer.error != INVALID_TIMESTAMP:
        return answer.message
    where = f"topic {topic.name} on {client.cluster.alias}"
    return f"{where} does not take records of now: this machine's clock is wrong, or the broker's"


def _batched(records: Iterable[Record]) -> Iterator[list[Record]]:
    """A broker limits the size of a batch."""
    batch: list[Record] = []
    size = 0
    for one in records:
        bytes_of_it = len(one.key or b"") + len(one.value or b"")
        if batch and (len(batch) >= _RECORDS_AT_ONCE or size + bytes_of_it > _BYTES_AT_ONCE):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += bytes_of_it
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
        (got,) = await fetch(connection, [wanted], Limits(_CHUNK, max_wait=1.0))
        if got.error:
            raise BrokerError(got.error)
        before = position
        for batch in split(got.data):
            if batch.base_offset >= end:
                return
            if batch.next_offset <= position:
                continue  # messages of the old formats are given from a place before
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
    """Every record of one partition that is of a kind; what cannot be decoded is told and passed over."""
    async for record in read_all(client, topic, partition):
        if record.key is None or record.value is None:
            continue
        try:
            found = decode(record.key, record.value)
        except BadRecord as error:
            log.warning("record %d of %s is not as it should be: %s", record.offset, topic.name, error)
            continue
        yield found


async def bounds(client: ClusterClient, topic: Topic, partition: int, committed: bool = True) -> tuple[int, int]:
    """First and next offset; with `committed` the end is that for readers of committed records."""
    start = await one_offset(client, topic, partition, EARLIEST, committed)
    return start, await one_offset(client, topic, partition, LATEST, committed)


def partition_for(key: bytes, count: int) -> int:
    """Where Kafka's own producers put a key."""
    return (int(murmur2(key)) & 0x7FFFFFFF) % count
