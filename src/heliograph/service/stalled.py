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

# Seconds that the last stable offset stands still before it is said: transactions take a while.
STALLED_AFTER = 60.0


@dataclass(frozen=True, slots=True)
class Stalled:
    """A partition whose last stable offset stands still. `count` offsets are behind it; `since` is when that was first
    seen, or the time of the transaction's last record if that is earlier, in seconds since 1970; -1 where the producer
    is not known."""

    partition: MirrorPartition
    offset: int
    count: int
    since: float
    producer_id: int = -1

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since))
        who = f" of producer {self.producer_id}" if self.producer_id >= 0 else ""
        place = f"--topic {self.partition.topic} --partition {self.partition.partition} --start-offset {self.offset}"
        return (
            f"{self.partition} cannot be read beyond source offset {self.offset}: a transaction{who} is open there "
            f"since {since} or longer, and {self.count} offsets wait behind it; have its producer end it, or abort it "
            f"with kafka-transactions.sh abort {place}"
        )


class StalledPartitions:
    def __init__(self, flow_name: str) -> None:
        self._flow_name = flow_name
        self._known: dict[MirrorPartition, Stalled] = {}
        self._told: set[MirrorPartition] = set()

    def note(self, progress: Mapping[MirrorPartition, Progress]) -> None:
        for one, at in progress.items():
            before, count = self._known.get(one), at.high_watermark - at.source_end
            if count > 0 and before is not None and before.offset == at.source_end:
                self._known[one] = replace(before, count=count)
                continue
            self._forget(one)
            if count > 0:
                self._known[one] = Stalled(one, at.source_end, count, time.time())

    def keep(self, partitions: Collection[MirrorPartition]) -> None:
        """Forget all others: they are not copied any more, or paused."""
        for one in self._known.keys() - set(partitions):
            del self._known[one]
            self._told.discard(one)

    def _forget(self, one: MirrorPartition) -> None:
        if self._known.pop(one, None) is not None and one in self._told:
            self._told.remove(one)
            text = f"{one} can be read on: the transaction has ended"
            emit(log, PartitionEvent(self._flow_name, one, text))

    async def look(self, source: ClusterClient) -> None:
        """Find out whose transactions these are, and say it once."""
        late = time.time() - STALLED_AFTER
        due = {one: known for one, known in self._known.items() if known.since <= late}
        places = {(one.topic, one.partition): one for one, known in due.items() if known.producer_id < 0}
        if not places:
            return
        topics = (await source.metadata({topic for topic, _partition in places})).topics
        for place, found in (await open_transactions(source, topics, places)).items():
            known = self._known.get(places[place])
            if known is not None and found and found[0].start == known.offset:
                since = min(known.since, found[0].last_time / 1000) if found[0].last_time > 0 else known.since
                self._known[known.partition] = replace(known, producer_id=found[0].producer_id, since=since)
        still = [self._known[one] for one, known in due.items() if one not in self._told and self._is_still(known)]
        more = Counter(one.producer_id for one in still)
        for one in still:
            if more[one.producer_id]:  # one line for all partitions of a producer
                others = more.pop(one.producer_id) - 1
                said = f" (and {others} more partitions of that producer)" if others else ""
                emit(log, PartitionEvent(self._flow_name, one.partition, f"{one}{said}", logging.WARNING))
            self._told.add(one.partition)

    def _is_still(self, known: Stalled) -> bool:
        now = self._known.get(known.partition)
        return now is not None and now.offset == known.offset

    def told(self) -> list[Stalled]:
        return [self._known[one] for one in sorted(self._told)]

    def seconds(self) -> float:
        """For how long the one that stands still for longest does."""
        return max((time.time() - one.since for one in self._known.values()), default=0.0)
