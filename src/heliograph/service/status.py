"""What can be seen of a running deployment: plain values, read by the command line and, later, the API."""

import time
from collections import deque
from dataclasses import dataclass

from heliograph.copy.work import Refusal

_WINDOW = 5.0


@dataclass(frozen=True, slots=True)
class FlowStatus:
    name: str
    mirrors: int
    partitions: int
    leases: int
    records: int
    size: int
    records_per_second: float
    bytes_per_second: float
    lag: int | None  # records that can be read on the source and are not copied yet; None until all are known
    refusals: tuple[Refusal, ...]
    failed_topics: dict[str, str]

    @property
    def stopped(self) -> int:
        """Partitions and topics that are not copied and will not be by themselves."""
        return sum(one.final for one in self.refusals) + len(self.failed_topics)


class Rate:
    """Totals over the last seconds, as a rate per second."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, int]] = deque()

    def note(self, records: int, size: int) -> None:
        now = time.monotonic()
        self._seen.append((now, records, size))
        while self._seen[0][0] < now - _WINDOW:
            self._seen.popleft()

    def per_second(self) -> tuple[float, float]:
        if len(self._seen) < 2:
            return 0.0, 0.0
        (then, records, size), (_now, more_records, more_bytes) = self._seen[0], self._seen[-1]
        seconds = max(time.monotonic() - then, 0.1)
        return (more_records - records) / seconds, (more_bytes - size) / seconds
