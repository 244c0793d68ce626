"""How long records wait at most: the longest time in which none arrived on a mirror while some were waiting."""

import threading
import time

from fault_runs.reading import Reader
from fault_runs.workload import Workload

_LOOKS_EVERY = 0.1
START = "(start)"
CALM = "(no fault)"


class Pauses(threading.Thread):
    """`worst` is by what happened meanwhile, in seconds. Compacted topics do not count: not every record is copied."""

    def __init__(self, workloads: list[Workload], source: Reader, mirror: Reader) -> None:
        super().__init__(name="pauses", daemon=True)
        self.worst: dict[str, float] = {}
        self._meanwhile = START
        self._since = time.monotonic()
        self._keys = [
            (workload.topic, partition)
            for workload in workloads
            if not workload.is_compacted
            for partition in range(workload.partitions)
        ]
        self._source = source
        self._mirror = mirror
        self._waiting_since: dict[tuple[str, int], float] = {}
        self._is_ending = threading.Event()

    def count_for(self, meanwhile: str) -> None:
        """From now on. A pause that is under way counts from now on, too."""
        self._meanwhile = meanwhile
        self._since = time.monotonic()
        self.worst.setdefault(meanwhile, 0.0)

    def end(self) -> None:
        self._is_ending.set()

    def run(self) -> None:
        while not self._is_ending.wait(_LOOKS_EVERY):
            now, meanwhile = time.monotonic(), self._meanwhile
            for key in self._keys:
                mirror = self._mirror.partitions[key]
                if len(self._source.partitions[key].offsets) <= len(mirror.offsets):
                    self._waiting_since.pop(key, None)
                    continue
                since = self._waiting_since.setdefault(key, now)
                pause = now - max(since, mirror.last_arrival, self._since)
                self.worst[meanwhile] = max(self.worst.get(meanwhile, 0.0), pause)
