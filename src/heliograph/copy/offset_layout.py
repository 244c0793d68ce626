"""What it takes for a mirror to have the source's own offsets: records at their places, and gaps between them. Pure.

A gap is where the source has no record for a reader: a marker, a record that compaction took, an aborted transaction.
On the mirror an empty transaction leaves one such offset, and an aborted one as many as it has records, and one more.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from heliograph.copy.classify import Classified, OutgoingBatch
from heliograph.model.intervals import Interval
from heliograph.wire.batches import Batch


@dataclass(slots=True, eq=False)
class Gap:
    """Offsets that a mirror must have without a record for its readers.

    Filled with empty transactions, one offset each; or with one transaction that writes `aborted` records to all but
    the last offset, and ends there with its marker; or, with `filler`, with records that are cut off afterwards, which
    is possible only where nothing stands before them that is to stay.
    """

    source_offset: int
    count: int
    aborted: Sequence[Batch] = ()
    filler: bool = False
    epoch: int = -1  # leader epoch of the source's last batch before its end, if known
    next_source: int = -1  # everything before it has been dealt with when this gap is filled

    def __post_init__(self) -> None:
        self.next_source = self.source_offset + self.count

    @property
    def size(self) -> int:
        return sum(batch.size for batch in self.aborted)


Step = OutgoingBatch | Gap


def lay_out(classified: Classified, at: int, aborted_batches: Iterable[Batch]) -> list[Step]:
    """What was fetched from source offset `at` on as steps without anything between them."""
    steps: list[Step] = []
    aborted = deque(batch for batch in aborted_batches if batch.dense)  # holes in them make them a hole
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
    """What is between two offsets, with the aborted batches that lie there, which are taken away from the others."""
    while start < end:
        stretch = _stretch(end, aborted)
        if not stretch:
            yield Gap(start, end - start)
            return
        first, until = max(start, stretch[0].base_offset), stretch[-1].next_offset
        if first > start:
            yield Gap(start, first - start)
        # The marker that ends them takes the place of the source's, or of another gap, or of the last of them.
        start = min(until + 1, end)
        yield Gap(first, start - first, stretch)


def _stretch(end: int, aborted: deque[Batch]) -> list[Batch]:
    """The next aborted batches that stand one behind the other."""
    stretch: list[Batch] = []
    while aborted and aborted[0].base_offset < end:
        if stretch and stretch[-1].next_offset != aborted[0].base_offset:
            break
        stretch.append(aborted.popleft())
    return stretch


def plan_of_layout(steps: Iterable[Step], at: int, source_id: str, shift: int) -> list[Interval]:
    """The intervals of steps that begin at offset `at`. The last has no records if a gap comes last."""
    found = [Interval(at, at, 0, source_id, shift)]
    for step in steps:
        last = found[-1]
        if isinstance(step, OutgoingBatch):
            found[-1] = Interval(last.target, last.target, last.count + step.count, source_id, shift)
        else:
            shift += step.count
            found.append(Interval(last.end + step.count, last.end + step.count, 0, source_id, shift))
    return found
