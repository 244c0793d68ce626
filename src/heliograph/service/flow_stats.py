"""What the leases of a flow have done and said, added up: totals, positions, refusals, notices."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping

from heliograph.copy.counts import Counts
from heliograph.copy.signals import Report
from heliograph.copy.work import ALIGNING, Outcome, Progress
from heliograph.model.partitions import MirrorPartition
from heliograph.model.problems import Notice, Refusal
from heliograph.service.events import PartitionEvent, PartitionNotice, PartitionStopped, emit
from heliograph.service.flow_status import Rate
from heliograph.service.load import Load
from heliograph.service.partition_stats import PartitionStats
from heliograph.service.running_lease import Lease
from heliograph.service.stalled import StalledPartitions

log = logging.getLogger(__name__)

_OF_RECORDS = frozenset({"too-large", "refused-by-target", "damaged"})  # reasons to stop that are a record's fault
SHOWN = 200  # refusals and notices in a written status
_AHEAD = 60.0  # seconds that a record may be from the future before it is worth a line
_TOPICS_AHEAD = 20  # that get one: if this machine's clock is wrong, all topics are ahead of it


class FlowStats:
    def __init__(self, flow_name: str, look: Callable[[], None]) -> None:
        """`look` is called when a mirror may be missing."""
        self._flow_name = flow_name
        self._look = look
        self._kept: frozenset[MirrorPartition] = frozenset()
        self._counts = Counts()  # of leases that have ended
        self.rate = Rate()
        self.progress: dict[MirrorPartition, Progress] = {}
        self.refusals: dict[MirrorPartition, Refusal] = {}
        self.notices: deque[Notice] = deque(maxlen=SHOWN)
        self.events: Counter[str] = Counter()
        self.records_of_events: Counter[str] = Counter()
        self.load = Load()
        self.tallies: dict[MirrorPartition, PartitionStats] = {}
        self._ahead: set[str] = set()
        self.stalled = StalledPartitions(flow_name)

    def counts(self, running: Collection[Lease]) -> Counts:
        """All that was done, with what the running leases have reported so far."""
        found = self._counts.copy()
        for one in running:
            found.add(one.counts)
        return found

    def keep(self, partitions: Collection[MirrorPartition]) -> None:
        """Forget all others."""
        self._kept = frozenset(partitions)
        for known in (self.progress, self.refusals, self.tallies):
            for one in known.keys() - self._kept:
                del known[one]

    def forget(self, partitions: Collection[MirrorPartition]) -> None:
        """Where they stand, until a lease says it anew."""
        for one in partitions:
            self.progress.pop(one, None)

    def stopped(self) -> set[MirrorPartition]:
        return {one.partition for one in self.refusals.values() if one.final}

    def hear(self, report: Report, lease: Lease) -> bool:
        """Whether the report of a running lease was to be listened to: not if it is that of an earlier attempt."""
        if report.attempt < lease.attempt:
            return False
        lease.heard = True
        self._is_at_attempt(lease, report.attempt)
        lease.counts = report.counts
        self._note_progress(lease, report.changed)
        self._note_refusals(report.refusals)
        self._note_notices(lease, report.first_notice, report.notices)
        self._cured(report.changed)
        return True

    def _is_at_attempt(self, lease: Lease, attempt: int) -> None:
        """If Spark has started it again, what it did before counts, too."""
        if attempt > lease.attempt:
            self.count_reported(lease)
            lease.attempt, lease.notices = attempt, 0

    def count_reported(self, lease: Lease) -> None:
        """No outcome will come of this: what it last reported is copied all the same."""
        self._counts.add(lease.counts)

    def count(self, outcome: Outcome, lease: Lease) -> None:
        """What a lease that has ended did."""
        self._is_at_attempt(lease, outcome.attempt)
        self._counts.add(outcome.counts)
        self._note_progress(lease, outcome.progress)
        refused = {one.partition: one for one in outcome.refusals}
        for partition in self.refusals.keys() & outcome.progress.keys() - refused.keys():
            refusal = self.refusals[partition]
            # A lease that ended before it met the refusal again is no proof that it is gone.
            if not refusal.final or outcome.progress[partition].position.source > refusal.source_offset:
                del self.refusals[partition]
                emit(log, PartitionEvent(self._flow_name, partition, f"{partition} is being copied again"))
        self._note_refusals(outcome.refusals)
        self._note_notices(lease, 0, outcome.notices)

    def _note_progress(self, lease: Lease, progress: Mapping[MirrorPartition, Progress]) -> None:
        kept = {one: at for one, at in progress.items() if one in self._kept}  # the last word on others may come late
        # What a lease says of a partition from before it was told to leave it may not be true any more.
        self.progress.update({one: at for one, at in kept.items() if at.copied.stay >= lease.stays[one]})
        self.load.note(kept)
        self.stalled.note(kept)
        for one, at in kept.items():
            tally = self.tallies.setdefault(one, PartitionStats())
            tally.note((lease.id, lease.attempt, at.copied.stay), at)
            if tally.newest - tally.landed > _AHEAD and one.topic not in self._ahead:
                self._tell_of_clocks(one, tally.newest - tally.landed)

    def _tell_of_clocks(self, one: MirrorPartition, ahead: float) -> None:
        if len(self._ahead) < _TOPICS_AHEAD:
            self._ahead.add(one.topic)
            said = "a producer's clock is wrong or this one, and its latency is shown as 0"
            text = f"{one} has records from {ahead:.0f} s ahead of this clock: {said}"
            emit(log, PartitionEvent(self._flow_name, one, text, logging.WARNING))

    def _note_notices(self, lease: Lease, first: int, notices: tuple[Notice, ...]) -> None:
        """A lease's outcome repeats what its reports have said: each notice counts once."""
        for one in notices[max(0, lease.notices - first) :]:
            emit(log, PartitionNotice(self._flow_name, one))
            self.notices.append(one)
            self.events[one.kind] += 1
            self.records_of_events[one.kind] += one.count
            parked = one.count if one.kind == "parked" else 0
            self._note_error(one.partition, refused=parked, parked=parked)
        lease.notices = max(lease.notices, first + len(notices))

    def _note_refusals(self, refusals: tuple[Refusal, ...]) -> None:
        for one in refusals:
            before = self.refusals.get(one.partition)
            if before != one and not (before is not None and before.reason == one.reason == ALIGNING):
                emit(log, PartitionStopped(self._flow_name, one))
                self._note_error(one.partition, refused=one.reason in _OF_RECORDS)
                if not one.final:
                    self._look()
            self.refusals[one.partition] = one

    def _note_error(self, partition: MirrorPartition, refused: int, parked: int = 0) -> None:
        if partition in self._kept:
            self.tallies.setdefault(partition, PartitionStats()).errors.note(refused, parked)

    def _cured(self, changed: Mapping[MirrorPartition, Progress]) -> None:
        """What was waiting and moves again waits no longer."""
        for partition in self.refusals.keys() & changed.keys():
            refusal = self.refusals[partition]
            if not refusal.final and changed[partition].position.source > refusal.source_offset >= 0:
                del self.refusals[partition]
