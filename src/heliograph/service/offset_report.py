"""The offsets of every partition on both clusters, and the mirror's lag: for `heliograph offsets`."""

import difflib
import time
from contextlib import closing
from dataclasses import dataclass

from heliograph.control.topic_sync import plan
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.model.partitions import MirrorPartition, TopicPartition
from heliograph.service.cycles import cycle_of
from heliograph.service.partition_position import Missing, PartitionPosition, first_missing, partition_positions
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError


class NoSuchTopic(Exception):
    """The flow does not copy a topic of this name."""


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """None: there is none, or it is not known; then `problem` says why.

    `position` is the next source offset to copy. `difference` is the mirror offset of the next record minus `position`.
    `lag` counts source offsets from the first record that is not copied yet, and `lag_seconds` is that record's age.
    """

    topic: str
    mirror: str
    partition: int
    source_start: int | None
    source_end: int | None
    mirror_start: int | None
    mirror_end: int | None
    position: int | None
    difference: int | None
    lag: int | None
    lag_seconds: float | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class FlowOffsets:
    flow: str
    partitions: tuple[PartitionOffsets, ...]


async def look_at_offsets(flow: Flow, flows: tuple[Flow, ...], topic: str | None = None) -> FlowOffsets:
    """All partitions that the flow copies, or those of one topic, by its name or its mirror's. Raises NoSuchTopic."""
    with closing(ClusterClient(flow.source)) as source, closing(ClusterClient(flow.target)) as target:
        source_topics, target_topics = (await source.metadata(None)).topics, (await target.metadata(None)).topics
        not_cyclic = {name: found for name, found in source_topics.items() if not cycle_of(name, flow, flows)}
        mirrored = plan(flow, not_cyclic, target_topics).mirrored
        if topic is not None:
            chosen = tuple(name for name in mirrored if topic in (name, flow.mirror_name(name)))
            if not chosen:
                raise NoSuchTopic(why_not_copied(flow, topic, topic in source_topics, topic in not_cyclic, mirrored))
            mirrored = chosen
        partitions = [
            MirrorPartition(name, flow.mirror_name(name), number)
            for name in mirrored
            for number in source_topics[name].leaders
        ]
        ledger = Ledger(target, flow.source.alias)
        positions = await partition_positions(flow, source, target, ledger, partitions, source_topics, target_topics)
        missing = await first_missing(flow, source, source_topics, positions)
        now = time.time()
        rows = (_row(position, missing, now) for position in positions)
        return FlowOffsets(flow.name, tuple(sorted(rows, key=lambda row: (row.topic, row.partition))))


def _row(
    at: PartitionPosition, missing: dict[TopicPartition, Missing | WireError | None], now: float
) -> PartitionOffsets:
    partition = at.partition
    lag, seconds, problem = None, None, at.problem
    if at.position is not None and at.source_end is not None:
        first = missing.get((partition.topic, partition.partition))
        if isinstance(first, Missing):
            lag = at.source_end - first.offset
            seconds = None if first.timestamp < 0 else round(max(0.0, now - first.timestamp / 1000), 1)
        elif first is None:
            lag, seconds = 0, 0.0
        else:
            lag, problem = at.source_end - at.position, f"the source cannot be read at offset {at.position}: {first}"
    return PartitionOffsets(
        partition.topic,
        partition.mirror,
        partition.partition,
        at.source_start,
        at.source_end,
        at.mirror_start,
        at.mirror_end,
        at.position,
        None if at.position is None or at.mirror_end is None else at.mirror_end - at.position,
        lag,
        seconds,
        problem,
    )


def why_not_copied(flow: Flow, topic: str, exists: bool, is_not_cyclic: bool, mirrored: tuple[str, ...]) -> str:
    """Why a topic is not among those that the flow mirrors."""
    if exists:
        why = flow.why_left_out(topic)[0] if is_not_cyclic else "it would be copied in a cycle"
        return f"{flow.name} does not copy topic {topic}: {why}"
    near = difflib.get_close_matches(topic, mirrored, n=1)
    return f"{flow.name} has no topic {topic}" + (f"; did you mean {near[0]}?" if near else "")
