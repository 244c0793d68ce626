"""Reading single batches and stretches of the source and of the mirror, to verify a position."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TypeVar

from heliograph.copy.candidate import Candidate
from heliograph.copy.consumer_view import visible, visible_records
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import MIB
from heliograph.model.intervals import NO_END, Interval, Intervals
from heliograph.model.partitions import TopicPartition
from heliograph.wire.batches import Batch, split
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError, WireError, missing_right
from heliograph.wire.fetch import READ_UNCOMMITTED, FetchPartition, Limits, fetch
from heliograph.wire.fetch_response import Fetched
from heliograph.wire.metadata import Metadata
from heliograph.wire.recode import DecodedRecord
from heliograph.wire.records import read_batches

_LAST_BATCH = 1 << 20
_AT_ONCE = Limits(32 << 20)
T = TypeVar("T")
Batches = dict[TopicPartition, Batch | WireError | None]


@dataclass(frozen=True, slots=True)
class BothLogs:
    """Both logs, the metadata of their topics, and the ledger. `search_bytes` is how much of a log may be read, and
    how much memory may be used, when an offset must be searched."""

    source: ClusterClient
    sources: Metadata
    target: ClusterClient
    mirrors: Metadata
    ledger: Ledger
    committed_only: bool = True
    search_bytes: int = 64 * MIB

    async def originals(self, wanted: dict[TopicPartition, int]) -> Batches:
        return await batches_at(self.source, self.sources, wanted)

    async def copies(self, wanted: dict[TopicPartition, int]) -> Batches:
        return await batches_at(self.target, self.mirrors, wanted)

    async def ask(self, candidate: Candidate, question: Callable[[Intervals], T]) -> T:
        """Answer a question from the intervals of a mirror. Reads those that are not in memory."""
        return await self.ledger.ask(candidate.source_partition, candidate.facts.mirror_id, question)

    async def known(
        self, candidate: Candidate, since: int, most: int = NO_END
    ) -> tuple[list[Interval], Interval | None]:
        """The intervals of a mirror from an offset on, at most the last `most`; and the one that begins at its end or
        after it."""
        end = candidate.facts.mirror_end
        return await self.ask(candidate, lambda intervals: (intervals.rows(since, end, most), intervals.after(end - 1)))

    def source_records(self, candidate: Candidate, start: int, end: int) -> AsyncIterator[DecodedRecord]:
        """The records of the source between two offsets that are to be copied."""
        topic = self.sources.topics[candidate.cursor.key.topic]
        return visible_records(self.source, topic, candidate.cursor.key.partition, start, end, self.committed_only)

    def mirror_batches(self, candidate: Candidate, start: int, end: int) -> AsyncIterator[Batch]:
        topic = self.mirrors.topics[candidate.cursor.key.mirror]
        return read_batches(self.target, topic, candidate.cursor.key.partition, start, end)

    async def visible_in_mirror(self, candidate: Candidate, start: int, end: int) -> set[int]:
        """The base offsets of batches that readers of the mirror see."""
        topic, partition = self.mirrors.topics[candidate.cursor.key.mirror], candidate.cursor.key.partition
        base_offsets: set[int] = set()
        async for classified in visible(self.target, topic, partition, start, end, committed_only=True):
            base_offsets.update(outgoing.batch.base_offset for outgoing in classified.outgoing)
        return base_offsets

    async def own_batches(self, candidate: Candidate, start: int, end: int) -> AsyncIterator[Batch]:
        """What this flow has written to the mirror between two offsets, without gaps."""
        async for batch in self.mirror_batches(candidate, start, end):
            if batch.producer_id == candidate.producer_id and not batch.control:
                yield batch


async def batches_at(client: ClusterClient, metadata: Metadata, wanted: dict[TopicPartition, int]) -> Batches:
    """The batches that hold the given offsets; missing, or an error, where a leader does not return one."""
    by_leader: dict[int, list[FetchPartition]] = {}
    for (topic, partition), offset in wanted.items():
        known = metadata.topics[topic]
        by_leader.setdefault(known.leaders[partition], []).append(
            FetchPartition(topic, known.id, partition, offset, _LAST_BATCH)
        )
    batches: Batches = {}

    async def ask(leader: int, asks: list[FetchPartition]) -> None:
        try:
            connection = await client.connection(leader)
            while asks:
                answers = await fetch(connection, asks, _AT_ONCE, READ_UNCOMMITTED)
                received = {
                    (answer.topic, answer.partition): _holding(answer.data, wanted[answer.topic, answer.partition])
                    for answer in answers
                    if answer.data
                }
                forbidden = {
                    (answer.topic, answer.partition): error
                    for answer in answers
                    if (error := _refused(answer)).forbidden
                }
                batches.update(forbidden)
                # A broker returns a batch beyond the size limits only for the first partition of a request, so ask
                # again with another one in front; when none came at all, none will.
                if not any(received.values()):
                    return
                batches.update({partition: batch for partition, batch in received.items() if batch is not None})
                asks = [partition for partition in asks if partition.place not in batches]
        except WireError as error:
            batches.update({partition.place: error for partition in asks})

    await asyncio.gather(*(ask(leader, asks) for leader, asks in by_leader.items()))
    return batches


def _refused(answer: Fetched) -> BrokerError:
    return BrokerError(answer.error, missing_right(answer.error, "Read", f"topic {answer.topic}"))


def _holding(data: memoryview, offset: int) -> Batch | None:
    """The first batch that ends after an offset."""
    for batch in split(data):
        if batch.next_offset > offset:
            return batch.with_own_bytes()
    return None
