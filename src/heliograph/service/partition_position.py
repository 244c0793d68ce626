"""Where mirror partitions stand, from both logs and the ledger alone, whether anything runs or not. Changes nothing."""

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

_One = int | WireError | None
_Said = tuple[_One, _One, _One, _One]


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """None stands for what is not there (no mirror) or could not be read; then `problem` says what is wrong.

    `position` is the source offset that comes next.
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
    there: Mapping[str, Topic],
    here: Mapping[str, Topic],
) -> list[PartitionPosition]:
    """By the rule of recovery, which may still decide otherwise when it looks at records. `there` and `here` are the
    topics of source and target, that of the ledger included."""
    read = [(one.topic, one.partition) for one in partitions]
    written = [(one.mirror, one.partition) for one in partitions if _has(here, one.mirror, one.partition)]
    committed = flow.reading.committed_only
    starts, ends, mirror_starts, mirror_ends = await asyncio.gather(
        list_offsets(source, there, read, EARLIEST, committed),
        list_offsets(source, there, read, LATEST, committed),
        list_offsets(target, here, written, EARLIEST, False),
        list_offsets(target, here, written, LATEST, False),
    )
    if _has(here, ledger.topic, 0):
        await ledger.catch_up()  # after the ends: whoever appended up to there had written down its intervals before
    found = []
    for one in partitions:
        known, place = (one.topic, one.partition), (one.mirror, one.partition)
        said = starts[known], ends[known], mirror_starts.get(place), mirror_ends.get(place)
        bounds = _numbers(said)
        bad = next((at for at in said if isinstance(at, WireError)), None)
        if bad is not None:
            found.append(PartitionPosition(one, *bounds, None, f"its bounds cannot be read: {bad}"))
            continue
        start, end, mirror_start, mirror_end = (at or 0 for at in bounds)
        ids = id_text(there[one.topic].id), id_text(here[one.mirror].id) if one.mirror in here else ""
        others = any(other != ids[1] for other in ledger.all_of(known))
        most = flow.kept_offsets.most_filler if flow.keeps_offsets(one.topic) else None
        end_first = flow.reading.from_the_end
        facts = PartitionFacts(
            start, end, mirror_start, mirror_end, *ids, others, from_the_end=end_first, most_filler=most
        )
        decision = await ledger.ask(known, facts.mirror_id, partial(_decide, facts, flow.policies))
        if isinstance(decision, Blocked):
            found.append(PartitionPosition(one, *bounds, None, decision.text))
        else:
            found.append(PartitionPosition(one, *bounds, decision.position.source))
    return found


def _decide(facts: PartitionFacts, policies: Policies, intervals: Intervals) -> Resume | Blocked:
    return next_position(intervals, facts, policies)


def _numbers(said: _Said) -> tuple[int | None, int | None, int | None, int | None]:
    start, end, mirror_start, mirror_end = (at if isinstance(at, int) else None for at in said)
    return start, end, mirror_start, mirror_end


def _has(topics: Mapping[str, Topic], topic: str, partition: int) -> bool:
    return topic in topics and not topics[topic].error and partition in topics[topic].leaders


@dataclass(frozen=True, slots=True)
class Missing:
    """The first record of the source that is not copied yet; the time is -1 where it has none."""

    offset: int
    timestamp: int


async def first_missing(
    flow: Flow, source: ClusterClient, there: Mapping[str, Topic], all_of_them: Sequence[PartitionPosition]
) -> dict[TopicPartition, Missing | WireError | None]:
    """For the partitions that seem to lag; None where only markers and aborted records follow."""
    wanted = {
        (one.partition.topic, one.partition.partition): (one.position, one.source_end)
        for one in all_of_them
        if one.position is not None and one.source_end is not None and one.position < one.source_end
    }
    found = await first_records(source, there, wanted, flow.reading.committed_only)
    return {
        place: one if one is None or isinstance(one, WireError) else Missing(one.offset, one.timestamp)
        for place, one in found.items()
    }
