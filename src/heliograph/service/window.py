"""Values of the last minute, as MM2's metrics have them: mean, least, greatest, and their sum per second."""

import time
from dataclasses import dataclass, field

HALF = 30.0  # seconds


@dataclass(slots=True)
class _Half:
    began: float
    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")


@dataclass(frozen=True, slots=True)
class Spread:
    """`count` is the number of values: the weight of `mean` where spreads are merged."""

    mean: float
    least: float
    most: float
    count: int = field(default=1, compare=False)

    def merge(self, other: "Spread") -> "Spread":
        count = self.count + other.count
        mean = (self.mean * self.count + other.mean * other.count) / count
        return Spread(mean, min(self.least, other.least), max(self.most, other.most), count)


@dataclass(slots=True)
class Window:
    """Two halves; the older one is dropped when the younger one is full. `last` is the last value."""

    last: float = 0.0
    _current: _Half = field(default_factory=lambda: _Half(time.monotonic()))
    _previous: _Half | None = None

    def note(self, value: float) -> None:
        self._rotate()
        self.last = value
        half = self._current
        half.count += 1
        half.total += value
        half.least, half.most = min(half.least, value), max(half.most, value)

    def per_second(self) -> float:
        """Over half a window at least."""
        halves = self._halves()
        return sum(half.total for half in halves) / max(time.monotonic() - halves[0].began, HALF)

    def spread(self) -> Spread | None:
        """None if there are no values."""
        halves = [half for half in self._halves() if half.count]
        if not halves:
            return None
        count = sum(half.count for half in halves)
        return Spread(
            sum(half.total for half in halves) / count,
            min(half.least for half in halves),
            max(half.most for half in halves),
            count,
        )

    def _halves(self) -> list[_Half]:
        self._rotate()
        return [self._current] if self._previous is None else [self._previous, self._current]

    def _rotate(self) -> None:
        now = time.monotonic()
        age = now - self._current.began
        if age >= HALF:
            self._previous = self._current if age < 2 * HALF else None
            self._current = _Half(now)
