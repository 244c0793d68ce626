"""One partition as its leader keeps it: batches, producers' sequences, transactions, leader epochs.

The rules are those of Kafka's UnifiedLog, ProducerStateManager, ProducerAppendInfo and LeaderEpochFileCache.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from copying.simulation.batches import PLAIN, Producer, Stored, build, placed, records_in
from heliograph.wire.batches import SEQUENCES, Batch
from heliograph.wire.errors import MESSAGE_TOO_LARGE, OFFSET_OUT_OF_RANGE, OUT_OF_ORDER_SEQUENCE_NUMBER

_REMEMBERED = 5  # batches of each producer
_INVALID_PRODUCER_EPOCH = 47


@dataclass(frozen=True)
class Known:
    """One of a producer's last batches."""

    epoch: int
    first: int
    last: int
    base_offset: int
    timestamp: int


@dataclass
class Log:
    batches: list[Batch] = field(default_factory=list)
    start: int = 0
    end: int = 0
    epoch: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])  # with the offset that each began at
    producers: dict[int, deque[Known]] = field(default_factory=dict)
    open: dict[int, int] = field(default_factory=dict)  # producer id -> first offset of its transaction
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer id, first offset, marker's offset
    largest: int = 1 << 20
    watchers: list[Callable[[], None]] = field(default_factory=list)

    def changed(self) -> None:
        watchers, self.watchers = self.watchers, []
        for watcher in watchers:
            watcher()

    def snapshot(self) -> "Log":
        """What a replica has that is fetched now, and not again."""
        return replace(
            self,
            batches=list(self.batches),
            epochs=list(self.epochs),
            producers={},
            open=dict(self.open),
            aborted=list(self.aborted),
            watchers=[],
        )

    # --- appending ------------------------------------------------------------------------------------------------

    def append(self, data: bytes) -> tuple[int, int]:
        """What a producer has sent: error code and base offset."""
        new = placed(data, self.end, self.epoch)
        assert new.has_valid_checksum(), "a broker would say CORRUPT_MESSAGE"
        assert new.count == new.last_offset_delta + 1, "a broker would say INVALID_RECORD"
        if new.size > self.largest:
            return MESSAGE_TOO_LARGE, -1
        if new.producer_id >= 0:
            known = self.producers.get(new.producer_id)
            if known:
                last = (new.base_sequence + new.last_offset_delta) % SEQUENCES
                for batch in known:
                    if (batch.epoch, batch.first, batch.last) == (new.producer_epoch, new.base_sequence, last):
                        return 0, batch.base_offset
                if new.producer_epoch < known[-1].epoch:
                    return _INVALID_PRODUCER_EPOCH, -1
                following = (known[-1].last + 1) % SEQUENCES if new.producer_epoch == known[-1].epoch else 0
                if new.base_sequence != following:
                    return OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        self._add(new)
        return 0, new.base_offset

    def write(self, timestamps: Sequence[int], values: Sequence[bytes], producer: Producer = PLAIN) -> None:
        """As producers that nobody doubts would."""
        records = [Stored(self.end + at, *value) for at, value in enumerate(zip(timestamps, values, strict=True))]
        if producer.transactional:
            self.open.setdefault(producer.id, self.end)
        self._add(build(self.end, self.end + len(records), self.epoch, records, producer))

    def finish(self, producer_id: int, commit: bool, timestamp: int) -> None:
        """Append the marker that ends a transaction."""
        first = self.open.pop(producer_id, None)
        if first is not None and not commit:
            self.aborted.append((producer_id, first, self.end))
        marker = [Stored(self.end, timestamp, b"")]
        self._add(build(self.end, self.end + 1, self.epoch, marker, Producer(producer_id, 0, -1, True), commit))

    def _add(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.end = batch.next_offset
        self._remember(batch)
        self.changed()

    def _remember(self, batch: Batch) -> None:
        if batch.producer_id >= 0 and batch.base_sequence >= 0:
            last = (batch.base_sequence + batch.last_offset_delta) % SEQUENCES
            known = self.producers.setdefault(batch.producer_id, deque(maxlen=_REMEMBERED))
            if known and known[-1].epoch != batch.producer_epoch:
                known.clear()
            known.append(Known(batch.producer_epoch, batch.base_sequence, last, batch.base_offset, batch.max_timestamp))

    def expire(self, before: int) -> None:
        """Forget producers whose last record is of before this time."""
        self.producers = {
            producer_id: known for producer_id, known in self.producers.items() if known[-1].timestamp >= before
        }

    # --- what takes away ------------------------------------------------------------------------------------------

    def delete_before(self, offset: int) -> int:
        if offset > self.end:
            return OFFSET_OUT_OF_RANGE
        self.start = max(self.start, offset)
        self.batches = [batch for batch in self.batches if batch.next_offset > self.start]
        self.changed()
        return 0

    def truncate(self, kept: int) -> None:
        """An unclean election: the new leader has only so many of the batches."""
        del self.batches[kept:]
        self.end = self.batches[-1].next_offset if self.batches else self.start
        self.epochs = [(epoch, start) for epoch, start in self.epochs if start < self.end] or [(self.epoch, 0)]
        self.aborted = [(producer_id, first, at) for producer_id, first, at in self.aborted if at < self.end]
        self.producers.clear()
        for batch in self.batches:
            self._remember(batch)
        self.open = {}
        for batch in self.batches:
            if batch.control:
                self.open.pop(batch.producer_id, None)
            elif batch.transactional:
                self.open.setdefault(batch.producer_id, batch.base_offset)
        self.elect()

    def elect(self) -> None:
        self.epoch += 1
        self.epochs.append((self.epoch, self.end))
        self.changed()

    def compact(self, keeps: Callable[[int], bool], leave_empty: bool) -> None:
        """Take away records, but not those of the last batch, and nothing that is not decided yet. A batch that has
        lost them all is left out, or stays without records."""
        compacted = []
        for batch in self.batches:
            if batch is self.batches[-1] or batch.next_offset > self.stable_end or batch.control:
                compacted.append(batch)
                continue
            left = [record for record in records_in(batch) if keeps(record.offset)]
            if len(left) == batch.count:
                compacted.append(batch)
            elif left or leave_empty:
                producer = Producer(batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.transactional)
                compacted.append(build(batch.base_offset, batch.next_offset, batch.leader_epoch, left, producer))
        self.batches = compacted

    # --- reading --------------------------------------------------------------------------------------------------

    @property
    def stable_end(self) -> int:
        return min(self.open.values(), default=self.end)

    def read(self, offset: int, until: int, most: int) -> list[Batch]:
        """At least one batch, if there is one, whatever its size."""
        found: list[Batch] = []
        size = 0
        for batch in self.batches:
            if batch.next_offset <= offset:
                continue
            if batch.base_offset >= until or (found and size + batch.size > most):
                break
            found.append(batch)
            size += batch.size
        return found

    def end_of(self, epoch: int) -> tuple[int, int] | None:
        """The largest leader epoch up to the given one, and where it ends; None if that cannot be known."""
        if epoch == self.epochs[-1][0]:
            return epoch, self.end
        end = next((start for later, start in self.epochs if later > epoch), None)
        if end is None:
            return None
        earlier = [known for known, _start in self.epochs if known <= epoch]
        return (earlier[-1] if earlier else epoch), end

    def visible(self) -> list[Stored]:
        """What a reader of committed records sees."""
        return [
            record
            for batch in self.batches
            if batch.next_offset <= self.stable_end and not self._is_aborted(batch)
            for record in records_in(batch)
            if record.offset >= self.start
        ]

    def _is_aborted(self, batch: Batch) -> bool:
        return batch.transactional and any(
            producer_id == batch.producer_id and first <= batch.base_offset < marker
            for producer_id, first, marker in self.aborted
        )
