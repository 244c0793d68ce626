"""The intervals of a flow in their internal topic on the target: reads and writes them.

One topic for all leases of the flow, with three partitions: a journal of entries, an index of what is packed of it, and
pages of packed intervals. In memory are the index and what the journal says since (`ledger_memory`); a page is read
when it is needed. `heliograph.control.packing` packs and prunes.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeVar

from heliograph.copy.ledger_memory import LedgerMemory
from heliograph.copy.ledger_state import Handed, LedgerState
from heliograph.model.internal_topics import intervals_topic, ledger_topic
from heliograph.model.intervals import Intervals, NotLoaded
from heliograph.model.ledger_records import (
    INDEX,
    JOURNAL,
    PAGES,
    Author,
    Index,
    JournalEntry,
    about,
    from_record,
    page_data,
    to_record,
)
from heliograph.model.pages import NOT_HERE, Page
from heliograph.model.partitions import TopicPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import OFFSET_OUT_OF_RANGE, BrokerError
from heliograph.wire.metadata import Topic, are_different, id_text
from heliograph.wire.records import Record, append_records, bounds, now, own_topic, read, read_all

log = logging.getLogger(__name__)

Known = dict[str, Intervals]  # by mirror id
T = TypeVar("T")
OVERTAKEN = "another process has written to the ledger about this mirror partition"
_AROUND = 200  # intervals that a lease gets of a mirror partition, from its position on


class Ledger:
    def __init__(
        self,
        target: ClusterClient,
        source_alias: str,
        handed: Handed | None = None,
        *,
        memory: LedgerMemory | None = None,
        awaited: dict[bytes, bool] | None = None,
    ) -> None:
        self._target = target
        self._source_alias = source_alias
        self.topic = ledger_topic(source_alias)
        self._earlier_topic = intervals_topic(source_alias)
        self._memory = memory or LedgerMemory(handed)
        self.index = Index()
        self.is_converted = True  # or the topic of an earlier version has entries that are not packed yet
        self.earlier_end = -1  # where that topic ended
        self.next_offset = 0 if handed is None else handed.next_offset
        self._topic_id = "" if handed is None else handed.topic_id
        self._epoch = -1  # the journal's leader epoch at the last look
        self.truncations = 0  # that were noticed
        self._last_key: bytes | None = None  # of the record before `next_offset`, if it was read
        self._is_read = handed is not None
        self._author = uuid.uuid4().hex[:12]
        self._numbers = count()
        self._awaited = {} if awaited is None else awaited  # own entries on their way, and whether they count
        self.reading = asyncio.Lock()

    @property
    def states(self) -> dict[TopicPartition, dict[str, LedgerState]]:
        """By mirror id."""
        return self._memory.states

    @property
    def knows_gaps(self) -> bool:
        """Whether some mirrors have, or had, the source's offsets."""
        return self._memory.knows_gaps

    def hand_over(self, partitions: Mapping[TopicPartition, int | None]) -> Handed:
        """What a lease needs to copy these partitions, each from its mirror offset on, if that is known."""
        states, fills = [], {}
        for partition, target in partitions.items():
            for mirror_id, state in self.states.get(partition, {}).items():
                states.append(state.excerpt(partition, mirror_id, target, _AROUND))
                if filled_before := state.intervals.filled_before:
                    fills[partition, mirror_id] = filled_before
        return Handed(self._topic_id, self.next_offset, frozenset(partitions), tuple(states), fills)

    # --- what is known --------------------------------------------------------------------------------------------

    def of(self, partition: TopicPartition, mirror_id: str) -> Intervals:
        return self._memory.state(partition, mirror_id).intervals

    def all_of(self, partition: TopicPartition) -> Known:
        return {mirror_id: state.intervals for mirror_id, state in self.states.get(partition, {}).items()}

    async def ask(self, partition: TopicPartition, mirror_id: str, question: Callable[[Intervals], T]) -> T:
        """Answer a question from the intervals of a mirror partition. Reads the pages that it takes."""
        while True:
            try:
                answer = question(self.of(partition, mirror_id))
            except NotLoaded as missing:
                await self.load(partition, mirror_id, missing.page)
            else:
                self._memory.evict_pages()
                return answer

    async def load(self, partition: TopicPartition, mirror_id: str, page: Page) -> None:
        """Read a page that a NotLoaded has named."""
        async with self.reading:
            await self._load_page(partition, mirror_id, page)

    # --- reading --------------------------------------------------------------------------------------------------

    async def catch_up(self) -> None:
        """Read what was written since the last time, by any process."""
        async with self.reading:
            await self.catch_up_locked()

    async def catch_up_locked(self) -> Topic:
        topic = await own_topic(self._target, self.topic)
        start, end = await bounds(self._target, topic, JOURNAL, committed=False)
        if self._is_read:
            if are_different(id_text(topic.id), self._topic_id):
                self._truncate("was deleted and created again", 0)
                self._memory.forget_topic()
                self.index = Index()
            elif end < self.next_offset:
                self._truncate(f"was truncated to offset {end}", end)
            elif await self._has_other_records(topic, start):
                self._truncate("was truncated and written again", start)
        self._topic_id, self._epoch = id_text(topic.id), topic.epochs.get(JOURNAL, -1)
        if not self._is_read or start > self.next_offset:  # what is missing in the journal is in the index
            await self._read_index(topic, end)
            self._is_read = True
        await self._read_journal(topic, max(start, self.next_offset), end)
        self.next_offset = max(end, self.next_offset)
        return topic

    def _truncate(self, what: str, end: int) -> None:
        """The journal has lost its records from `end` on."""
        log.warning("internal topic %s %s; what is known of its intervals is written again", self.topic, what)
        self.next_offset, self._last_key = end, None
        self.truncations += 1
        self._memory.truncate(end)

    async def _has_other_records(self, topic: Topic, start: int) -> bool:
        """Whether the journal was truncated and has grown again since: only a new leader can have lost records."""
        offset = self.next_offset - 1
        if topic.epochs.get(JOURNAL, -1) == self._epoch or self._last_key is None or offset < start:
            return False
        keys = [record.key async for record in read(self._target, topic, JOURNAL, offset, offset + 1)]
        return keys != [self._last_key]

    async def recall(self, partitions: Collection[TopicPartition]) -> None:
        """Read everything about these partitions: a lease was assigned others, or needs more than it was handed."""
        async with self.reading:
            await self._recall(set(partitions))

    async def _recall(self, partitions: set[TopicPartition]) -> None:
        """What was known of them stays until everything is read: other tasks may use it meanwhile."""
        memory = self._memory.reader(partitions)
        await Ledger(self._target, self._source_alias, memory=memory, awaited=self._awaited).catch_up_locked()
        self._memory.replace_partitions(memory)

    def _reads(self, partition: TopicPartition) -> bool:
        return self._memory.only is None or partition in self._memory.only

    async def _read_index(self, topic: Topic, end: int) -> None:
        index = Index()
        async for record in read_all(self._target, topic, INDEX):
            if record.key is not None:
                index.take(record.key, record.value)
        for partition, packed in index.packed.items():
            if self._reads(partition):
                for mirror_packed in packed.values():
                    self._memory.take_packed(mirror_packed, end)
        self.index = index
        self.next_offset = max(self.next_offset, index.start.journal)
        await self._read_earlier(index)

    async def _read_earlier(self, index: Index) -> None:
        """Read what an earlier version has written to its own topic, as far as that is not packed yet."""
        earlier = (await self._target.metadata([self._earlier_topic])).topics[self._earlier_topic]
        if earlier.error:
            return
        start, end = await bounds(self._target, earlier, 0, committed=False)
        converted = index.start.converted
        if converted >= end:
            return
        self.is_converted, self.earlier_end = False, end
        latest: dict[bytes, Record] = {}
        async for record in read(self._target, earlier, 0, max(start, converted), end):
            if record.key is not None:
                latest.pop(record.key, None)
                if record.value is not None:  # else it was pruned
                    latest[record.key] = record
        late = 0
        for record in latest.values():
            entry = from_record(record.key or b"", record.value or b"")
            if not self._reads(entry.partition):
                continue
            # The index has everything that came before it. A late entry would replace what the journal has since.
            if entry.mirror_id in index.packed.get(entry.partition, {}):
                late += converted >= 0
                continue
            if await self._put(entry):
                self._memory.state(entry.partition, entry.mirror_id).time = record.timestamp
        if late and self._memory.only is None:
            log.warning(
                "internal topic %s has %d entries since it was converted, which are ignored: another process still "
                "runs an earlier version of Heliograph; stop it",
                *(self._earlier_topic, late),
            )

    async def _read_journal(self, topic: Topic, start: int, end: int) -> None:
        async for record in read(self._target, topic, JOURNAL, start, end):
            await self._take(record)

    async def _take(self, record: Record) -> None:
        """Apply a record of the journal, if it counts."""
        self._last_key = record.key
        if record.key is None or record.value is None:
            return
        partition, author = about(record.key)
        if self._reads(partition):
            await self._take_entry(from_record(record.key, record.value), record, author)

    async def _take_entry(self, entry: JournalEntry, record: Record, author: Author) -> None:
        state = self._memory.state(entry.partition, entry.mirror_id)
        if record.offset <= state.written or not state.accepts(entry, author):
            return
        if record.key in self._awaited:
            self._awaited[record.key] = True
        if await self._put(entry):
            state.advance(record, author)

    async def _put(self, entry: JournalEntry) -> bool:
        """Apply an entry of the topic, and read the pages that it takes. False if everything about the partition was
        read again for that, the entry included."""
        state = self._memory.state(entry.partition, entry.mirror_id)
        while True:
            try:
                self._memory.put(state, entry)
            except NotLoaded as missing:
                await self._load_page(entry.partition, entry.mirror_id, missing.page)
                if missing.page.location == NOT_HERE:
                    return False
            else:
                self._memory.evict_pages()
                return True

    async def _load_page(self, partition: TopicPartition, mirror_id: str, page: Page) -> None:
        if page.location == NOT_HERE:
            await self._recall({partition})
            return
        topic = await own_topic(self._target, self.topic)
        data = None
        try:
            async for record in read(self._target, topic, PAGES, page.location, page.location + 1):
                data = page_data(record.value, page) if record.value is not None else None
        except BrokerError as error:
            if error.code != OFFSET_OUT_OF_RANGE:
                raise
        if data is None:
            self._memory.lose_page(self.topic, partition, mirror_id, page)
        else:
            self._memory.add_page(page, data)

    # --- writing --------------------------------------------------------------------------------------------------

    async def append(self, entries: Sequence[JournalEntry]) -> list[bool]:
        """Append entries to the journal. Returns, when all in-sync replicas have them, whether each counts."""
        if not entries:
            return []
        # Numbered before anything else runs: of two entries of one author the one that was given later counts.
        authors = [Author(self._author, next(self._numbers)) for _entry in entries]
        moment = now()
        records = [
            Record(0, moment, *to_record(entry, author.name, author.number))
            for entry, author in zip(entries, authors, strict=True)
        ]
        keys = [record.key or b"" for record in records]
        self._awaited.update(dict.fromkeys(keys, False))
        try:
            topic = await own_topic(self._target, self.topic)
            offsets = await append_records(self._target, topic, JOURNAL, records)
            async with self.reading:
                if self._follow(topic, offsets):
                    for entry, record, offset, author in zip(entries, records, offsets, authors, strict=True):
                        await self._take_entry(entry, replace(record, offset=offset), author)
                    self.next_offset, self._last_key = offsets[-1] + 1, keys[-1]
                else:  # entries of others before own ones decide whether these count
                    await self.catch_up_locked()
            return [self._awaited[key] for key in keys]
        finally:
            for key in keys:
                del self._awaited[key]

    def _follow(self, topic: Topic, offsets: Sequence[int]) -> bool:
        """Whether these offsets come right after what was read. Not so under a new leader, which can have lost records:
        then others may have written in their place."""
        is_same = self._is_read and (id_text(topic.id), topic.epochs.get(JOURNAL, -1)) == (self._topic_id, self._epoch)
        return is_same and list(offsets) == list(range(self.next_offset, self.next_offset + len(offsets)))
