"""Batches of ours that a broker takes in the wrong place, exactly where the mirror was thought to end."""

from collections.abc import Iterator

import pytest

from copying.simulation.clock import BEGINNING
from copying.simulation.world import MIRROR, Choices, Running, World
from heliograph.model.flow import CONTINUE, FAIL, Policies

_NOW = int(BEGINNING * 1000)
_NOT_LEADER = 6


@pytest.fixture(params=[FAIL, CONTINUE])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    one = World(Choices(policies=Policies(foreign_writer=request.param)))
    yield one
    one.close()


def _write(world: World, *values: bytes) -> None:
    for value in values:
        world.log.write([_NOW, _NOW], [value, value])


def _lose_the_end(world: World) -> None:
    """Of the mirror, with all that the broker knew of our producer."""
    world.mirror.truncate(len(world.mirror.batches) - 1)
    world.mirror.producers.clear()


def _check(world: World, one: Running) -> None:
    world.run(5.0)
    (cursor,) = one.copier.cursors
    if world.choices.policies.foreign_writer == FAIL:
        assert cursor.refusal is not None
        assert (cursor.refusal.reason, cursor.refusal.source_offset) == ("out-of-sequence", 4)
    else:
        assert cursor.refusal is None
        assert {record.value for record in world.mirror.visible()} == {record.value for record in world.log.visible()}
        assert {notice.kind for notice in one.copier.notices} == {"copied-twice"}


def test_a_batch_that_takes_the_place_of_what_the_mirror_has_lost_is_noticed(world: World) -> None:
    _write(world, b"a", b"b", b"c")
    one = world.start(seconds=600.0)
    world.run(5.0)
    assert world.mirror.end == 6
    _lose_the_end(world)
    _write(world, b"d")  # lands at 4, and the mirror ends at 6 again
    _check(world, one)


def test_so_is_one_that_was_under_way_behind_another_that_failed(world: World) -> None:
    _write(world, b"a", b"b", b"c")
    one = world.start(seconds=600.0)
    while world.mirror.end < 6:
        world.run(0.01)
    _lose_the_end(world)
    world.target.refusals[MIRROR] = [_NOT_LEADER]
    _write(world, b"d", b"e")  # the second lands at 4
    _check(world, one)
