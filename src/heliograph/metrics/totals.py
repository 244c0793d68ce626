"""Measures of partitions, added up for a topic or a flow."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from heliograph.service.measures import Measure
from heliograph.service.window import Spread


@dataclass(slots=True)
class Totals:
    """`margin` is the smallest retention margin, with its partition. `landed` is the time of the last copied batch in
    seconds since 1970, or 0; `latency` is that batch's latency in milliseconds."""

    partitions: int = 0
    stopped: int = 0
    lag: int = 0
    margin: tuple[int, int] | None = None
    seconds_behind: float = 0.0
    records: int = 0
    size: int = 0
    records_per_second: float = 0.0
    bytes_per_second: float = 0.0
    newest: float = 0.0
    landed: float = 0.0
    latency: float | None = None
    ages: Spread | None = None

    def add(self, measure: Measure) -> None:
        self.partitions += 1
        self.stopped += measure.state == "stopped"
        self.lag += measure.lag
        if (margin := measure.margin) is not None:
            mine = margin, measure.partition.partition
            self.margin = mine if self.margin is None else min(self.margin, mine)
        stats = measure.stats
        if stats is None:
            return
        self.seconds_behind = max(self.seconds_behind, stats.seconds_behind())
        self.records += stats.records
        self.size += stats.size
        self.records_per_second += stats.records_lately.per_second()
        self.bytes_per_second += stats.size_lately.per_second()
        self.landed = max(self.landed, stats.landed)
        if stats.newest:
            self.newest = max(self.newest, stats.newest)
            self.latency = max(self.latency or 0.0, max(0.0, stats.landed - stats.newest) * 1000)
        self.ages = _merged(self.ages, stats.ages.spread())

    @property
    def lag_bytes(self) -> float:
        """Estimated from the mean size of the copied records."""
        return self.lag * self.size / self.records if self.records else 0.0

    @property
    def since_copy(self) -> float | None:
        return max(0.0, time.time() - self.landed) if self.landed else None


def _merged(known: Spread | None, other: Spread | None) -> Spread | None:
    return known.merge(other) if known is not None and other is not None else known or other


def totals_by(key: Callable[[Measure], str], measures: Iterable[Measure]) -> dict[str, Totals]:
    totals: dict[str, Totals] = {}
    for measure in measures:
        totals.setdefault(key(measure), Totals()).add(measure)
    return totals
