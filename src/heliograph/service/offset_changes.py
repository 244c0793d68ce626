"""Changes the source offset at which mirror partitions continue, while nobody copies them.

The next record that is copied is the source's at that offset, and it is appended at the mirror's end: records before it
are skipped, or copied a second time. The ledger says so from then on, so groups are translated exactly.
"""

import asyncio
import time
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.control.mm2_offsets import mm2_offsets, write_mm2_offsets
from heliograph.control.topic_sync import plan, sync_topics
from heliograph.copy.altered_position import AlteredPosition, NotAlterable, altered_position
from heliograph.copy.ledger import OVERTAKEN, Ledger
from heliograph.copy.log_access import batches_at
from heliograph.copy.position import PartitionFacts
from heliograph.copy.resume import not_ready
from heliograph.copy.survey import Survey, has_partition, survey
from heliograph.model.flow import SOURCE, Flow, Policies
from heliograph.model.intervals import Intervals
from heliograph.model.ledger_records import JournalEntry
from heliograph.model.partitions import MirrorPartition, TopicPartition, producer_id
from heliograph.service.cycles import cycle_of
from heliograph.service.flow_status import last_status
from heliograph.service.offset_report import why_not_copied
from heliograph.wire.batches import Batch
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.offsets import log_ends

# By source partition, the next source offset to copy; None: the one that a new mirror would begin with.
WantedOffsets = Mapping[TopicPartition, int | None]

_RUNS = 20.0  # seconds: a process that runs a flow writes its status every five
_READY_WITHIN = 10.0  # mirrors that were just created have no leader for a moment


class Busy(Exception):
    """Somebody may still write to the mirrors: try again later."""


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """A partition continues at source offset `source` instead of `before`, from mirror offset `mirror_end` on."""

    partition: MirrorPartition
    before: int
    source: int
    mirror_end: int
    mirror_id: str
    is_reset: bool

    def __str__(self) -> str:
        count = abs(self.source - self.before)
        what = "skipped" if self.source > self.before else "copied again"
        consequence = f": {count} offsets are {what}" if count else ""
        where = f"continues with source offset {self.source} instead of {self.before}, at mirror offset"
        return f"{self.partition} {where} {self.mirror_end}, as asked for{consequence}"


async def change_offsets(
    flow: Flow, flows: tuple[Flow, ...], wanted: WantedOffsets | None, own_runs: Collection[str]
) -> list[OffsetChange]:
    """Changes the positions of these partitions, or resets those of all partitions that have a mirror; all or none of
    them. `own_runs` are the ids of this process's runs of the flow, which must have ended.

    Raises NotAlterable with all reasons, Busy, MissingTopics and WireError.
    """
    flow = replace(flow, parts=flow.parts | {SOURCE})
    with closing(ClusterClient(flow.source)) as source, closing(ClusterClient(flow.target)) as target:
        await ensure_internal_topics(flow, source, target)
        await _check_that_nobody_copies(flow, target, own_runs)
        partitions = await _partitions(flow, flows, source, target, wanted)
        ledger = Ledger(target, flow.source.alias)
        surveys = await _surveys(flow, source, target, ledger, partitions)
        seen = ledger.next_offset
        altered = await _altered(flow, target, ledger, surveys, wanted or {})
        entries = [
            JournalEntry(_key(found), found.facts.mirror_id, (position.decision,), seen=seen)
            for found, position in altered
            if position.decision is not None
        ]
        if not all(await ledger.append(entries)):
            raise Busy(f"{OVERTAKEN}: try again, and stop the other process if there is one")
        changes = [_change(found, position, (wanted or {}).get(_key(found)) is None) for found, position in altered]
        await _write_for_mm2(flow, target, wanted, changes)
        return changes


def _change(found: Survey, position: AlteredPosition, is_reset: bool) -> OffsetChange:
    facts = found.facts
    return OffsetChange(found.partition, position.before, position.source, facts.mirror_end, facts.mirror_id, is_reset)


def _key(found: Survey) -> TopicPartition:
    return found.partition.topic, found.partition.partition


async def _check_that_nobody_copies(flow: Flow, target: ClusterClient, own_runs: Collection[str]) -> None:
    """What another process appends after the change would be taken for other records."""
    seen = await last_status(target, flow.source.alias)
    if seen is not None and seen.age < _RUNS and seen.status.run_id not in own_runs:
        host = f" on {seen.status.host}" if seen.status.host else ""
        raise Busy(
            f"another process (run {seen.status.run_id}{host}) has written a status of {flow.name} {seen.age:.0f} s "
            f"ago: stop it, and try again when its status is {_RUNS:.0f} s old"
        )


