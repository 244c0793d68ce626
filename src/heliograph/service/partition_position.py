"""How far mirror partitions are copied, from both logs and the ledger alone: the flow need not run. Writes nothing."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from heliograph.copy.consumer_view import first_records
from heliograph.copy.ledger import Ledger
from heliograph.copy.position import Blocked, PartitionFacts, Resume, next_position
from heliograph.model.flow import Flow, Policies
from heliograph.model.intervals import Intervals
from heliograph.model.partitions import MirrorPartition, TopicPartition
from heliograph.wire.cluster import ClusterClient, Topic, id_text
from heliograph.wire.errors import WireError
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets

_Bound = int | WireError | None
_Bounds = tuple[_Bound, _Bound, _Bound, _Bound]


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """None: there is no mirror, or it could not be read; then `problem` says why.

    `position` is the next source offset to copy.
    """

    partition: MirrorPartition
    source_start: int | None
    source_end: int | None
    mirror_start: int | None
    mirror_end: int | None
    position: int | None
    problem: str = ""


async def partition_positions(
    flow: Flow,
    source: ClusterClient,
    target: ClusterClient,
    ledger: Ledger,
    partitions: Sequence[MirrorPartition],
    source_topics: Mapping[str, Topic],
    target_topics: Mapping[str, Topic],
) -> list[PartitionPosition]:
    """As a copier would resume, which also looks at records and may decide otherwise. The topics of the target include
    that of the ledger."""
    source_keys = [(partition.topic, partition.partition) for partition in partitions]
    mirror_keys = [
        (partition.mirror, partition.partition)
        for partition in partitions
        if _has(target_topics, partition.mirror, partition.partition)
    ]
    committed_only = flow.reading.committed_only
    starts, ends, mirror_starts, mirror_ends = await asyncio.gather(
        list_offsets(source, source_topics, source_keys, EARLIEST, committed_only),
        list_offsets(source, source_topics, source_keys, LATEST, committed_only),
        list_offsets(target, target_topics, mirror_keys, EARLIEST, False),
        list_offsets(target, target_topics, mirror_keys, LATEST, False),
    )
    if _has(target_topics, ledger.topic, 0):
        await ledger.catch_up()  # after the ends: a copier writes its intervals before it appends
    positions = []
    for partition in partitions:
        key, mirror_key = (partition.topic, partition.partition), (partition.mirror, partition.partition)
        bounds = starts[key], ends[key], mirror_starts.get(mirror_key), mirror_ends.get(mirror_key)
        known = _known(bounds)
        error = next((bound for bound in bounds if isinstance(bound, WireError)), None)
        if error is not None:
            problem = f"its start and end offsets cannot be read: {error}"
            positions.append(PartitionPosition(partition, *known, None, problem))
            continue
        start, end, mirror_start, mirror_end = (offset or 0 for offset in known)
        topic, mirror = source_topics[partition.topic], target_topics.get(partition.mirror)
        source_id, mirror_id = id_text(topic.id), "" if mirror is None else id_text(mirror.id)
        facts = PartitionFacts(
            start,
            end,
            mirror_start,
            mirror_end,
            source_id,
            mirror_id,
            any(other != mirror_id for other in ledger.all_of(key)),
            from_the_end=flow.reading.from_the_end,
            most_filler=flow.kept_offsets.most_filler if flow.keeps_offsets(partition.topic) else None,
        )
        decision = await ledger.ask(key, mirror_id, partial(_decide, facts, flow.policies))
        if isinstance(decision, Blocked):
            positions.append(PartitionPosition(partition, *known, None, decision.text))
        else:
            positions.append(PartitionPosition(partition, *known, decision.position.source))
    return positions


def _decide(facts: PartitionFacts, policies: Policies, intervals: Intervals) -> Resume | Blocked:
    return next_position(intervals, facts, policies)


def _known(bounds: _Bounds) -> tuple[int | None, int | None, int | None, int | None]:
    start, end, mirror_start, mirror_end = (bound if isinstance(bound, int) else None for bound in bounds)
    return start, end, mirror_start, mirror_end


def _has(topics: Mapping[str, Topic], topic: str, partition: int) -> bool:
    return topic in topics and not topics[topic].error and partition in topics[topic].leaders


@dataclass(frozen=True, slots=True)
class Missing:
    """The first record of the source that is not copied yet. The timestamp is -1 if it has none."""

    offset: int
    timestamp: int


async def first_missing(
    flow: Flow, source: ClusterClient, source_topics: Mapping[str, Topic], positions: Sequence[PartitionPosition]
) -> dict[TopicPartition, Missing | WireError | None]:
    """For the partitions that are not copied to the end; None where only markers and aborted records follow."""
    ranges = {
        (at.partition.topic, at.partition.partition): (at.position, at.source_end)
        for at in positions
        if at.position is not None and at.source_end is not None and at.position < at.source_end
    }
    records = await first_records(source, source_topics, ranges, flow.reading.committed_only)
    return {
        key: record if record is None or isinstance(record, WireError) else Missing(record.offset, record.timestamp)
        for key, record in records.items()
    }
