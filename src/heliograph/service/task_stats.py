"""What the leases of one task have done since the flow runs: totals, and the last minute."""

import time
from collections import deque
from dataclasses import astuple, dataclass

from heliograph.copy.counts import Counts, Recent
from heliograph.service.window import HALF, Window


@dataclass(frozen=True, slots=True)
class Done:
    """`appends` are answered Produce requests, `reports` the writes of progress; seconds are for all of them."""

    batches: int = 0
    records: int = 0
    size: int = 0
    fetched: int = 0
    retries: int = 0
    appends: int = 0
    append_seconds: float = 0.0
    reports: int = 0
    reports_failed: int = 0
    report_seconds: float = 0.0

    @classmethod
    def of(cls, counts: Counts) -> "Done":
        appends, reports = counts.appends, counts.reports
        return cls(
            *(counts.batches, counts.records, counts.size, counts.fetched, counts.retries),
            *(appends.count, appends.seconds, reports.count, reports.failed, reports.seconds),
        )

    def __add__(self, other: "Done") -> "Done":
        return Done(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: "Done") -> "Done":
        return Done(*(mine - theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


class TaskStats:
    """`recent` is None unless a lease runs and has reported."""

    def __init__(self) -> None:
        self.total = Done()
        self.recent: Recent | None = None
        self.largest_batches = Window()
        self.report_times = Window()
        self._began = time.monotonic()
        self._ran = 0.0
        self._halves = deque([(self._began, Done())], maxlen=2)  # when each half began, and the total then

    def note(self, before: Counts, after: Counts, recent: Recent | None) -> None:
        """`before` is what the same attempt of the same lease had reported already."""
        self._rotate()
        self.total += Done.of(after) - Done.of(before)
        self.recent = recent
        if recent is not None and recent.largest_batch:
            self.largest_batches.note(recent.largest_batch)
        if recent is not None and recent.report_took:
            self.report_times.note(recent.report_took)

    def lease_ended(self, ran: float) -> None:
        """`ran` is for how many seconds."""
        self._ran += ran
        self.recent = None

    def lately(self) -> Done:
        self._rotate()
        return self.total - self._halves[0][1]

    def running_ratio(self, running: float) -> float:
        """The share of the time in which a lease ran. `running` is the age of the one that runs, 0 if there is none."""
        return min(1.0, (self._ran + running) / max(time.monotonic() - self._began, 1e-6))

    def _rotate(self) -> None:
        now = time.monotonic()
        age = now - self._halves[-1][0]
        if age >= 2 * HALF:
            self._halves.clear()
        if age >= HALF:
            self._halves.append((now, self.total))
