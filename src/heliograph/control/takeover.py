"""Taking over mirrors from MirrorMaker 2: finds the source offset at which to continue each of them.

MM2's offsets are behind: it may have copied more than it has noted, and after a restart some records twice. So the last
records of the mirror are looked for in the source, from the offset that MM2 has noted on (`mirror_end`). The result is
written to the ledger as the interval with which our copying begins. A mirror whose end is not found is not touched.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from heliograph.control.config_sync import FAITHFUL
from heliograph.control.mirror_end import ForeignMirror, Mm2Position, end_in_source, foreign_offsets
from heliograph.control.mm2_offsets import mm2_offsets, mm2_was_here
from heliograph.control.mm2_workers import wait_for_mm2_to_stop
from heliograph.copy.ledger import Ledger
from heliograph.copy.log_access import batches_at
from heliograph.model.flow import Flow
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.ledger_records import JournalEntry
from heliograph.model.mm2_records import OffsetSync
from heliograph.model.partitions import MirrorPartition, TopicPartition, producer_id
from heliograph.wire.batches import Batch
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, WireError
from heliograph.wire.metadata import Topic, id_text
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets
from heliograph.wire.records import own_topic, read_kind
from heliograph.wire.topic_requests import change_configs, describe_configs

log = logging.getLogger(__name__)

_CONCURRENT_PARTITIONS = 8
_TRANSACTION_TIMEOUT = 70.0  # 60 s by default


@dataclass(frozen=True, slots=True)
class TakenOverMirror:
    """A mirror that was taken over: its end, and the source offset to continue from."""

    partition: MirrorPartition
    mirror_end: int
    source: int
    noted: int  # where MM2 would have resumed
    foreign_offsets_before: int  # offsets of the mirror that hold no records of ours


@dataclass(slots=True)
class TakeOverResult:
    taken: list[TakenOverMirror] = field(default_factory=list)
    refused: dict[MirrorPartition, str] = field(default_factory=dict)


async def take_over(
    flow: Flow,
    source: ClusterClient,
    target: ClusterClient,
    ledger: Ledger,
    partitions: Sequence[MirrorPartition],
    *,
    dry: bool = False,
) -> TakeOverResult:
    """Finds the ends of all mirrors whose last records are not ours, and writes them to the ledger (not if `dry`).

    Only mirrors of topics that MM2 has offsets of. Raises StillRunning, and a BrokerError if a right is missing.
    """
    outcome, seen = TakeOverResult(), ledger.next_offset
    if not partitions or not await mm2_was_here(flow, target):
        return outcome  # offset syncs, if there are any, may be ours
    if not dry:
        await wait_for_mm2_to_stop(flow, target)
    noted = await _mm2_positions(flow, source, target)
    # By topic: an MM2 that was killed early may have no offsets yet for some partitions.
    topics = {topic for topic, _partition in noted}
    known = [partition for partition in partitions if partition.topic in topics]
    mirrors = await _foreign_mirrors(flow, source, target, ledger, known, outcome, wait=not dry)
    room = asyncio.Semaphore(_CONCURRENT_PARTITIONS)

    async def find(mirror: ForeignMirror) -> None:
        partition = mirror.partition
        position = noted.get((partition.topic, partition.partition), Mm2Position(-1, None))
        async with room:
            try:
                source_end = await end_in_source(mirror, position)
                foreign = await foreign_offsets(mirror, producer_id(flow.name, partition))
            except WireError as error:
                outcome.refused[partition] = f"the logs cannot be read: {error}"
                return
        if source_end is None:
            outcome.refused[partition] = (
                f"the last records of the mirror were not found in the source from offset {max(position.last, 0)} on, "
                "the offset that MirrorMaker 2 has stored"
            )
        else:
            taken = TakenOverMirror(partition, mirror.end, source_end, position.last + 1, foreign)
            outcome.taken.append(taken)

    await asyncio.gather(*(find(mirror) for mirror in mirrors))
    if outcome.taken and not dry:
        by_partition = {mirror.partition: mirror for mirror in mirrors}
        await _make_faithful(target, {taken.partition.mirror for taken in outcome.taken})
        found = list(outcome.taken)
        counts = await ledger.append([_entry(taken, by_partition[taken.partition], seen) for taken in found])
        for taken in (taken for taken, is_counted in zip(found, counts, strict=True) if not is_counted):
            outcome.taken.remove(taken)
            reason = "another process has written to the ledger about it meanwhile; it is looked at again"
            outcome.refused[taken.partition] = reason
    return outcome


def _entry(taken: TakenOverMirror, mirror: ForeignMirror, seen: int) -> JournalEntry:
    source_partition = (taken.partition.topic, taken.partition.partition)
    source_id = id_text(mirror.topic.id)
    begins = Interval(taken.mirror_end, taken.source, 0, source_id, taken.foreign_offsets_before)
    return JournalEntry(source_partition, id_text(mirror.mirror.id), (begins,), seen=seen)


def log_take_over(flow: Flow, outcome: TakeOverResult) -> None:
    for taken in outcome.taken:
        more = taken.source - taken.noted
        log.info(
            "%s: mirror %s-%d taken over from MirrorMaker 2 at mirror offset %d, source offset %d%s",
            flow.name,
            taken.partition.mirror,
            taken.partition.partition,
            taken.mirror_end,
            taken.source,
            f" ({more} offsets more than it had stored)" if more > 0 else "",
        )
    for partition, why in outcome.refused.items():
        fields = {"topic": partition.topic, "partition": partition.partition}
        log.error("%s: %s cannot be taken over from MirrorMaker 2: %s", flow.name, partition, why, extra=fields)


# --- MM2's own state ----------------------------------------------------------------------------------------------


async def _mm2_positions(flow: Flow, source: ClusterClient, target: ClusterClient) -> dict[TopicPartition, Mm2Position]:
    """By source topic and partition."""
    offsets = await mm2_offsets(flow, target)
    client = target if flow.offset_syncs.on_target else source
    name = flow.offset_syncs_topic
    topic = (await client.metadata([name])).topics[name]
    syncs: dict[TopicPartition, OffsetSync] = {}
    if topic.error != UNKNOWN_TOPIC_OR_PARTITION:
        topic = await own_topic(client, name)
        async for sync in read_kind(client, topic, OffsetSync.from_record):
            syncs[sync.topic, sync.partition] = sync  # the last one counts: the topic may have been recreated
    paired = {partition: sync.upstream for partition, sync in syncs.items()}
    return {
        partition: Mm2Position(max(offsets.get(partition, -1), paired.get(partition, -1)), syncs.get(partition))
        for partition in offsets.keys() | paired.keys()
    }


# --- mirrors that are not ours -------------------------------------------------------------------------------------


async def _foreign_mirrors(
    flow: Flow,
    source: ClusterClient,
    target: ClusterClient,
    ledger: Ledger,
    partitions: Sequence[MirrorPartition],
    outcome: TakeOverResult,
    *,
    wait: bool,
) -> list[ForeignMirror]:
    """The mirrors whose last batch is not ours: MM2 wrote it, before us or between two runs of ours."""
    if not partitions:
        return []
    sources, mirrors = await asyncio.gather(
        source.metadata({partition.topic for partition in partitions}),
        target.metadata({partition.mirror for partition in partitions}),
    )
    mirror_partitions = [(partition.mirror, partition.partition) for partition in partitions]
    starts, ends = await _settled_bounds(target, mirrors.topics, mirror_partitions, wait)
    candidates: list[ForeignMirror] = []
    for partition, mirror_partition in zip(partitions, mirror_partitions, strict=True):
        start, end, mirror = starts[mirror_partition], ends[mirror_partition], mirrors.topics[partition.mirror]
        if isinstance(start, WireError) or isinstance(end, WireError):
            outcome.refused[partition] = (
                f"the mirror's bounds cannot be read: {start if isinstance(start, WireError) else end}"
            )
            continue
        known = (partition.topic, partition.partition), id_text(mirror.id)
        begins, covering, _own_end = await ledger.ask(*known, partial(_at_end, end))
        intervals, topic = ledger.of(*known), sources.topics[partition.topic]
        is_decided = begins is not None and begins.source_id == id_text(topic.id)
        if end > 0 and not is_decided and (start < end or covering is None):
            candidates.append(ForeignMirror(partition, source, topic, target, mirror, start, end, intervals))
    # What follows our own end fills gaps.
    own_ends = {candidate.mirror_partition: candidate.intervals.own_end(candidate.end) for candidate in candidates}
    non_empty = [candidate for candidate in candidates if candidate.start < own_ends[candidate.mirror_partition]]
    last_offsets = {candidate.mirror_partition: own_ends[candidate.mirror_partition] - 1 for candidate in non_empty}
    last_batches = await batches_at(target, mirrors, last_offsets)
    foreign = []
    for candidate in candidates:
        batch = last_batches.get(candidate.mirror_partition)
        if candidate.start == candidate.end:
            foreign.append(candidate)  # emptied by retention, and we have never written to it
        elif own_ends[candidate.mirror_partition] <= candidate.start:
            continue  # only gaps of ours are left
        elif not isinstance(batch, Batch):
            outcome.refused[candidate.partition] = f"the mirror's last batch cannot be read: {batch}"
        elif batch.producer_id != producer_id(flow.name, candidate.partition):
            foreign.append(candidate)
    return foreign


def _at_end(end: int, intervals: Intervals) -> tuple[Interval | None, Interval | None, int]:
    """Everything that is asked of the intervals of a mirror that ends at `end`."""
    return intervals.beginning(end), intervals.covering(end - 1), intervals.own_end(end)


async def _settled_bounds(
    target: ClusterClient, mirrors: Mapping[str, Topic], partitions: list[TopicPartition], wait: bool
) -> tuple[dict[TopicPartition, int | WireError], dict[TopicPartition, int | WireError]]:
    """Starts and ends once no transaction is open: MM2 with exactly-once support may have been killed in one, and it is
    not known yet whether its records count."""
    deadline = time.monotonic() + (_TRANSACTION_TIMEOUT if wait else 0.0)
    while True:
        starts, ends, stable = await asyncio.gather(
            list_offsets(target, mirrors, partitions, EARLIEST, False),
            list_offsets(target, mirrors, partitions, LATEST, False),
            list_offsets(target, mirrors, partitions, LATEST, True),
        )
        if time.monotonic() >= deadline or all(ends[partition] == stable[partition] for partition in partitions):
            return starts, ends
        await asyncio.sleep(1.0)


async def _make_faithful(target: ClusterClient, mirrors: set[str]) -> None:
    """Sets what our mirrors need to keep timestamps and compression of the source, whoever has created them."""
    changes: dict[str, dict[str, str | None]] = {}
    for name, configs in (await describe_configs(target, mirrors)).items():
        if isinstance(configs, dict):
            different = {
                key: value for key, value in FAITHFUL.items() if key in configs and configs[key].value != value
            }
            if different:
                changes[name] = dict(different)
    for name, error in (await change_configs(target, changes)).items():
        if error is not None:
            log.warning("mirror %s keeps its own %s: %s", name, " and ".join(changes[name]), error)
