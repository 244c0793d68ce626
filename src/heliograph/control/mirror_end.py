"""Where a mirror that another tool has copied ends, in terms of the source: its last records are looked for there."""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from heliograph.copy.consumer_view import visible_records
from heliograph.copy.log_access import batches_at
from heliograph.model.intervals import Intervals
from heliograph.model.mm2_records import OffsetSync
from heliograph.model.partitions import MirrorPartition, TopicPartition
from heliograph.wire.batches import Batch
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.metadata import Metadata, Topic
from heliograph.wire.recode import DecodedRecord
from heliograph.wire.records import bounds

# This many of the mirror's last records are looked for in the source; fewer are enough where the mirror has a gap or a
# repetition among them, which MM2's restarts leave.
_TAIL = 200
_ENOUGH = 20
# How far after the noted offset to look for more than that.
_FAR = 1_000_000


@dataclass(frozen=True, slots=True)
class Mm2Position:
    """What MM2's topics say of a source partition: the last record that is surely copied, and the last offset sync."""

    last: int
    sync: OffsetSync | None


@dataclass(frozen=True, slots=True)
class ForeignMirror:
    """A mirror partition that another tool has written to, with its source."""

    partition: MirrorPartition
    source: ClusterClient
    topic: Topic
    target: ClusterClient
    mirror: Topic
    start: int
    end: int
    intervals: Intervals

    @property
    def mirror_partition(self) -> TopicPartition:
        return self.partition.mirror, self.partition.partition

    async def batch_at(self, offset: int) -> Batch:
        metadata = Metadata(topics={self.mirror.name: self.mirror})
        batch = (await batches_at(self.target, metadata, {self.mirror_partition: offset})).get(self.mirror_partition)
        if not isinstance(batch, Batch):
            raise WireError(f"mirror offset {offset} cannot be read: {batch}")
        return batch


async def end_in_source(mirror: ForeignMirror, noted: Mm2Position) -> int | None:
    """The source offset after the mirror's last record; None if it is not found."""
    partition = mirror.partition.partition
    start = max(mirror.start, mirror.end - _TAIL)
    # MM2 with exactly-once support leaves aborted records in the mirror; they do not count.
    tail = [
        record
        async for record in visible_records(
            mirror.target, mirror.mirror, partition, start, mirror.end, committed_only=True
        )
    ]
    if not tail:
        if noted.sync is not None and noted.sync.downstream == mirror.end - 1:
            return noted.sync.upstream + 1
        return noted.last + 1 if noted.last >= 0 else None
    ignore_time = (await mirror.batch_at(tail[-1].offset)).log_append_time
    wanted = [_content(record, ignore_time) for record in tail]
    # MM2 also copies aborted records of the source, unless its consumer has isolation.level = read_committed.
    for committed_only in (False, True):
        first, end = await bounds(mirror.source, mirror.topic, partition, committed_only)
        begin = max(first, noted.last + 1 - 2 * _TAIL)
        records = visible_records(mirror.source, mirror.topic, partition, begin, end, committed_only)
        last = await last_match(records, wanted, noted.last, ignore_time)
        if last is not None:
            return last + 1
    return None


async def foreign_offsets(mirror: ForeignMirror, producer: int) -> int:
    """How many offsets of the mirror our sequence numbers do not count, once we append after its end.

    A broker remembers our last sequence number: the next one must follow it. Our records reach from the last interval
    up to where MM2's begin, which a binary search finds. Where we never wrote, numbers count from the mirror's start as
    if all records were ours.
    """
    last = mirror.intervals.covering(mirror.end - 1)
    if last is None:
        return 0
    low, high = max(last.target, mirror.start), mirror.end
    while low < high:
        middle = (low + high) // 2
        batch = await mirror.batch_at(middle)
        if batch.producer_id == producer:
            low = batch.next_offset
        else:
            high = min(middle, batch.base_offset)
    return last.foreign_offsets_before + mirror.end - low


async def last_match(
    records: AsyncIterator[DecodedRecord], tail: Sequence[tuple[object, ...]], noted: int, ignore_time: bool = False
) -> int | None:
    """The offset of the source record that the mirror ends with: the first, from the noted offset on, up to which the
    source has the mirror's last records in a row. If it has not all of them, the offset with the longest match."""
    window: deque[tuple[object, ...]] = deque(maxlen=len(tail))
    best, most = None, 0
    async for record in records:
        window.append(_content(record, ignore_time))
        if record.offset >= noted and window[-1] == tail[-1]:
            same = _same_at_end(window, tail)
            if same == len(tail):
                return record.offset
            if same > most:
                best, most = record.offset, same
        if record.offset > noted + _FAR and most >= _ENOUGH:
            break
    return best if most >= min(_ENOUGH, len(tail)) else None


def _same_at_end(window: Sequence[tuple[object, ...]], tail: Sequence[tuple[object, ...]]) -> int:
    same = 0
    for source_record, mirror_record in zip(reversed(window), reversed(tail), strict=False):
        if source_record != mirror_record:
            break
        same += 1
    return same


def _content(record: DecodedRecord, ignore_time: bool) -> tuple[object, ...]:
    """What must be equal; not the timestamp if the mirror has LogAppendTime."""
    return (record.key, record.value, record.headers) if ignore_time else record[1:]
