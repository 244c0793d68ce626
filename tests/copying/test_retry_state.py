"""When a partition that has failed is tried again."""

import pytest

from fake_clock import FakeClock
from heliograph.copy.copier import Copier
from heliograph.copy.retry_state import RetryState
from heliograph.copy.work import Work
from heliograph.model.backoff import Backoff
from heliograph.model.flow import Cluster, Flow
from heliograph.model.partitions import MirrorPartition

KEY = MirrorPartition("t", "A.t", 0)


def _pauses(state: RetryState, clock: FakeClock, count: int, is_suspicious: bool = False) -> list[float]:
    pauses = []
    for _ in range(count):
        state.failed("why", is_suspicious, KEY, None)
        pauses.append(round(state.not_before - clock.now, 3))
    return pauses


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    return FakeClock(monkeypatch, "heliograph.copy.retry_state")


def test_the_backoff_is_the_one_that_is_set(clock: FakeClock) -> None:
    assert _pauses(RetryState(), clock, 8) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    state = RetryState(Backoff(0.3, 1.0))
    assert _pauses(state, clock, 4) == [0.3, 0.6, 1.0, 1.0]
    state.succeeded()
    assert _pauses(state, clock, 1) == [0.3]


def test_a_partition_may_fail_for_days(clock: FakeClock) -> None:
    assert set(_pauses(RetryState(Backoff(0.001, 0.002)), clock, 5000)[1:]) == {0.002}


def test_a_short_backoff_makes_no_fault_final_sooner(clock: FakeClock) -> None:
    state = RetryState(Backoff(0.0, 0.0))
    assert _pauses(state, clock, 2) == [0.0, 0.0]
    state.succeeded()
    assert _pauses(state, clock, 6, is_suspicious=True) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2]


def test_a_lease_uses_the_backoff_of_its_flow() -> None:
    flow = Flow(Cluster("A", ()), Cluster("B", ()), retry_backoff=Backoff(0.7, 7.0))
    (cursor,) = Copier(Work(flow, "lease", 20.0, (KEY,))).cursors
    assert cursor.retry.backoff == Backoff(0.7, 7.0)
