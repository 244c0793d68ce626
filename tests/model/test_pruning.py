"""Which pages of the ledger may be pruned, against the answers of all pages."""

import random

import pytest

from heliograph.model.intervals import Interval, Intervals
from heliograph.model.pages import page_of
from heliograph.model.pruning import past_pages


def _history(rng: random.Random) -> tuple[Intervals, int]:
    """What a mirror partition's copiers write down, and where the mirror ends: plans with gaps, of which all, some or
    nothing is appended; and decisions after cuts, some of a source that went back or was created again."""
    intervals = Intervals(page_size=rng.randint(1, 3))
    end, source, source_id = 0, rng.randint(0, 5), "s0"
    for number in range(rng.randint(2, 14)):
        if number == 0 or rng.random() < 0.25:
            end = rng.randint(max(0, end - 6), end)
            source = rng.randint(max(0, source - 5), source + 5)
            source_id = f"s{number}" if rng.random() < 0.2 else source_id
            intervals.put([Interval(end, source, 0, source_id)])
        planned, target, following = [], end, source
        for _ in range(rng.randint(1, 3)):
            following += rng.randint(0, 3)
            count = rng.randint(1, 6)
            planned.append(Interval(target, following, count, source_id))
            target, following = target + count, following + count
        if not intervals.agree(planned):
            intervals.put(planned)
        appended = rng.choice([0, rng.randint(0, target - end), target - end])
        end += appended
        last = Intervals(planned).covering(end - 1) if appended else None
        source = source if last is None else last.source_of(end)
    return intervals, end


@pytest.mark.parametrize("seed", range(20))
def test_pruned_intervals_give_the_same_answers(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        _check(rng)


def _check(rng: random.Random) -> None:
    whole, end = _history(rng)
    mirror_start = rng.randint(0, end)
    source_start = rng.randint(0, max(interval.source for interval in whole) + 10)
    last = whole.last()
    assert last is not None
    source_id = rng.choice([last, *whole]).source_id
    pages = whole.packed()
    past = past_pages(pages, mirror_start, source_start, source_id)
    rest = Intervals(pages=pages[past:])
    for target in range(max(mirror_start - 1, 0), end + 30):
        assert rest.covering(target) == whole.covering(target)
        assert rest.beginning(target) == whole.beginning(target)
    for source in range(source_start, source_start + 100):
        known = whole.target_of(source, source_id, end)
        now = rest.target_of(source, source_id, end)
        assert (now is None) == (known is None)
        assert max(now or 0, mirror_start) == max(known or 0, mirror_start)


def test_pages_that_both_logs_have_lost_are_pruned() -> None:
    """Ten records, then a marker, a hundred times; both logs have lost the first half."""
    pages = [page_of([Interval(10 * number, 11 * number, 10, "s")]) for number in range(100)]
    assert past_pages(pages, 500, 550, "s") == 49
    assert past_pages(pages, 500, 110, "s") == 9
    assert past_pages(pages, 0, 550, "s") == 0
    assert past_pages(pages, 500, 550, "another") == 0


def test_a_log_without_gaps_keeps_its_only_page() -> None:
    assert past_pages([page_of([Interval(0, 0, 0, "s")])], 1000, 1000, "s") == 0
