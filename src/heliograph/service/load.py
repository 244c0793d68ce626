"""How much each partition has to copy, as measured: what comes in per second, and the backlog."""

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
        self._last: dict[MirrorPartition, tuple[float, int]] = {}  # when, and where the mirror ended
        self._rate: dict[MirrorPartition, float] = {}
        self._lag: dict[MirrorPartition, int] = {}

    def note(self, progress: Mapping[MirrorPartition, Progress]) -> None:
        now = time.monotonic()
        for partition, at in progress.items():
            self._lag[partition] = max(0, at.source_end - at.position.source)
            then, target = self._last.get(partition, (0.0, at.position.target))
            if now - then < 1.0:
                continue
            self._last[partition] = (now, at.position.target)
            if then:
                rate = max(0, at.position.target - target) / (now - then)
                self._rate[partition] = (1 - _WEIGHT) * self._rate.get(partition, rate) + _WEIGHT * rate

    def per_second(self) -> dict[MirrorPartition, float]:
        """Records per second, of the partitions that have been measured."""
        recently = time.monotonic() - _SECONDS
        return {
            partition: (self._rate.get(partition, 0.0) if self._last[partition][0] > recently else 0.0) + lag / _SECONDS
            for partition, lag in self._lag.items()
            if partition in self._last
        }

    def records_per_second(self) -> float:
        """What comes in, of all partitions."""
        return sum(self._rate.values())

    def share(self, part: Collection[MirrorPartition], of_all: Collection[MirrorPartition]) -> float:
        """The share of `part` in the load of `of_all`. Idle partitions count a little."""
        load = self.per_second()

        def weight(partitions: Collection[MirrorPartition]) -> float:
            return sum(1.0 + load.get(partition, 0.0) for partition in partitions)

        return weight(part) / max(weight(of_all), 1.0)

    def retain(self, partitions: Collection[MirrorPartition]) -> None:
        """Forgets all others."""
        kept = set(partitions)
        for known in (self._last, self._rate, self._lag):
            for partition in known.keys() - kept:
                del known[partition]
