"""Intervals: where the records of one mirror partition come from.

Where a source has gaps (compaction, transaction markers, aborted or lost records), its mirror is dense, or has gaps of
the same size if it preserves the source's offsets. Either way it is a row of intervals, one from each gap to the next.
They are written to an internal topic on the target before the first record that they cover is appended, so the mirror's
end and the intervals together always give the next source offset. Pure; `copy/ledger.py` reads and writes the topic.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace

from heliograph.model import translation
from heliograph.model.columns import Columns, with_first
from heliograph.model.interval import Interval
from heliograph.model.interval_row import IntervalRow, NotLoaded
from heliograph.model.pages import NOT_HERE, Page, cut, page_in_memory
from heliograph.model.translation import ForeignRange

__all__ = ["NO_END", "ForeignRange", "Interval", "Intervals", "NotLoaded"]

NO_END = 1 << 63


class Intervals(IntervalRow):
    """All that is known about one mirror partition.

    Where new intervals overlap with known ones the new ones win, and only there: two copiers that write at the same
    time plan the same for the same range, but not the same ranges.
    """

    def rows(self, since: int, until: int, most: int) -> list[Interval]:
        """The last `most` of the intervals that overlap with a range of mirror offsets."""
        end = self.find(until - 1, _target)
        start = max(0, self.find(since, _target) - 1, end - most)
        packed: list[Interval] = []
        parts = [(page, at) for page, at in zip(self._pages, self._first_numbers(), strict=False) if at < end]
        columns = [(self._columns(page), at) for page, at in parts if at + page.size > start]
        for page_columns, at in columns:
            packed += page_columns[max(0, start - at) : end - at]
        tail = self._first_numbers()[-1]
        return packed + self._tail[max(0, start - tail) : max(0, end - tail)]

    # --- by mirror offset -----------------------------------------------------------------------------------------

    def covering(self, target: int) -> Interval | None:
        """The interval that a mirror offset lies in."""
        number = self.find(target, _target)
        return self.at(number - 1) if number else None

    def beginning(self, target: int) -> Interval | None:
        """The decision at this mirror offset, as an interval without records, if there is one."""
        last = self.covering(target)
        if last is None or last.target != target or last.decision < 0:
            return None
        return replace(last, source=last.decision, count=0)

    def after(self, target: int) -> Interval | None:
        """The first interval that begins after a mirror offset."""
        number = self.find(target, _target)
        return self.at(number) if number < len(self) else None

    @property
    def filled_before(self) -> int:
        """The mirror offset before which everything is to be deleted, by the decisions so far."""
        firsts = [page.first for page in self._pages]
        return max(
            (interval.target for interval in (*firsts, *self._tail) if interval.fill), default=self.fills_elsewhere
        )

    def own_end(self, end: int) -> int:
        """Of a mirror that ends at `end`, the offset after our last record: what follows fills a gap. Not before the
        first known interval."""
        number = self.find(end - 1, _target)  # of the first interval that begins at the end or after it
        while number > 0:
            interval = self.at(number - 1)
            ours = min(end, _own_end(interval, self.at(number) if number < len(self) else None))
            if ours > interval.target or number == 1:
                return ours
            number, end = number - 1, interval.target
        return end

    def foreign_offsets_at(self, end: int) -> int:
        """Of a mirror that ends at `end`, how many offsets hold no records of ours (`foreign_offsets_before`)."""
        interval = self.covering(end - 1)
        return (
            0
            if interval is None
            else interval.foreign_offsets_before + max(0, end - _own_end(interval, self.after(end - 1)))
        )

    def foreign_offsets_constant_since(self, end: int) -> Interval | None:
        """Of a mirror that ends at `end`, the first interval since which `foreign_offsets_before` is constant."""
        number = self.find(end - 1, _target)
        if number == 0:
            return None
        first = self.at(number - 1)
        starts = self._first_numbers()
        while number > 0:
            at = bisect_left(starts, number) - 1  # the page of the interval before, or the tail
            if (
                at < len(self._pages)
                and number >= starts[at + 1]
                and self._pages[at].first.foreign_offsets_before == first.foreign_offsets_before
            ):
                first, number = self._pages[at].first, starts[at]  # within a page it only grows
                continue
            interval = self.at(number - 1)
            if interval.foreign_offsets_before != first.foreign_offsets_before:
                break
            first, number = interval, number - 1
        return first

    def ours(self, first: int, count: int) -> list[Interval]:
        """Where `count` of our own records are planned to be; `first` counts our records only."""
        planned: list[Interval] = []
        while count > 0:
            number = self.find(first, _own_number)
            if number == 0:
                break
            interval = self.at(number - 1)
            until = _own_number(self.at(number)) if number < len(self) else first + count
            taken = min(count, until - first)
            target = first + interval.foreign_offsets_before
            planned.append(interval.part(target, target + taken))
            first, count = first + taken, count - taken
        return planned

    # --- by source offset -----------------------------------------------------------------------------------------

    def target_of(self, source: int, source_id: str, end: int) -> int | None:
        """The mirror offset that belongs to a source offset; see `translation.target_of`."""
        return translation.target_of(self, source, source_id, end)

    def foreign_range(self, source: int, source_id: str, end: int) -> ForeignRange | None:
        """What another tool has copied around a source offset; see `translation.foreign_range`."""
        return translation.foreign_range(self, source, source_id, end)

    def stretches(self) -> list[Interval]:
        """The intervals from which on source offsets grow; they go back where the source was truncated or recreated."""
        return [self.at(start) for start in self.stretch_starts()]

    # --- changes --------------------------------------------------------------------------------------------------

    def put(self, new: Sequence[Interval]) -> None:
        """Adds intervals that follow one another without a gap in the mirror."""
        start, end = new[0].target, new[-1].end
        self._open(start, drop=start == end)
        beginning = self.covering(start)
        if beginning is not None and beginning.target == start < end:
            new = with_first(new, beginning.fill or new[0].fill, beginning.decision)
        tail = self._tail
        first = bisect_left(tail, start, key=_target)
        # An interval without records is a decision about everything that follows: older plans after it are dropped.
        after = bisect_left(tail, end, key=_target) if end > start else len(tail)
        before, behind = tail[max(first - 1, 0) : first], tail[max(after - 1, 0) : after]
        left = [interval.part(interval.target, start) for interval in before if interval.end > start]
        right = [interval.part(end, interval.end) for interval in behind if interval.end > end > start]
        following = tail[after] if after < len(tail) and not right else None
        if _own_end(new[-1], following) < end:  # planned on the assumption of other gaps
            after = len(tail)
        if isinstance(new, Columns) and after == len(tail) and not right:
            tail[first - len(left) :] = left
            self._append(new)
            return
        tail[first - len(left) : after] = [*left, *new, *right]
        self._forward = None
        if len(tail) >= 2 * self.page_size:
            self._fold(len(tail) - self.page_size)

    def excerpt(self, target: int, most: int) -> list[Page]:
        """What a copier needs to resume at this mirror offset: `most` intervals around it, and the bounds of the rest.
        Raises NotLoaded where they are not in memory."""
        start = max(0, self.find(max(target - 1, 0), _target) - 2)
        until = min(len(self), start + most)
        pages = [Page(self.at(0), self.at(start - 1), start, NOT_HERE)] if start else []
        around = [self.at(number) for number in range(start, until)]
        pages += map(page_in_memory, cut(around, self.page_size) if around else [])
        if until < len(self):
            pages.append(Page(self.at(until), self.at(len(self) - 1), len(self) - until, NOT_HERE))
        return pages

    def agree(self, planned: Iterable[Interval]) -> bool:
        """Whether all planned intervals are known already; False if that needs a page that is not in memory."""
        try:
            return all(self._agrees(plan) for plan in planned)
        except NotLoaded:
            return False

    def _agrees(self, plan: Interval) -> bool:
        number = self.find(plan.target, _target)
        if number == 0 or not _same(self.at(number - 1), plan):
            return False
        while number < len(self) and (interval := self.at(number)).target < plan.end:
            if not _same(interval, plan):
                return False
            number += 1
        return _own_end(self.at(number - 1), self.at(number) if number < len(self) else None) >= plan.end


def _own_end(interval: Interval, following: Interval | None) -> int:
    """The mirror offset after the last record of ours in an interval."""
    grown = 0 if following is None else following.foreign_offsets_before - interval.foreign_offsets_before
    return NO_END if following is None else following.target - max(0, grown)


def _target(interval: Interval) -> int:
    return interval.target


def _own_number(interval: Interval) -> int:
    """How many records of ours are in the mirror before an interval."""
    return interval.target - interval.foreign_offsets_before


def _same(known: Interval, planned: Interval) -> bool:
    alike = (known.source - known.target, known.source_id, known.foreign_offsets_before) == (
        planned.source - planned.target,
        planned.source_id,
        planned.foreign_offsets_before,
    )
    return alike and (known.fill or not planned.fill)
