"""The intervals of a flow in their internal topic on the target: read on, write down first.

One topic for all leases of the flow, with three partitions: a journal of entries, an index of what is packed of it, and
pages of packed intervals. In memory are the index and what the journal says since; pages are read when somebody asks
for their stretch. Who packs and prunes is `heliograph.control.packing`.
"""

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeVar

from heliograph.model.internal_topics import intervals_topic, ledger_topic
from heliograph.model.intervals import Intervals, NotLoaded
from heliograph.model.ledger_records import (
    INDEX,
    JOURNAL,
    PAGES,
    Author,
    Entry,
    Index,
    Packed,
    Partition,
    about,
    from_index,
    from_record,
    page_data,
    to_index,
    to_record,
)
from heliograph.model.pages import NOT_HERE, Page
from heliograph.wire.cluster import ClusterClient, Topic, id_text
from heliograph.wire.errors import OFFSET_OUT_OF_RANGE, BrokerError
from heliograph.wire.offsets import LATEST, one_offset
from heliograph.wire.records import Record, bounds, own_topic, read, read_all, write

log = logging.getLogger(__name__)

Known = dict[str, Intervals]  # by mirror id
T = TypeVar("T")
_PAGES_LOADED = 4096  # of some kilobytes each
_AROUND = 200  # intervals that a lease gets of a mirror partition, from its position on


@dataclass(slots=True)
class State:
    """What is known about one mirror partition, up to the journal's entry at offset `written`, which is by `author`;
    `written_by_others` is the offset of the last entry that is not."""

    intervals: Intervals
    written: int = -1
    since: int = -1
    time: int = 0
    era: int = 0
    packed: Packed | None = None  # as the index has it
    author: Author = field(default_factory=Author)
    written_by_others: int = -1

    def counts(self, entry: Entry, author: Author) -> bool:
        """Whether the author of a decision had read all that others have written about this mirror partition. An entry
        that its author has given up, and that lands behind a later one of theirs, does not count either."""
        is_theirs = bool(author.name) and author.name == self.author.name
        if is_theirs and author.number < self.author.number:
            return False
        return entry.seen is None or (self.written_by_others if is_theirs else self.written) < entry.seen

    def has_read(self, record: Record, author: Author) -> None:
        if author.name != self.author.name:
            self.written_by_others, self.author = self.written, author
        elif author.number > self.author.number:
            self.author = author
        self.written, self.time = record.offset, record.timestamp
        self.since = record.offset if self.since < 0 else self.since

    def lose_journal(self, end: int) -> None:
        """The journal ends here, before what was read of it."""
        self.era, self.since = self.era + 1, -1
        self.written, self.written_by_others = min(self.written, end - 1), min(self.written_by_others, end - 1)

    @staticmethod
    def of(packed: Packed, loaded: Mapping[int, bytes], keep_packed: bool = True) -> "State":
        intervals = Intervals(pages=packed.pages, loaded=loaded, keep_packed=keep_packed)
        intervals.filler = packed.filler
        fields = packed.written, packed.since, packed.time, packed.era, packed
        return State(intervals, *fields, packed.author, packed.written_by_others)

    def excerpt(self, partition: Partition, mirror_id: str, target: int | None) -> Packed:
        """For a lease: what it needs to go on at this mirror offset, by default at the last one that is known of."""
        last = self.intervals.last()
        if target is None:
            target = last.end if last is not None else 0
        try:
            pages = self.intervals.excerpt(target, _AROUND)
        except NotLoaded:  # it reads for itself
            first = self.intervals.first()
            assert first is not None
            assert last is not None
            pages = [Page(first, last, len(self.intervals), NOT_HERE)]
        fields = self.written, self.since, self.time, self.era, 0, self.intervals.filler, ()
        return Packed(partition, mirror_id, tuple(pages), *fields, self.author, self.written_by_others)


