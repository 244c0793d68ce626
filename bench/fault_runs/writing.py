"""Threads that write numbered records to the source at a steady rate, whatever happens to its brokers."""

import contextlib
import itertools
import logging
import threading
import time
from array import array
from typing import Any

from kafka import KafkaProducer

from fault_runs.workload import Workload, digest, numbered

_TICK = 0.1
_MOST_UNANSWERED = 2000
_SETTLE_WITHIN = 90.0
_CLIENT = {
    "linger_ms": 50,  # one batch per tick and partition
    "request_timeout_ms": 5000,
    "metadata_max_age_ms": 5000,
    "reconnect_backoff_max_ms": 1000,
    "max_block_ms": 15000,
    "delivery_timeout_ms": 60000,
}

# Kafka's client reports every lost connection, and there are many.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class Acknowledged:
    """Offsets and digests of one partition's records that the source has acknowledged."""

    def __init__(self) -> None:
        self.offsets = array("q")
        self.digests = array("Q")

    def add(self, offset: int, record: int) -> None:
        self.offsets.append(offset)
        self.digests.append(record)


class _Unanswered:
    """How many records of one producer are on their way, and whether one has failed."""

    def __init__(self) -> None:
        self.count = 0
        self.has_failed = False
        self._lock = threading.Lock()

    def add(self) -> None:
        with self._lock:
            self.count += 1

    def answered(self, answer: Any) -> None:
        with self._lock:
            self.count -= 1
        if isinstance(answer, Exception):
            self.has_failed = True


class Writer(threading.Thread):
    """Writes to all partitions of a topic in turn. A producer that fails is replaced by a new one: what it had not
    acknowledged by then is on the source or not."""

    def __init__(self, bootstrap: str, workload: Workload) -> None:
        super().__init__(name=f"writer-{workload.topic}", daemon=True)
        self.workload = workload
        self.acknowledged = [Acknowledged() for _ in range(workload.partitions)]
        self.sent: set[int] = set()  # digests, of a compacted topic only
        self.attempted = 0
        self.replaced = 0  # producers
        self._servers = bootstrap
        self._numbers = itertools.count()
        self._unanswered = _Unanswered()
        self._may_write = threading.Event()
        self._may_write.set()
        self._is_idle = threading.Event()
        self._is_ending = threading.Event()

    def pause(self) -> None:
        """Returns when nothing is on its way to the source."""
        self._may_write.clear()
        if not self._is_idle.wait(_SETTLE_WITHIN):
            raise RuntimeError(f"the writer of {self.workload.topic} does not come to rest")

    def resume(self) -> None:
        self._is_idle.clear()
        self._may_write.set()

    def end(self) -> None:
        self._is_ending.set()
        self._may_write.set()

    def run(self) -> None:
        while not self._is_ending.is_set():
            producer = None
            try:
                producer = self._producer()
                self._unanswered = _Unanswered()
                self._write_with(producer)
            except Exception:  # any error of the client: the source's own log says what has arrived
                self.replaced += 1
                time.sleep(0.3)
            finally:
                if producer is not None:
                    with contextlib.suppress(Exception):
                        producer.close(timeout=2)
        self._is_idle.set()

    def _producer(self) -> Any:
        options = {**_CLIENT, "bootstrap_servers": self._servers, "compression_type": self.workload.compression}
        if self.workload.aborts_every:
            options["transactional_id"] = f"faults-{self.workload.topic}"
            options["transaction_timeout_ms"] = 20000
        producer: Any = KafkaProducer(**options)
        if self.workload.aborts_every:
            producer.init_transactions()
        return producer

    def _write_with(self, producer: Any) -> None:
        per_tick = max(1, round(self.workload.per_second * _TICK))
        for turn in itertools.count():
            if not self._may_write.is_set():
                producer.flush(timeout=60)
                self._is_idle.set()
                self._may_write.wait()
            if self._is_ending.is_set():
                producer.flush(timeout=30)
                return
            due = time.monotonic() + _TICK * (5 if self.workload.aborts_every else 1)
            if self.workload.aborts_every:
                self._transact(producer, per_tick * 5, turn)
            else:
                self._send(producer, per_tick)
            unanswered = self._unanswered
            while unanswered.count > _MOST_UNANSWERED and not unanswered.has_failed and not self._is_ending.is_set():
                time.sleep(_TICK)
            if unanswered.has_failed:
                raise RuntimeError("a record was not acknowledged")
            time.sleep(max(0.0, due - time.monotonic()))

    def _transact(self, producer: Any, count: int, turn: int) -> None:
        producer.begin_transaction()
        records = self._send(producer, count, acknowledges=False)
        producer.flush(timeout=30)
        if turn % self.workload.aborts_every == self.workload.aborts_every - 1:
            producer.abort_transaction()
            return
        placed = [(partition, future.get(timeout=1).offset, record) for partition, future, record in records]
        producer.commit_transaction()
        for partition, offset, record in placed:
            self.acknowledged[partition].add(offset, record)

    def _send(self, producer: Any, count: int, acknowledges: bool = True) -> list[tuple[int, Any, int]]:
        sent = []
        for _ in range(count):
            number = next(self._numbers)
            partition = number % self.workload.partitions
            content = numbered(self.workload, partition, number)
            now = int(time.time() * 1000)
            record = digest(now, content.key, content.value, content.headers)
            self.attempted += 1
            if self.workload.is_compacted:
                self.sent.add(record)
            future = producer.send(
                self.workload.topic,
                content.value,
                content.key,
                list(content.headers),
                partition=partition,
                timestamp_ms=now,
            )
            if acknowledges:
                self._unanswered.add()
                future.add_both(self._unanswered.answered)
                future.add_callback(self._acknowledge, partition, record)
            sent.append((partition, future, record))
        return sent

    def _acknowledge(self, partition: int, record: int, metadata: Any) -> None:
        self.acknowledged[partition].add(metadata.offset, record)
