"""The faults of one partition: how long to wait before the next attempt, and when to stop trying."""

import time
from dataclasses import dataclass

from heliograph.model.backoff import Backoff
from heliograph.model.flow import DEFAULT_RETRY_BACKOFF
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.problems import Refusal

# A fault that may be permanent waits at least that long, whatever is configured: it is final after some attempts.
_LEAST_BACKOFF = DEFAULT_RETRY_BACKOFF
# A fault that could also be transient is final after this many attempts in a row.
_MAX_SUSPICIONS = 7
# Faults pass within seconds when a leader moves; one that lasts longer is reported.
_REPORT_AFTER = 5.0
# A source that seems to end before what was copied is truncated if it looks so this many times.
_SURE_AFTER = 3


@dataclass(slots=True)
class RetryState:
    backoff: Backoff = DEFAULT_RETRY_BACKOFF
    faults: int = 0  # in a row, without progress
    suspicions: int = 0  # those of them that may be permanent
    failing_since: float = 0.0
    not_before: float = 0.0
    waiting: Refusal | None = None  # why the partition makes no progress, when that takes long
    must_verify: bool = False  # compare the last copied batch with the source even if the position is known

    @property
    def is_sure(self) -> bool:
        """A suspicious fault has come back often enough not to be a leader that lags behind."""
        return self.suspicions >= _SURE_AFTER

    def succeeded(self) -> None:
        """The partition makes progress, or has nothing to do."""
        self.faults = self.suspicions = 0
        self.waiting = None

    def failed(self, why: str, is_suspicious: bool, partition: MirrorPartition, position: Position | None) -> bool:
        """Schedule the next attempt, with exponential backoff. Returns whether there is one.

        Without jitter: partitions that fail together are resumed together, with the same requests."""
        now = time.monotonic()
        if self.faults == 0:
            self.failing_since = now
        self.faults += 1
        self.suspicions += is_suspicious
        least = _LEAST_BACKOFF.after(self.faults) if is_suspicious else 0.0
        self.not_before = now + max(self.backoff.after(self.faults), least)
        if now - self.failing_since > _REPORT_AFTER:
            at = position or Position(-1, -1)
            self.waiting = Refusal(partition, "waiting", at.source, at.target, why, final=False)
        return self.suspicions < _MAX_SUSPICIONS

    def postpone(self, seconds: float) -> None:
        """Make no attempt for at least this long."""
        self.not_before = max(self.not_before, time.monotonic() + seconds)

    def report(self, waiting: Refusal) -> None:
        self.waiting = waiting

    def verify_next(self) -> None:
        """The next attempt compares the last copied batch with the source."""
        self.must_verify = True

    def started(self) -> None:
        self.must_verify = False
