"""Intervals: stretches of a mirror partition where mirror offset minus source offset is constant.

Where a source has gaps (compaction, transaction markers, aborted or lost records), its mirror is dense, or has gaps of
the same size if it keeps the source's offsets. Either way it is a row of intervals, one from each gap to the next. They
are written to an internal topic on the target before the first record that they cover is appended, and the mirror's end
and the intervals together always tell which source offset comes next. Pure values and rules; who reads and writes the
topic is in `heliograph.copy.ledger`.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

Partition = tuple[str, int]  # source topic, partition
_NO_END = 1 << 63


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The record at mirror offset t is the source's record at source + t - target.

    That is said for `count` records; it holds beyond them as long as no other interval begins. `source_id` tells
    incarnations of the source topic apart (empty where a broker has no topic ids). `shift` is how many offsets of the
    mirror before it hold no records of ours, but those of others, or markers that fill a gap: the sequence numbers of
    ours do not count them. `fill`: what the mirror holds before it was written only to get there, or is gone from the
    source as well, and is cut off.
    """

    target: int
    source: int
    count: int = 0
    source_id: str = ""
    shift: int = 0
    fill: bool = False

    @property
    def end(self) -> int:
        return self.target + self.count

    @property
    def kept(self) -> bool:
        """Whether the mirror's offsets are the source's here."""
        return self.source == self.target

    def source_of(self, target: int) -> int:
        return self.source + target - self.target

    def part(self, start: int, end: int) -> "Interval":
        fill = self.fill and start == self.target
        return Interval(start, self.source_of(start), end - start, self.source_id, self.shift, fill)


@dataclass(frozen=True, slots=True)
class Others:
    """A stretch of the mirror that another tool has copied: from `start` up to `end`, the last of it from before
    `source_end`. Which record is which is not written down anywhere."""

    start: int
    end: int
    source_end: int


