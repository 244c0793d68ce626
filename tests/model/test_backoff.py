"""How long to wait after failures."""

from heliograph.model.backoff import Backoff


def test_a_backoff_is_doubled_up_to_the_longest() -> None:
    backoff = Backoff(0.1, 1.0)
    assert [backoff.after(failures) for failures in range(1, 7)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert backoff.after(1_000_000) == 1.0
    assert Backoff(0.0, 1.0).after(5) == 0.0


def test_the_longest_wins_over_a_longer_first() -> None:
    assert Backoff(5.0, 1.0).after(1) == 1.0
    assert Backoff(5.0, 1.0).jittered(1) == 1.0


def test_jitter_is_a_fifth_at_most_and_never_goes_above_the_longest() -> None:
    backoff = Backoff(0.1, 1.0)
    second = [backoff.jittered(2) for _ in range(1000)]
    assert 0.16 <= min(second) < 0.2 < max(second) <= 0.24
    assert max(backoff.jittered(9) for _ in range(1000)) == 1.0
    assert {Backoff(0.3, 0.3).jittered(failures) for failures in range(1, 9)} == {0.3}
