"""Taking over mirrors from MirrorMaker 2: where in the source does a mirror end that we have not copied?

MM2's books are behind: it may have written more than it has noted, and after a restart some records twice. So the
mirror itself is asked: its last records are looked for in the source, from the place that MM2 has noted on. What is
found is written down as the interval with which our copying begins. A mirror whose end is not found is not touched.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from heliograph.control.config_sync import FAITHFUL
from heliograph.control.mm2_offsets import mm2_offsets, mm2_was_here
from heliograph.control.offset_syncs import syncs_topic
from heliograph.copy.ledger import Ledger
from heliograph.copy.resumed import batches_at
from heliograph.copy.visible import visible_records
from heliograph.model.flow import Flow
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.ledger_records import JournalEntry
from heliograph.model.mm2_records import OffsetSync
from heliograph.model.partitions import MirrorPartition, TopicPartition, producer_id
from heliograph.wire.batches import Batch
from heliograph.wire.cluster import ClusterClient, Metadata, Topic, id_text
from heliograph.wire.consumer_groups import DEAD, EMPTY, group_states
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, WireError
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets
from heliograph.wire.recode import DecodedRecord
from heliograph.wire.records import bounds, read_kind
from heliograph.wire.topic_requests import change_configs, describe_configs

log = logging.getLogger(__name__)

# So many of the mirror's last records are looked for in the source; fewer must do where the mirror has a gap or a
# repetition among them, which MM2's restarts leave.
_TAIL = 200
_ENOUGH = 20
# How far behind the noted place to look for more than that.
_FAR = 1_000_000
_AT_ONCE = 8  # partitions
_SESSION = 30.0  # a worker's session lasts 10 s unless told otherwise
_TRANSACTION = 70.0  # one that was left open ends after 60 s unless told otherwise


class StillRunning(Exception):
    """MM2 works on this flow now."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A mirror that was taken over: its end, and the source offset that comes next."""

    partition: MirrorPartition
    mirror_end: int
    source: int
    noted: int  # where MM2 would have gone on
    foreign_offsets_before: int  # how many records in the mirror are not ours


