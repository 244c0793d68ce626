"""A running flow in numbers, as metrics tell them: read from what is there anyway."""

from dataclasses import dataclass

from heliograph.copy.work import Progress
from heliograph.model.partitions import MirrorPartition
from heliograph.service.partition_stats import PartitionStats

_LATE = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Measure:
    """One partition. Without `progress`, nothing is known of it yet."""

    partition: MirrorPartition
    state: str
    progress: Progress | None
    tally: PartitionStats | None

    @property
    def lag(self) -> int:
        at = self.progress
        return 0 if at is None else max(0, at.source_end - at.position.source)

    @property
    def margin(self) -> int | None:
        """How many offsets the source could delete before it came to what is not copied; None if that is not late, as
        then it is copied long before."""
        if self.progress is None or self.tally is None or self.tally.seconds_behind() < _LATE:
            return None
        return max(0, self.progress.position.source - self.progress.source_start)


@dataclass(frozen=True, slots=True)
class Leases:
    """How many there should be and are, the seconds that the oldest runs, and what became of others.

    `arrangements` is how often partitions were shared out among them, `since` how many seconds ago.
    """

    wanted: int
    running: int
    oldest: float
    failures: int
    renewals: int
    arrangements: int
    since: float


@dataclass(frozen=True, slots=True)
class JobMeasure:
    """What a flow keeps in sync besides records. `since` is how many seconds ago it last went well."""

    name: str
    failing: bool
    since: float | None
