"""The intervals of a flow in their internal topic on the target: read on, write down first.

One partition, compacted, shared by all leases of the flow. Writing the same intervals twice does no harm. Of a mirror
with very many gaps only the last intervals are kept in memory; `recall` reads the others again.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from heliograph.model.internal_topics import intervals_topic
from heliograph.model.intervals import Entry, Intervals, Partition, from_record, to_record
from heliograph.wire.cluster import ClusterClient, Topic
from heliograph.wire.errors import WireError
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets
from heliograph.wire.records import own_topic, read, write

_AT_ONCE = 500
_BYTES_AT_ONCE = 400_000
_KEEP = 1000

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
        self._reading = asyncio.Lock()

    async def catch_up(self) -> None:
        """Read what has been written since, by whomever."""
        async with self._reading:
            topic = await own_topic(self._target, self.topic)
            end = await self._offset(topic, LATEST)
            if end <= self.next_offset:
                return
            for entry in await self._read(topic, self.next_offset, end):
                self._note(entry)
            self.next_offset = end

    async def recall(self, partitions: Collection[Partition]) -> None:
        """Read everything about these partitions again, to know even the intervals that were forgotten."""
        async with self._reading:
            topic = await own_topic(self._target, self.topic)
            entries = await self._read(topic, 0, await self._offset(topic, LATEST))
            for one in partitions:
                self._known.pop(one, None)
            for entry in entries:
                if entry.partition in partitions:
                    self._note(entry, keep=None)

    async def write(self, entries: Sequence[Entry]) -> None:
        """Returns when all in-sync replicas of the target have it."""
        if not entries:
            return
        topic = await own_topic(self._target, self.topic)
        pairs: list[tuple[bytes, bytes]] = []
        size = 0
        for pair in map(to_record, entries):
            if pairs and (len(pairs) >= _AT_ONCE or size + len(pair[1]) > _BYTES_AT_ONCE):
                await write(self._target, topic, 0, pairs)  # a batch has a size limit
                pairs, size = [], 0
            pairs.append(pair)
            size += len(pair[1])
        await write(self._target, topic, 0, pairs)
        for entry in entries:
            self._note(entry)

    def of(self, partition: Partition, mirror_id: str) -> Intervals:
        known = self._known.setdefault(partition, {})
        if mirror_id not in known:
            known[mirror_id] = Intervals(keep=_KEEP)
        return known[mirror_id]

    def all_of(self, partition: Partition) -> Known:
        return self._known.get(partition, {})

    def _note(self, entry: Entry, keep: int | None = _KEEP) -> None:
        known = self._known.setdefault(entry.partition, {})
        if entry.mirror_id not in known:
            known[entry.mirror_id] = Intervals(keep=keep)
        known[entry.mirror_id].put(entry.intervals)

    async def _read(self, topic: Topic, start: int, end: int) -> list[Entry]:
        start = max(start, await self._offset(topic, EARLIEST))
        return [
            from_record(record.key, record.value)
            async for record in read(self._target, topic, 0, start, end)
            if record.key is not None and record.value is not None
        ]

    async def _offset(self, topic: Topic, which: int) -> int:
        found = (await list_offsets(self._target, {topic.name: topic}, [(topic.name, 0)], which, False))[topic.name, 0]
        if isinstance(found, WireError):
            raise found
        return found
