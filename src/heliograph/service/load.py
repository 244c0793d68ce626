"""How much each partition has to copy, measured: what comes in per second, and what has piled up."""

import time
from collections.abc import Collection, Mapping

from heliograph.copy.work import Progress
from heliograph.model.partitions import MirrorPartition

# A backlog counts as if it had to be copied within this time.
_SECONDS = 30.0
# How much of the last measurement goes into the running average.
_WEIGHT = 0.3


class Load:
    def __init__(self) -> None:
        self._seen: dict[MirrorPartition, tuple[float, int]] = {}  # when, and where the mirror ended
        self._rate: dict[MirrorPartition, float] = {}
        self._lag: dict[MirrorPartition, int] = {}

    def note(self, progress: Mapping[MirrorPartition, Progress]) -> None:
        now = time.monotonic()
        for one, at in progress.items():
            self._lag[one] = max(0, at.source_end - at.position.source)
            then, target = self._seen.get(one, (0.0, at.position.target))
            if now - then < 1.0:
                continue
            self._seen[one] = (now, at.position.target)
            if then:
                rate = max(0, at.position.target - target) / (now - then)
                self._rate[one] = (1 - _WEIGHT) * self._rate.get(one, rate) + _WEIGHT * rate

    def per_second(self) -> dict[MirrorPartition, float]:
        """Records per second; those of which nothing is known are left out."""
        recently = time.monotonic() - _SECONDS
        return {
            one: (self._rate.get(one, 0.0) if self._seen[one][0] > recently else 0.0) + lag / _SECONDS
            for one, lag in self._lag.items()
            if one in self._seen
        }

    def share(self, some: Collection[MirrorPartition], of_all: Collection[MirrorPartition]) -> float:
        """What part of all work is theirs; the idle count a little."""
        load = self.per_second()

        def weight(partitions: Collection[MirrorPartition]) -> float:
            return sum(1.0 + load.get(one, 0.0) for one in partitions)

        return weight(some) / max(weight(of_all), 1.0)

    def forget(self, but: Collection[MirrorPartition]) -> None:
        kept = set(but)
        for known in (self._seen, self._rate, self._lag):
            for one in known.keys() - kept:
                del known[one]
