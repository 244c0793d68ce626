"""Pruning the ledger: entries about what neither the source nor the mirror has any more are deleted from its topic.

Only by tombstones, each for one entry that says nothing about anything that is left: whichever of them are written when
we die, and whatever copiers write meanwhile, the rest says the same. Entries of an earlier mirror go when its successor
has some; of mirrors that are gone for good one stays for each partition, which tells that there was one.
"""

import asyncio
from dataclasses import dataclass

from heliograph.model.flow import Flow
from heliograph.model.internal_topics import intervals_topic
from heliograph.model.intervals import Partition, from_record
from heliograph.model.pruning import Stretch, is_past, past_before, stretch_of
from heliograph.wire.cluster import ClusterClient, id_text
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION
from heliograph.wire.offsets import EARLIEST, list_offsets
from heliograph.wire.records import Record, now, own_topic, read_all, write_records

_GONE_AFTER = 3600 * 1000  # ms without an entry: a broker may not have heard of a new topic yet


@dataclass(frozen=True, slots=True)
class _Written:
    key: bytes
    mirror_id: str
    stretch: Stretch
    number: int  # in the order of writing
    timestamp: int


async def prune(flow: Flow, source: ClusterClient, target: ClusterClient) -> int:
    """Look at the whole ledger once; how many entries were deleted."""
    topic = await own_topic(target, intervals_topic(flow.source.alias))
    written: dict[bytes, tuple[Partition, _Written]] = {}
    async for record in read_all(target, topic, 0):
        if record.key is None:
            continue
        written.pop(record.key, None)
        if record.value is not None:
            entry = from_record(record.key, record.value)
            one = _Written(record.key, entry.mirror_id, stretch_of(entry), record.offset, record.timestamp)
            written[record.key] = entry.partition, one
    by_partition: dict[Partition, list[_Written]] = {}
    for partition, one in written.values():
        by_partition.setdefault(partition, []).append(one)
    past = await _past(flow, source, target, by_partition)
    if past:
        moment = now()
        await write_records(target, topic, 0, [Record(0, moment, one.key, None) for one in past])
    return len(past)


async def _past(
    flow: Flow, source: ClusterClient, target: ClusterClient, by_partition: dict[Partition, list[_Written]]
) -> list[_Written]:
    """What nobody needs any more, of all that is written."""
    if not by_partition:
        return []
    there = {partition: (flow.mirror_name(partition[0]), partition[1]) for partition in by_partition}
    sources, mirrors = await asyncio.gather(
        source.metadata({topic for topic, _partition in by_partition}),
        target.metadata({mirror for mirror, _partition in there.values()}),
    )
    source_starts, mirror_starts = await asyncio.gather(
        list_offsets(source, sources.topics, by_partition, EARLIEST, False),
        list_offsets(target, mirrors.topics, there.values(), EARLIEST, False),
    )
    gone_before = now() - _GONE_AFTER
    past: list[_Written] = []
    for partition, written in by_partition.items():
        topic, mirror = sources.topics[partition[0]], mirrors.topics[there[partition][0]]
        if topic.error == mirror.error == UNKNOWN_TOPIC_OR_PARTITION and written[-1].timestamp < gone_before:
            past += written[:-1]
        if topic.error or mirror.error:
            continue
        mirror_id = id_text(mirror.id)
        ours = [one for one in written if one.mirror_id == mirror_id]
        # Not what was written since ours began: then it may be our look at the mirror that is out of date.
        past += [one for one in written if one.mirror_id != mirror_id and ours and one.number < ours[0].number]
        source_start, mirror_start = source_starts[partition], mirror_starts[there[partition]]
        if ours and isinstance(source_start, int) and isinstance(mirror_start, int):
            cut = past_before([one.stretch for one in ours], mirror_start, source_start, id_text(topic.id))
            past += [one for one in ours if is_past(one.stretch, cut)]
    return past
