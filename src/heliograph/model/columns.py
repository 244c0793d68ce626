"""Many intervals as columns of numbers, without an object for each: compacted topics have millions. Pure.

numpy is imported late, as it takes 0.1 s and most commands need no intervals.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

from heliograph.model.interval import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_MANY = 512  # from so many intervals on, columns cost less than a list
_SMALL_NUMBERS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Columns(Sequence[Interval]):
    """Intervals with one source id, in the order of mirror offsets. Only the first can have `fill` or `decided`."""

    targets: "Numbers"
    sources: "Numbers"
    counts: "Numbers"
    foreign_offsets: "Numbers"
    source_id: str
    fill: bool = False
    decided: int = -1

    def __len__(self) -> int:
        return len(self.targets)

    @overload
    def __getitem__(self, at: int) -> Interval: ...
    @overload
    def __getitem__(self, at: slice) -> "Columns": ...
    def __getitem__(self, at: int | slice) -> "Interval | Columns":
        if isinstance(at, slice):
            start, _stop, step = at.indices(len(self))
            assert step == 1
            own = (self.fill, self.decided) if start == 0 else (False, -1)
            return Columns(
                self.targets[at], self.sources[at], self.counts[at], self.foreign_offsets[at], self.source_id, *own
            )
        number = range(len(self))[at]
        values = (
            self.targets.item(number),
            self.sources.item(number),
            self.counts.item(number),
            self.source_id,
            self.foreign_offsets.item(number),
        )
        return Interval(*values, self.fill, self.decided) if number == 0 else Interval(*values)

    def __iter__(self) -> Iterator[Interval]:
        targets, sources, counts = self.targets.tolist(), self.sources.tolist(), self.counts.tolist()
        fill, decided = self.fill, self.decided
        for target, source, count, foreign in zip(targets, sources, counts, self.foreign_offsets.tolist(), strict=True):
            yield Interval(target, source, count, self.source_id, foreign, fill, decided)
            fill, decided = False, -1


def are_many(count: int) -> bool:
    """Whether so many intervals are to be columns."""
    return count >= _MANY


def columns_of(intervals: Sequence[Interval]) -> Columns:
    """Intervals with one source id."""
    import numpy as np

    if isinstance(intervals, Columns):
        return intervals
    first = intervals[0]
    return Columns(
        np.array([interval.target for interval in intervals], np.int64),
        np.array([interval.source for interval in intervals], np.int64),
        np.array([interval.count for interval in intervals], np.int64),
        np.array([interval.foreign_offsets_before for interval in intervals], np.int64),
        first.source_id,
        first.fill,
        first.decided,
    )


def with_first(intervals: Sequence[Interval], fill: bool, decided: int) -> Sequence[Interval]:
    """The same, but for these fields of the first."""
    if isinstance(intervals, Columns):
        return replace(intervals, fill=fill, decided=decided)
    return [replace(intervals[0], fill=fill, decided=decided), *intervals[1:]]


def concatenated(first: Columns, second: Columns) -> Columns:
    """The second follows the first, and has the same source id."""
    import numpy as np

    return Columns(
        np.concatenate((first.targets, second.targets)),
        np.concatenate((first.sources, second.sources)),
        np.concatenate((first.counts, second.counts)),
        np.concatenate((first.foreign_offsets, second.foreign_offsets)),
        first.source_id,
        first.fill,
        first.decided,
    )


def breaks(columns: Columns) -> list[int]:
    """The numbers of intervals that cannot share a page with the one before, see `pages.fits_behind`."""
    import numpy as np

    own = columns.targets - columns.foreign_offsets
    fits = (
        (columns.sources[1:] > columns.sources[:-1])
        & (columns.foreign_offsets[1:] >= columns.foreign_offsets[:-1])
        & (own[1:] >= own[:-1])
    )
    return [] if fits.all() else (np.flatnonzero(~fits) + 1).tolist()


# --- runs: counts of records and, between them, the widths of gaps --------------------------------------------------


def from_copied(sources: "Numbers", counts: "Numbers", at: int, source_id: str, foreign_offsets_before: int) -> Columns:
    """Intervals of records that are appended one after the other from mirror offset `at` on: `counts` records from each
    of these source offsets."""
    import numpy as np

    is_first = np.ones(len(sources), np.bool_)
    np.not_equal(sources[1:], sources[:-1] + counts[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    counts = np.add.reduceat(counts, first)
    targets = at + np.cumsum(counts) - counts
    return Columns(targets, sources[first], counts, np.full(len(first), foreign_offsets_before, np.int64), source_id)


def from_runs(runs: "Numbers", first: Interval, gaps_are_filled: bool) -> Columns:
    """The other way of `runs_of`; if the gaps are filled, the mirror has them, too."""
    import numpy as np

    counts, gaps = runs[::2].copy(), np.zeros(len(runs) // 2 + 1, np.int64)
    gaps[1:] = np.cumsum(runs[1::2])
    copied = np.cumsum(counts) - counts
    targets, foreign = first.target + copied, np.full(len(counts), first.foreign_offsets_before, np.int64)
    if gaps_are_filled:
        targets, foreign = targets + gaps, foreign + gaps
    return Columns(targets, first.source + copied + gaps, counts, foreign, first.source_id, first.fill)


def runs_of(columns: Columns) -> "Numbers":
    import numpy as np

    runs = np.empty(2 * len(columns) - 1, np.int64)
    runs[::2] = columns.counts
    runs[1::2] = columns.sources[1:] - columns.sources[:-1] - columns.counts[:-1]
    return runs


def to_json(numbers: "Numbers") -> bytes:
    """A JSON list. Ten times as fast as the json module, where most numbers are small."""
    import numpy as np

    large = np.flatnonzero((numbers < 0) | (numbers >= _SMALL_NUMBERS)).tolist()
    if len(large) > len(numbers) // 16:
        return json.dumps(numbers.tolist(), separators=(",", ":")).encode()
    texts, parts, at = _small_number_texts(), [], 0
    for place in [*large, len(numbers)]:
        parts.append(texts[numbers[at:place]].tobytes().translate(None, b"\0"))
        parts += [b"%d," % numbers[number] for number in (place,) if number < len(numbers)]
        at = place + 1
    return b"[" + b"".join(parts)[:-1] + b"]"


@lru_cache(maxsize=1)
def _small_number_texts() -> Any:
    import numpy as np

    return np.array([b"%d," % number for number in range(_SMALL_NUMBERS)], "S5")


def from_json(text: bytes) -> "Numbers":
    """A JSON list of integers, without its brackets."""
    import numpy as np

    return np.fromstring(text, np.int64, sep=",")
