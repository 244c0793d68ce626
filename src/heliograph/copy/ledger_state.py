"""What the ledger says about one mirror partition, and what of it a lease gets from the driver."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from heliograph.model.intervals import Intervals, NotLoaded
from heliograph.model.ledger_records import Author, JournalEntry, Packed
from heliograph.model.pages import NOT_HERE, Page
from heliograph.model.partitions import TopicPartition
from heliograph.wire.records import Record


@dataclass(slots=True)
class LedgerState:
    """Up to the journal's entry at offset `written`, which is by `author`; `written_by_others` is the offset of the
    last entry that is not. Entries that were not accepted are left out: two processes that write about one mirror
    partition would reject each other's entries for ever."""

    intervals: Intervals
    written: int = -1
    since: int = -1
    time: int = 0
    era: int = 0
    packed: Packed | None = None  # as the index has it
    author: Author = field(default_factory=Author)
    written_by_others: int = -1

    def accepts(self, entry: JournalEntry, author: Author) -> bool:
        """Whether the author of an entry had read all that others have written about this mirror partition. An entry
        that its author has given up, and that lands after a later one of theirs, is not accepted either."""
        is_theirs = bool(author.name) and author.name == self.author.name
        if is_theirs and author.number < self.author.number:
            return False
        return entry.seen is None or (self.written_by_others if is_theirs else self.written) < entry.seen

    def truncate(self, end: int) -> None:
        """The journal has lost its records from `end` on: who wrote last before that is not known. All readers must
        agree on that, as it decides which decisions are accepted."""
        self.era += 1
        if self.written >= end:
            self.written, self.author, self.written_by_others = end - 1, Author(), -1

    def advance(self, record: Record, author: Author) -> None:
        """The journal is read up to this record, which was accepted."""
        if author.name != self.author.name:
            self.written_by_others, self.author = self.written, author
        elif author.number > self.author.number:
            self.author = author
        self.written, self.time = record.offset, record.timestamp
        self.since = record.offset if self.since < 0 else self.since

    @staticmethod
    def of(packed: Packed, loaded: Mapping[int, bytes]) -> "LedgerState":
        intervals = Intervals(pages=packed.pages, loaded=loaded)
        intervals.filler = packed.filler
        fields = packed.written, packed.since, packed.time, packed.era, packed
        return LedgerState(intervals, *fields, packed.author, packed.written_by_others)

    def excerpt(self, partition: TopicPartition, mirror_id: str, target: int | None, count: int) -> Packed:
        """For a lease: `count` intervals from this mirror offset on, by default from the last known one."""
        last = self.intervals.last()
        if target is None:
            target = last.end if last is not None else 0
        try:
            pages = self.intervals.excerpt(target, count)
        except NotLoaded:  # the lease reads them itself
            first = self.intervals.first()
            assert first is not None
            assert last is not None
            pages = [Page(first, last, len(self.intervals), NOT_HERE)]
        fields = self.written, self.since, self.time, self.era, 0, self.intervals.filler, ()
        return Packed(partition, mirror_id, tuple(pages), *fields, self.author, self.written_by_others)


@dataclass(frozen=True, slots=True)
class Handed:
    """What a lease gets of its driver's ledger: a few intervals of each of its partitions, and the journal offset from
    which it reads itself. Small however long the history is, as Spark carries it to the executor."""

    topic_id: str
    next_offset: int
    partitions: frozenset[TopicPartition]
    states: tuple[Packed, ...]
    fills: Mapping[tuple[TopicPartition, str], int] = field(default_factory=dict)  # see Intervals.filled_before
