"""A running lease, as the driver knows it."""

import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from heliograph.copy.clock import now
from heliograph.copy.counts import Counts
from heliograph.copy.signals import Change
from heliograph.model.partitions import MirrorPartition

# A lease ends itself at its deadline. One that still runs this long after it hangs, or Spark has not started it yet.
_OVERDUE = 60.0
# A lease without a report after this time waits for a free slot in Spark.
_REPORTS_WITHIN = 5.0


@dataclass(slots=True)
class RunningLease:
    """`counts` and `notices` are its totals so far, and how many of its notices have been read."""

    id: str
    number: int  # its index in the assignment
    partitions: tuple[MirrorPartition, ...]
    has_reported: bool = False
    attempt: int = 0  # Spark's task attempt, of the newest report
    counts: Counts = field(default_factory=Counts)
    notices: int = 0
    removals: Counter[MirrorPartition] = field(default_factory=Counter)  # how often it was commanded to drop each
    partitions_confirmed: bool = True  # False: the command with its partitions could not be written
    _started: float = field(default_factory=time.monotonic)
    _deadline: float = 0.0

    def extend(self, seconds: float) -> None:
        self._deadline = now() + seconds

    def add(self, partitions: tuple[MirrorPartition, ...]) -> None:
        self.partitions += partitions

    def drop(self, partitions: Collection[MirrorPartition]) -> None:
        dropped = set(partitions)
        self.partitions = tuple(partition for partition in self.partitions if partition not in dropped)

    def age(self) -> float:
        return time.monotonic() - self._started

    @property
    def is_running(self) -> bool:
        """As far as can be known: Spark does not report that a lease waits for a free slot."""
        return self.has_reported or self.age() < _REPORTS_WITHIN

    @property
    def running_seconds(self) -> float:
        """For how long it runs: 0 if it waits for a free slot."""
        return self.age() if self.is_running else 0.0

    def overdue_in(self) -> float:
        return max(0.0, self._deadline + _OVERDUE - now())


def lease_changes(
    leases: Sequence[RunningLease], assignment: Sequence[tuple[MirrorPartition, ...]]
) -> tuple[dict[str, Change], list[str]]:
    """Returns the leases that continue with partitions added or dropped, and those that must end: the ones without a
    place in the assignment, and both sides where a partition moves from one lease to another."""
    holder = {partition: lease.number for lease in leases for partition in lease.partitions}
    moves = {
        (holder[partition], number)
        for number, partitions in enumerate(assignment)
        for partition in partitions
        if holder.get(partition, number) != number
    }
    moving = {number for move in moves for number in move}
    changes: dict[str, Change] = {}
    ending: list[str] = []
    for lease in leases:
        if lease.number >= len(assignment) or lease.number in moving:
            ending.append(lease.id)
            continue
        before, after = set(lease.partitions), set(assignment[lease.number])
        if before != after:
            changes[lease.id] = Change(tuple(sorted(after - before)), tuple(sorted(before - after)))
    return changes, sorted(ending)
