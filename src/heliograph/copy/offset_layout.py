"""The layout of a mirror that has the source's offsets: records at their offsets, and gaps between them. Pure.

In a gap the source has no record for a reader: a marker, a record that compaction removed, an aborted transaction. On
the mirror an empty transaction leaves one such offset, and an aborted one as many as it has records, and one more.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from heliograph.copy.classified import Classified, OutgoingBatch
from heliograph.model.intervals import Interval
from heliograph.wire.batches import Batch


@dataclass(slots=True, eq=False)
class Gap:
    """Offsets that a mirror must have without a record for its readers.

    Filled with empty transactions, one offset each; or with one transaction that writes `aborted` records to all but
    the last offset, and ends there with its marker; or, with `filler`, with records that are deleted afterwards, which
    is possible only where the mirror holds nothing before them that is to stay.
    """

    source_offset: int
    count: int
    aborted: Sequence[Batch] = ()
    filler: bool = False
    epoch: int = -1  # leader epoch of the source's last batch before its end, if known
    next_source: int = -1  # everything before it is copied or left out when this gap is filled

    def __post_init__(self) -> None:
        self.next_source = self.source_offset + self.count

    @property
    def size(self) -> int:
        return sum(batch.size for batch in self.aborted)


Step = OutgoingBatch | Gap


def lay_out(classified: Classified, at: int, aborted_batches: Iterable[Batch]) -> list[Step]:
    """What was fetched from source offset `at` on, as steps with nothing between them."""
    steps: list[Step] = []
    aborted = deque(batch for batch in aborted_batches if batch.dense)  # those with holes become gaps
    for outgoing in classified.outgoing:
        (first, count), *_others = outgoing.runs
        steps += _gaps(at, first, aborted)
        at = first + count
        outgoing.next_source = at
        steps.append(outgoing)
    steps += _gaps(at, classified.next_source, aborted)
    if steps and isinstance(steps[-1], Gap):
        steps[-1].epoch = classified.epoch
    return steps


def _gaps(start: int, end: int, aborted: deque[Batch]) -> Iterator[Gap]:
    """The gaps between two offsets. Removes the aborted batches that are there from `aborted`."""
    while start < end:
        stretch = _stretch(end, aborted)
        if not stretch:
            yield Gap(start, end - start)
            return
        first, until = max(start, stretch[0].base_offset), stretch[-1].next_offset
        if first > start:
            yield Gap(start, first - start)
        # Their marker takes the offset of the source's marker, or of another gap, or of the last of them.
        start = min(until + 1, end)
        yield Gap(first, start - first, stretch)


def _stretch(end: int, aborted: deque[Batch]) -> list[Batch]:
    """The next aborted batches that follow each other without a gap."""
    stretch: list[Batch] = []
    while aborted and aborted[0].base_offset < end:
        if stretch and stretch[-1].next_offset != aborted[0].base_offset:
            break
        stretch.append(aborted.popleft())
    return stretch


def plan_of_layout(steps: Iterable[Step], at: int, source_id: str, foreign: int) -> list[Interval]:
    """The intervals of steps that begin at offset `at`. The last has no records if a gap comes last."""
    intervals = [Interval(at, at, 0, source_id, foreign)]
    for step in steps:
        last = intervals[-1]
        if isinstance(step, OutgoingBatch):
            intervals[-1] = Interval(last.target, last.target, last.count + step.count, source_id, foreign)
        else:
            foreign += step.count
            intervals.append(Interval(last.end + step.count, last.end + step.count, 0, source_id, foreign))
    return intervals
