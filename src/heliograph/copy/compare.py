"""Compares a mirror with its source, record by record: key, value, headers, timestamp, order. For the demo and tests.

Batches with the same bytes are not decoded. What a reader of the source does not see (markers, aborted transactions) is
left out; what a copy must change (offsets, producer fields, sometimes batch boundaries) is not compared.
"""

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from heliograph.copy.consumer_view import visible
from heliograph.model.partitions import MirrorPartition
from heliograph.wire.batches import Batch
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import Unreachable
from heliograph.wire.metadata import Topic
from heliograph.wire.recode import DecodedRecord, records_of
from heliograph.wire.records import bounds


@dataclass(frozen=True, slots=True)
class Compared:
    records: int
    size: int
    difference: str | None


async def compare(source: ClusterClient, target: ClusterClient, partition: MirrorPartition) -> Compared:
    """Read both logs from their starts to their present ends, up to the first difference."""
    topic = (await source.metadata([partition.topic])).topics[partition.topic]
    mirror = (await target.metadata([partition.mirror])).topics[partition.mirror]
    originals = _Records(source, topic, partition.partition)
    copies = _Records(target, mirror, partition.partition)
    records = size = 0
    while True:
        await originals.fill()
        await copies.fill()
        if originals.batch is not None and copies.batch is not None and copies.batch.same_records(originals.batch):
            records += originals.batch.count
            size += originals.batch.size
            originals.batch = copies.batch = None
            continue
        left, right = originals.decoded(), copies.decoded()
        if not left and not right:
            return Compared(records, size, None)
        if not left or not right:
            longer = "mirror" if right else "source"
            return Compared(records, size, f"{partition}: the {longer} has more than {records} records")
        while left and right:
            original, copied = left.popleft(), right.popleft()
            if original[1:] != copied[1:]:
                where = f"source offset {original.offset}, record {records} of the mirror"
                return Compared(records, size, f"{partition}: the records at {where} differ")
            records += 1
            size += len(original.key or b"") + len(original.value or b"")


class _Records:
    """One log: the next batch as it is, or the rest of a decoded one."""

    def __init__(self, client: ClusterClient, topic: Topic, partition: int) -> None:
        self._batches = _batches(client, topic, partition)
        self._decoded: deque[DecodedRecord] = deque()
        self.batch: Batch | None = None

    async def fill(self) -> None:
        if self.batch is None and not self._decoded:
            self.batch = await anext(self._batches, None)

    def decoded(self) -> deque[DecodedRecord]:
        if self.batch is not None:
            self._decoded.extend(records_of(self.batch))
            self.batch = None
        return self._decoded


async def _batches(client: ClusterClient, topic: Topic, partition: int) -> AsyncIterator[Batch]:
    """What a read_committed consumer gets from a partition."""
    position, end = await bounds(client, topic, partition)
    async for classified in visible(client, topic, partition, position, end, committed_only=True):
        if classified.problem is not None or classified.next_source == position:
            why = classified.problem[1] if classified.problem else "no data"
            raise Unreachable(f"{topic.name}-{partition} cannot be read at {position}: {why}")
        for outgoing in classified.outgoing:
            yield outgoing.batch
        position = classified.next_source
