"""Partitions that cannot be read on because a transaction is open on the source: their lag is 0 all the same."""

import logging
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from heliograph.copy.work import Progress
from heliograph.model.partitions import MirrorPartition
from heliograph.service.events import PartitionEvent, emit
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.open_transactions import open_transactions

log = logging.getLogger(__name__)

# Seconds for which the last stable offset must not move before it is logged: transactions take a while.
STALLED_AFTER = 60.0


@dataclass(frozen=True, slots=True)
class Stalled:
    """A partition whose last stable offset does not move. `count` offsets are behind it; `since` is when that was first
    noticed, or the time of the transaction's last record if that is earlier, in seconds since 1970. `producer_id` is -1
    if it is unknown."""

    partition: MirrorPartition
    offset: int
    count: int
    since: float
    producer_id: int = -1

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since))
        who = f" of producer {self.producer_id}" if self.producer_id >= 0 else ""
        options = f"--topic {self.partition.topic} --partition {self.partition.partition} --start-offset {self.offset}"
        return (
            f"{self.partition} cannot be read beyond source offset {self.offset}: a transaction{who} is open there "
            f"since {since} or longer, and {self.count} offsets wait for it; make its producer end it, or abort it "
            f"with kafka-transactions.sh abort {options}"
        )


class StalledPartitions:
    def __init__(self, flow_name: str) -> None:
        self._flow_name = flow_name
        self._stalled: dict[MirrorPartition, Stalled] = {}
        self._reported: set[MirrorPartition] = set()

    def note(self, progress: Mapping[MirrorPartition, Progress]) -> None:
        for partition, at in progress.items():
            before, count = self._stalled.get(partition), at.high_watermark - at.source_end
            if count > 0 and before is not None and before.offset == at.source_end:
                self._stalled[partition] = replace(before, count=count)
                continue
            self._clear(partition)
            if count > 0:
                self._stalled[partition] = Stalled(partition, at.source_end, count, time.time())

    def retain(self, partitions: Collection[MirrorPartition]) -> None:
        """Forgets all others: they are not copied any more, or paused."""
        for partition in self._stalled.keys() - set(partitions):
            del self._stalled[partition]
            self._reported.discard(partition)

    def _clear(self, partition: MirrorPartition) -> None:
        if self._stalled.pop(partition, None) is not None and partition in self._reported:
            self._reported.remove(partition)
            text = f"{partition} can be read on: the transaction has ended"
            emit(log, PartitionEvent(self._flow_name, partition, text))

    async def look(self, source: ClusterClient) -> None:
        """Finds the producers of the open transactions, and reports each once."""
        late = time.time() - STALLED_AFTER
        due = {partition: stalled for partition, stalled in self._stalled.items() if stalled.since <= late}
        unknown = {
            (partition.topic, partition.partition): partition
            for partition, stalled in due.items()
            if stalled.producer_id < 0
        }
        if not unknown:
            return
        topics = (await source.metadata({topic for topic, _partition in unknown})).topics
        for key, transactions in (await open_transactions(source, topics, unknown)).items():
            known = self._stalled.get(unknown[key])
            if known is not None and transactions and transactions[0].start == known.offset:
                oldest = transactions[0]
                since = min(known.since, oldest.last_time / 1000) if oldest.last_time > 0 else known.since
                self._stalled[known.partition] = replace(known, producer_id=oldest.producer_id, since=since)
        self._report(
            [
                self._stalled[partition]
                for partition, stalled in due.items()
                if partition not in self._reported and self._is_unmoved(stalled)
            ]
        )

    def _report(self, stalled: list[Stalled]) -> None:
        of_producer = Counter(transaction.producer_id for transaction in stalled)
        for transaction in stalled:
            if of_producer[transaction.producer_id]:  # one event for all partitions of a producer
                others = of_producer.pop(transaction.producer_id) - 1
                more = f" (and {others} more partitions of that producer)" if others else ""
                emit(
                    log, PartitionEvent(self._flow_name, transaction.partition, f"{transaction}{more}", logging.WARNING)
                )
            self._reported.add(transaction.partition)

    def _is_unmoved(self, before: Stalled) -> bool:
        current = self._stalled.get(before.partition)
        return current is not None and current.offset == before.offset

    def reported(self) -> list[Stalled]:
        return [self._stalled[partition] for partition in sorted(self._reported)]

    def seconds(self) -> float:
        """The longest time for which a last stable offset has not moved."""
        return max((time.time() - stalled.since for stalled in self._stalled.values()), default=0.0)
