"""A lease that has written down more than it keeps in memory, or whose journal is gone, finds its position anyway."""

import pytest

from copying.simulation.batches import Producer
from copying.simulation.clock import BEGINNING
from copying.simulation.world import LEDGER, MIRROR, Running, World

_NOW = int(BEGINNING * 1000)
_NOT_LEADER = 6


def _write(world: World, count: int) -> None:
    """Each record is a transaction, so that each begins an interval. Three of these are a page here."""
    for _ in range(count):
        world.log.write([_NOW], [b"%d" % world.log.end], Producer(3, 0, 0, transactional=True))
        world.log.finish(3, True, _NOW)


def _copy_after_a_fault(world: World, one: Running, count: int) -> None:
    world.target.refusals[MIRROR] = [_NOT_LEADER]
    _write(world, count)
    world.run(3.0)
    assert [record.value for record in world.mirror.visible()] == [record.value for record in world.log.visible()]
    assert not one.lease.done()


def test_what_a_lease_has_written_itself_and_forgotten_is_recalled_once(world: World) -> None:
    _write(world, 5)
    first = world.start()
    world.run(5.0)
    world.end(first)
    _write(world, 12)
    one = world.start(handed=True, seconds=600.0)
    world.run(5.0)
    for _ in range(3):
        _copy_after_a_fault(world, one, 12)


@pytest.mark.parametrize("how", ["created again", "truncated"])
def test_decisions_count_at_once_when_the_journal_begins_again(world: World, how: str) -> None:
    for _ in range(30):  # another lease's, so that the journal is long
        _write(world, 1)
        first = world.start()
        world.run(1.0)
        world.end(first)
    _write(world, 1)
    one = world.start(seconds=600.0)
    world.run(5.0)
    _copy_after_a_fault(world, one, 2)  # so it has read its own entries behind those of others
    journal = world.target.topics[LEDGER].partitions[0]
    assert journal.end > 30
    if how == "created again":
        world.target.create(LEDGER, 3)
    else:
        journal.truncate(1)
    world.target.refusals[MIRROR] = [_NOT_LEADER]
    _write(world, 6)
    world.log.delete_before(world.log.end - 2)  # what comes next is gone: how to go on must be decided
    world.run(3.0)
    (cursor,) = one.copier.cursors
    assert cursor.position is not None
    assert (cursor.position.source, cursor.retry.faults) == (world.log.end, 0)