async def _partitions(
    flow: Flow, flows: tuple[Flow, ...], source: ClusterClient, target: ClusterClient, wanted: WantedOffsets | None
) -> list[MirrorPartition]:
    """Those to change, which have a mirror: it is created where a position is wanted before anything was copied."""
    topics, existing = (await source.metadata(None)).topics, (await target.metadata(None)).topics
    not_cyclic = {name: topic for name, topic in topics.items() if not cycle_of(name, flow, flows)}
    mirrored = plan(flow, not_cyclic, existing).mirrored
    if wanted is None:
        wanted = {(name, number): None for name in mirrored for number in topics[name].leaders}
    problems: list[str] = []
    chosen: list[MirrorPartition] = []
    missing: set[str] = set()
    for (name, number), offset in sorted(wanted.items(), key=lambda item: item[0]):
        is_copied = name in mirrored and number in topics[name].leaders
        if is_copied and has_partition(existing, flow.mirror_name(name), number):
            chosen.append(MirrorPartition(name, flow.mirror_name(name), number))
        elif offset is None:
            continue  # nothing was copied, so there is nothing to reset
        elif name not in mirrored:
            problems.append(why_not_copied(flow, name, name in topics, name in not_cyclic, mirrored))
        elif not is_copied:
            problems.append(f"topic {name} of {flow.source.alias} has no partition {number}")
        else:
            missing.add(name)
            chosen.append(MirrorPartition(name, flow.mirror_name(name), number))
    if not problems and missing:
        failed = (await sync_topics(flow, source, target, {name: topics[name] for name in missing})).failed
        problems += [f"topic {name} is not mirrored: {why}" for name, why in failed.items()]
    if problems:
        raise NotAlterable("; ".join(dict.fromkeys(problems)))
    return chosen


async def _surveys(
    flow: Flow, source: ClusterClient, target: ClusterClient, ledger: Ledger, partitions: list[MirrorPartition]
) -> list[Survey]:
    deadline = time.monotonic() + _READY_WITHIN
    while partitions:
        sources = await source.metadata({partition.topic for partition in partitions})
        mirrors = await target.metadata({partition.mirror for partition in partitions})
        mirror_partitions = [(partition.mirror, partition.partition) for partition in partitions]
        # Before the high watermarks, as when a copier resumes.
        ends = await log_ends(target, mirrors.topics, mirror_partitions)
        surveys = await survey(flow, source, target, ledger, partitions, sources.topics, mirrors.topics)
        reasons = [not_ready(found, ends.get(key)) for found, key in zip(surveys, mirror_partitions, strict=True)]
        waiting = [f"{found.partition}: {why}" for found, why in zip(surveys, reasons, strict=True) if why]
        if not waiting:
            return surveys
        if time.monotonic() > deadline:
            raise Busy("; ".join(waiting))
        await asyncio.sleep(0.1)
    return []


async def _altered(
    flow: Flow, target: ClusterClient, ledger: Ledger, surveys: list[Survey], wanted: WantedOffsets
) -> list[tuple[Survey, AlteredPosition]]:
    altered: list[tuple[Survey, AlteredPosition]] = []
    problems = await _written_by_others(flow, target, ledger, surveys)
    for found in surveys:
        rule = partial(_rule, found.facts, flow.policies, wanted.get(_key(found)))
        try:
            altered.append((found, await ledger.ask(_key(found), found.facts.mirror_id, rule)))
        except NotAlterable as why:
            problems.append(f"{found.partition}: {why}")
    if problems:
        raise NotAlterable("; ".join(problems))
    return altered


def _rule(facts: PartitionFacts, policies: Policies, source: int | None, intervals: Intervals) -> AlteredPosition:
    return altered_position(intervals, facts, policies, source)


async def _written_by_others(flow: Flow, target: ClusterClient, ledger: Ledger, surveys: list[Survey]) -> list[str]:
    """The mirrors whose last batch is not ours: what they hold is found out when copying resumes, not here."""
    mirrors = await target.metadata({found.partition.mirror for found in surveys})
    own_ends: dict[TopicPartition, int] = {}
    for found in surveys:
        own_end = await ledger.ask(_key(found), found.facts.mirror_id, partial(_own_end, found.facts))
        if own_end is not None:
            own_ends[found.partition.mirror, found.partition.partition] = own_end
    batches = await batches_at(target, mirrors, {mirror: own_end - 1 for mirror, own_end in own_ends.items()})
    problems = []
    for found in surveys:
        mirror = found.partition.mirror, found.partition.partition
        batch = batches.get(mirror)
        if mirror not in own_ends:
            continue
        if not isinstance(batch, Batch):
            raise WireError(f"the last batch of mirror {mirror[0]}-{mirror[1]} cannot be read: {batch}")
        is_ours = batch.producer_id == producer_id(flow.name, found.partition)
        if not is_ours and batch.base_offset < own_ends[mirror]:  # else compaction has removed our last record
            how = "resume the connector, which finds out what they hold, then stop it and try again"
            problems.append(f"{found.partition}: the last records of the mirror are not of this flow; {how}")
    return problems


def _own_end(facts: PartitionFacts, intervals: Intervals) -> int | None:
    """The mirror offset after our last record; None if the mirror has none of ours."""
    first, own_end = intervals.first(), intervals.own_end(facts.mirror_end)
    return None if first is None or own_end <= max(facts.mirror_start, first.target) else own_end


async def _write_for_mm2(
    flow: Flow, target: ClusterClient, wanted: WantedOffsets | None, changes: list[OffsetChange]
) -> None:
    """What Connect would have stored, also about partitions that have no mirror (any more)."""
    reset = (await mm2_offsets(flow, target)).keys() if wanted is None else wanted.keys()
    offsets: dict[TopicPartition, int | None] = dict.fromkeys(reset)
    for change in changes:
        last = None if change.is_reset or change.source == 0 else change.source - 1
        offsets[change.partition.topic, change.partition.partition] = last
    await write_mm2_offsets(flow, target, offsets)
