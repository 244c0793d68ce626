"""A running flow in numbers, for the metrics."""

from dataclasses import dataclass

from heliograph.copy.work import Progress
from heliograph.model.partitions import MirrorPartition
from heliograph.service.partition_stats import PartitionStats

_LATE = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Measure:
    """One partition. `progress` is None until a lease reports it."""

    partition: MirrorPartition
    state: str
    progress: Progress | None
    stats: PartitionStats | None

    @property
    def lag(self) -> int:
        progress = self.progress
        return 0 if progress is None else max(0, progress.source_end - progress.position.source)

    @property
    def margin(self) -> int | None:
        """How many offsets the source's retention can delete before it deletes records that are not copied; None while
        the partition is not late."""
        if self.progress is None or self.stats is None or self.stats.seconds_behind() < _LATE:
            return None
        return max(0, self.progress.position.source - self.progress.source_start)


@dataclass(frozen=True, slots=True)
class Leases:
    """How many the assignment has and how many run, the age of the oldest in seconds, and totals.

    `assignment_changes` is how often the assignment has changed, `seconds_since_change` how long ago it last did.
    """

    wanted: int
    running: int
    oldest: float
    failures: int
    renewals: int
    assignment_changes: int
    seconds_since_change: float


@dataclass(frozen=True, slots=True)
class JobMeasure:
    """What a flow syncs besides records. `since` is how many seconds ago it last succeeded."""

    name: str
    failing: bool
    since: float | None
