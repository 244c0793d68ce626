"""A running flow in numbers, as metrics tell them: read from what is there anyway."""

from dataclasses import dataclass

from heliograph.copy.work import MirrorPartition, Progress
from heliograph.service.tally import Tally


@dataclass(frozen=True, slots=True)
class Measure:
    """One partition. Without `progress`, nothing is known of it yet."""

    partition: MirrorPartition
    state: str
    progress: Progress | None
    tally: Tally | None

    @property
    def lag(self) -> int:
        at = self.progress
        return 0 if at is None else max(0, at.source_end - at.position.source)


@dataclass(frozen=True, slots=True)
class Leases:
    """How many there should be and are, the seconds that the oldest runs, and what became of others."""

    wanted: int
    running: int
    oldest: float
    failures: int
    renewals: int


@dataclass(frozen=True, slots=True)
class JobMeasure:
    """What a flow keeps in sync besides records. `since` is how many seconds ago it last went well."""

    name: str
    failing: bool
    since: float | None
