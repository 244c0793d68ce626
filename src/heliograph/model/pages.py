"""Pages: many intervals of one mirror partition, packed into few bytes. Pure.

A page has intervals in order, as columns of differences, compressed: a byte or two for each interval. The index has the
first and the last interval of each page, by which a search finds the right page; only that one is unpacked.
"""

import json
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, chain
from operator import add, sub

import cramjam

from heliograph.model.interval import Interval

PAGE = 4096  # intervals in a full page
IN_INDEX = -1  # the page's bytes are in the index record itself
NOT_HERE = -2  # only the whole ledger has the location: a lease gets just the pages around its position
_CODES = "bhiq"  # signed integers of 1, 2, 4 and 8 bytes


@dataclass(frozen=True, slots=True)
class Columns:
    """Intervals as columns. Only the first interval of a page can have `fill` or `decided`."""

    targets: Sequence[int]
    sources: Sequence[int]
    counts: Sequence[int]
    foreign_offsets: Sequence[int]
    source_id: str
    fill: bool
    decided: int

    def __len__(self) -> int:
        return len(self.targets)

    def interval(self, number: int) -> Interval:
        values = (
            self.targets[number],
            self.sources[number],
            self.counts[number],
            self.source_id,
            self.foreign_offsets[number],
        )
        return Interval(*values, self.fill, self.decided) if number == 0 else Interval(*values)


@dataclass(frozen=True, slots=True)
class Page:
    """Where consecutive intervals are stored: at an offset of the ledger's pages partition, or in `data`. The random
    `tag` makes the key of the record unique."""

    first: Interval
    last: Interval
    size: int
    location: int = IN_INDEX
    data: bytes = b""
    tag: int = 0

    def columns(self) -> Columns:
        return unpack(self.data, self.first)


def page_of(intervals: Sequence[Interval]) -> Page:
    return Page(intervals[0], intervals[-1], len(intervals), IN_INDEX, pack(intervals))


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
    starts = [0]
    for number in range(1, len(intervals)):
        if number - starts[-1] == most or not fits_behind(intervals[number - 1], intervals[number]):
            starts.append(number)
    return [intervals[start:end] for start, end in zip(starts, [*starts[1:], len(intervals)], strict=True)]


def pack(intervals: Sequence[Interval]) -> bytes:
    """The bytes of a page; its first interval is not in them."""
    return pack_columns(
        [interval.target for interval in intervals],
        [interval.source for interval in intervals],
        [interval.count for interval in intervals],
        [interval.foreign_offsets_before for interval in intervals],
    )


def pack_columns(
    targets: Sequence[int], sources: Sequence[int], counts: Sequence[int], foreign_offsets: Sequence[int]
) -> bytes:
    widths = [*map(sub, targets[1:], targets), counts[-1]]
    steps = [*map(sub, sources[1:], sources), counts[-1]]
    grown = [*map(sub, foreign_offsets[1:], foreign_offsets), 0]
    return pack_integers([widths, list(map(sub, steps, widths)), list(map(sub, widths, counts)), grown])


def unpack(data: bytes, first: Interval) -> Columns:
    return _unpack(data, first, first.decided)  # which intervals do not compare


@lru_cache(maxsize=64)
def _unpack(data: bytes, first: Interval, decided: int) -> Columns:
    widths, gaps, rests, grown = unpack_integers(data)
    targets = array("q", accumulate(chain((first.target,), widths[:-1])))
    sources = array("q", accumulate(chain((first.source,), map(add, widths[:-1], gaps))))
    foreign_offsets = array("q", accumulate(chain((first.foreign_offsets_before,), grown[:-1])))
    return Columns(
        targets, sources, array("q", map(sub, widths, rests)), foreign_offsets, first.source_id, first.fill, decided
    )


def pack_integers(columns: Sequence[Sequence[int]]) -> bytes:
    """Columns of the same length, each as narrow as its values allow, compressed together."""
    arrays = [array(_code(column), column) for column in columns]
    if sys.byteorder == "big":
        for column in arrays:
            column.byteswap()
    head = json.dumps(["".join(column.typecode for column in arrays), len(columns[0])]).encode()
    return bytes(cramjam.zstd.compress(head + b"\n" + b"".join(column.tobytes() for column in arrays), 9))


def unpack_integers(data: bytes) -> list["array[int]"]:
    plain = bytes(cramjam.zstd.decompress(data))
    at = plain.index(b"\n") + 1
    codes, count = json.loads(plain[:at])
    columns: list[array[int]] = []
    for code in codes:
        column = array(code)
        size = column.itemsize * count
        column.frombytes(plain[at : at + size])
        at += size
        if sys.byteorder == "big":
            column.byteswap()
        columns.append(column)
    return columns


def _code(column: Sequence[int]) -> str:
    least, most = min(column, default=0), max(column, default=0)
    for code in _CODES:
        limit = 1 << (8 * array(code).itemsize - 1)
        if -limit <= least and most < limit:
            return code
    raise OverflowError("an offset that does not fit into 64 bits")