class Intervals:
    """All that is known about one mirror partition, in the order of mirror offsets.

    What is put later wins where it overlaps with what is there, and only there: two copiers that write at the same time
    plan the same for the same stretch, but not the same stretches.
    """

    def __init__(self, known: Iterable[Interval] = (), keep: int | None = None) -> None:
        self._known = list(known)
        self._keep = keep
        self._landmarks: list[Interval] = []  # those with which stretches begin, of what is not kept
        self._forward: list[int] | None = None
        self.forgotten_before = 0
        self.filler = ""  # whose transactions fill the last of the gaps, if any

    def __iter__(self) -> Iterator[Interval]:
        return iter(self._known)

    def covering(self, target: int) -> Interval | None:
        """The interval that a mirror offset lies in."""
        at = bisect_right(self._known, target, key=_target)
        return self._known[at - 1] if at else None

    def beginning(self, target: int) -> Interval | None:
        """What was decided to come next at this mirror offset, if nothing has been planned there since."""
        at = bisect_right(self._known, target, key=_target)
        last = self._known[at - 1] if at else None
        return last if last is not None and last.target == target and last.count == 0 else None

    def after(self, target: int) -> Interval | None:
        """The first that begins behind a mirror offset."""
        at = bisect_right(self._known, target, key=_target)
        return self._known[at] if at < len(self._known) else None

    @property
    def filled_before(self) -> int:
        """The mirror offset before which everything is to be cut off, as far as that was decided."""
        return max((one.target for one in self._known if one.fill), default=0)

    def own_end(self, end: int) -> int:
        """Of a mirror that ends at `end`, the offset behind the last record of ours: what comes then fills a gap. Not
        before the beginning of what is known."""
        at = bisect_left(self._known, end, key=_target)  # the first that begins at the end, or behind it
        while at > 0:
            one = self._known[at - 1]
            ours = min(end, _own_end(one, self._known[at] if at < len(self._known) else None))
            if ours > one.target or at == 1:
                return ours
            at, end = at - 1, one.target
        return end

    def shift_at(self, end: int) -> int:
        """How many offsets before `end` hold no records of ours, for a mirror that ends there."""
        one = self.covering(end - 1)
        return 0 if one is None else one.shift + max(0, end - _own_end(one, self.after(end - 1)))

    def ours(self, first: int, count: int) -> list[Interval]:
        """Where so many of our own records, counted from the mirror's first one, were meant to be."""
        found: list[Interval] = []
        while count > 0:
            at = bisect_right(self._known, first, key=_own_number)
            if at == 0:
                break
            one = self._known[at - 1]
            until = _own_number(self._known[at]) if at < len(self._known) else first + count
            taken = min(count, until - first)
            found.append(one.part(first + one.shift, first + one.shift + taken))
            first, count = first + taken, count - taken
        return found

    def target_of(self, source: int, source_id: str, end: int) -> int | None:
        """Where a reader that has come to this source offset goes on in the mirror, which ends at `end`: at the first
        record from there on, and at the end if that is not copied yet. None if it is not known (any more)."""
        one, following = self._around(source, source_id, end)
        if one is None:
            if following is None or self.has_forgotten(source, source_id, end):
                return None
            first, of_all = self._first(following)
            # What stands before the first interval of all was copied by others.
            return None if of_all and first.target > 0 and not first.fill else self._next(first, end).target
        if one.source_id != source_id:  # before the topic was created anew
            return None if following is None else self._next(following, end).target
        if following is None:
            return min(one.target + source - one.source, end)
        found = _within(one, following, source)
        return self._next(following, end).target if found is None else found

    def has_forgotten(self, source: int, source_id: str, end: int) -> bool:
        """Whether the answer for this source offset lies among what is not kept in memory."""
        if not self._landmarks or self._around(source, source_id, end)[0] is not None:
            return False
        since = takewhile(lambda one: one.source_id == source_id, reversed(self._landmarks))
        return any(one.source <= source for one in since)

    def needed_from(self, source: int, source_id: str, end: int) -> int | None:
        """The mirror offset from which on intervals must be known to answer for this source offset; None if the last
        ones will do."""
        one = self._around(source, source_id, end)[0]
        return None if one is None else one.target

    def of_others(self, source: int, source_id: str, end: int) -> Others | None:
        """What another tool has copied, where this source offset falls into that."""
        one, following = self._around(source, source_id, end)
        if one is None:
            if following is None or self.has_forgotten(source, source_id, end):
                return None
            first, of_all = self._first(following)
            others = of_all and first.target > 0 and not first.fill
            return Others(0, first.target, first.source) if others else None
        if following is None or one.source_id != source_id or following.shift <= one.shift:
            return None
        if following.source - one.source == following.target - one.target:
            return None  # a gap, on both sides
        ours = following.target - (following.shift - one.shift)
        return Others(ours, following.target, following.source) if one.source_of(ours) <= source else None

    def _around(self, source: int, source_id: str, end: int) -> tuple[Interval | None, Interval | None]:
        """The last interval that does not begin behind this source offset, and the one behind it, of those that a
        mirror that ends at `end` has. The first of the two may be the last one of an earlier source topic."""
        known, until = self._known, bisect_right(self._known, end, key=_target)
        if until > 1 and known[until - 1].target == end and known[until - 1].count > 0:
            until -= 1  # what is only planned to come may never come, or look otherwise then
        following = until
        for start in reversed(self._stretches()):
            if start >= until:
                continue
            if known[start].source_id != source_id:
                return known[following - 1], known[following] if following < until else None
            if known[start].source <= source:
                at = bisect_right(known, source, start, following, key=_source)
                return known[at - 1], known[at] if at < until else None
            following = start
        return None, known[following] if following < until else None

    def _first(self, one: Interval) -> tuple[Interval, bool]:
        """The first interval of the same source topic, and whether there is none before it."""
        for landmark in reversed(self._landmarks):
            if landmark.source_id != one.source_id:
                return one, False
            one = landmark
        return one, True

    def _next(self, following: Interval, end: int) -> Interval:
        """Where the next record is, if it is not before `following`: there, unless the source was cut back since to
        that place or an earlier one."""
        for one in (*self._landmarks, *(self._known[start] for start in self._stretches())):
            there = one.target < end or one.count == 0
            if following.target < one.target <= end and there and _begins_again(one, following):
                following = one
        return following

    def _stretches(self) -> list[int]:
        """Where source offsets begin to grow anew: they go back where the source was cut back or made again."""
        if self._forward is None:
            self._forward = [
                at
                for at, one in enumerate(self._known)
                if at == 0 or one.source <= self._known[at - 1].source or one.source_id != self._known[at - 1].source_id
            ]
        return self._forward

    def put(self, new: Sequence[Interval]) -> None:
        """Take in intervals that follow one another without a gap in the mirror."""
        start, end = new[0].target, new[-1].end
        beginning = self.covering(start)
        if beginning is not None and beginning.target == start and beginning.fill and not new[0].fill and end > start:
            new = [replace(new[0], fill=True), *new[1:]]
        if start < end <= self.forgotten_before:
            return
        self._forward = None
        first = bisect_left(self._known, start, key=_target)
        # A beginning without records is a decision about all that follows; what was planned there counts no more.
        after = bisect_left(self._known, end, key=_target) if end > start else len(self._known)
        before, behind = self._known[max(first - 1, 0) : first], self._known[max(after - 1, 0) : after]
        left = [one.part(one.target, start) for one in before if one.end > start]
        right = [one.part(end, one.end) for one in behind if one.end > end > start]
        following = self._known[after] if after < len(self._known) and not right else None
        if _own_end(new[-1], following) < end:  # planned on the assumption of other gaps
            after = len(self._known)
        self._known[first - len(left) : after] = [*left, *new, *right]
        if self._landmarks and start <= self.forgotten_before:
            self._landmarks = [*(one for one in self._landmarks if one.target < start), new[0]]
            self.forgotten_before = start
        if self._keep is not None and len(self._known) > 2 * self._keep:
            self._forget(len(self._known) - self._keep)

    def forget_before(self, target: int | None, keep: int) -> None:
        """Keep what is needed from a mirror offset on, and not less than the last ones."""
        needed = len(self._known) if target is None else bisect_right(self._known, target, key=_target) - 1
        self._forget(min(needed, len(self._known) - keep))

    def _forget(self, count: int) -> None:
        if count <= 0:
            return
        starts = [start for start in self._stretches() if start <= count and (start > 0 or not self._landmarks)]
        self._landmarks += [self._known[start] for start in starts]
        del self._known[:count]
        self._forward = None
        self.forgotten_before = self._known[0].target

    def agree(self, planned: Iterable[Interval]) -> bool:
        """Whether all of this is known already."""
        for one in planned:
            at = bisect_right(self._known, one.target, key=_target)
            if at == 0 or not _same(self._known[at - 1], one):
                return False
            while at < len(self._known) and self._known[at].target < one.end:
                if not _same(self._known[at], one):
                    return False
                at += 1
            if _own_end(self._known[at - 1], self._known[at] if at < len(self._known) else None) < one.end:
                return False
        return True


