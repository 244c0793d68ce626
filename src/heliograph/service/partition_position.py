"""How far mirror partitions are copied, from both logs and the ledger alone: the flow need not run. Writes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from heliograph.copy.consumer_view import first_records
from heliograph.copy.ledger import Ledger
from heliograph.copy.position import Blocked, PartitionFacts, Resume, next_position
from heliograph.copy.survey import Survey, has_partition, survey
from heliograph.model.flow import Flow, Policies
from heliograph.model.intervals import Intervals
from heliograph.model.partitions import MirrorPartition, TopicPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.metadata import Topic


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
    read_ledger = has_partition(target_topics, ledger.topic, 0)
    surveys = await survey(flow, source, target, ledger, partitions, source_topics, target_topics, read_ledger)
    return [await _position(surveyed, flow.policies, ledger) for surveyed in surveys]


async def _position(surveyed: Survey, policies: Policies, ledger: Ledger) -> PartitionPosition:
    partition = surveyed.partition
    bounds = surveyed.source_start, surveyed.source_end, surveyed.mirror_start, surveyed.mirror_end
    start, end, mirror_start, mirror_end = (bound if isinstance(bound, int) else None for bound in bounds)
    known = start, end, mirror_start, mirror_end
    if surveyed.error is not None:
        problem = f"its start and end offsets cannot be read: {surveyed.error}"
        return PartitionPosition(partition, *known, None, problem)
    facts = surveyed.facts
    key = partition.topic, partition.partition
    decision = await ledger.ask(key, facts.mirror_id, partial(_decide, facts, policies))
    if isinstance(decision, Blocked):
        return PartitionPosition(partition, *known, None, decision.text)
    return PartitionPosition(partition, *known, decision.position.source)


def _decide(facts: PartitionFacts, policies: Policies, intervals: Intervals) -> Resume | Blocked:
    return next_position(intervals, facts, policies)


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
