"""`client.rack` with a follower that lags, is cut off or has deleted more than its leader. Simulated: no broker can be
made to lag at will."""

from collections.abc import Iterator

import pytest

from copying.simulation.world import Choices, Running, World
from heliograph.copy.cursor import Cursor, State
from heliograph.model.flow import FAIL, Policies

_STRICT = Policies(FAIL, FAIL, FAIL, FAIL)


@pytest.fixture
def world() -> Iterator[World]:
    world = World(Choices(policies=_STRICT, rack="rack"))
    yield world
    world.close()


def _write(world: World, *values: bytes) -> None:
    world.log.write([1] * len(values), values)


def _copied(world: World) -> list[bytes]:
    return [record.value for record in world.mirror.visible()]


def _started(world: World) -> tuple[Running, Cursor]:
    """A copier that reads from the follower, which has everything."""
    _write(world, b"a", b"b")
    world.follower.replicate()
    running = world.start(seconds=100.0)
    world.run(1.0)
    (cursor,) = running.copier.cursors
    assert (_copied(world), cursor.source.fetch_from.node) == ([b"a", b"b"], 2)
    assert world.follower.served > 0
    return running, cursor


def test_what_the_follower_does_not_have_is_no_data_loss(world: World) -> None:
    running, cursor = _started(world)
    generation = cursor.generation
    world.network.cut(world.follower)
    _write(world, b"c")
    world.run(0.1)  # the leader is read, which has more
    served = world.follower.served
    world.run(3.0)  # it is asked again, and names the follower, for which this offset does not exist
    _write(world, b"d")
    world.run(1.5)
    assert (_copied(world), world.follower.served) == ([b"a", b"b", b"c", b"d"], served)
    # It has not even found its position again.
    assert (cursor.state, cursor.generation, cursor.refusal) == (State.COPYING, generation, None)
    assert not running.copier.notices
    _write(world, b"e")
    world.follower.replicate()
    world.run(3.0)
    assert _copied(world)[-1] == b"e"
    _write(world, b"f")
    world.follower.replicate()
    world.run(1.0)
    assert (_copied(world)[-1], cursor.source.fetch_from.node) == (b"f", 2)
    assert world.follower.served > served


def test_where_a_followers_log_begins_and_ends_is_not_believed(world: World) -> None:
    _running, cursor = _started(world)
    _write(world, b"c", b"d")
    world.follower.replicate()
    world.run(1.0)
    assert (cursor.source.start, cursor.source.end) == (0, 4)
    (follower_log,) = world.follower.topics["t"].partitions
    follower_log.delete_before(4)
    world.network.cut(world.follower)
    world.run(3.0)
    assert (cursor.source.start, cursor.source.end, _copied(world)) == (0, 4, [b"a", b"b", b"c", b"d"])


def test_a_source_that_was_truncated_is_found_out_by_its_leader(world: World) -> None:
    running, cursor = _started(world)
    world.log.truncate(0)
    _write(world, b"x", b"y", b"z")
    world.follower.replicate()
    world.run(5.0)
    assert cursor.refusal is not None
    assert cursor.refusal.reason == "source-truncated"
    assert running.copier.cursors


def test_the_leader_is_asked_again_after_a_while(world: World) -> None:
    _running, cursor = _started(world)
    world.source.follower = None  # no replica is nearer now
    world.run(6.0)
    _write(world, b"c")
    world.run(1.0)
    assert (cursor.source.fetch_from.node, _copied(world)[-1]) == (1, b"c")
