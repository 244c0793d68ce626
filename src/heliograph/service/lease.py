"""A lease that runs, as the driver knows it."""

import time
from dataclasses import dataclass, field

from heliograph.copy.work import MirrorPartition

# A lease ends itself at its deadline. One that has not by then is stuck, or Spark has found no place for it yet.
_OVERDUE = 60.0


@dataclass(slots=True)
class Lease:
    """Its totals so far, and how many of its notices were heard."""

    id: str
    number: int  # its place in the assignment
    partitions: tuple[MirrorPartition, ...]
    attempt: int = 0  # Spark's, the last that was heard of
    records: int = 0
    size: int = 0
    notices: int = 0
    _born: float = field(default_factory=time.monotonic)
    _until: float = 0.0

    def goes_on(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def age(self) -> float:
        return time.monotonic() - self._born

    def overdue_in(self) -> float:
        return max(0.0, self._until + _OVERDUE - time.monotonic())
