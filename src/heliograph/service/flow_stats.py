"""What the leases of a flow have done and reported, added up: totals, positions, refusals, notices."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping

from heliograph.copy.counts import Counts, Recent
from heliograph.copy.signals import Report
from heliograph.copy.work import ALIGNING, Outcome, Progress
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.problems import Notice, Refusal
from heliograph.service.events import PartitionEvent, PartitionNotice, PartitionStopped, emit
from heliograph.service.flow_status import Rate
from heliograph.service.load import Load
from heliograph.service.partition_stats import PartitionStats
from heliograph.service.running_lease import RunningLease
from heliograph.service.stalled import StalledPartitions
from heliograph.service.task_stats import TaskStats

log = logging.getLogger(__name__)

_RECORD_REASONS = frozenset({"too-large", "refused-by-target", "damaged"})  # a partition stops because of a record
SHOWN = 200  # refusals and notices in a written status
_AHEAD = 60.0  # seconds that a record may be from the future before it is logged
_TOPICS_AHEAD = 20  # at most this many are logged: if this machine's clock is wrong, all topics are ahead of it


class FlowStats:
    def __init__(self, flow_name: str, refresh: Callable[[], None]) -> None:
        """`refresh` is called when a mirror may be missing."""
        self._flow_name = flow_name
        self._refresh = refresh
        self._retained: frozenset[MirrorPartition] = frozenset()
        self._counts = Counts()  # of leases that have ended
        self.rate = Rate()
        self.progress: dict[MirrorPartition, Progress] = {}
        self.refusals: dict[MirrorPartition, Refusal] = {}
        self.notices: deque[Notice] = deque(maxlen=SHOWN)
        self.events: Counter[str] = Counter()
        self.records_of_events: Counter[str] = Counter()
        self.load = Load()
        self.partition_stats: dict[MirrorPartition, PartitionStats] = {}
        self.tasks: dict[int, TaskStats] = {}  # by the number of their leases
        self._ahead: set[str] = set()
        self.stalled = StalledPartitions(flow_name)

    def counts(self, running: Collection[RunningLease]) -> Counts:
        """Totals, with what the running leases have reported so far."""
        counts = self._counts.copy()
        for lease in running:
            counts.add(lease.counts)
        return counts

    def positions(self) -> dict[MirrorPartition, Position]:
        """As far as they are known."""
        return {partition: progress.position for partition, progress in self.progress.items()}

    def retain(self, partitions: Collection[MirrorPartition]) -> None:
        """Forgets all others."""
        self._retained = frozenset(partitions)
        for known in (self.progress, self.refusals, self.partition_stats):
            for partition in known.keys() - self._retained:
                del known[partition]

    def forget_positions(self, partitions: Collection[MirrorPartition]) -> None:
        """Until a lease reports them again."""
        for partition in partitions:
            self.progress.pop(partition, None)

    def stopped(self) -> set[MirrorPartition]:
        return {refusal.partition for refusal in self.refusals.values() if refusal.final}

    def apply_report(self, report: Report, lease: RunningLease) -> bool:
        """Returns False, and ignores the report, if it is of an earlier attempt."""
        if report.attempt < lease.attempt:
            return False
        lease.has_reported = True
        self._note_task(lease, report.attempt, report.counts, report.recent)
        self._start_attempt(lease, report.attempt)
        lease.counts = report.counts
        self._note_progress(lease, report.changed)
        self._note_refusals(report.refusals)
        self._note_notices(lease, report.first_notice, report.notices)
        self._clear_refusals(report.changed)
        return True

    def task(self, number: int) -> TaskStats:
        return self.tasks.setdefault(number, TaskStats())

    def _note_task(self, lease: RunningLease, attempt: int, counts: Counts, recent: Recent | None) -> None:
        before = lease.counts if attempt == lease.attempt else Counts()
        self.task(lease.number).note(before, counts, recent)

    def _start_attempt(self, lease: RunningLease, attempt: int) -> None:
        """When Spark retries the task, what the earlier attempt copied is counted as well."""
        if attempt > lease.attempt:
            self.add_reported_counts(lease)
            lease.attempt, lease.notices = attempt, 0

    def add_reported_counts(self, lease: RunningLease) -> None:
        """For an attempt without an outcome: what it last reported is copied all the same."""
        self._counts.add(lease.counts)

    def apply_outcome(self, outcome: Outcome, lease: RunningLease) -> None:
        """Of a lease that has ended."""
        self._note_task(lease, outcome.attempt, outcome.counts, None)
        self._start_attempt(lease, outcome.attempt)
        self._counts.add(outcome.counts)
        self._note_progress(lease, outcome.progress)
        refused = {refusal.partition for refusal in outcome.refusals}
        for partition in self.refusals.keys() & outcome.progress.keys() - refused:
            refusal = self.refusals[partition]
            # A lease that ended before it met the refusal again does not prove that the cause is gone.
            if not refusal.final or outcome.progress[partition].position.source > refusal.source_offset:
                del self.refusals[partition]
                emit(log, PartitionEvent(self._flow_name, partition, f"{partition} is being copied again"))
        self._note_refusals(outcome.refusals)
        self._note_notices(lease, 0, outcome.notices)

    def _note_progress(self, lease: RunningLease, progress: Mapping[MirrorPartition, Progress]) -> None:
        # A lease's last report may still name partitions that the flow no longer has.
        retained = {partition: at for partition, at in progress.items() if partition in self._retained}
        # What was reported before the lease had the command to drop a partition may be outdated.
        self.progress.update(
            {partition: at for partition, at in retained.items() if at.copied.stay >= lease.removals[partition]}
        )
        self.load.note(retained)
        self.stalled.note(retained)
        for partition, at in retained.items():
            stats = self.partition_stats.setdefault(partition, PartitionStats())
            stats.note((lease.id, lease.attempt, at.copied.stay), at)
            if stats.newest - stats.landed > _AHEAD and partition.topic not in self._ahead:
                self._warn_of_clocks(partition, stats.newest - stats.landed)

    def _warn_of_clocks(self, partition: MirrorPartition, seconds: float) -> None:
        if len(self._ahead) < _TOPICS_AHEAD:
            self._ahead.add(partition.topic)
            cause = "a producer's clock is wrong or this one, and its latency is shown as 0"
            text = f"{partition} has records from {seconds:.0f} s ahead of this clock: {cause}"
            emit(log, PartitionEvent(self._flow_name, partition, text, logging.WARNING))

    def _note_notices(self, lease: RunningLease, first: int, notices: tuple[Notice, ...]) -> None:
        """A lease's outcome repeats the notices of its reports: each counts once."""
        for notice in notices[max(0, lease.notices - first) :]:
            emit(log, PartitionNotice(self._flow_name, notice))
            self.notices.append(notice)
            self.events[notice.kind] += 1
            self.records_of_events[notice.kind] += notice.count
            parked = notice.count if notice.kind == "parked" else 0
            self._note_error(notice.partition, refused=parked, parked=parked)
        lease.notices = max(lease.notices, first + len(notices))

    def _note_refusals(self, refusals: tuple[Refusal, ...]) -> None:
        for refusal in refusals:
            before = self.refusals.get(refusal.partition)
            if before != refusal and not (before is not None and before.reason == refusal.reason == ALIGNING):
                emit(log, PartitionStopped(self._flow_name, refusal))
                self._note_error(refusal.partition, refused=refusal.reason in _RECORD_REASONS)
                if not refusal.final:
                    self._refresh()
            self.refusals[refusal.partition] = refusal

    def _note_error(self, partition: MirrorPartition, refused: int, parked: int = 0) -> None:
        if partition in self._retained:
            self.partition_stats.setdefault(partition, PartitionStats()).errors.note(refused, parked)

    def _clear_refusals(self, changed: Mapping[MirrorPartition, Progress]) -> None:
        """A partition that was waiting and has moved no longer waits."""
        for partition in self.refusals.keys() & changed.keys():
            refusal = self.refusals[partition]
            if not refusal.final and changed[partition].position.source > refusal.source_offset >= 0:
                del self.refusals[partition]
