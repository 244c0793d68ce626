"""Which entries of the ledger's journal count, when several have written at the same time."""

from dataclasses import dataclass, field

import pytest

from heliograph.copy.ledger_state import LedgerState
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.ledger_records import Author, JournalEntry, from_index, to_index
from heliograph.wire.records import Record

PLACE = ("t", 0)


def _source_of(number: int) -> int:
    """Of transactions with nine records each, and a marker behind them."""
    return number + number // 9


def _plan(start: int, end: int, seen: int | None = None) -> JournalEntry:
    rows = [Interval(at, _source_of(at), 9, "s") for at in range(start, end, 9)]
    return JournalEntry(PLACE, "m", tuple(rows), seen=seen)


def _decision(target: int, seen: int) -> JournalEntry:
    return JournalEntry(PLACE, "m", (Interval(target, _source_of(target), 0, "s"),), seen=seen)


@dataclass
class Journal:
    state: LedgerState = field(default_factory=lambda: LedgerState(Intervals()))
    end: int = 0

    def read(self, author: str, number: int, entry: JournalEntry) -> bool:
        """As a ledger does; whether it counts."""
        counts = self.state.accepts(entry, Author(author, number))
        if counts:
            self.state.intervals.put(entry.intervals)
            self.state.advance(Record(self.end, 0, b"", b""), Author(author, number))
        self.end += 1
        return counts

    def pack(self) -> None:
        """Go on with what a lease is handed."""
        packed = self.state.excerpt(PLACE, "m", 0, 200)
        self.state = LedgerState.of(from_index(packed.key, to_index(packed)), {})

    def check(self, end: int) -> None:
        for number in range(end):
            assert self.state.intervals.target_of(_source_of(number), "s", end) == number


@pytest.mark.parametrize("packed", [False, True])
def test_a_late_decision_takes_nothing_away(packed: bool) -> None:
    """Two begin together on a transactional backlog, and the slower one writes when the faster has planned on."""
    journal = Journal()
    assert journal.read("fast", 0, _decision(0, 0))
    for number in range(3):
        assert journal.read("fast", number + 1, _plan(90 * number, 90 * number + 90))
    if packed:
        journal.pack()
    assert not journal.read("slow", 0, _decision(0, 0))
    assert journal.read("slow", 1, _plan(0, 90))
    assert journal.read("fast", 4, _plan(270, 360))
    journal.check(360)


@pytest.mark.parametrize("packed", [False, True])
def test_an_entry_that_was_given_up_and_lands_behind_a_later_one_does_not_count(packed: bool) -> None:
    journal = Journal()
    assert journal.read("one", 0, _decision(0, 0))
    assert journal.read("one", 3, _plan(0, 180))
    if packed:
        journal.pack()
    assert not journal.read("one", 1, _decision(90, 1))
    assert not journal.read("one", 2, JournalEntry(PLACE, "m", (Interval(90, 90, 90, "s"),)))
    assert journal.read("one", 4, _plan(180, 270))
    journal.check(270)


@pytest.mark.parametrize("packed", [False, True])
def test_the_plan_of_a_copier_that_has_crashed_does_not_replace_that_of_its_successor(packed: bool) -> None:
    """It lands when the successor, which has not seen it, has planned otherwise."""
    journal = Journal()
    assert journal.read("crashed", 0, _decision(0, 0))
    assert journal.read("successor", 0, _decision(0, 1))
    assert journal.read("successor", 1, _plan(0, 180, seen=1))
    if packed:
        journal.pack()
    late = JournalEntry(PLACE, "m", (Interval(0, 50, 90, "s"),), seen=0)
    assert not journal.read("crashed", 1, late)
    assert journal.read("successor", 2, _plan(180, 270, seen=1)), "an entry that does not count rejects no other"
    journal.check(270)


def test_who_has_read_what_others_wrote_decides_whatever_it_has_written_since() -> None:
    journal = Journal()
    assert journal.read("one", 0, _decision(0, 0))
    assert journal.read("two", 0, _plan(0, 90))
    assert journal.read("one", 1, _plan(90, 180))
    assert not journal.read("one", 2, _decision(90, 1))
    assert journal.read("one", 3, _decision(90, 2))
    assert not journal.read("two", 1, _decision(90, 2))
