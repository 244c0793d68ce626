"""What is known about the two logs of one partition: where they are, where they begin and end."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from heliograph.copy.offset_layout import Gap, Step
from heliograph.model.intervals import Intervals
from heliograph.wire.metadata import NO_ID, id_text


class FetchFrom(NamedTuple):
    """Where records are fetched: from a leader; from a leader with our rack, which may name a replica in that rack; or
    from that replica (KIP-392)."""

    node: int
    with_rack: bool = True


_NOWHERE = FetchFrom(-1)


@dataclass(slots=True)
class SourceLog:
    leader: int = -1
    fetch_from: FetchFrom = _NOWHERE
    topic_id: uuid.UUID = NO_ID
    start: int = 0
    end: int = -1  # as readers see it
    high_watermark: int = -1  # beyond `end` while transactions are open
    fetch_at: int = 0
    fetch_epoch: int = -1  # leader epoch of the last record before `fetch_at`
    truncated_at: int | None = None  # the broker says that its log is another one from here on

    @property
    def id(self) -> str:
        return id_text(self.topic_id)

    def locate(self, leader: int, topic_id: uuid.UUID, end: int) -> None:
        self.leader, self.topic_id, self.end = leader, topic_id, end
        self.ask_leader()

    @property
    def is_read_from_follower(self) -> bool:
        return self.fetch_from.node != self.leader

    def ask_leader(self) -> None:
        """Fetch from the leader, which may name a nearer replica."""
        self.fetch_from = FetchFrom(self.leader)

    def read_from(self, replica: int) -> None:
        """Fetch from this replica, as the leader says."""
        self.fetch_from = FetchFrom(replica)

    def avoid_followers(self) -> None:
        """Fetch from the leader only."""
        self.fetch_from = FetchFrom(self.leader, with_rack=False)

    def resume(self, start: int, fetch_at: int, fetch_epoch: int) -> None:
        self.start, self.truncated_at = start, None
        self.fetched(fetch_at, fetch_epoch)

    def observe(self, start: int, end: int, high_watermark: int) -> bool:
        """Apply what a fetch response says about the log. Returns whether its end has moved."""
        if self.is_read_from_follower:
            # A follower lags, and deletes old segments by itself: it knows of no later end, and its start is not the
            # log's.
            start, end, high_watermark = self.start, max(end, self.end), max(high_watermark, self.high_watermark)
        moved = (self.end, self.high_watermark) != (end, high_watermark)
        self.end, self.high_watermark = end, high_watermark
        self.start = max(self.start, start)
        return moved

    def fetched(self, next_offset: int, epoch: int) -> None:
        self.fetch_at, self.fetch_epoch = next_offset, epoch

    def truncated(self, offset: int) -> None:
        self.truncated_at = offset


@dataclass(slots=True)
class MirrorLog:
    leader: int = -1
    topic_id: str = ""
    start: int = 0
    filler_end: int = 0  # filler at the mirror's start ends here
    is_empty: bool = False  # it holds nothing that is to stay
    preserves_offsets: bool = False  # it has the source's offsets
    intervals: Intervals = field(default_factory=Intervals)  # as far as they are in the ledger
    seen: int = 0  # the journal offset up to which the ledger was read when the position was found
    ledger_loaded: bool = True  # whether the ledger has read all about it

    def locate(self, leader: int, topic_id: str) -> None:
        self.leader, self.topic_id = leader, topic_id

    def resume(
        self, start: int, filler_end: int, is_empty: bool, preserves_offsets: bool, intervals: Intervals, seen: int
    ) -> None:
        self.start, self.filler_end, self.is_empty = start, filler_end, is_empty
        self.preserves_offsets, self.intervals, self.seen = preserves_offsets, intervals, seen

    def ledger_was_loaded(self) -> None:
        self.ledger_loaded = True

    def queued(self, steps: Iterable[Step]) -> None:
        self.is_empty = self.is_empty and all(isinstance(step, Gap) and step.filler for step in steps)

    def fill_until(self, offset: int) -> None:
        """Filler is about to be written up to this offset."""
        self.filler_end = offset

    def stop_preserving(self) -> None:
        """From here on offsets are translated instead."""
        self.preserves_offsets = False

    def deleted_before(self, offset: int) -> None:
        self.start = max(self.start, offset)
