"""Intervals: where the records of one mirror partition come from.

Where a source has gaps (compaction, transaction markers, aborted or lost records), its mirror is dense, or has gaps of
the same size if it keeps the source's offsets. Either way it is a row of intervals, one from each gap to the next. They
are written to an internal topic on the target before the first record that they cover is appended, and the mirror's end
and the intervals together always tell which source offset comes next. Pure values and rules; who reads and writes the
topic is in `heliograph.copy.ledger`.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from heliograph.model import pages as pages_module
from heliograph.model.interval import Interval
from heliograph.model.pages import IN_INDEX, NOT_HERE, Columns, Page, cut, page_of, unpack

__all__ = ["NO_END", "Interval", "Intervals", "NotLoaded", "Others"]

NO_END = 1 << 63
_Key = Callable[[Interval], int]


class NotLoaded(Exception):
    """The answer stands in a page that is not in memory. The ledger loads it and asks again."""

    def __init__(self, page: Page) -> None:
        super().__init__(f"intervals from mirror offset {page.first.target} on are not in memory")
        self.page = page


@dataclass(frozen=True, slots=True)
class Others:
    """A stretch of the mirror that another tool has copied: from `start` up to `end`, the last of it from before
    `source_end`. Which record is which is not written down anywhere."""

    start: int
    end: int
    source_end: int


class Intervals:
    """All that is known about one mirror partition, in the order of mirror offsets.

    The last ones are a list, those before them are pages. What is put later wins where it overlaps with what is there,
    and only there: two copiers that write at the same time plan the same for the same stretch, but not the same
    stretches.
    """

    def __init__(
        self,
        known: Iterable[Interval] = (),
        pages: Iterable[Page] = (),
        loaded: Mapping[int, bytes] | None = None,
        page_size: int | None = None,
    ) -> None:
        """`loaded` has the bytes of pages by their location."""
        self._tail = list(known)
        self._pages = list(pages)
        self._loaded: Mapping[int, bytes] = {} if loaded is None else loaded
        self.page_size = pages_module.PAGE if page_size is None else page_size
        self._starts: list[int] | None = None  # the number of the first interval of each page, and of the tail
        self._forward: list[int] | None = None
        self.filler = ""  # whose transactions fill the last of the gaps, if any
        self.fills_elsewhere = 0  # see `filled_before`, for pages that are not here

    # --- the row of intervals, by number --------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._first_numbers()[-1] + len(self._tail)

    def __iter__(self) -> Iterator[Interval]:
        for page in self._pages:
            columns = self._columns(page)
            yield from (columns.interval(number) for number in range(len(columns)))
        yield from self._tail

    @property
    def pages(self) -> Sequence[Page]:
        return self._pages

    @property
    def tail(self) -> Sequence[Interval]:
        return self._tail

    def rows(self, since: int, until: int, most: int) -> list[Interval]:
        """Those that reach or lie between two mirror offsets, if they are too many the last of them."""
        end = self._find(until - 1, _target)
        start = max(0, self._find(since, _target) - 1, end - most)
        found: list[Interval] = []
        parts = [(page, at) for page, at in zip(self._pages, self._first_numbers(), strict=False) if at < end]
        columns = [(self._columns(page), at) for page, at in parts if at + page.size > start]
        for some, at in columns:
            found += [some.interval(number) for number in range(max(0, start - at), min(len(some), end - at))]
        tail = self._first_numbers()[-1]
        return found + self._tail[max(0, start - tail) : max(0, end - tail)]

    def first(self) -> Interval | None:
        return self._at(0) if len(self) else None

    def last(self) -> Interval | None:
        return self._at(len(self) - 1) if len(self) else None

    def _at(self, number: int) -> Interval:
        starts = self._first_numbers()
        if number >= starts[-1]:
            return self._tail[number - starts[-1]]
        at = bisect_right(starts, number) - 1
        page, inside = self._pages[at], number - starts[at]
        if inside == 0:
            return page.first
        return page.last if inside == page.size - 1 else self._columns(page).interval(inside)

    def _find(self, value: int, key: _Key, low: int = 0, high: int | None = None) -> int:
        """How many intervals of a stretch in which a key grows do not lie behind a value: the number behind them."""
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
            if key(self._at(middle)) <= value:
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
        data = page.data or self._loaded.get(page.location)
        if data is None:
            raise NotLoaded(page)
        return unpack(data, page.first)

    def _pages_changed(self) -> None:
        self._starts = self._forward = None

    # --- by mirror offset -----------------------------------------------------------------------------------------

    def covering(self, target: int) -> Interval | None:
        """The interval that a mirror offset lies in."""
        number = self._find(target, _target)
        return self._at(number - 1) if number else None

    def beginning(self, target: int) -> Interval | None:
        """What was decided to come next at this mirror offset, or was planned there since."""
        last = self.covering(target)
        if last is None or last.target != target or last.decision < 0:
            return None
        return replace(last, source=last.decision, count=0)

    def after(self, target: int) -> Interval | None:
        """The first that begins behind a mirror offset."""
        number = self._find(target, _target)
        return self._at(number) if number < len(self) else None

    @property
    def filled_before(self) -> int:
        """The mirror offset before which everything is to be cut off, as far as that was decided."""
        firsts = [page.first for page in self._pages]
        return max((some.target for some in (*firsts, *self._tail) if some.fill), default=self.fills_elsewhere)

    def own_end(self, end: int) -> int:
        """Of a mirror that ends at `end`, the offset behind the last record of ours: what comes then fills a gap. Not
        before the beginning of what is known."""
        number = self._find(end - 1, _target)  # the first that begins at the end, or behind it
        while number > 0:
            interval = self._at(number - 1)
            ours = min(end, _own_end(interval, self._at(number) if number < len(self) else None))
            if ours > interval.target or number == 1:
                return ours
            number, end = number - 1, interval.target
        return end

    def shift_at(self, end: int) -> int:
        """How many offsets before `end` hold no records of ours, for a mirror that ends there."""
        interval = self.covering(end - 1)
        return 0 if interval is None else interval.shift + max(0, end - _own_end(interval, self.after(end - 1)))

    def same_shift_since(self, end: int) -> Interval | None:
        """Of a mirror that ends at `end`, the first interval since which the shift has not changed."""
        number = self._find(end - 1, _target)
        if number == 0:
            return None
        found = self._at(number - 1)
        starts = self._first_numbers()
        while number > 0:
            at = bisect_left(starts, number) - 1  # the page of the one before, or the tail
            if at < len(self._pages) and number >= starts[at + 1] and self._pages[at].first.shift == found.shift:
                found, number = self._pages[at].first, starts[at]  # within a page it does not go back and forth
                continue
            interval = self._at(number - 1)
            if interval.shift != found.shift:
                break
            found, number = interval, number - 1
        return found

    def ours(self, first: int, count: int) -> list[Interval]:
        """Where so many of our own records, counted from the mirror's first one, were meant to be."""
        found: list[Interval] = []
        while count > 0:
            number = self._find(first, _own_number)
            if number == 0:
                break
            interval = self._at(number - 1)
            until = _own_number(self._at(number)) if number < len(self) else first + count
            taken = min(count, until - first)
            found.append(interval.part(first + interval.shift, first + interval.shift + taken))
            first, count = first + taken, count - taken
        return found

    # --- by source offset -----------------------------------------------------------------------------------------

    def target_of(self, source: int, source_id: str, end: int) -> int | None:
        """Where a reader that has come to this source offset goes on in the mirror, which ends at `end`: at the first
        record from there on, and at the end if that is not copied yet. None if it is not known (any more)."""
        interval, following = self._around(source, source_id, end)
        if interval is None:
            if following is None:
                return None
            # What stands before the first interval of all was copied by others.
            return None if following.target > 0 and not following.fill else self._next(following, end).target
        if interval.source_id != source_id:  # before the topic was created again
            return None if following is None else self._next(following, end).target
        if following is None:
            return min(interval.target + source - interval.source, end)
        found = _within(interval, following, source)
        return self._next(following, end).target if found is None else found

    def of_others(self, source: int, source_id: str, end: int) -> Others | None:
        """What another tool has copied, where this source offset falls into that."""
        interval, following = self._around(source, source_id, end)
        if interval is None:
            if following is None:
                return None
            others = following.target > 0 and not following.fill
            return Others(0, following.target, following.source) if others else None
        if following is None or interval.source_id != source_id or following.shift <= interval.shift:
            return None
        if following.source - interval.source == following.target - interval.target:
            return None  # a gap, on both sides
        ours = following.target - (following.shift - interval.shift)
        return Others(ours, following.target, following.source) if interval.source_of(ours) <= source else None

    def _around(self, source: int, source_id: str, end: int) -> tuple[Interval | None, Interval | None]:
        """The last interval that does not begin behind this source offset, and the one behind it, of those that a
        mirror that ends at `end` has. The first of the two may be the last one of an earlier source topic."""
        until = self._find(end, _target)
        if until > 1:
            last = self._at(until - 1)
            if last.target == end and last.decision < 0:
                until -= 1  # what is only planned to come may never come, or look otherwise then
        following = until
        for start in reversed(self._stretches()):
            if start >= until:
                continue
            begins = self._at(start)
            if begins.source_id != source_id:
                return self._at(following - 1), self._at(following) if following < until else None
            if begins.source <= source:
                number = self._find(source, _source, start, following)
                return self._at(number - 1), self._at(number) if number < until else None
            following = start
        return None, self._at(following) if following < until else None

    def _next(self, following: Interval, end: int) -> Interval:
        """Where the next record is, if it is not before `following`: there, unless the source was cut back since to
        that place or an earlier one."""
        for start in self._stretches():
            begins = self._at(start)
            there = begins.target < end or begins.decision >= 0
            if following.target < begins.target <= end and there and _begins_again(begins, following):
                following = begins
        return following

    def stretches(self) -> list[Interval]:
        """Those from which on source offsets grow: they go back where the source was cut back or created again."""
        return [self._at(start) for start in self._stretches()]

    def _stretches(self) -> list[int]:
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

    # --- changes --------------------------------------------------------------------------------------------------

    def put(self, new: Sequence[Interval]) -> None:
        """Take in intervals that follow one another without a gap in the mirror."""
        start, end = new[0].target, new[-1].end
        self._open(start, drop=start == end)
        beginning = self.covering(start)
        if beginning is not None and beginning.target == start < end:
            fill = beginning.fill or new[0].fill
            new = [replace(new[0], fill=fill, decided=beginning.decision), *new[1:]]
        tail = self._tail
        first = bisect_left(tail, start, key=_target)
        # A beginning without records is a decision about all that follows; what was planned there counts no more.
        after = bisect_left(tail, end, key=_target) if end > start else len(tail)
        before, behind = tail[max(first - 1, 0) : first], tail[max(after - 1, 0) : after]
        left = [some.part(some.target, start) for some in before if some.end > start]
        right = [some.part(end, some.end) for some in behind if some.end > end > start]
        following = tail[after] if after < len(tail) and not right else None
        if _own_end(new[-1], following) < end:  # planned on the assumption of other gaps
            after = len(tail)
        tail[first - len(left) : after] = [*left, *new, *right]
        self._forward = None
        if len(tail) >= 2 * self.page_size:
            self._fold(len(tail) - self.page_size)

    def _open(self, start: int, drop: bool) -> None:
        """Unpack the pages that reach behind a mirror offset, so that what begins there can take their place; with
        `drop`, nothing that begins there or behind it will stay."""
        pages, opened = list(self._pages), self._tail
        while pages and (pages[-1].last.target >= start or pages[-1].last.end > start):
            page = pages.pop()
            if drop and page.first.target >= start:
                opened = []
                continue
            columns = self._columns(page)
            opened = [*(columns.interval(number) for number in range(len(columns))), *opened]
        if len(pages) < len(self._pages):
            self._pages, self._tail = pages, opened
            self._pages_changed()

    def _fold(self, count: int) -> None:
        """Pack so many of the first intervals of the tail."""
        some, self._tail = self._tail[:count], self._tail[count:]
        self._pages += [page_of(part) for part in cut(some, self.page_size)]
        self._pages_changed()

    def packed(self) -> list[Page]:
        """All of them as pages, as few as possible; what is here is not changed."""
        done = len(self._pages)
        while done and self._pages[done - 1].location == IN_INDEX and self._pages[done - 1].size < self.page_size:
            done -= 1
        rest: list[Interval] = []
        for page in self._pages[done:]:
            columns = page.columns()
            rest += [columns.interval(number) for number in range(len(columns))]
        parts = cut([*rest, *self._tail], self.page_size) if rest or self._tail else []
        return [*self._pages[:done], *map(page_of, parts)]

    def excerpt(self, target: int, most: int) -> list[Page]:
        """What a copier needs that goes on at this mirror offset: so many intervals around it, and where the others
        begin and end. Raises NotLoaded where they are not in memory."""
        start = max(0, self._find(max(target - 1, 0), _target) - 2)
        until = min(len(self), start + most)
        pages = [Page(self._at(0), self._at(start - 1), start, NOT_HERE)] if start else []
        around = [self._at(number) for number in range(start, until)]
        pages += map(page_of, cut(around, self.page_size) if around else [])
        if until < len(self):
            pages.append(Page(self._at(until), self._at(len(self) - 1), len(self) - until, NOT_HERE))
        return pages

    def use_pages(self, pages: Sequence[Page], tail: Sequence[Interval] = ()) -> None:
        """These stand for all that is known from now on."""
        self._pages, self._tail = list(pages), list(tail)
        self._pages_changed()

    def become(self, other: "Intervals") -> None:
        """Know what another knows."""
        self.use_pages(other.pages, other.tail)
        self.filler, self.fills_elsewhere = other.filler, other.fills_elsewhere

    def agree(self, planned: Iterable[Interval]) -> bool:
        """Whether all of this is known already, as far as it is in memory."""
        try:
            return all(self._agrees(plan) for plan in planned)
        except NotLoaded:
            return False

    def _agrees(self, plan: Interval) -> bool:
        number = self._find(plan.target, _target)
        if number == 0 or not _same(self._at(number - 1), plan):
            return False
        while number < len(self) and (interval := self._at(number)).target < plan.end:
            if not _same(interval, plan):
                return False
            number += 1
        return _own_end(self._at(number - 1), self._at(number) if number < len(self) else None) >= plan.end


