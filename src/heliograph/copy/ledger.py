"""The intervals of a flow in their internal topic on the target: read on, write down first.

One partition, compacted, shared by all leases of the flow. Writing the same interval twice does no harm.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence

from heliograph.model.internal_topics import intervals_topic
from heliograph.model.intervals import Interval, Partition, from_record, to_record
from heliograph.wire.cluster import ClusterClient, Topic
from heliograph.wire.errors import BrokerError, WireError
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets
from heliograph.wire.records import read, write

_AT_ONCE = 500


class Ledger:
    def __init__(
        self,
        target: ClusterClient,
        source_alias: str,
        known: Mapping[Partition, tuple[Interval, ...]] | None = None,
        next_offset: int = 0,
    ) -> None:
        self._target = target
        self._name = intervals_topic(source_alias)
        self._intervals = dict(known or {})
        self.next_offset = next_offset
        self._reading = asyncio.Lock()

    async def catch_up(self) -> None:
        """Read what has been written since, by whomever."""
        async with self._reading:
            topic = await self._topic()
            end = await self._offset(topic, LATEST)
            if end <= self.next_offset:
                return
            start = max(self.next_offset, await self._offset(topic, EARLIEST))
            async for record in read(self._target, topic, 0, start, end):
                if record.key is not None and record.value is not None:
                    self._note(*from_record(record.key, record.value))
            self.next_offset = end

    async def write(self, entries: Sequence[tuple[Partition, Interval]]) -> None:
        """Returns when all in-sync replicas of the target have it."""
        if not entries:
            return
        topic = await self._topic()
        pairs = [to_record(partition, interval) for partition, interval in entries]
        for at in range(0, len(pairs), _AT_ONCE):  # a batch has a size limit (MESSAGE_TOO_LARGE)
            await write(self._target, topic, 0, pairs[at : at + _AT_ONCE], int(time.time() * 1000))
        for partition, interval in entries:
            self._note(partition, interval)

    def of(self, partition: Partition) -> tuple[Interval, ...]:
        return self._intervals.get(partition, ())

    def _note(self, partition: Partition, interval: Interval) -> None:
        others = (one for one in self.of(partition) if one.target != interval.target)
        self._intervals[partition] = (*others, interval)

    async def _topic(self) -> Topic:
        topic = (await self._target.metadata([self._name])).topics[self._name]
        if topic.error:
            raise BrokerError(topic.error, f"internal topic {self._name}")
        return topic

    async def _offset(self, topic: Topic, which: int) -> int:
        found = (await list_offsets(self._target, {topic.name: topic}, [(topic.name, 0)], which, False))[topic.name, 0]
        if isinstance(found, WireError):
            raise found
        return found
