"""A running flow as others see it: status, tasks, mirrors, measures."""

import itertools
import socket
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from heliograph.copy.counts import Counts
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service.flow_context import FlowContext
from heliograph.service.flow_stats import SHOWN
from heliograph.service.flow_status import STARTING, FlowStatus, MirrorStatus, state_of
from heliograph.service.lease_pool import LeasePool
from heliograph.service.measures import Leases, Measure
from heliograph.service.mirrors import Mirrors
from heliograph.service.other_runs import OtherRuns
from heliograph.service.task_stats import TaskStats

_LOAD_AFTER = 60.0


@dataclass(frozen=True, slots=True)
class Task:
    """One lease of the assignment, as Connect shows a task. `stats` is None until its first lease starts."""

    partitions: tuple[MirrorPartition, ...]
    running: bool
    trouble: str = ""
    stats: TaskStats | None = None
    running_ratio: float = 0.0


class FlowView:
    def __init__(self, context: FlowContext, mirrors: Mirrors, pool: LeasePool, other_runs: OtherRuns) -> None:
        self._context = context
        self._mirrors = mirrors
        self._pool = pool
        self._other_runs = other_runs
        self._began = time.monotonic()

    def tasks(self) -> list[Task]:
        """The leases of the assignment. One is in trouble if it failed, or if a partition of it is stopped."""
        pool = self._pool
        running = {lease.number: lease.running_seconds for lease in pool.leases.values()}
        tasks = []
        for number, partitions in enumerate(pool.assignor.assignment):
            trouble = pool.failures.error_of(number) or self._refusals_in(partitions)
            stats = self._context.stats.tasks.get(number)
            ratio = stats.running_ratio(running.get(number, 0.0)) if stats is not None else 0.0
            tasks.append(Task(partitions, pool.is_started, trouble, stats, ratio))
        return tasks

    def _refusals_in(self, partitions: Collection[MirrorPartition]) -> str:
        refusals = self._context.stats.refusals
        if not refusals:
            return ""
        stopped = [
            refusal for partition in partitions if (refusal := refusals.get(partition)) is not None and refusal.final
        ]
        return "\n".join(map(str, stopped[:SHOWN]))

    def mirrors(self) -> list[MirrorStatus]:
        """Each topic of the flow and its partitions' states."""
        stats = self._context.stats
        by_topic: dict[str, MirrorStatus] = {}
        for partition in self._mirrors.partitions:
            mirror = by_topic.setdefault(partition.topic, MirrorStatus(partition.topic, partition.mirror))
            refusal = stats.refusals.get(partition)
            mirror.add(
                self._state_of(partition),
                stats.progress.get(partition),
                str(refusal) if refusal is not None else "",
                stats.partition_stats.get(partition),
            )
        for topic, error in self._mirrors.synced.failed.items():
            mirror_name = self._context.flow.mirror_name(topic)
            by_topic.setdefault(topic, MirrorStatus(topic, mirror_name)).errors.append(error)
        return list(by_topic.values())

    def measures(self) -> list[Measure]:
        """Every partition in numbers."""
        stats = self._context.stats
        return [
            Measure(
                partition,
                self._state_of(partition),
                stats.progress.get(partition),
                stats.partition_stats.get(partition),
            )
            for partition in self._mirrors.partitions
        ]

    def counts(self) -> Counts:
        """Totals since the flow runs."""
        return self._context.stats.counts(self._pool.leases.values())

    def leases(self) -> Leases:
        return self._pool.measure()

    @property
    def too_wide(self) -> int:
        """Mirrors with more partitions than their topics."""
        return len(self._mirrors.synced.too_wide)

    @property
    def open_for(self) -> float:
        """Seconds for which the last stable offset of a partition has not moved, while records are behind it; the
        longest."""
        return self._context.stats.stalled.seconds()

    @property
    def load(self) -> float | None:
        """Records per second; None soon after the start, when it copies what has piled up."""
        is_known = time.monotonic() - self._began > _LOAD_AFTER
        return self._context.stats.load.records_per_second() if is_known else None

    def positions(self) -> dict[MirrorPartition, Position]:
        """As far as they are known."""
        return self._context.stats.positions()

    def sample(self) -> None:
        """Notes the totals, for the rates."""
        counts = self.counts()
        self._context.stats.rate.note(counts.records, counts.size)

    def status(self, most: int | None = None) -> FlowStatus:
        """With `most`, at most this many refusals and stalled partitions."""
        flow, stats, partitions = self._context.flow, self._context.stats, self._mirrors.partitions
        counts = self.counts()
        records_rate, bytes_rate = stats.rate.per_second()
        states = Counter(map(self._state_of, partitions))
        stopped_at_once = bool(stats.refusals) and any(
            partition in stats.refusals and partition not in stats.progress
            for partition in partitions
            if partition.topic not in flow.paused_topics
        )
        is_known = self._pool.is_started and not states[STARTING] and not stopped_at_once
        lag = sum(max(0, at.source_end - at.position.source) for at in stats.progress.values())
        return FlowStatus(
            name=flow.name,
            mirrors=len(self._mirrors.synced.partitions),
            partitions=len(partitions),
            leases=sum(lease.is_running for lease in self._pool.leases.values()),
            records=counts.records,
            size=counts.size,
            records_per_second=records_rate,
            bytes_per_second=bytes_rate,
            lag=lag if is_known else None,
            refusals=tuple(itertools.islice(stats.refusals.values(), most)),
            failed_topics=self._mirrors.synced.failed,
            states=dict(states),
            events=dict(stats.events),
            records_of_events=dict(stats.records_of_events),
            notices=tuple(stats.notices),
            run_id=self._context.run_id,
            host=socket.gethostname(),
            epoch=self._context.epoch,
            other_runs=self._other_runs.running(),
            stalled=tuple(itertools.islice(stats.stalled.reported(), most)),
        )

    def _state_of(self, partition: MirrorPartition) -> str:
        if partition.topic in self._context.flow.paused_topics:
            return "paused"
        stats = self._context.stats
        refusal = stats.refusals.get(partition) if stats.refusals else None  # thousands of look-ups take their time
        return state_of(stats.progress.get(partition), refusal)
