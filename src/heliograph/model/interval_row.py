"""A row of intervals of one mirror partition: the last ones as a list, those before them packed in pages.

Access by number, and packing. What the intervals mean is in `model/intervals.py`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from heliograph.model import pages as pages_module
from heliograph.model.columns import Columns, columns_of, concatenated
from heliograph.model.interval import Interval
from heliograph.model.pages import IN_INDEX, NOT_HERE, Page, cut, fits_behind, page_of, unpack

_Key = Callable[[Interval], int]


class NotLoaded(Exception):
    """The answer is in a page that is not in memory. The ledger loads it and asks again."""

    def __init__(self, page: Page) -> None:
        super().__init__(f"intervals from mirror offset {page.first.target} on are not in memory")
        self.page = page


class IntervalRow:
    """In the order of mirror offsets. Raises NotLoaded where a page is needed that is not in memory."""

    def __init__(
        self,
        known: Iterable[Interval] = (),
        pages: Iterable[Page] = (),
        loaded: Mapping[int, bytes] | None = None,
        page_size: int | None = None,
    ) -> None:
        """`loaded` has the bytes of pages by location."""
        self._tail = list(known)
        self._pages = list(pages)
        self._loaded: Mapping[int, bytes] = {} if loaded is None else loaded
        self.page_size = pages_module.PAGE if page_size is None else page_size
        self._starts: list[int] | None = None  # the number of the first interval of each page, and of the tail
        self._forward: list[int] | None = None
        self.filler = ""  # name of the transactional ids that fill the last gaps, if any
        self.fills_elsewhere = 0  # `Intervals.filled_before` of pages that are not here

    def __len__(self) -> int:
        return self._first_numbers()[-1] + len(self._tail)

    def __iter__(self) -> Iterator[Interval]:
        for page in self._pages:
            yield from self._columns(page)
        yield from self._tail

    @property
    def pages(self) -> Sequence[Page]:
        return self._pages

    @property
    def tail(self) -> Sequence[Interval]:
        return self._tail

    def first(self) -> Interval | None:
        return self.at(0) if len(self) else None

    def last(self) -> Interval | None:
        return self.at(len(self) - 1) if len(self) else None

    def at(self, number: int) -> Interval:
        starts = self._first_numbers()
        if number >= starts[-1]:
            return self._tail[number - starts[-1]]
        at = bisect_right(starts, number) - 1
        page, inside = self._pages[at], number - starts[at]
        if inside == 0:
            return page.first
        return page.last if inside == page.size - 1 else self._columns(page)[inside]

    def find(self, value: int, key: _Key, low: int = 0, high: int | None = None) -> int:
        """The number after the last interval whose key is not above a value, where keys grow from `low` to `high`."""
        starts = self._first_numbers()
        high = len(self) if high is None else high
        if low >= starts[-1] or (high > starts[-1] and key(self._tail[0]) <= value):
            inside = bisect_right(self._tail, value, max(0, low - starts[-1]), high - starts[-1], key=key)
            return starts[-1] + inside
        pages = bisect_left(starts, low), bisect_left(starts, min(high, starts[-1]))
        at = bisect_right(self._pages, value, *pages, key=lambda page: key(page.first))
        if at and starts[at] <= high and key(self._pages[at - 1].last) <= value:
            return max(low, starts[at])
        low, high = max(low, starts[at - 1] if at else 0), min(high, starts[at])
        while low < high:
            middle = (low + high) // 2
            if key(self.at(middle)) <= value:
                low = middle + 1
            else:
                high = middle
        return low

    def _first_numbers(self) -> list[int]:
        if self._starts is None:
            self._starts = [0]
            for page in self._pages:
                self._starts.append(self._starts[-1] + page.size)
        return self._starts

    def _columns(self, page: Page) -> Columns:
        if page.location == IN_INDEX:
            return page.columns()
        data = page.data or self._loaded.get(page.location)
        if data is None:
            raise NotLoaded(page)
        return unpack(data, page.first)

    def _pages_changed(self) -> None:
        self._starts = self._forward = None

    def stretch_starts(self) -> list[int]:
        """The numbers of the intervals from which on source offsets grow."""
        if self._forward is None:
            self._forward = []
            before: Interval | None = None
            for start, page in zip(self._first_numbers(), self._pages, strict=False):
                if page.location == NOT_HERE:
                    raise NotLoaded(page)
                if before is None or _goes_back(before, page.first):
                    self._forward.append(start)
                before = page.last
            for number, interval in enumerate(self._tail, self._first_numbers()[-1]):
                if before is None or _goes_back(before, interval):
                    self._forward.append(number)
                before = interval
        return self._forward

    def _open(self, start: int, drop: bool) -> None:
        """Unpacks the pages that reach past a mirror offset, so that intervals there can be replaced. With `drop`,
        pages that begin there or after it are removed."""
        pages, opened = list(self._pages), self._tail
        while pages and (pages[-1].last.target >= start or pages[-1].last.end > start):
            page = pages.pop()
            if drop and page.first.target >= start:
                opened = []
                continue
            opened = [*self._columns(page), *opened]
        if len(pages) < len(self._pages):
            self._pages, self._tail = pages, opened
            self._pages_changed()

    def _fold(self, count: int) -> None:
        """Packs the first `count` intervals of the tail."""
        folded, self._tail = self._tail[:count], self._tail[count:]
        self._pages = self._with(folded)
        self._pages_changed()

    def _append(self, columns: Columns) -> None:
        """Adds intervals that follow all others."""
        self._fold(len(self._tail))
        self._pages = self._with(columns)
        self._pages_changed()

    def _with(self, intervals: Sequence[Interval]) -> list[Page]:
        """The pages, and these intervals after them: a last page that is neither full nor stored is filled up."""
        pages = list(self._pages)
        if not intervals:
            return pages
        last = pages[-1] if pages else None
        is_open = last is not None and last.location == IN_INDEX and last.size < self.page_size
        if last is not None and is_open and fits_behind(last.last, intervals[0]):
            opened = self._columns(pages.pop())
            is_list = not isinstance(intervals, Columns)
            intervals = [*opened, *intervals] if is_list else concatenated(opened, columns_of(intervals))
        return [*pages, *map(page_of, cut(intervals, self.page_size))]

    def packed(self) -> list[Page]:
        """All intervals as pages, as few as possible. Changes nothing."""
        return self._with(self._tail)

    def use_pages(self, pages: Sequence[Page], tail: Sequence[Interval] = ()) -> None:
        """Replaces everything that is known."""
        self._pages, self._tail = list(pages), list(tail)
        self._pages_changed()

    def become(self, other: "IntervalRow") -> None:
        """Takes over everything that another row knows."""
        self.use_pages(other.pages, other.tail)
        self.filler, self.fills_elsewhere = other.filler, other.fills_elsewhere


def _goes_back(before: Interval, interval: Interval) -> bool:
    return interval.source <= before.source or interval.source_id != before.source_id
