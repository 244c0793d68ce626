"""What may be deleted from the ledger, against what all of it says."""

import random
from dataclasses import replace

import pytest

from heliograph.model.intervals import Entry, Interval, Intervals, to_record
from heliograph.model.pruning import is_past, past_before, stretch_of

_PLACE = ("topic", 0)


def _history(rng: random.Random) -> tuple[list[Entry], int]:
    """What a mirror partition's copiers write down, and where the mirror ends: plans with gaps, of which all, some or
    nothing is appended; and decisions after cuts, some of a source that went back or was made anew."""
    entries: list[Entry] = []
    end, source, source_id = 0, rng.randint(0, 5), "s0"
    for number in range(rng.randint(2, 14)):
        if number == 0 or rng.random() < 0.25:
            end = rng.randint(max(0, end - 6), end)
            source = rng.randint(max(0, source - 5), source + 5)
            source_id = f"s{number}" if rng.random() < 0.2 else source_id
            entries.append(Entry(_PLACE, "m", (Interval(end, source, 0, source_id),)))
        planned, target, following = [], end, source
        for _ in range(rng.randint(1, 3)):
            following += rng.randint(0, 3)
            count = rng.randint(1, 6)
            planned.append(Interval(target, following, count, source_id))
            target, following = target + count, following + count
        if not _read(entries).agree(planned):
            entries.append(Entry(_PLACE, "m", tuple(planned)))
        appended = rng.choice([0, rng.randint(0, target - end), target - end])
        end += appended
        last = Intervals(planned).covering(end - 1) if appended else None
        source = source if last is None else last.source_of(end)
    return entries, end


def _read(entries: list[Entry]) -> Intervals:
    intervals = Intervals()
    for one in entries:
        intervals.put(one.intervals)
    return intervals


@pytest.mark.parametrize("seed", range(20))
def test_without_what_is_past_the_rest_says_the_same(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        _check(rng)


def _check(rng: random.Random) -> None:
    entries, end = _history(rng)
    mirror_start = rng.randint(0, end)
    source_start = rng.randint(0, max(one.intervals[-1].source for one in entries) + 10)
    source_id = rng.choice([entries[-1], *entries]).intervals[0].source_id
    stretches = [stretch_of(one) for one in entries]
    cut = past_before(stretches, mirror_start, source_start, source_id)
    assert cut <= mirror_start
    past = [one for one, stretch in zip(entries, stretches, strict=True) if is_past(stretch, cut)]
    deleted = rng.sample(past, rng.choice([len(past), rng.randint(0, len(past))]))
    whole, rest = _read(entries), _read([one for one in entries if one not in deleted])
    for target in range(cut, end + 30):
        assert rest.covering(target) == whole.covering(target)
        assert rest.beginning(target) == whole.beginning(target)
    for source in range(source_start, source_start + 100):
        known = whole.target_of(source, source_id, end)
        now = rest.target_of(source, source_id, end)
        assert (now is None) == (known is None)
        assert max(now or 0, mirror_start) == max(known or 0, mirror_start)


def test_what_has_left_both_logs_is_past() -> None:
    """Ten records, then a marker, a hundred times; both logs have lost the first half."""
    entries = [Entry(_PLACE, "m", (Interval(10 * n, 11 * n, 10, "s"),)) for n in range(100)]
    stretches = [stretch_of(one) for one in entries]
    assert past_before(stretches, 500, 550, "s") == 490
    assert past_before(stretches, 500, 110, "s") == 90
    assert past_before(stretches, 0, 550, "s") == 0
    assert past_before(stretches, 500, 550, "another") == 0


def test_a_log_without_gaps_keeps_its_only_entry() -> None:
    only = stretch_of(Entry(_PLACE, "m", (Interval(0, 0, 0, "s"),)))
    assert past_before([only], 1000, 1000, "s") == 0


def test_a_decision_stays_as_long_as_what_it_has_put_aside() -> None:
    stale = Entry(_PLACE, "m", (Interval(60, 70, 30, "s"),))
    decided = Entry(_PLACE, "m", (Interval(5, 5, 0, "s"),))
    later = [Entry(_PLACE, "m", (Interval(at, 2 * at, 5, "s"),)) for at in (5, 10, 15, 20)]
    stretches = [stretch_of(one) for one in (stale, decided, *later)]
    assert past_before(stretches, 50, 1000, "s") == 5
    assert past_before([stretches[0], *stretches[2:]], 50, 1000, "s") == 15


def test_entries_with_the_same_offsets_of_two_mirrors_are_two() -> None:
    one = Entry(_PLACE, "m1", (Interval(0, 0, 5, "s"),))
    assert to_record(one)[0] != to_record(replace(one, mirror_id="m2"))[0]
