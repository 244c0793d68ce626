"""Pages: many intervals of one mirror partition, packed into few bytes. Pure.

A page has intervals in order, as columns of differences, compressed: a byte or two for each interval. The index has the
first and the last interval of each page, by which a search finds the right page; only that one is unpacked.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import cramjam

from heliograph.model.columns import Columns, breaks, columns_of
from heliograph.model.interval import Interval

if TYPE_CHECKING:
    from heliograph.model.columns import Numbers

PAGE = 4096  # intervals in a full page
IN_INDEX = -1  # the page's bytes are in the index record itself
NOT_HERE = -2  # only the whole ledger has the location: a lease gets just the pages around its position
_TYPES = {"b": "<i1", "h": "<i2", "i": "<i4", "q": "<i8"}  # signed integers of 1, 2, 4 and 8 bytes
_LIMITS = {"b": 1 << 7, "h": 1 << 15, "i": 1 << 31, "q": 1 << 63}
_LEVEL = 1  # level 9 makes pages 3 % smaller and takes ten times as long


@dataclass(frozen=True, slots=True)
class Page:
    """Where consecutive intervals are stored: at an offset of the ledger's pages partition, in `data`, or as `first` if
    that is the only one. The random `tag` makes the key of the record unique."""

    first: Interval
    last: Interval
    size: int
    location: int = IN_INDEX
    data: bytes = b""
    tag: int = 0

    def columns(self) -> Columns:
        return unpack(self.data, self.first) if self.data else columns_of([self.first])


def page_in_memory(intervals: Sequence[Interval]) -> Page:
    """Never written: most partitions have a single interval, for which packing costs more than it saves."""
    return page_of(intervals) if len(intervals) > 1 else Page(intervals[0], intervals[0], 1)


def page_of(intervals: Sequence[Interval]) -> Page:
    return Page(intervals[0], intervals[-1], len(intervals), IN_INDEX, pack(columns_of(intervals)))


def fits_behind(before: Interval, interval: Interval) -> bool:
    """Whether two neighbours may share a page, in which source, foreign and own record offsets only grow."""
    return (
        interval.source > before.source
        and interval.foreign_offsets_before >= before.foreign_offsets_before
        and interval.source_id == before.source_id
        and interval.target - interval.foreign_offsets_before >= before.target - before.foreign_offsets_before
        and not interval.fill
        and interval.decided < 0
    )


def cut(intervals: Sequence[Interval], most: int) -> list[Sequence[Interval]]:
    """Parts that may be pages of their own, none longer than `most`."""
    if isinstance(intervals, Columns):
        apart = breaks(intervals)
    else:
        neighbours = enumerate(pairwise(intervals), 1)
        apart = [number for number, (before, interval) in neighbours if not fits_behind(before, interval)]
    ends = [*apart, len(intervals)]
    parts = (range(start, end, most) for start, end in pairwise([0, *ends]))
    starts = list(chain.from_iterable(parts))
    return [intervals[start:end] for start, end in pairwise([*starts, len(intervals)])]


def pack(columns: Columns) -> bytes:
    """The bytes of a page; its first interval is not in them."""
    import numpy as np

    last = columns.counts[-1:]
    widths = np.concatenate((np.diff(columns.targets), last))
    steps = np.concatenate((np.diff(columns.sources), last))
    grown = np.diff(columns.foreign_offsets, append=columns.foreign_offsets[-1:])
    return pack_integers([widths, steps - widths, widths - columns.counts, grown])


def unpack(data: bytes, first: Interval) -> Columns:
    return _unpack(data, first, first.decided)  # which intervals do not compare


@lru_cache(maxsize=64)
def _unpack(data: bytes, first: Interval, decided: int) -> Columns:
    import numpy as np

    widths, gaps, rests, grown = unpack_integers(data)
    targets = np.cumsum(np.concatenate(([first.target], widths[:-1])))
    sources = np.cumsum(np.concatenate(([first.source], (widths + gaps)[:-1])))
    foreign_offsets = np.cumsum(np.concatenate(([first.foreign_offsets_before], grown[:-1])))
    return Columns(targets, sources, widths - rests, foreign_offsets, first.source_id, first.fill, decided)


def pack_integers(columns: "Sequence[Numbers]") -> bytes:
    """Columns of the same length, each as narrow as its values allow, compressed together."""
    codes = [_code(column) for column in columns]
    head = json.dumps(["".join(codes), len(columns[0])]).encode()
    parts = [column.astype(_TYPES[code]).tobytes() for column, code in zip(columns, codes, strict=True)]
    return bytes(cramjam.zstd.compress(head + b"\n" + b"".join(parts), _LEVEL))


def unpack_integers(data: bytes) -> "list[Numbers]":
    import numpy as np

    plain = bytes(cramjam.zstd.decompress(data))
    at = plain.index(b"\n") + 1
    codes, count = json.loads(plain[:at])
    columns = []
    for code in codes:
        column = np.frombuffer(plain, _TYPES[code], count, at)
        at += column.nbytes
        columns.append(column.astype(np.int64))
    return columns


def _code(column: "Numbers") -> str:
    least, most = (int(column.min()), int(column.max())) if len(column) else (0, 0)
    return next(code for code, limit in _LIMITS.items() if -limit <= least and most < limit)
