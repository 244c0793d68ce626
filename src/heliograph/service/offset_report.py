"""Both ends of every mirror partition side by side, and how far the mirror is behind: for `heliograph offsets`."""

import difflib
import time
from dataclasses import dataclass

from heliograph.control.topic_sync import plan
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.model.partitions import MirrorPartition
from heliograph.service.cycles import cycle_of
from heliograph.service.partition_position import Missing, PartitionPosition, first_missing, partition_positions
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError


class NoSuchTopic(Exception):
    """The flow does not copy a topic of this name."""


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """None stands for what is not there or not known; `problem` says what is wrong, if something is.

    `position` is the source offset that comes next. `difference` is mirror offset minus source offset there. `lag`
    counts source offsets from the first record that is not copied yet, and `lag_seconds` is that record's age.
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
    source, target = ClusterClient(flow.source), ClusterClient(flow.target)
    try:
        there, here = (await source.metadata(None)).topics, (await target.metadata(None)).topics
        rest = {name: one for name, one in there.items() if not cycle_of(name, flow, flows)}
        mirrored = plan(flow, rest, here).mirrored
        if topic is not None:
            chosen = tuple(name for name in mirrored if topic in (name, flow.mirror_name(name)))
            if not chosen:
                raise NoSuchTopic(_why(flow, topic, topic in rest, topic in there, mirrored))
            mirrored = chosen
        ledger = Ledger(target, flow.source.alias)
        partitions = [
            MirrorPartition(name, flow.mirror_name(name), number) for name in mirrored for number in there[name].leaders
        ]
        found = await partition_positions(flow, source, target, ledger, partitions, there, here)
        missing = await first_missing(flow, source, there, found)
        moment = time.time()
        rows = (_row(one, missing, moment) for one in found)
        return FlowOffsets(flow.name, tuple(sorted(rows, key=lambda row: (row.topic, row.partition))))
    finally:
        source.close()
        target.close()


def _row(
    one: PartitionPosition, missing: dict[tuple[str, int], Missing | WireError | None], moment: float
) -> PartitionOffsets:
    key = one.partition
    lag, seconds, problem = None, None, one.problem
    if one.position is not None and one.source_end is not None:
        first = missing.get((key.topic, key.partition))
        if isinstance(first, Missing):
            lag = one.source_end - first.offset
            seconds = None if first.timestamp < 0 else round(max(0.0, moment - first.timestamp / 1000), 1)
        elif first is None:
            lag, seconds = 0, 0.0
        else:
            lag, problem = one.source_end - one.position, f"the source cannot be read at {one.position}: {first}"
    difference = None if one.position is None or one.mirror_end is None else one.mirror_end - one.position
    bounds = one.source_start, one.source_end, one.mirror_start, one.mirror_end
    return PartitionOffsets(
        key.topic, key.mirror, key.partition, *bounds, one.position, difference, lag, seconds, problem
    )


def _why(flow: Flow, topic: str, exists: bool, circles: bool, mirrored: tuple[str, ...]) -> str:
    if exists or circles:
        why = flow.why_left_out(topic)[0] if exists else "it would be copied in a circle onto itself"
        return f"{flow.name} does not copy topic {topic}: {why}"
    near = difflib.get_close_matches(topic, mirrored, n=1)
    return f"{flow.name} has no topic {topic}" + (f"; did you mean {near[0]}?" if near else "")