def _within(one: Interval, following: Interval, source: int) -> int | None:
    """Within one interval; None between it and the next. Where records of others stand between them, they may be copies
    of the source's all the same (another tool's): then it is rather read again than passed over."""
    if one.source - one.target == following.source - following.target:
        return one.target + source - one.source
    ours = following.target - max(0, following.shift - one.shift)
    count = min(ours - one.target, following.source - one.source)
    if source - one.source < count:
        return one.target + source - one.source
    return ours if following.shift > one.shift and one.source + count < following.source else None


def _begins_again(one: Interval, earlier: Interval) -> bool:
    return one.source_id == earlier.source_id and one.source <= earlier.source


def _own_end(one: Interval, following: Interval | None) -> int:
    """The mirror offset at which the records of ours end that an interval begins with."""
    grown = 0 if following is None else following.shift - one.shift
    return _NO_END if following is None else following.target - max(0, grown)


def _target(one: Interval) -> int:
    return one.target


def _own_number(one: Interval) -> int:
    """How many records of ours stand in the mirror before it."""
    return one.target - one.shift


def _source(one: Interval) -> int:
    return one.source


def _same(known: Interval, planned: Interval) -> bool:
    alike = (known.source - known.target, known.source_id, known.shift) == (
        planned.source - planned.target,
        planned.source_id,
        planned.shift,
    )
    return alike and (known.fill or not planned.fill)


@dataclass(frozen=True, slots=True)
class Entry:
    """Some intervals of one mirror partition, one behind the other, with the same source id: of a dense mirror with the
    same shift, of one that keeps the source's offsets with gaps between them.

    `mirror_id` tells incarnations of the mirror apart: what was known about a deleted one says nothing about the next.
    `filler` names the transactions by which the gaps are filled.
    """

    partition: Partition
    mirror_id: str
    intervals: tuple[Interval, ...]
    filler: str = ""


def to_record(entry: Entry) -> tuple[bytes, bytes]:
    """Key and value for the compacted internal topic: the latest word on the same stretch replaces all earlier ones."""
    first, last = entry.intervals[0], entry.intervals[-1]
    runs = [first.count]
    for one, following in zip(entry.intervals, entry.intervals[1:], strict=False):
        runs += [following.source - one.source - one.count, following.count]
    value: dict[str, object] = {
        "source": first.source,
        "runs": runs,
        "source_id": first.source_id,
        "shift": first.shift,
    }
    if entry.filler:
        value["filler"] = entry.filler
    if first.fill:
        value["fill"] = True
    return _json([*entry.partition, first.target, last.end, entry.mirror_id]), _json(value)


def from_record(key: bytes, value: bytes) -> Entry:
    topic, partition, target, _end, *mirror_id = json.loads(key)
    fields = json.loads(value)
    source, runs, shift, filler = fields["source"], fields["runs"], fields["shift"], fields.get("filler", "")
    intervals = []
    for at in range(0, len(runs), 2):
        fill = at == 0 and fields.get("fill", False)
        intervals.append(Interval(target, source, runs[at], fields["source_id"], shift, fill))
        gap = runs[at + 1] if at + 1 < len(runs) else 0
        target += runs[at] + (gap if filler else 0)
        source += runs[at] + gap
        shift += gap if filler else 0
    # Until it became part of the key, the id of the mirror stood in the value.
    mirror = mirror_id[0] if mirror_id else fields["mirror_id"]
    return Entry((topic, partition), mirror, tuple(intervals), filler)


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
