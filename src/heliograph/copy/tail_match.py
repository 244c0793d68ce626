"""Matches the records of a mirror's end with the source, in order. Pure.

Copying continues with the first record of the source that the mirror does not hold. What the mirror holds besides those
before it is counted: records that the source has as well will be in the mirror more than once; the rest only the
mirror has.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import blake2b

from heliograph.model.intervals import Interval
from heliograph.wire.recode import DecodedRecord

RECORD_COST = 400  # bytes of memory, about


class MirrorTail:
    """The records at the mirror's end, and which of the source's they are."""

    def __init__(self, records: Sequence[tuple[int, bytes]], source: int, skips: bool = False) -> None:
        """From (mirror offset, content) in order, which are searched in the source from offset `source` on. With
        `skips`, records that the mirror does not hold are skipped: that shows what is where, not where to continue."""
        self._skips = skips
        self.source = source  # where copying continues
        self.searched_to: int | None = None  # the source was not read from here on
        self._is_matching = True
        self.twice = 0
        self._offsets = [offset for offset, _content in records]
        self._indexes: dict[bytes, list[int]] = {}  # by content, the last one first
        for index in reversed(range(len(records))):
            self._indexes.setdefault(records[index][1], []).append(index)
        self._matched: list[tuple[int, int]] = []  # index, source offset
        self._matched_contents: set[bytes] = set()
        self._left: Counter[bytes] = Counter()  # what is not matched, once matching has ended

    def __len__(self) -> int:
        return len(self._offsets)

    def match(self, offset: int, content: bytes) -> bool:
        """Match the next record of the source. Returns whether more of them can matter."""
        if self._is_matching:
            index = self._index_of(content)
            if index is not None:
                self._matched.append((index, offset))
                self._matched_contents.add(content)
                self.source = offset + 1
                return True
            if self._skips:
                return self._following < len(self._offsets)
            self.end_matching()
        self.twice += self._left.pop(content, 0)
        return bool(self._left)

    def _index_of(self, content: bytes) -> int | None:
        """Its index after the last match, if the mirror has it there."""
        indexes = self._indexes.get(content, [])
        while indexes:
            index = indexes.pop()
            if index >= self._following:
                return index
            self._left[content] += 1
        return None

    @property
    def _following(self) -> int:
        return self._matched[-1][0] + 1 if self._matched else 0

    def end_matching(self) -> None:
        """The next record of the source is not in the mirror, or there is none."""
        if self._is_matching:
            self._is_matching = False
            self._left.update({content: len(indexes) for content, indexes in self._indexes.items() if indexes})
            self._indexes.clear()
            self.twice += sum(self._left.pop(content, 0) for content in self._matched_contents)

    @property
    def matched(self) -> int:
        return len(self._matched)

    @property
    def only_in_mirror(self) -> int:
        return len(self._offsets) - len(self._matched) - self.twice

    def intervals(self, source_id: str, foreign_offsets_at: Callable[[int], int]) -> list[Interval]:
        """The intervals of the mirror's end. Records that are not matched get the source offsets that come next, as if
        the source had been truncated after them: so a group that has not read them is never translated to an
        offset after them."""
        intervals: list[Interval] = []
        at = 0
        for index, source in (*self._matched, (len(self._offsets), self.source)):
            for other in range(at, index):
                target = self._offsets[other]
                following = source + target - self._offsets[at]
                _add(intervals, Interval(target, following, 1, source_id, foreign_offsets_at(target)))
            if index < len(self._offsets):
                target = self._offsets[index]
                _add(intervals, Interval(target, source, 1, source_id, foreign_offsets_at(target)))
            at = index + 1
        return intervals


def _add(intervals: list[Interval], new: Interval) -> None:
    last = intervals[-1] if intervals else None
    if last is not None and (last.end, last.source + last.count, last.foreign_offsets_before) == (
        new.target,
        new.source,
        new.foreign_offsets_before,
    ):
        intervals[-1] = last.part(last.target, new.end)
    else:
        intervals.append(new)


def content_of(record: DecodedRecord) -> bytes:
    """A digest of a record's key, value, headers and timestamp."""
    pieces = (record.key, record.value, *(value for _name, value in record.headers))
    sizes = [None if piece is None else len(piece) for piece in pieces]
    digest = blake2b(
        repr((record.timestamp, sizes, [name for name, _value in record.headers])).encode(), digest_size=16
    )
    for piece in pieces:
        digest.update(piece or b"")
    return digest.digest()
