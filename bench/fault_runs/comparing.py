"""What the verifier finds when it compares two logs. Pure rules."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Findings:
    """`checked` counts records of the source; `altered` are records of the mirror that the source never had."""

    checked: int = 0
    lost: int = 0
    twice: int = 0
    misordered: int = 0
    altered: int = 0
    mistranslated: int = 0

    def __add__(self, other: "Findings") -> "Findings":
        return Findings(*(getattr(self, name) + getattr(other, name) for name in NAMES))

    @property
    def is_clean(self) -> bool:
        return not any(getattr(self, name) for name in NAMES if name != "checked")


NAMES = tuple(Findings.__dataclass_fields__)


def compare(source: Sequence[int], mirror: Sequence[int], *, is_complete: bool) -> Findings:
    """Both are digests of one partition's records, in order. No two records of a source are the same.

    Unless the mirror `is_complete`, what the source has after the mirror's last record is on its way.
    """
    if len(mirror) <= len(source) and source[: len(mirror)] == mirror:
        missing = len(source) - len(mirror) if is_complete else 0
        return Findings(checked=len(mirror) + missing, lost=missing)
    places = {record: place for place, record in enumerate(source)}
    counts = Counter(mirror)
    known = [places[record] for record in mirror if record in places]
    expected = len(source) if is_complete else max(known, default=-1) + 1
    lost = sum(record not in counts for record in source[:expected])
    twice = sum(count - 1 for record, count in counts.items() if record in places)
    altered = sum(count for record, count in counts.items() if record not in places)
    return Findings(expected, lost, twice, _misordered(known), altered)


def _misordered(places: Sequence[int]) -> int:
    """How many come after a later one, not counting those that are there for the second time."""
    seen: set[int] = set()
    latest, count = -1, 0
    for place in places:
        if place in seen:
            continue
        seen.add(place)
        count += place < latest
        latest = max(latest, place)
    return count


def next_record(offsets: Sequence[int], committed: int) -> int:
    """The number of the record that a group reads next, among records with these offsets."""
    return bisect_left(offsets, committed)


def compare_latest(source: dict[bytes, int], mirror: dict[bytes, int], all_keys: int) -> Findings:
    """Of a compacted topic: the last record of each key, as digests."""
    lost = sum(key not in mirror for key in source)
    altered = sum(key in mirror and mirror[key] != record for key, record in source.items())
    extra = sum(key not in source for key in mirror)
    return Findings(checked=all_keys, lost=lost, altered=altered + extra)
