"""What was copied of one partition since its flow runs: totals, rates, how old records were, how long it is behind;
and what went wrong."""

import time
from dataclasses import dataclass, field

from heliograph.copy.work import Copied, Progress
from heliograph.service.window import Window

_LEASES = 4  # that may still speak of one partition


@dataclass(slots=True)
class Errors:
    """How many records were not taken, how many of these were put aside, and how often anything was logged; `last` is
    when, in seconds since 1970, 0 for never."""

    refused: int = 0
    parked: int = 0
    logged: int = 0
    last: float = 0.0

    def note(self, refused: int, parked: int) -> None:
        self.refused += refused
        self.parked += parked
        self.logged += 1
        self.last = time.time()


@dataclass(slots=True)
class PartitionStats:
    """`newest` and `landed` are of the last batch: its newest record's time and when it landed, in seconds since 1970,
    0 if unknown. `ages` are those of the newest records when they had landed, in milliseconds."""

    records: int = 0
    size: int = 0
    newest: float = 0.0
    landed: float = 0.0
    records_lately: Window = field(default_factory=Window)
    size_lately: Window = field(default_factory=Window)
    ages: Window = field(default_factory=Window)
    errors: Errors = field(default_factory=Errors)
    _of_leases: dict[tuple[str, int, int], Copied] = field(default_factory=dict)  # of the last few
    _known_since: float = field(default_factory=time.time)
    _behind_since: float | None = None
    _was_caught_up: bool = False

    def note(self, lease: tuple[str, int, int], at: Progress) -> None:
        """`lease`: who says so, with its attempt and the partition's stay there. The last word of one may come after
        the first of the next."""
        copied = at.copied
        before = self._of_leases.pop(lease, Copied())
        self._of_leases[lease] = copied
        if len(self._of_leases) > _LEASES:
            del self._of_leases[next(iter(self._of_leases))]
        if records := copied.records - before.records:
            self._count(records, copied.size - before.size, copied)
        if at.position.source >= at.source_end:
            self._behind_since, self._was_caught_up = None, True
        elif self._behind_since is None:
            self._behind_since = time.time() if self._was_caught_up else 0.0

    def _count(self, records: int, size: int, copied: Copied) -> None:
        self.records += records
        self.size += size
        self.records_lately.note(records)
        self.size_lately.note(size)
        self.landed = copied.landed / 1000
        if copied.newest >= 0:
            self.newest = copied.newest / 1000
            self.ages.note(max(0, copied.landed - copied.newest))

    def seconds_behind(self) -> float:
        """How old the oldest record may be that is not copied: since when there is one, or as the last one that was."""
        if self._behind_since is None:
            return 0.0
        return max(0.0, time.time() - (max(self._behind_since, self.newest) or self._known_since))
