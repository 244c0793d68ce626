"""What a process knows of a flow's ledger: the state of each mirror partition, and the pages that were read."""

import logging
from collections.abc import Collection
from dataclasses import replace

from heliograph.copy.ledger_state import Handed, LedgerState
from heliograph.model.intervals import Intervals
from heliograph.model.ledger_records import PAGES, JournalEntry, Packed
from heliograph.model.pages import IN_INDEX, Page
from heliograph.model.partitions import TopicPartition

log = logging.getLogger(__name__)

_MAX_PAGES = 4096  # of a few kilobytes each


class LedgerMemory:
    def __init__(self, handed: Handed | None) -> None:
        self.states: dict[TopicPartition, dict[str, LedgerState]] = {}  # by mirror id
        self.only = None if handed is None else set(handed.partitions)  # None: all partitions
        self.pages: dict[int, bytes] = {}  # by offset
        self.knows_gaps = False  # whether some mirrors have, or had, the source's offsets
        for packed in () if handed is None else handed.states:
            state = LedgerState.of(packed, self.pages)
            assert handed is not None
            state.intervals.fills_elsewhere = handed.fills.get((packed.partition, packed.mirror_id), 0)
            self._keep(packed.partition, packed.mirror_id, state)

    def state(self, partition: TopicPartition, mirror_id: str) -> LedgerState:
        known = self.states.setdefault(partition, {})
        if mirror_id not in known:
            known[mirror_id] = LedgerState(Intervals(loaded=self.pages))
        return known[mirror_id]

    def _keep(self, partition: TopicPartition, mirror_id: str, state: LedgerState) -> None:
        self.states.setdefault(partition, {})[mirror_id] = state
        self.knows_gaps |= bool(state.intervals.filler) or state.intervals.filled_before > 0

    def put(self, state: LedgerState, entry: JournalEntry) -> None:
        """Apply an entry. Raises NotLoaded if that takes a page that was not read."""
        state.intervals.put(entry.intervals)
        if entry.filler:
            state.intervals.filler = entry.filler
        self.knows_gaps |= bool(entry.filler) or entry.intervals[0].fill

    def take_packed(self, packed: Packed, journal_end: int) -> None:
        """Apply what the index has, unless more is known."""
        known = self.states.get(packed.partition, {}).get(packed.mirror_id)
        if known is not None and (known.era, known.written) >= (packed.era, packed.written):
            known.packed = packed
            return
        state = LedgerState.of(packed, self.pages)
        if packed.written >= journal_end:  # the journal has lost what came after that
            state.truncate(journal_end)
        self._keep(packed.partition, packed.mirror_id, state)

    def reader(self, partitions: Collection[TopicPartition]) -> "LedgerMemory":
        """An empty memory for these partitions, which shares the pages."""
        memory = LedgerMemory(None)
        memory.only, memory.pages = set(partitions), self.pages
        return memory

    def replace_partitions(self, other: "LedgerMemory") -> None:
        """What another memory has about its partitions replaces what is known about them."""
        assert other.only is not None
        for partition in other.only:
            known, states = self.states.get(partition, {}), other.states.get(partition, {})
            for mirror_id, state in states.items():
                if mirror_id in known:  # cursors hold on to their intervals
                    known[mirror_id].intervals.become(state.intervals)
                    state.intervals = known[mirror_id].intervals
            self.states[partition] = states
        self.knows_gaps |= other.knows_gaps
        if self.only is not None:
            self.only |= other.only

    def add_page(self, page: Page, data: bytes) -> None:
        self.pages[page.location] = data

    def evict_pages(self) -> None:
        """Called when a question is answered, not before: it may need more pages than are kept."""
        while len(self.pages) > _MAX_PAGES:
            del self.pages[next(iter(self.pages))]

    def lose_page(self, topic: str, partition: TopicPartition, mirror_id: str, page: Page) -> None:
        """The topic does not have a page any more: neither it nor what comes before it can be used."""
        intervals = self.state(partition, mirror_id).intervals
        pages = list(intervals.pages)
        behind = pages[pages.index(page) + 1 :] if page in pages else pages
        log.error(
            "topic %s has lost the intervals of %s-%d from mirror offset %d to %d, at offset %d of its partition %d: "
            "offsets up to there cannot be translated any more",
            *(topic, *partition, page.first.target, page.last.end, page.location, PAGES),
        )
        intervals.use_pages(behind, intervals.tail)

    def truncate(self, journal_end: int) -> None:
        """The journal has lost its records from `journal_end` on. What is in memory is written again when the ledger is
        packed."""
        for states in self.states.values():
            for state in states.values():
                state.truncate(journal_end)
                state.since = -1

    def forget_topic(self) -> None:
        """The topic is another one: pages that are not in memory are gone."""
        for states in self.states.values():
            for state in states.values():
                state.packed = None
                here = {IN_INDEX: b"", **self.pages}
                loaded = [
                    replace(page, location=IN_INDEX, data=page.data or here[page.location])
                    for page in state.intervals.pages
                    if page.data or page.location in here
                ]
                state.intervals.use_pages(loaded, state.intervals.tail)
        self.pages.clear()
