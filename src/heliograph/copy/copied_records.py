"""Which source record each record of a mirror is a copy of, by the intervals. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from heliograph.copy.position import PartitionFacts
from heliograph.model.intervals import NO_END, Interval


class CopiedRecords:
    """Our own records in a mirror, numbered from 0 in the order of both logs.

    Without those that retention has deleted from the source, those that the source had lost before (copying went back
    then, and what was copied since counts), and those from an earlier topic of that name.
    """

    def __init__(self, known: Sequence[Interval], following: Interval | None, facts: PartitionFacts) -> None:
        """`known` are the intervals of a mirror, `following` is the one that begins after its end, if there is one."""
        self._parts = _parts(known, following, facts)
        self._numbers = list(accumulate((part.count for part in self._parts), initial=0))

    def __len__(self) -> int:
        return self._numbers[-1]

    def at(self, number: int) -> tuple[int, int]:
        """The mirror offset and the source offset of a record."""
        part = bisect_right(self._numbers, number) - 1
        after = number - self._numbers[part]
        return self._parts[part].target + after, self._parts[part].source + after

    def of_mirror(self, offset: int) -> int | None:
        """The number of the record at a mirror offset, if it is a copy."""
        part = bisect_right(self._parts, offset, key=lambda part: part.target) - 1
        inside = part >= 0 and offset < self._parts[part].end
        return self._numbers[part] + offset - self._parts[part].target if inside else None

    def behind(self, mirror_offset: int) -> tuple[int, int] | None:
        """The mirror offset and the source offset after the last copy before a mirror offset."""
        part = bisect_left(self._parts, mirror_offset, key=lambda part: part.target) - 1
        if part < 0:
            return None
        end = min(self._parts[part].end, mirror_offset)
        return end, self._parts[part].source_of(end)

    def before_source(self, offset: int) -> int:
        """How many of the records come from before a source offset."""
        part = bisect_right(self._parts, offset, key=lambda part: part.source) - 1
        if part < 0:
            return 0
        return self._numbers[part] + min(offset - self._parts[part].source, self._parts[part].count)

    def lacks_source(self, offset: int) -> bool:
        """Whether the record at this source offset was neither copied nor skipped by a decision."""
        if self.before_source(offset) < self.before_source(offset + 1):
            return False
        following = bisect_right(self._parts, offset, key=lambda part: part.source)
        return following == len(self._parts) or self._parts[following].decided <= offset


def _parts(known: Sequence[Interval], following: Interval | None, facts: PartitionFacts) -> list[Interval]:
    """From the last interval back: what is before it in the mirror counts if it is before it in the source, too."""
    source_end = NO_END
    parts: list[Interval] = []
    for interval in reversed(known):
        if interval.source_id != facts.source_id:
            break
        grown = 0 if following is None else max(0, following.foreign_offsets_before - interval.foreign_offsets_before)
        own_end = NO_END if following is None else following.target - grown
        to_source = interval.source - interval.target
        start = max(interval.target, facts.mirror_start, facts.source_start - to_source)
        end = min(own_end, facts.mirror_end, source_end - to_source)
        if start < end:
            parts.append(interval.part(start, end))
        source_end = min(source_end, interval.source)
        following = interval
    return parts[::-1]
