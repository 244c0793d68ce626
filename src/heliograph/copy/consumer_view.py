"""Reads partitions as a consumer sees them, outside the copier's own loop."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace

from heliograph.copy.classified import Classified, OutgoingBatch, Rules
from heliograph.copy.classify import classify
from heliograph.model.partitions import TopicPartition
from heliograph.wire.batches import split
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError, WireError, missing_right
from heliograph.wire.fetch import READ_COMMITTED, READ_UNCOMMITTED, FetchPartition, Limits, fetch
from heliograph.wire.fetch_response import Fetched
from heliograph.wire.metadata import Topic
from heliograph.wire.recode import DecodedRecord, records_of

_CHUNK = 1 << 20
_FIRST_CHUNK = 16 << 10
_AT_ONCE = Limits(32 << 20)
_MAX_FETCHES = 50  # of one partition without finding a record: this many chunks of aborted ones


def records_in(outgoing: OutgoingBatch) -> Iterator[DecodedRecord]:
    """Its records with the offsets that they have in the source."""
    offsets = (first + number for first, count in outgoing.runs for number in range(count))
    for record, offset in zip(records_of(outgoing.batch), offsets, strict=True):
        yield record._replace(offset=offset)


async def visible_records(
    client: ClusterClient, topic: Topic, partition: int, start: int, end: int, committed_only: bool
) -> AsyncIterator[DecodedRecord]:
    """Every record between two offsets. Raises a WireError if one cannot be read."""
    reached = start
    async for classified in visible(client, topic, partition, start, end, committed_only):
        if classified.problem is not None:
            raise WireError(f"{topic.name}-{partition} at {reached}: {classified.problem[1]}")
        for outgoing in classified.outgoing:
            for record in records_in(outgoing):
                if start <= record.offset < end:
                    yield record
        reached = classified.next_source
    if reached < end:
        raise WireError(f"{topic.name}-{partition} gives no data at {reached}, though it ends at {end}")


async def visible(
    client: ClusterClient, topic: Topic, partition: int, start: int, end: int, committed_only: bool
) -> AsyncIterator[Classified]:
    """What is between two offsets, with batches as they are. Ends early after a response that has a problem or brings
    no progress; its `next_source` is how far it got."""
    connection = await client.connection(topic.leaders[partition])
    rules = Rules(committed_only, join_up_to=0)
    isolation = READ_COMMITTED if committed_only else READ_UNCOMMITTED
    limits = Limits(_CHUNK, max_wait=1.0)
    while start < end:
        wanted = FetchPartition(topic.name, topic.id, partition, start, _CHUNK)
        (got,) = await fetch(connection, [wanted], limits, isolation)
        if got.error:
            raise BrokerError(got.error, missing_right(got.error, "Read", f"topic {topic.name}"))
        classified = classify(got.data, start, -1, rules, got.aborted)
        if committed_only and not got.data:
            # The broker returns nothing where compaction has left no batch before an open transaction.
            (got,) = await fetch(connection, [wanted], limits, READ_UNCOMMITTED)
            following = next(split(got.data), None)
            if following is not None and following.base_offset >= end:
                classified = replace(classified, next_source=end)
        yield classified
        if classified.problem is not None or classified.next_source == start:
            return
        start = classified.next_source


async def first_records(
    client: ClusterClient,
    topics: Mapping[str, Topic],
    wanted: Mapping[TopicPartition, tuple[int, int]],
    committed_only: bool,
) -> dict[TopicPartition, DecodedRecord | WireError | None]:
    """The first record between two offsets of each partition, from all leaders at once; None where there are only
    markers and aborted records."""
    by_leader: dict[int, dict[TopicPartition, int]] = {}
    records: dict[TopicPartition, DecodedRecord | WireError | None] = {}
    for partition, (start, _end) in wanted.items():
        by_leader.setdefault(topics[partition[0]].leaders.get(partition[1], -1), {})[partition] = start

    async def ask(leader: int, starts: dict[TopicPartition, int]) -> None:
        fetches = dict.fromkeys(starts, 0)
        size = _FIRST_CHUNK
        try:
            connection = await client.connection(leader)
            while starts:
                asks = [
                    FetchPartition(partition[0], topics[partition[0]].id, partition[1], at, size)
                    for partition, at in starts.items()
                ]
                moved = False
                for got in await fetch(
                    connection, asks, _AT_ONCE, READ_COMMITTED if committed_only else READ_UNCOMMITTED
                ):
                    partition = got.topic, got.partition
                    start, end = starts[partition], wanted[partition][1]
                    answer = _first(got, start, end, committed_only)
                    if isinstance(answer, int) and fetches[partition] < _MAX_FETCHES:
                        moved |= answer > start
                        fetches[partition] += answer > start
                        starts[partition] = answer
                        continue
                    records[partition] = WireError("no record was found nearby") if isinstance(answer, int) else answer
                    del starts[partition]
                    moved = True
                if not moved and size == _CHUNK:
                    records.update(dict.fromkeys(starts, WireError("the broker gives no data")))
                    return
                # A batch beyond the size limit is given only to the first partition of a request.
                size = size if moved else _CHUNK
        except WireError as error:
            records.update(dict.fromkeys(starts, error))

    await asyncio.gather(*(ask(leader, starts) for leader, starts in by_leader.items()))
    return records


def _first(got: Fetched, start: int, end: int, committed_only: bool) -> DecodedRecord | WireError | int | None:
    """The first record of a response, or the offset to fetch next if it has none."""
    if got.error:
        return BrokerError(got.error, missing_right(got.error, "Read", f"topic {got.topic}"))
    classified = classify(got.data, start, -1, Rules(committed_only, join_up_to=0), got.aborted)
    for outgoing in classified.outgoing:
        for record in records_in(outgoing):
            return record if record.offset < end else None
    if classified.problem is not None:
        return WireError(classified.problem[1])
    return None if classified.next_source >= end else classified.next_source
