"""Values of the last minute, as MM2's metrics have them: mean, least, greatest, and their sum per second."""

import time
from dataclasses import dataclass, field

_HALF = 30.0


@dataclass(slots=True)
class _Half:
    began: float
    count: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")


@dataclass(frozen=True, slots=True)
class Spread:
    mean: float
    least: float
    most: float


@dataclass(slots=True)
class Window:
    """Two halves, of which the older one is forgotten when the younger one is full."""

    _last: _Half = field(default_factory=lambda: _Half(time.monotonic()))
    _before: _Half | None = None

    def note(self, value: float) -> None:
        self._turn()
        half = self._last
        half.count += 1
        half.total += value
        half.least, half.most = min(half.least, value), max(half.most, value)

    def per_second(self) -> float:
        """Over half a window at least."""
        halves = self._halves()
        return sum(one.total for one in halves) / max(time.monotonic() - halves[0].began, _HALF)

    def spread(self) -> Spread | None:
        """None if nothing was noted lately."""
        halves = [one for one in self._halves() if one.count]
        if not halves:
            return None
        return Spread(
            sum(one.total for one in halves) / sum(one.count for one in halves),
            min(one.least for one in halves),
            max(one.most for one in halves),
        )

    def _halves(self) -> list[_Half]:
        self._turn()
        return [self._last] if self._before is None else [self._before, self._last]

    def _turn(self) -> None:
        now = time.monotonic()
        since = now - self._last.began
        if since >= _HALF:
            self._before = self._last if since < 2 * _HALF else None
            self._last = _Half(now)
