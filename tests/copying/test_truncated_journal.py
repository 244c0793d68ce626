"""The ledger's journal after an unclean election: truncated, and written again by others before anybody looks."""

from copying.simulation.world import LEDGER, PLACE, Choices, World
from heliograph.copy.ledger import Ledger
from heliograph.model.intervals import Interval
from heliograph.model.ledger_records import JOURNAL, JournalEntry
from heliograph.wire.cluster import ClusterClient


def test_what_a_new_leader_has_in_the_place_of_what_was_read_is_read_again() -> None:
    world = World(Choices())
    do = world.loop.run_until_complete

    def ledger(name: str) -> Ledger:
        found = Ledger(ClusterClient(world._as(name).target), "A")
        do(found.catch_up())
        return found

    def write(author: Ledger, numbers: range, step: int) -> None:
        for number in numbers:
            do(author.append([JournalEntry(PLACE, "m", (Interval(number * 10, number * step, 10, "s"),))]))

    def rows(reader: Ledger) -> list[Interval]:
        return list(do(reader.ask(PLACE, "m", lambda intervals: list(intervals))))

    try:
        write(ledger("first"), range(5), 11)
        do(world.driver.catch_up())
        world.target.topics[LEDGER].partitions[JOURNAL].truncate(3)
        write(ledger("second"), range(3, 8), 13)
        do(world.driver.catch_up())
        expected = [Interval(number * 10, number * (11 if number < 3 else 13), 10, "s") for number in range(8)]
        assert rows(world.driver) == expected
        do(world.packer.pack())
        assert rows(ledger("third")) == expected
    finally:
        world.close()
