"""How much each partition has to copy."""

import pytest

from fake_clock import FakeClock
from heliograph.copy.work import Progress
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service.load import Load


def _at(number: int, target: int, lag: int = 0) -> dict[MirrorPartition, Progress]:
    return {MirrorPartition("t", "A.t", number): Progress(Position(target, target), target + lag)}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    return FakeClock(monkeypatch, "heliograph.service.load")


def test_load_is_what_comes_in_and_the_backlog(clock: FakeClock) -> None:
    load = Load()
    load.note(_at(0, 0) | _at(1, 0, lag=3000))
    clock.now += 10
    load.note(_at(0, 1000) | _at(1, 0, lag=3000))
    busy, behind = (load.per_second()[MirrorPartition("t", "A.t", number)] for number in range(2))
    assert (busy, behind) == (100.0, 100.0)


def test_an_idle_partition_has_no_load_after_a_while(clock: FakeClock) -> None:
    load = Load()
    load.note(_at(0, 0))
    clock.now += 10
    load.note(_at(0, 1000))
    clock.now += 100
    assert set(load.per_second().values()) == {0.0}


def test_a_flows_limit_is_divided_by_load(clock: FakeClock) -> None:
    load = Load()
    load.note(_at(0, 0, lag=30 * 299) | _at(1, 0, lag=30 * 99))
    both = [MirrorPartition("t", "A.t", number) for number in range(2)]
    assert (load.share(both[:1], both), load.share(both[1:], both)) == (0.75, 0.25)
    assert load.share(both, both) == 1.0


def test_other_partitions_are_forgotten(clock: FakeClock) -> None:
    load = Load()
    load.note(_at(0, 0) | _at(1, 0))
    load.retain([MirrorPartition("t", "A.t", 1)])
    assert list(load.per_second()) == [MirrorPartition("t", "A.t", 1)]
