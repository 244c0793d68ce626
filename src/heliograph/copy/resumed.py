"""What is known about a cursor while its position is being checked, and how to look at single batches of both logs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from heliograph.copy.cursor import Cursor
from heliograph.copy.ledger import Ledger
from heliograph.copy.position import PartitionFacts, Resume
from heliograph.copy.visible import visible, visible_records
from heliograph.model.flow import MIB
from heliograph.model.intervals import NO_END, Interval, Intervals
from heliograph.model.partitions import TopicPartition
from heliograph.wire.batches import Batch, sequence, split
from heliograph.wire.cluster import ClusterClient, Metadata
from heliograph.wire.errors import WireError
from heliograph.wire.fetch import READ_UNCOMMITTED, FetchPartition, Limits, fetch
from heliograph.wire.recode import DecodedRecord
from heliograph.wire.records import read_batches

_LAST_BATCH = 1 << 20
_AT_ONCE = Limits(32 << 20)
T = TypeVar("T")
Found = dict[TopicPartition, Batch | WireError | None]


@dataclass(slots=True, eq=False)
class Resumed:
    """A cursor with the position that was found for it, and what must be put right before it goes on."""

    cursor: Cursor
    facts: PartitionFacts
    decision: Resume
    epoch: int = -1  # leader epoch of the source's last copied record
    corrections: list[Interval] = field(default_factory=list)
    again: bool = False  # this is to be written down, and then looked at once more

    @property
    def read(self) -> TopicPartition:
        return self.cursor.key.topic, self.cursor.key.partition

    @property
    def written(self) -> TopicPartition:
        return self.cursor.key.mirror, self.cursor.key.partition

    def source_of(self, mirror_offset: int) -> int | None:
        """The source offset of a copied record; None where the source cannot have it any more."""
        interval = self.cursor.intervals.covering(mirror_offset)
        if interval is None or interval.source_id != self.facts.source_id:
            return None
        source = interval.source_of(mirror_offset)
        return source if source >= self.facts.source_start else None

    def in_its_place(self, batch: Batch, shift: int) -> bool:
        """Whether a batch of the mirror has the producer and the sequence number that ours would have there."""
        mine = batch.producer_id == self.cursor.producer_id
        return mine and batch.base_sequence == sequence(batch.base_offset - shift)

    @property
    def own_end(self) -> int:
        """The mirror offset behind the last record of ours; only gaps come after it, if the mirror keeps offsets."""
        return self.cursor.intervals.own_end(self.facts.mirror_end)

    @property
    def last_source(self) -> int | None:
        return self.source_of(self.own_end - 1)

    @property
    def empty(self) -> bool:
        """Nothing in the mirror to look at: it is new, or retention has taken everything."""
        first = self.cursor.intervals.first()
        return self.own_end <= max(self.facts.mirror_start, first.target if first is not None else 0)

    @property
    def doubtful(self) -> bool:
        if self.decision.diverged or self.cursor.cut_at is not None:
            return True
        # Without topic ids and leader epochs only the records tell whether it is still the same log.
        known = self.decision.position == self.cursor.position and bool(self.facts.source_id)
        return not self.empty and (self.cursor.unsure or (not known and not self.decision.decided))


@dataclass(frozen=True, slots=True)
class Clusters:
    """Both sides, what their metadata said, and what is written down. `search_bytes` is how much of a log may be read,
    and how much memory may be used, when a place must be looked for."""

    source: ClusterClient
    sources: Metadata
    target: ClusterClient
    mirrors: Metadata
    ledger: Ledger
    committed_only: bool = True
    search_bytes: int = 64 * MIB

    async def originals(self, wanted: dict[TopicPartition, int]) -> Found:
        return await batches_at(self.source, self.sources, wanted)

    async def copies(self, wanted: dict[TopicPartition, int]) -> Found:
        return await batches_at(self.target, self.mirrors, wanted)

    async def ask(self, one: Resumed, question: Callable[[Intervals], T]) -> T:
        """What the intervals of a mirror say; those that are not in memory are read."""
        return await self.ledger.ask(one.read, one.facts.mirror_id, question)

    async def known(self, one: Resumed, since: int, most: int = NO_END) -> tuple[list[Interval], Interval | None]:
        """The intervals of a mirror from an offset on, if they are too many the last of them; and that which begins at
        its end or behind it."""
        end = one.facts.mirror_end
        return await self.ask(one, lambda intervals: (intervals.rows(since, end, most), intervals.after(end - 1)))

    def source_records(self, one: Resumed, start: int, end: int) -> AsyncIterator[DecodedRecord]:
        """What is to be copied of the source between two offsets."""
        topic = self.sources.topics[one.cursor.key.topic]
        return visible_records(self.source, topic, one.cursor.key.partition, start, end, self.committed_only)

    def mirror_batches(self, one: Resumed, start: int, end: int) -> AsyncIterator[Batch]:
        topic = self.mirrors.topics[one.cursor.key.mirror]
        return read_batches(self.target, topic, one.cursor.key.partition, start, end)

    async def visible_in_mirror(self, one: Resumed, start: int, end: int) -> set[int]:
        """Where batches begin that readers of the mirror see."""
        topic, partition = self.mirrors.topics[one.cursor.key.mirror], one.cursor.key.partition
        found: set[int] = set()
        async for intake in visible(self.target, topic, partition, start, end, committed_only=True):
            found.update(parcel.batch.base_offset for parcel in intake.parcels)
        return found

    async def own_batches(self, one: Resumed, start: int, end: int) -> AsyncIterator[Batch]:
        """What this flow has written to the mirror between two offsets; gaps, and what others wrote, are left out."""
        async for batch in self.mirror_batches(one, start, end):
            if batch.producer_id == one.cursor.producer_id and not batch.control:
                yield batch


async def batches_at(client: ClusterClient, metadata: Metadata, wanted: dict[TopicPartition, int]) -> Found:
    """The batches that hold the given offsets; None or an error where a leader does not give one."""
    by_leader: dict[int, list[FetchPartition]] = {}
    for (topic, partition), offset in wanted.items():
        known = metadata.topics[topic]
        by_leader.setdefault(known.leaders[partition], []).append(
            FetchPartition(topic, known.id, partition, offset, _LAST_BATCH)
        )
    found: Found = {}

    async def ask(leader: int, asks: list[FetchPartition]) -> None:
        try:
            connection = await client.connection(leader)
            while asks:
                answers = await fetch(connection, asks, _AT_ONCE, READ_UNCOMMITTED)
                got = {
                    (one.topic, one.partition): _holding(one.data, wanted[one.topic, one.partition])
                    for one in answers
                    if one.data
                }
                # A broker gives a batch beyond the size limits only to the first partition of a request, so ask
                # again with another one in front; when none came at all, none will.
                if not any(got.values()):
                    return
                found.update({place: batch for place, batch in got.items() if batch is not None})
                asks = [one for one in asks if one.place not in found]
        except WireError as error:
            found.update({one.place: error for one in asks})

    await asyncio.gather(*(ask(leader, asks) for leader, asks in by_leader.items()))
    return found


def _holding(data: bytes, offset: int) -> Batch | None:
    """The first batch that does not end before an offset, without the rest of the chunk in memory behind it."""
    for batch in split(data):
        if batch.next_offset > offset:
            return batch._replace(data=memoryview(bytes(batch.data)))
    return None
