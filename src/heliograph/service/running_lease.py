"""A lease that runs, as the driver knows it."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from heliograph.copy.clock import now
from heliograph.copy.counts import Counts
from heliograph.copy.signals import Change
from heliograph.model.partitions import MirrorPartition

# A lease ends itself at its deadline. One that has not by then is stuck, or Spark has found no place for it yet.
_OVERDUE = 60.0
# One that was not heard of by then has no place yet.
_HEARD_WITHIN = 5.0


@dataclass(slots=True)
class Lease:
    """Its totals so far, and how many of its notices were heard."""

    id: str
    number: int  # its place in the assignment
    partitions: tuple[MirrorPartition, ...]
    heard: bool = False
    attempt: int = 0  # Spark's, the last that was heard of
    counts: Counts = field(default_factory=Counts)
    notices: int = 0
    stays: Counter[MirrorPartition] = field(default_factory=Counter)  # how often it was told to leave each
    is_in_step: bool = True  # False: it could not be told what to copy
    _born: float = field(default_factory=time.monotonic)
    _until: float = 0.0

    def goes_on(self, seconds: float) -> None:
        self._until = now() + seconds

    def age(self) -> float:
        return time.monotonic() - self._born

    @property
    def runs(self) -> bool:
        """As far as can be known: Spark does not say that a lease waits for others to end."""
        return self.heard or self.age() < _HEARD_WITHIN

    def overdue_in(self) -> float:
        return max(0.0, self._until + _OVERDUE - now())


def rearranged(
    leases: Sequence[Lease], assignment: Sequence[tuple[MirrorPartition, ...]]
) -> tuple[dict[str, Change], list[str]]:
    """Which running leases go on with partitions added or dropped, and which must end for what there is to copy now:
    those that are not needed any more, and both where a partition moves from one to another."""
    held = {one: lease.number for lease in leases for one in lease.partitions}
    moves = {
        (held[one], number)
        for number, partitions in enumerate(assignment)
        for one in partitions
        if held.get(one, number) != number
    }
    numbers = {number for move in moves for number in move}
    changes: dict[str, Change] = {}
    ending: list[str] = []
    for lease in leases:
        if lease.number >= len(assignment) or lease.number in numbers:
            ending.append(lease.id)
            continue
        before, after = set(lease.partitions), set(assignment[lease.number])
        if before != after:
            changes[lease.id] = Change(tuple(sorted(after - before)), tuple(sorted(before - after)))
    return changes, sorted(ending)
