"""The intervals of a flow in their internal topic on the target: read on, write down first.

One partition, compacted, shared by all leases of the flow. Writing the same intervals twice does no harm. Of a mirror
with very many gaps only the last intervals are kept in memory; `recall` reads the others again.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from heliograph.model.internal_topics import intervals_topic
from heliograph.model.intervals import Entry, Intervals, Partition, from_record, to_record
from heliograph.wire.cluster import ClusterClient, Topic
from heliograph.wire.offsets import EARLIEST, LATEST, one_offset
from heliograph.wire.records import own_topic, read, write

_KEEP = 5000

Known = dict[str, Intervals]  # by mirror id


class Ledger:
    def __init__(
        self,
        target: ClusterClient,
        source_alias: str,
        known: Mapping[Partition, Known] | None = None,
        next_offset: int = 0,
    ) -> None:
        self._target = target
        self.topic = intervals_topic(source_alias)
        self._known: dict[Partition, Known] = dict(known or {})
        self.next_offset = next_offset
        # Whether some mirrors keep, or kept, the source's offsets.
        self.knows_gaps = any(one.filler or one.filled_before for ids in self._known.values() for one in ids.values())
        self._recalled: set[Partition] = set()
        self._reading = asyncio.Lock()

    async def catch_up(self) -> None:
        """Read what has been written since, by whomever."""
        async with self._reading:
            topic = await own_topic(self._target, self.topic)
            end = await one_offset(self._target, topic, 0, LATEST, False)
            if end <= self.next_offset:
                return
            for entry in await self._read(topic, self.next_offset, end):
                self._note(entry, _KEEP)
            self.next_offset = end

    async def recall(self, partitions: Collection[Partition]) -> None:
        """Read everything about these partitions again, to know even the intervals that were forgotten."""
        async with self._reading:
            topic = await own_topic(self._target, self.topic)
            entries = await self._read(topic, 0, await one_offset(self._target, topic, 0, LATEST, False))
            for one in partitions:
                self._known.pop(one, None)
            for entry in entries:
                if entry.partition in partitions:
                    self._note(entry, None)
            self._recalled.update(partitions)

    def release(self, needed: Mapping[Partition, int]) -> None:
        """Forget what was recalled and is not needed any more: `needed` tells from which mirror offset on it is."""
        for partition in self._recalled:
            for intervals in self._known.get(partition, {}).values():
                intervals.forget_before(needed.get(partition), _KEEP)

    async def write(self, entries: Sequence[Entry]) -> None:
        """Returns when all in-sync replicas of the target have it."""
        if not entries:
            return
        await write(self._target, await own_topic(self._target, self.topic), 0, map(to_record, entries))
        for entry in entries:
            self._note(entry, _KEEP)

    def of(self, partition: Partition, mirror_id: str) -> Intervals:
        known = self._known.setdefault(partition, {})
        if mirror_id not in known:
            known[mirror_id] = Intervals(keep=_KEEP)
        return known[mirror_id]

    def all_of(self, partition: Partition) -> Known:
        return self._known.get(partition, {})

    def _note(self, entry: Entry, keep: int | None) -> None:
        known = self._known.setdefault(entry.partition, {})
        if entry.mirror_id not in known:
            known[entry.mirror_id] = Intervals(keep=keep)
        known[entry.mirror_id].put(entry.intervals)
        if entry.filler:
            known[entry.mirror_id].filler = entry.filler
        self.knows_gaps |= bool(entry.filler) or entry.intervals[0].fill

    async def _read(self, topic: Topic, start: int, end: int) -> list[Entry]:
        start = max(start, await one_offset(self._target, topic, 0, EARLIEST, False))
        latest: dict[bytes, bytes] = {}
        async for record in read(self._target, topic, 0, start, end):
            if record.key is not None:
                latest.pop(record.key, None)
                if record.value is not None:  # else it was pruned
                    latest[record.key] = record.value
        return [from_record(key, value) for key, value in latest.items()]
