"""Positions are changed between leases, also when these are killed: on simulated brokers, in virtual time."""

from collections.abc import Iterator
from typing import Any

import pytest

from copying.simulation.clock import BEGINNING
from copying.simulation.world import PLACE, Choices, World
from heliograph.copy.altered_position import NotAlterable
from heliograph.model.flow import CONTINUE, Policies
from heliograph.service import offset_changes
from heliograph.service.offset_changes import OffsetChange, change_offsets

_NOW = int(BEGINNING * 1000)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    async def exist(*_clients: Any) -> None:
        """Simulated brokers cannot create topics."""

    monkeypatch.setattr(offset_changes, "ensure_internal_topics", exist)
    world = World(Choices(policies=Policies(CONTINUE, CONTINUE, CONTINUE)))
    yield world
    world.close()


def _write(world: World, *numbers: int) -> None:
    for number in numbers:
        world.log.write([_NOW], [b"%d" % number])


def _mirrored(world: World) -> list[int]:
    return [int(record.value) for record in world.mirror.visible()]


def _copy(world: World) -> None:
    """One lease copies all there is, and ends."""
    world.end(world.settle())


def _set(world: World, source: int | None) -> OffsetChange:
    (change,) = world.loop.run_until_complete(change_offsets(world.flow, (), {PLACE: source}, ()))
    return change


def test_exactly_what_was_asked_for_is_skipped_and_copied_again(world: World) -> None:
    _write(world, *range(10))
    _copy(world)
    _write(world, *range(10, 20))
    assert str(_set(world, 13)) == (
        "t-0 continues with source offset 13 instead of 10, at mirror offset 10, as asked for: 3 offsets are skipped"
    )
    _copy(world)
    assert _mirrored(world) == [*range(10), *range(13, 20)]
    assert world.translations() == {offset: min(offset, max(10, offset - 3)) for offset in range(21)}
    assert str(_set(world, 5)).endswith(
        "source offset 5 instead of 20, at mirror offset 17, as asked for: 15 offsets are copied again"
    )
    assert [world.translations()[offset] for offset in (4, 5, 12, 20)] == [4, 17, 17, 17]
    _copy(world)
    assert _mirrored(world) == [*range(10), *range(13, 20), *range(5, 20)]
    assert [world.translations()[offset] for offset in (4, 5, 12, 20)] == [4, 17, 24, 32]
    assert _set(world, None).source == 0
    _write(world, 20)
    _copy(world)
    assert _mirrored(world)[32:] == list(range(21))
    assert world.notices == []


def test_the_last_of_several_changes_counts_and_the_same_one_changes_nothing(world: World) -> None:
    _write(world, *range(10))
    _copy(world)
    for source in (2, 10, 7):
        assert _set(world, source).source == source
    end = world.fingerprint()
    assert _set(world, 7).before == 7
    assert world.fingerprint() == end
    _copy(world)
    assert _mirrored(world) == [*range(10), 7, 8, 9]


def test_a_mirror_without_records_begins_where_asked(world: World) -> None:
    _write(world, *range(10))
    _set(world, 4)
    _copy(world)
    assert _mirrored(world) == list(range(4, 10))


@pytest.mark.parametrize("source", [3, 12, 18])
def test_a_kill_before_and_after_the_change_does_no_harm(world: World, source: int) -> None:
    """Requests of the killed lease may land later, as long as the log shows that they do."""
    for surviving in range(3):
        _write(world, *range(world.log.end, world.log.end + 20))
        world.log.compact(lambda offset: offset % 7 != 3, False)
        lease = world.start(handed=True)
        world.run(0.05)
        world.crash(lease, surviving, later=0.0)
        world.run(60.0)
        before = _mirrored(world)
        _set(world, source)
        lease = world.start(handed=True)
        world.run(0.02)
        world.crash(lease, surviving, later=0.5)
        _copy(world)
        left = [int(record.value) for record in world.log.visible() if record.offset >= source]
        assert _mirrored(world) == [*before, *left]
        assert world.notices == []


def test_an_offset_beyond_the_end_and_an_unknown_partition_are_refused(world: World) -> None:
    _write(world, *range(10))
    _copy(world)
    end = world.fingerprint()
    with pytest.raises(NotAlterable, match="t-0: the source ends at offset 10, and 11 would be copied next"):
        _set(world, 11)
    for place, why in ((("t", 1), "topic t of A has no partition 1"), (("x", 0), "A->B has no topic x")):
        with pytest.raises(NotAlterable, match=why):
            world.loop.run_until_complete(change_offsets(world.flow, (), {PLACE: 3, place: 0}, ()))
    assert world.fingerprint() == end


def test_a_mirror_that_others_have_written_to_is_left_alone(world: World) -> None:
    _write(world, *range(10))
    _copy(world)
    world.mirror.write([_NOW], [b"99"])
    with pytest.raises(NotAlterable, match="t-0: the last records of the mirror are not of this flow; resume the"):
        _set(world, 3)


def test_all_partitions_are_reset_at_once(world: World) -> None:
    _write(world, *range(10))
    _copy(world)
    (change,) = world.loop.run_until_complete(change_offsets(world.flow, (), None, ()))
    assert (change.source, change.is_reset) == (0, True)
    _copy(world)
    assert _mirrored(world) == [*range(10), *range(10)]
