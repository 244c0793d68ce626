"""What was copied of one partition since its flow runs: totals, rates, ages of records, how far behind, errors."""

import time
from dataclasses import dataclass, field

from heliograph.copy.work import Copied, Progress
from heliograph.service.window import Window

_LEASES = 4  # that may still report about one partition


@dataclass(slots=True)
class Errors:
    """How many records were refused, how many of these were parked, and how many errors were logged; `last` is when, in
    seconds since 1970, 0 for never."""

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
    """`newest` and `landed` are of the last batch: its newest record's time and when it was appended, in seconds since
    1970, 0 if unknown. `ages` are those of the newest records when they were appended, in milliseconds."""

    records: int = 0
    size: int = 0
    newest: float = 0.0
    landed: float = 0.0
    records_lately: Window = field(default_factory=Window)
    size_lately: Window = field(default_factory=Window)
    ages: Window = field(default_factory=Window)
    errors: Errors = field(default_factory=Errors)
    _by_lease: dict[tuple[str, int, int], Copied] = field(default_factory=dict)  # of the last few
    _known_since: float = field(default_factory=time.time)
    _behind_since: float | None = None
    _was_caught_up: bool = False

    def note(self, lease: tuple[str, int, int], progress: Progress) -> None:
        """`lease` is who reports: its id, its attempt and the partition's stay there. The last report of one may come
        after the first of the next."""
        copied = progress.copied
        before = self._by_lease.pop(lease, Copied())
        self._by_lease[lease] = copied
        if len(self._by_lease) > _LEASES:
            del self._by_lease[next(iter(self._by_lease))]
        if records := copied.records - before.records:
            self._count(records, copied.size - before.size, copied)
        if progress.position.source >= progress.source_end:
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
        """The age that the oldest record may have that is not copied: since the partition is behind, or that of the
        last record that was copied."""
        if self._behind_since is None:
            return 0.0
        return max(0.0, time.time() - (max(self._behind_since, self.newest) or self._known_since))