def _goes_back(before: Interval, interval: Interval) -> bool:
    return interval.source <= before.source or interval.source_id != before.source_id


def _within(interval: Interval, following: Interval, source: int) -> int | None:
    """Within one interval; None between it and the next. Where records of others stand between them, they may be copies
    of the source's all the same (another tool's): then it is rather read again than passed over."""
    if interval.source - interval.target == following.source - following.target:
        return interval.target + source - interval.source
    ours = following.target - max(0, following.shift - interval.shift)
    count = min(ours - interval.target, following.source - interval.source)
    if source - interval.source < count:
        return interval.target + source - interval.source
    return ours if following.shift > interval.shift and interval.source + count < following.source else None


def _begins_again(interval: Interval, earlier: Interval) -> bool:
    return interval.source_id == earlier.source_id and interval.source <= earlier.source


def _own_end(interval: Interval, following: Interval | None) -> int:
    """The mirror offset at which the records of ours end that an interval begins with."""
    grown = 0 if following is None else following.shift - interval.shift
    return NO_END if following is None else following.target - max(0, grown)


def _target(interval: Interval) -> int:
    return interval.target


def _own_number(interval: Interval) -> int:
    """How many records of ours stand in the mirror before it."""
    return interval.target - interval.shift


def _source(interval: Interval) -> int:
    return interval.source


def _same(known: Interval, planned: Interval) -> bool:
    alike = (known.source - known.target, known.source_id, known.shift) == (
        planned.source - planned.target,
        planned.source_id,
        planned.shift,
    )
    return alike and (known.fill or not planned.fill)
