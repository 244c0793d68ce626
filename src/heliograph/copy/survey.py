"""A survey of partitions: where both logs begin and end, and which topics they belong to. Changes nothing."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heliograph.copy.ledger import Ledger
from heliograph.copy.position import PartitionFacts
from heliograph.model.flow import Flow
from heliograph.model.partitions import MirrorPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.metadata import NO_ID, Topic, id_text
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets

Bound = int | WireError | None


@dataclass(frozen=True, slots=True)
class Survey:
    """One partition. A bound is an offset, the error of the broker, or None where there is no mirror."""

    partition: MirrorPartition
    source: Topic | None
    mirror: Topic | None
    source_start: Bound
    source_end: Bound
    mirror_start: Bound
    mirror_end: Bound
    has_earlier_mirror: bool
    from_the_end: bool
    max_filler: int | None

    @property
    def error(self) -> WireError | None:
        """Why a bound could not be read."""
        bounds = self.source_start, self.source_end, self.mirror_start, self.mirror_end
        return next((bound for bound in bounds if isinstance(bound, WireError)), None)

    @property
    def facts(self) -> PartitionFacts:
        """What decides where copying resumes. A mirror that does not exist is an empty one."""
        bounds = (self.source_start, self.source_end, self.mirror_start, self.mirror_end)
        start, end, mirror_start, mirror_end = (bound if isinstance(bound, int) else 0 for bound in bounds)
        return PartitionFacts(
            start,
            end,
            mirror_start,
            mirror_end,
            id_text(self.source_topic_id),
            id_text(self.mirror.id) if self.mirror is not None else "",
            self.has_earlier_mirror,
            from_the_end=self.from_the_end,
            most_filler=self.max_filler,
        )

    @property
    def source_topic_id(self) -> uuid.UUID:
        return self.source.id if self.source is not None else NO_ID

    @property
    def source_leader(self) -> int:
        return self.source.leaders.get(self.partition.partition, -1) if self.source is not None else -1

    @property
    def mirror_leader(self) -> int:
        return self.mirror.leaders.get(self.partition.partition, -1) if self.mirror is not None else -1


async def survey(
    flow: Flow,
    source: ClusterClient,
    target: ClusterClient,
    ledger: Ledger,
    partitions: Sequence[MirrorPartition],
    sources: Mapping[str, Topic],
    mirrors: Mapping[str, Topic],
    read_ledger: bool = True,
) -> list[Survey]:
    """Survey partitions by the metadata of their topics, and read the ledger on.

    The ledger is read after the offsets: a copier that began a mirror before us had read an earlier start than we did,
    and had written it to the ledger; and one that appended up to a mirror's end had written the intervals before.
    Without `read_ledger` that is left out: its topic does not exist.
    """
    read = [(partition.topic, partition.partition) for partition in partitions]
    written = [
        (partition.mirror, partition.partition)
        for partition in partitions
        if has_partition(mirrors, partition.mirror, partition.partition)
    ]
    committed = flow.reading.committed_only
    source_starts, source_ends, mirror_starts, mirror_ends = await asyncio.gather(
        list_offsets(source, sources, read, EARLIEST, committed),
        list_offsets(source, sources, read, LATEST, committed),
        list_offsets(target, mirrors, written, EARLIEST, False),
        list_offsets(target, mirrors, written, LATEST, False),
    )
    if read_ledger:
        await ledger.catch_up()
    surveys = []
    for partition, original in zip(partitions, read, strict=True):
        copied = partition.mirror, partition.partition
        mirror = mirrors.get(partition.mirror)
        mirror_id = id_text(mirror.id) if mirror is not None else ""
        surveys.append(
            Survey(
                partition,
                sources.get(partition.topic),
                mirror,
                source_starts[original],
                source_ends[original],
                mirror_starts.get(copied),
                mirror_ends.get(copied),
                any(known != mirror_id for known in ledger.all_of(original)),
                flow.reading.from_the_end,
                flow.kept_offsets.most_filler if flow.keeps_offsets(partition.topic) else None,
            )
        )
    return surveys


def has_partition(topics: Mapping[str, Topic], topic: str, partition: int) -> bool:
    return topic in topics and not topics[topic].error and partition in topics[topic].leaders