@dataclass(slots=True)
class TakeOver:
    taken: list[Taken] = field(default_factory=list)
    refused: dict[MirrorPartition, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Noted:
    """What MM2 says of a source partition: the last record that is surely copied, and its last pair of offsets."""

    last: int
    sync: OffsetSync | None


@dataclass(frozen=True, slots=True)
class _Mirror:
    """A mirror partition that is to be taken over, with all that is needed to look at it."""

    partition: MirrorPartition
    source: ClusterClient
    topic: Topic
    target: ClusterClient
    mirror: Topic
    start: int
    end: int
    intervals: Intervals

    @property
    def written(self) -> TopicPartition:
        return self.partition.mirror, self.partition.partition

    async def batch_at(self, offset: int) -> Batch:
        metadata = Metadata(topics={self.mirror.name: self.mirror})
        batch = (await batches_at(self.target, metadata, {self.written: offset})).get(self.written)
        if not isinstance(batch, Batch):
            raise WireError(f"mirror offset {offset} cannot be read: {batch}")
        return batch


async def take_over(
    flow: Flow,
    source: ClusterClient,
    target: ClusterClient,
    ledger: Ledger,
    partitions: Sequence[MirrorPartition],
    *,
    dry: bool = False,
) -> TakeOver:
    """Find the ends of all mirrors whose last records are not ours, and write them down (not if `dry`).

    Only those of topics that MM2 has an account of: any other mirror is none of ours. Raises StillRunning.
    """
    outcome, seen = TakeOver(), ledger.next_offset
    if not partitions or not await mm2_was_here(flow, target):
        return outcome  # pairs of offsets, if there are some, may well be ours
    if not dry:
        await _until_stopped(flow, target)
    noted = await _noted(flow, source, target)
    # One that was killed early may have noted nothing yet of some partitions of a topic.
    topics = {topic for topic, _partition in noted}
    known = [one for one in partitions if one.topic in topics]
    mirrors = await _not_ours(flow, source, target, ledger, known, outcome, wait=not dry)
    room = asyncio.Semaphore(_AT_ONCE)

    async def find(one: _Mirror) -> None:
        about = noted.get((one.partition.topic, one.partition.partition), _Noted(-1, None))
        async with room:
            try:
                found = await _end_in_source(one, about)
                shift = await _records_of_others(one, producer_id(flow.name, one.partition))
            except WireError as error:
                outcome.refused[one.partition] = f"the logs cannot be read: {error}"
                return
        if found is None:
            outcome.refused[one.partition] = (
                f"the last records of the mirror were not found in the source from offset {max(about.last, 0)} on, "
                "where MirrorMaker 2 has noted to be"
            )
        else:
            outcome.taken.append(Taken(one.partition, one.end, found, about.last + 1, shift))

    await asyncio.gather(*(find(one) for one in mirrors))
    if outcome.taken and not dry:
        by_partition = {one.partition: one for one in mirrors}
        await _make_faithful(target, {one.partition.mirror for one in outcome.taken})
        entries = {_entry(one, by_partition[one.partition]): one for one in outcome.taken}
        for entry in await ledger.decide(list(entries), seen):
            outcome.taken.remove(entries[entry])
            said = "another process has written to the ledger about it meanwhile; it is looked at again"
            outcome.refused[entries[entry].partition] = said
    return outcome


def _entry(one: Taken, mirror: _Mirror) -> JournalEntry:
    place = (one.partition.topic, one.partition.partition)
    begins = Interval(one.mirror_end, one.source, 0, id_text(mirror.topic.id), one.foreign_offsets_before)
    return JournalEntry(place, id_text(mirror.mirror.id), (begins,))


def tell(flow: Flow, outcome: TakeOver) -> None:
    for one in outcome.taken:
        more = one.source - one.noted
        log.info(
            "%s: mirror %s-%d taken over from MirrorMaker 2 at mirror offset %d, source offset %d%s",
            flow.name,
            one.partition.mirror,
            one.partition.partition,
            one.mirror_end,
            one.source,
            f" ({more} offsets more than it had noted)" if more > 0 else "",
        )
    for partition, why in outcome.refused.items():
        place = {"topic": partition.topic, "partition": partition.partition}
        log.error("%s: %s cannot be taken over from MirrorMaker 2: %s", flow.name, partition, why, extra=place)


# --- what MM2 says ------------------------------------------------------------------------------------------------


async def _until_stopped(flow: Flow, target: ClusterClient) -> None:
    """A worker that was killed belongs to its group until its session times out."""
    group = flow.connect_offsets.group or f"{flow.source.alias}-mm2"
    if state := await until_empty(target, group, f"{flow.name}: waiting for MirrorMaker 2 to be gone"):
        raise StillRunning(
            f"MirrorMaker 2 is still running for {flow.name} (its group {group} on {flow.target.alias} is in state "
            f"{state}): stop it first, two cannot write to the same mirrors"
        )


async def until_empty(client: ClusterClient, group: str, waiting: str) -> str:
    """Wait until a group has no members, as long as those that were killed may count as such. Its state if it still
    has some, else empty."""
    deadline = time.monotonic() + _SESSION
    waited = False
    while (state := (await group_states(client, [group]))[group]) not in (EMPTY, DEAD):
        if time.monotonic() > deadline:
            return state
        if not waited:
            log.info("%s (its group %s is %s)", waiting, group, state)
            waited = True
        await asyncio.sleep(0.5)
    return ""


async def _noted(flow: Flow, source: ClusterClient, target: ClusterClient) -> dict[TopicPartition, _Noted]:
    """By source topic and partition."""
    books = await mm2_offsets(flow, target)
    client = target if flow.offset_syncs.on_target else source
    name = syncs_topic(flow)
    topic = (await client.metadata([name])).topics[name]
    syncs: dict[TopicPartition, OffsetSync] = {}
    if topic.error != UNKNOWN_TOPIC_OR_PARTITION:
        async for sync in read_kind(client, topic, OffsetSync.from_record):
            syncs[sync.topic, sync.partition] = sync  # the last one counts: a topic may have been created anew
    paired = {place: sync.upstream for place, sync in syncs.items()}
    return {
        place: _Noted(max(books.get(place, -1), paired.get(place, -1)), syncs.get(place))
        for place in books.keys() | paired.keys()
    }


# --- what the mirrors say -----------------------------------------------------------------------------------------


async def _not_ours(
    flow: Flow,
    source: ClusterClient,
    target: ClusterClient,
    ledger: Ledger,
    partitions: Sequence[MirrorPartition],
    outcome: TakeOver,
    *,
    wait: bool,
) -> list[_Mirror]:
    """The mirrors whose last batch was written by somebody else: MM2, before us or between two runs of ours."""
    if not partitions:
        return []
    sources, mirrors = await asyncio.gather(
        source.metadata({one.topic for one in partitions}), target.metadata({one.mirror for one in partitions})
    )
    places = [(one.mirror, one.partition) for one in partitions]
    starts, ends = await _settled_bounds(target, mirrors.topics, places, wait)
    found: list[_Mirror] = []
    for one, place in zip(partitions, places, strict=True):
        start, end, mirror = starts[place], ends[place], mirrors.topics[one.mirror]
        if isinstance(start, WireError) or isinstance(end, WireError):
            outcome.refused[one] = (
                f"the mirror's bounds cannot be read: {start if isinstance(start, WireError) else end}"
            )
            continue
        known = (one.topic, one.partition), id_text(mirror.id)
        begins, covering, _own_end = await ledger.ask(*known, partial(_at_end, end))
        intervals, topic = ledger.of(*known), sources.topics[one.topic]
        decided = begins is not None and begins.source_id == id_text(topic.id)
        unknown = covering is None
        if end > 0 and not decided and (start < end or unknown):
            found.append(_Mirror(one, source, topic, target, mirror, start, end, intervals))
    ours = {one.written: one.intervals.own_end(one.end) for one in found}  # behind it only gaps of ours, if any
    last = await batches_at(
        target, mirrors, {one.written: ours[one.written] - 1 for one in found if one.start < ours[one.written]}
    )
    foreign = []
    for each in found:
        batch = last.get(each.written)
        if each.start == each.end:
            foreign.append(each)  # emptied by retention, and nobody of ours has ever written to it
        elif ours[each.written] <= each.start:
            continue  # only gaps of ours are left
        elif not isinstance(batch, Batch):
            outcome.refused[each.partition] = f"the mirror's last batch cannot be read: {batch}"
        elif batch.producer_id != producer_id(flow.name, each.partition):
            foreign.append(each)
    return foreign


def _at_end(end: int, intervals: Intervals) -> tuple[Interval | None, Interval | None, int]:
    """All that is asked of the intervals of a mirror that ends there."""
    return intervals.beginning(end), intervals.covering(end - 1), intervals.own_end(end)


async def _settled_bounds(
    target: ClusterClient, mirrors: Mapping[str, Topic], places: list[TopicPartition], wait: bool
) -> tuple[dict[TopicPartition, int | WireError], dict[TopicPartition, int | WireError]]:
    """Starts and ends, when no transaction is open any more: MM2 with exactly-once support may have been killed in one,
    and nobody knows yet whether its records count."""
    deadline = time.monotonic() + (_TRANSACTION if wait else 0.0)
    while True:
        starts, ends, stable = await asyncio.gather(
            list_offsets(target, mirrors, places, EARLIEST, False),
            list_offsets(target, mirrors, places, LATEST, False),
            list_offsets(target, mirrors, places, LATEST, True),
        )
        if time.monotonic() >= deadline or all(ends[place] == stable[place] for place in places):
            return starts, ends
        await asyncio.sleep(1.0)


async def _records_of_others(one: _Mirror, producer: int) -> int:
    """How many records of the mirror our sequence numbers do not count, once we go on behind its end.

    A broker remembers the last number that it saw from us: the next must follow it. Our records reach from the last
    interval on up to where MM2's begin, which halving finds. Where we never wrote, numbers count from the mirror's
    beginning as if all were ours.
    """
    last = one.intervals.covering(one.end - 1)
    if last is None:
        return 0
    low, high = max(last.target, one.start), one.end
    while low < high:
        middle = (low + high) // 2
        batch = await one.batch_at(middle)
        if batch.producer_id == producer:
            low = batch.next_offset
        else:
            high = min(middle, batch.base_offset)
    return last.foreign_offsets_before + one.end - low


# --- where they end in the source ---------------------------------------------------------------------------------


async def _end_in_source(one: _Mirror, noted: _Noted) -> int | None:
    """The source offset behind the mirror's last record; None if it is not found."""
    partition = one.partition.partition
    start = max(one.start, one.end - _TAIL)
    # Aborted records of MM2 with exactly-once support are there, and do not count.
    tail = [
        record
        async for record in visible_records(one.target, one.mirror, partition, start, one.end, committed_only=True)
    ]
    if not tail:
        if noted.sync is not None and noted.sync.downstream == one.end - 1:
            return noted.sync.upstream + 1
        return noted.last + 1 if noted.last >= 0 else None
    timeless = (await one.batch_at(tail[-1].offset)).log_append_time
    wanted = [_content(record, timeless) for record in tail]
    # MM2 copies records of aborted transactions of the source, too, unless it was told not to.
    for committed_only in (False, True):
        first, end = await bounds(one.source, one.topic, partition, committed_only)
        begin = max(first, noted.last + 1 - 2 * _TAIL)
        records = visible_records(one.source, one.topic, partition, begin, end, committed_only)
        found = await last_match(records, wanted, noted.last, timeless)
        if found is not None:
            return found + 1
    return None


async def last_match(
    records: AsyncIterator[DecodedRecord], tail: Sequence[tuple[object, ...]], noted: int, timeless: bool = False
) -> int | None:
    """The offset of the source record that the mirror ends with: the first, from the noted one on, up to which the
    source has the mirror's last records one after the other. If not all of them, then where most of them are."""
    window: deque[tuple[object, ...]] = deque(maxlen=len(tail))
    best, most = None, 0
    async for record in records:
        window.append(_content(record, timeless))
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
    for one, other in zip(reversed(window), reversed(tail), strict=False):
        if one != other:
            break
        same += 1
    return same


def _content(record: DecodedRecord, timeless: bool) -> tuple[object, ...]:
    """What must be the same; not the time, if the mirror's broker has set its own."""
    return (record.key, record.value, record.headers) if timeless else record[1:]


async def _make_faithful(target: ClusterClient, mirrors: set[str]) -> None:
    """Mirrors of ours keep the times and the compression of the source's records, whoever has created them."""
    changes: dict[str, dict[str, str | None]] = {}
    for name, configs in (await describe_configs(target, mirrors)).items():
        if isinstance(configs, dict):
            wrong = {key: value for key, value in FAITHFUL.items() if key in configs and configs[key].value != value}
            if wrong:
                changes[name] = dict(wrong)
    for name, error in (await change_configs(target, changes)).items():
        if error is not None:
            log.warning("mirror %s keeps its own %s: %s", name, " and ".join(changes[name]), error)
