"""The ledger's journal after an unclean election: truncated, and written again by others before anybody looks."""

from copying.simulation.world import LEDGER, PLACE, World
from heliograph.copy.ledger import Ledger
from heliograph.model.intervals import Interval
from heliograph.model.ledger_records import JOURNAL, JournalEntry
from heliograph.wire.cluster import ClusterClient


def _ledger(world: World, name: str) -> Ledger:
    found = Ledger(ClusterClient(world._as(name).target), "A")
    world.loop.run_until_complete(found.catch_up())
    return found


def _write(world: World, author: Ledger, numbers: range, step: int) -> None:
    for number in numbers:
        entry = JournalEntry(PLACE, "m", (Interval(number * 10, number * step, 10, "s"),))
        world.loop.run_until_complete(author.append([entry]))


def _rows(world: World, reader: Ledger) -> list[Interval]:
    question = reader.ask(PLACE, "m", lambda intervals: list(intervals))
    return list(world.loop.run_until_complete(question))


def _expected(steps: list[int]) -> list[Interval]:
    return [Interval(number * 10, number * step, 10, "s") for number, step in enumerate(steps)]


def test_what_a_new_leader_has_in_the_place_of_what_was_read_is_read_again(world: World) -> None:
    do = world.loop.run_until_complete
    _write(world, _ledger(world, "first"), range(5), 11)
    do(world.driver.catch_up())
    world.target.topics[LEDGER].partitions[JOURNAL].truncate(3)
    _write(world, _ledger(world, "second"), range(3, 8), 13)
    do(world.driver.catch_up())
    expected = _expected([11] * 3 + [13] * 5)
    assert _rows(world, world.driver) == expected
    do(world.packer.pack())
    assert _rows(world, _ledger(world, "third")) == expected


def test_an_entry_that_lands_right_after_what_was_read_does_not_hide_it(world: World) -> None:
    """Others have written as much as was lost, so that the next offset is the expected one."""
    first = _ledger(world, "first")
    _write(world, first, range(5), 11)
    world.target.topics[LEDGER].partitions[JOURNAL].truncate(3)
    _write(world, _ledger(world, "second"), range(3, 5), 13)
    _write(world, first, range(5, 6), 11)
    expected = _expected([11] * 3 + [13] * 2 + [11])
    assert _rows(world, first) == expected
    assert _rows(world, _ledger(world, "third")) == expected