@dataclass(frozen=True, slots=True)
class Handed:
    """What a lease gets of its driver's ledger: a few intervals of each of its partitions, and from where on in the
    journal it reads for itself. Small whatever the history, as Spark carries it to the executor."""

    topic_id: str
    next_offset: int
    partitions: frozenset[Partition]
    states: tuple[tuple[bytes, bytes], ...]  # as records of the index
    fills: Mapping[tuple[Partition, str], int] = field(default_factory=dict)  # see Intervals.filled_before


class Ledger:
    def __init__(self, target: ClusterClient, source_alias: str, handed: Handed | None = None) -> None:
        self._target = target
        self.topic = ledger_topic(source_alias)
        self._earlier_topic = intervals_topic(source_alias)
        self.states: dict[Partition, dict[str, State]] = {}
        self._only: set[Partition] | None = None  # a lease needs no others
        self._recalled: set[Partition] = set()  # of which it has needed more than it was handed
        self._loaded: dict[int, bytes] = {}  # pages that were read, by offset
        self.index = Index()
        self.is_converted = True  # or the topic of an earlier version has entries that are not packed yet
        self.earlier_end = -1  # where that one ended
        self.next_offset = 0
        self._topic_id = ""
        self._is_read = False
        self.knows_gaps = False  # whether some mirrors keep, or kept, the source's offsets
        self._author = uuid.uuid4().hex[:12]
        self._numbers = count()
        self._awaited: dict[bytes, bool] = {}  # decisions that are written and not read yet, and whether they count
        self.reading = asyncio.Lock()
        if handed is not None:
            self._take_over(handed)

    def _take_over(self, handed: Handed) -> None:
        self._topic_id, self.next_offset, self._only = handed.topic_id, handed.next_offset, set(handed.partitions)
        self._is_read = True
        for record in handed.states:
            packed = from_index(*record)
            state = State.of(packed, self._loaded, keep_packed=False)
            state.intervals.fills_elsewhere = handed.fills.get((packed.partition, packed.mirror_id), 0)
            self._keep(packed.partition, packed.mirror_id, state)

    def hand_over(self, partitions: Mapping[Partition, int | None]) -> Handed:
        """What a lease needs that copies these, each from its mirror offset on, if that is known."""
        states, fills = [], {}
        for partition, target in partitions.items():
            for mirror_id, state in self.states.get(partition, {}).items():
                packed = state.excerpt(partition, mirror_id, target)
                states.append((packed.key, to_index(packed)))
                if filled_before := state.intervals.filled_before:
                    fills[partition, mirror_id] = filled_before
        return Handed(self._topic_id, self.next_offset, frozenset(partitions), tuple(states), fills)

    # --- what is known --------------------------------------------------------------------------------------------

    def of(self, partition: Partition, mirror_id: str) -> Intervals:
        return self._state(partition, mirror_id).intervals

    def all_of(self, partition: Partition) -> Known:
        return {mirror_id: state.intervals for mirror_id, state in self.states.get(partition, {}).items()}

    async def ask(self, partition: Partition, mirror_id: str, question: Callable[[Intervals], T]) -> T:
        """What the intervals of a mirror partition say; the pages that it takes are read."""
        while True:
            try:
                return question(self.of(partition, mirror_id))
            except NotLoaded as missing:
                await self.load(partition, mirror_id, missing.page)

    async def load(self, partition: Partition, mirror_id: str, page: Page) -> None:
        """Read a page, so that whoever has missed it can ask again."""
        async with self.reading:
            await self._load_page(partition, mirror_id, page)

    # --- reading --------------------------------------------------------------------------------------------------

    async def catch_up(self) -> None:
        """Read what has been written since, by whomever."""
        async with self.reading:
            await self.catch_up_locked()

    async def catch_up_locked(self) -> Topic:
        topic = await own_topic(self._target, self.topic)
        start, end = await bounds(self._target, topic, JOURNAL, committed=False)
        if self._is_read and (id_text(topic.id) != self._topic_id or end < self.next_offset):
            self._begin_again(topic, end)
        self._topic_id = id_text(topic.id)
        if not self._is_read or start > self.next_offset:  # what is missing in the journal is in the index
            await self._read_index(topic, end, self._only)
            self._is_read = True
        await self._read_journal(topic, max(start, self.next_offset), end, self._only)
        self.next_offset = max(end, self.next_offset)
        return topic

    async def recall(self, partitions: Collection[Partition]) -> None:
        """Read all that is known about these partitions: a lease gets others, or needs more than it was handed."""
        async with self.reading:
            await self._recall(set(partitions))

    async def _recall(self, partitions: set[Partition]) -> None:
        topic = await own_topic(self._target, self.topic)
        start, end = await bounds(self._target, topic, JOURNAL, committed=False)
        for partition in partitions:
            self.states.pop(partition, None)
        self._recalled |= partitions
        if self._only is not None:
            self._only |= partitions
        index = await self._read_index(topic, end, partitions)
        # What lies behind `next_offset` is read again by the others; who has it already passes over it.
        await self._read_journal(topic, max(start, index.start.journal), end, partitions)

    async def _read_index(self, topic: Topic, end: int, only: set[Partition] | None) -> Index:
        index = Index()
        async for record in read_all(self._target, topic, INDEX):
            if record.key is not None:
                index.take(record.key, record.value)
        for partition, packed in index.packed.items():
            if only is None or partition in only:
                for each in packed.values():
                    self._take(each, end)
        if only is None:
            self.index = index
            self.next_offset = max(self.next_offset, index.start.journal)
        await self._read_earlier(index, only)
        return index

    def _take(self, packed: Packed, end: int) -> None:
        known = self.states.get(packed.partition, {}).get(packed.mirror_id)
        if known is not None and (known.era, known.written) >= (packed.era, packed.written):
            known.packed = packed
            return
        state = State.of(packed, self._loaded, keep_packed=self._keeps(packed.partition))
        if packed.written >= end:  # the journal has lost what came after that
            state.lose_journal(end)
            state.since = packed.since
        self._keep(packed.partition, packed.mirror_id, state)

    async def _read_earlier(self, index: Index, only: set[Partition] | None) -> None:
        """What an earlier version has written to its own topic, as far as that is not packed yet."""
        earlier = (await self._target.metadata([self._earlier_topic])).topics[self._earlier_topic]
        if earlier.error:
            return
        end = await one_offset(self._target, earlier, 0, LATEST, False)
        if index.start.converted >= end:
            return
        self.is_converted, self.earlier_end = False, end
        latest: dict[bytes, Record] = {}
        async for record in read_all(self._target, earlier, 0):
            if record.key is not None and record.offset >= index.start.converted:
                latest.pop(record.key, None)
                if record.value is not None:  # else it was pruned
                    latest[record.key] = record
        for record in latest.values():
            entry = from_record(record.key or b"", record.value or b"")
            if only is None or entry.partition in only:
                state = await self._put_loaded(entry)
                state.time = record.timestamp

    async def _read_journal(self, topic: Topic, start: int, end: int, only: set[Partition] | None) -> None:
        async for record in read(self._target, topic, JOURNAL, start, end):
            if record.key is None or record.value is None:
                continue
            partition, author = about(record.key)
            if only is not None and partition not in only:
                continue
            entry = from_record(record.key, record.value)
            while record.offset > (state := self._state(entry.partition, entry.mirror_id)).written:
                counts = state.counts(entry, author)
                if counts and (missing := self._put(state, entry)) is not None:
                    await self._load_page(entry.partition, entry.mirror_id, missing)  # which may read this one, too
                    continue
                if record.key in self._awaited:
                    self._awaited[record.key] = counts
                state.has_read(record, author)

    async def _put_loaded(self, entry: Entry) -> State:
        while (missing := self._put(state := self._state(entry.partition, entry.mirror_id), entry)) is not None:
            await self._load_page(entry.partition, entry.mirror_id, missing)
        return state

    def _put(self, state: State, entry: Entry) -> Page | None:
        """Take it in; the page that is missing for that, if there is one."""
        try:
            state.intervals.put(entry.intervals)
        except NotLoaded as missing:
            return missing.page
        if entry.filler:
            state.intervals.filler = entry.filler
        self.knows_gaps |= bool(entry.filler) or entry.intervals[0].fill
        return None

    async def _load_page(self, partition: Partition, mirror_id: str, page: Page) -> None:
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
            self._lose(partition, mirror_id, page)
            return
        if len(self._loaded) >= _PAGES_LOADED:
            del self._loaded[next(iter(self._loaded))]
        self._loaded[page.location] = data

    def _lose(self, partition: Partition, mirror_id: str, page: Page) -> None:
        """A page is gone: what it said cannot be known any more, nor what came before it be told from it."""
        state = self._state(partition, mirror_id)
        pages = list(state.intervals.pages)
        behind = pages[pages.index(page) + 1 :] if page in pages else pages
        log.error(
            "topic %s has lost the intervals of %s-%d from mirror offset %d to %d, at offset %d of its partition %d: "
            "offsets up to there cannot be translated any more",
            *(self.topic, *partition, page.first.target, page.last.end, page.location, PAGES),
        )
        state.intervals.use_pages(behind, state.intervals.tail)

    def _begin_again(self, topic: Topic, end: int) -> None:
        """The topic was created again, or has lost its last records. What is in memory is written down again by whoever
        packs; what only the lost topic had is gone."""
        created_again = id_text(topic.id) != self._topic_id
        what = "was deleted and created again" if created_again else f"was truncated to offset {end}"
        log.warning("internal topic %s %s; what is known of its intervals is written again", self.topic, what)
        self.next_offset = 0 if created_again else end
        for state in (state for states in self.states.values() for state in states.values()):
            state.lose_journal(self.next_offset)
            if created_again:
                state.packed = None
                here = [page for page in state.intervals.pages if page.data or page.location in self._loaded]
                state.intervals.use_pages(
                    [replace(page, location=-1, data=page.data or self._loaded[page.location]) for page in here],
                    state.intervals.tail,
                )
        if created_again:
            self.index = Index()
            self._loaded.clear()

    # --- writing --------------------------------------------------------------------------------------------------

    async def write(self, entries: Sequence[Entry]) -> None:
        """Returns when all in-sync replicas of the target have it."""
        if not entries:
            return
        await self._write(to_record(entry, self._author, next(self._numbers)) for entry in entries)
        for entry in entries:
            await self._put_loaded(entry)

    async def decide(self, entries: Sequence[Entry], seen: int) -> list[Entry]:
        """Write down what comes next for some mirror partitions, by one who had read the journal up to `seen`. A
        decision does not count if others have written about the same mirror partition since: those are returned."""
        fenced = [replace(entry, seen=seen) for entry in entries]
        records = [to_record(entry, self._author, next(self._numbers)) for entry in fenced]
        if not records:
            return []
        self._awaited.update(dict.fromkeys((key for key, _value in records), False))
        try:
            await self._write(records)
            await self.catch_up()
            return [entry for entry, (key, _value) in zip(entries, records, strict=True) if not self._awaited[key]]
        finally:
            for key, _value in records:
                del self._awaited[key]

    async def _write(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        await write(self._target, await own_topic(self._target, self.topic), JOURNAL, records)

    def _state(self, partition: Partition, mirror_id: str) -> State:
        known = self.states.setdefault(partition, {})
        if mirror_id not in known:
            known[mirror_id] = State(Intervals(loaded=self._loaded, keep_packed=self._keeps(partition)))
        return known[mirror_id]

    def _keeps(self, partition: Partition) -> bool:
        """Whether all that is read stays in memory, packed. Else a lease would not have for long what it recalls."""
        return self._only is None or partition in self._recalled

    def _keep(self, partition: Partition, mirror_id: str, state: State) -> None:
        self.states.setdefault(partition, {})[mirror_id] = state
        self.knows_gaps |= bool(state.intervals.filler) or state.intervals.filled_before > 0
