"""Which entries of the ledger nobody can need any more. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from heliograph.model.intervals import Entry


@dataclass(frozen=True, slots=True)
class Stretch:
    """What an entry of the ledger is about, without the gaps in it. One without records, which ends where it begins, is
    a decision about all that follows."""

    target: int
    end: int
    source_end: int
    source_id: str


def stretch_of(entry: Entry) -> Stretch:
    first, last = entry.intervals[0], entry.intervals[-1]
    return Stretch(first.target, last.end, last.source + last.count, first.source_id)


def is_past(one: Stretch, cut: int) -> bool:
    return one.target < cut and one.end <= cut


def past_before(written: Sequence[Stretch], mirror_start: int, source_start: int, source_id: str) -> int:
    """The mirror offset before which entries can go: they are about records that neither log has any more. Given are
    all of one mirror partition, in the order in which they were written.

    From there on, what is left says the same as all of them, whichever of the others are gone. Something begins exactly
    there, so that nothing that ends before can be taken to go on behind it.
    """
    by_place = sorted(written, key=lambda one: one.target)
    last_of_source = max((at for at, one in enumerate(by_place) if one.source_id == source_id), default=-1)
    needed = 0
    for one, following in pairwise(by_place):
        # An interval goes on until another begins.
        end = max(one.end, following.target)
        gone_from_source = one.source_end + end - one.end <= source_start
        if end > mirror_start or not (gone_from_source if one.source_id == source_id else needed < last_of_source):
            break
        needed += 1
    # One more stays, by which is known that positions in the gap behind it are no earlier ones.
    before = [one.target for one in by_place[:needed] if one.target < by_place[needed].target]
    return _not_across(before[-1] if before else 0, written)


def _not_across(cut: int, written: Sequence[Stretch]) -> int:
    """The last place, not behind `cut`, that no entry reaches across. A decision reaches as far as what was written
    before it and counts no more: without the decision that would count again."""
    reaches: list[tuple[int, int]] = []
    furthest = 0
    for one in written:
        decision = one.end == one.target
        reaches.append((furthest if decision else one.end, one.target))
        furthest = max(furthest, one.end + decision)
    for end, target in sorted(reaches, reverse=True):
        if target < cut < end:
            cut = target
    return cut
