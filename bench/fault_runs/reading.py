"""A plain consumer of each side, which reads everything as it arrives, independently of Heliograph."""

import contextlib
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from fault_runs.workload import Workload, digest

_CLIENT = {
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "isolation_level": "read_committed",
    "group_id": None,
    "request_timeout_ms": 4000,
    "fetch_max_wait_ms": 250,
    "fetch_min_bytes": 16384,  # few answers: the machine is busy enough
    "metadata_max_age_ms": 3000,
    "reconnect_backoff_max_ms": 500,
}


class SeenPartition:
    """What was read of one partition, in order; of a compacted topic also the last record of each key."""

    def __init__(self) -> None:
        self.offsets = array("q")
        self.digests = array("Q")
        self.latest: dict[bytes, int] = {}
        self.last_arrival = time.monotonic()

    @property
    def next_offset(self) -> int:
        return self.offsets[-1] + 1 if self.offsets else 0

    def add(self, record: Any) -> None:
        content = digest(record.timestamp, record.key, record.value, record.headers)
        self.digests.append(content)
        self.offsets.append(record.offset)  # last: whoever reads this meanwhile goes by the offsets
        if record.key is not None:
            self.latest[record.key] = content
        self.last_arrival = time.monotonic()


class Reader(threading.Thread):
    """`topic_of` gives the name of a workload's topic on this side. It begins when all topics exist."""

    def __init__(self, bootstrap: str, workloads: Sequence[Workload], topic_of: Callable[[str], str]) -> None:
        super().__init__(name=f"reader-{topic_of('')}", daemon=True)
        self.partitions = {
            (workload.topic, partition): SeenPartition()
            for workload in workloads
            for partition in range(workload.partitions)
        }
        self.failure: str | None = None
        self.position: dict[tuple[str, int], int] = dict.fromkeys(self.partitions, 0)  # also after markers
        self._servers = bootstrap
        self._at = {
            TopicPartition(topic_of(topic), partition): (topic, partition) for topic, partition in self.partitions
        }
        self._is_ending = threading.Event()

    def end(self) -> None:
        self._is_ending.set()

    def run(self) -> None:
        while not self._is_ending.is_set():
            consumer: Any = None
            try:
                consumer = KafkaConsumer(bootstrap_servers=self._servers, **_CLIENT)
                consumer.assign(list(self._at))
                for place, key in self._at.items():
                    consumer.seek(place, self.position[key])
                while not self._is_ending.is_set():
                    self._read(consumer)
            except Exception as error:  # any error of the client: it begins again where it was
                self.failure = f"{type(error).__name__}: {error}"
                time.sleep(0.3)
            finally:
                if consumer is not None:
                    with contextlib.suppress(Exception):
                        consumer.close()

    def _read(self, consumer: Any) -> None:
        """About a second's worth."""
        enough = time.monotonic() + 1.0
        while time.monotonic() < enough and not self._is_ending.is_set():
            for place, records in consumer.poll(timeout_ms=200, max_records=5000).items():
                self._take(self._at[place], records)
        for place, key in self._at.items():
            self.position[key] = consumer.position(place, timeout_ms=1000) or self.position[key]

    def _take(self, key: tuple[str, int], records: Iterable[Any]) -> None:
        seen = self.partitions[key]
        for record in records:
            if record.offset >= seen.next_offset:
                seen.add(record)
