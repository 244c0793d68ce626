"""Exponential backoff, as in Kafka's clients."""

import random
from dataclasses import dataclass

_JITTER = 0.2
_MOST_DOUBLINGS = 60


@dataclass(frozen=True, slots=True)
class Backoff:
    """In seconds. `first` is doubled with each failure in a row, up to `longest`, which wins over a longer `first`."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        """How long to wait after so many failures in a row, of which there is at least one."""
        return min(self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), self.longest)

    def jittered(self, failures: int) -> float:
        """The same, up to a fifth longer or shorter, so that clients which failed together come back one by one. Never
        above `longest`, and exact where the backoff does not grow."""
        if self.first >= self.longest:
            return self.longest
        return min(self.after(failures) * random.uniform(1 - _JITTER, 1 + _JITTER), self.longest)
