"""Finding the records of a mirror's end in the source, in order. Pure.

Copying goes on with the first record of the source that the mirror does not hold. What the mirror holds beside those
before it is counted: some of it the source has as well, so that the mirror has it more than once when copying has gone
on; the rest only the mirror has.
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
        """From (mirror offset, content) in order; `source` is the source offset from which on they are looked for. With
        `skips`, what the mirror does not hold is passed over: that tells what is where, not where to go on."""
        self._skips = skips
        self.source = source  # where copying goes on
        self.searched_to: int | None = None  # the source was not looked at from here on
        self._is_matching = True
        self.twice = 0
        self._offsets = [offset for offset, _content in records]
        self._places: dict[bytes, list[int]] = {}  # by content, the last one first
        for place in reversed(range(len(records))):
            self._places.setdefault(records[place][1], []).append(place)
        self._matched: list[tuple[int, int]] = []  # place, source offset
        self._found: set[bytes] = set()
        self._left: Counter[bytes] = Counter()  # what is not matched, as soon as nothing more will be

    def __len__(self) -> int:
        return len(self._offsets)

    def match(self, offset: int, content: bytes) -> bool:
        """Look at the next record of the source; whether it is worth looking at more."""
        if self._is_matching:
            place = self._place_of(content)
            if place is not None:
                self._matched.append((place, offset))
                self._found.add(content)
                self.source = offset + 1
                return True
            if self._skips:
                return self._following < len(self._offsets)
            self.end_matching()
        self.twice += self._left.pop(content, 0)
        return bool(self._left)

    def _place_of(self, content: bytes) -> int | None:
        """Where the mirror has it behind the last match."""
        places = self._places.get(content, [])
        while places:
            place = places.pop()
            if place >= self._following:
                return place
            self._left[content] += 1
        return None

    @property
    def _following(self) -> int:
        return self._matched[-1][0] + 1 if self._matched else 0

    def end_matching(self) -> None:
        """The next record of the source is not in the mirror, or there is none."""
        if self._is_matching:
            self._is_matching = False
            self._left.update({content: len(places) for content, places in self._places.items() if places})
            self._places.clear()
            self.twice += sum(self._left.pop(content, 0) for content in self._found)

    @property
    def matched(self) -> int:
        return len(self._matched)

    @property
    def only_here(self) -> int:
        return len(self._offsets) - len(self._matched) - self.twice

    def intervals(self, source_id: str, shift_at: Callable[[int], int]) -> list[Interval]:
        """What the mirror's end is. Records that are not matched are given the source offsets that come next, as if the
        source had been cut back behind them: so nobody who has not read those yet is sent behind them."""
        found: list[Interval] = []
        at = 0
        for place, source in (*self._matched, (len(self._offsets), self.source)):
            for other in range(at, place):
                target = self._offsets[other]
                _add(found, Interval(target, source + target - self._offsets[at], 1, source_id, shift_at(target)))
            if place < len(self._offsets):
                target = self._offsets[place]
                _add(found, Interval(target, source, 1, source_id, shift_at(target)))
            at = place + 1
        return found


def _add(found: list[Interval], new: Interval) -> None:
    last = found[-1] if found else None
    if last is not None and (last.end, last.source + last.count, last.foreign_offsets_before) == (
        new.target,
        new.source,
        new.foreign_offsets_before,
    ):
        found[-1] = last.part(last.target, new.end)
    else:
        found.append(new)


def content_of(record: DecodedRecord) -> bytes:
    """A record's key, value, headers and time in few bytes."""
    pieces = (record.key, record.value, *(value for _name, value in record.headers))
    sizes = [None if piece is None else len(piece) for piece in pieces]
    digest = blake2b(
        repr((record.timestamp, sizes, [name for name, _value in record.headers])).encode(), digest_size=16
    )
    for piece in pieces:
        digest.update(piece or b"")
    return digest.digest()
