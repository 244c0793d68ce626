"""A mirror that is deleted and created again while a batch of a copier that has died is on its way to it."""

from collections.abc import Iterator

import pytest

from copying.simulation.batches import Producer
from copying.simulation.clock import BEGINNING
from copying.simulation.network import DELAYED
from copying.simulation.oracle import History, check_any_time, check_settled
from copying.simulation.world import LEDGER, MIRROR, Choices, World
from heliograph.model.ledger_records import JOURNAL

_NOW = int(BEGINNING * 1000)


@pytest.fixture
def world() -> Iterator[World]:
    world = World(Choices(fetch=1 << 20, join=1 << 17))
    yield world
    world.close()


@pytest.fixture
def history(world: World) -> History:
    """Of a source whose first two records are followed by a marker, so that its mirror has two intervals."""
    history = History()
    for number in range(3):
        value = b"%d" % number
        history.origins[value] = world.log.end
        world.log.write([_NOW], [value], Producer(3, 0, 0, transactional=number > 0))
        if number > 0:
            world.log.finish(3, True, _NOW)
    return history


def _run_until_journal_has(world: World, entries: int) -> None:
    while world.target.topics[LEDGER].partitions[JOURNAL].end < entries:
        world.run(0.0005)


def test_a_batch_for_the_deleted_mirror_does_not_land_in_the_new_one(world: World, history: History) -> None:
    world.network.faults[MIRROR] = [DELAYED]
    killed = world.start()
    while world.network.faults[MIRROR]:  # until the first batch is on its way
        world.run(0.0005)
    world.crash(killed, surviving=5, later=1.0)
    world.target.create(MIRROR)
    entries = world.target.topics[LEDGER].partitions[JOURNAL].end
    successor = world.start()
    _run_until_journal_has(world, entries + 1)  # where the new mirror begins, and nothing of its intervals
    world.crash(successor, surviving=0, later=0.0)
    world.run(60.0)  # the batch arrives
    check_any_time(world, history)
    assert world.mirror.end == 0
    world.end(world.settle())
    check_settled(world, history)
    assert [record.value for record in world.mirror.visible()] == [b"0", b"1", b"2"]
