"""The copier: runs one lease from start to end on one event loop.

Correct without anyone's help: when it dies, is cut off or overlaps with another copier, the next one resumes from the
target's log.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import uvloop

from heliograph.copy.budget import Budget
from heliograph.copy.command_listener import listen
from heliograph.copy.counts import Counts
from heliograph.copy.cursor import Cursor
from heliograph.copy.gap_fill import GapFill
from heliograph.copy.gap_filler import lease_transactional_id_prefix
from heliograph.copy.lease_clock import LeaseClock
from heliograph.copy.log_levels import use_levels
from heliograph.copy.pipeline import Pipeline
from heliograph.copy.progress_reporter import ProgressReporter
from heliograph.copy.retry_state import RetryState
from heliograph.copy.signals import Change, Command, EndLease, Grant
from heliograph.copy.tasks import Tasks
from heliograph.copy.tracing import is_tracing, traced_lease, watch_loop
from heliograph.copy.work import Outcome, Work
from heliograph.model.partitions import MirrorPartition, Position, producer_id
from heliograph.model.problems import Notice
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.kernels.loading import load_in_background

log = logging.getLogger(__name__)

_CHECK_CLOCK_EVERY = 1.0  # at least: our own timers stop while the machine sleeps
_DRAIN = 1.0  # how long a lease that ends waits for what is in flight


class Copier:
    def __init__(self, work: Work, attempt: int = 0) -> None:
        self._work = work
        flow = work.flow
        self._source = ClusterClient(flow.reader or flow.source)
        self._target = ClusterClient(flow.writer or flow.target)
        self._clock = LeaseClock(work.seconds, attempt)
        self._stop = asyncio.Event()
        self._tasks = Tasks(self._stop.set)
        self._reporter = ProgressReporter(work, attempt, self._target, self._clock)
        self._pipeline = Pipeline(work, self._source, self._target, self._clock, self._tasks, self._reporter)
        self._stays: Counter[MirrorPartition] = Counter()  # how often each partition has left
        self._leaving: dict[MirrorPartition, Cursor] = {}  # dropped, and perhaps with something in flight
        self.cursors = [self._cursor(key, work.positions.get(key)) for key in work.partitions]

    @property
    def counts(self) -> Counts:
        return self._reporter.counts

    @property
    def notices(self) -> Sequence[Notice]:
        return self._reporter.notices

    @property
    def budget(self) -> Budget:
        return self._pipeline.budget

    def stop(self) -> None:
        self._stop.set()

    async def run(self) -> Outcome:
        """Copy until the lease's time is up or it is stopped."""
        log.debug("%s: lease %s begins with %d partitions", self._work.flow.name, self._work.lease, len(self.cursors))
        try:
            self._pipeline.start(self._current_cursors)
            self._tasks.start(listen(self._work, self._target, self._handle))
            self._tasks.start(self._reporter.run(self._current_cursors, self._pipeline.budget))
            if is_tracing():
                self._tasks.start(watch_loop())
            while not self._stop.is_set() and (left := self._clock.left) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, _CHECK_CLOCK_EVERY)):
                        await self._stop.wait()
            why = "stopped" if self._stop.is_set() else "deadline"
            log.debug("%s: lease %s ends: %s", self._work.flow.name, self._work.lease, why)
            await self._drain()
            if self._tasks.failure is not None:
                raise self._tasks.failure
            return self._reporter.outcome(self.cursors)
        finally:
            await self._tasks.cancel()
            self._source.close()
            self._target.close()

    async def _drain(self) -> None:
        """Read and send nothing new, and wait a little for the responses to what is in flight."""
        self._tasks.begin_draining()
        for cursor in self.cursors:
            cursor.finish()
        until = time.monotonic() + _DRAIN
        while any(not cursor.is_settled for cursor in self.cursors) and time.monotonic() < until:
            await asyncio.sleep(0.005)

    def _current_cursors(self) -> Sequence[Cursor]:
        return self.cursors

    def _cursor(
        self,
        key: MirrorPartition,
        position: Position | None,
        previous: Cursor | None = None,
        ledger_loaded: bool = True,
    ) -> Cursor:
        flow = self._work.flow
        return Cursor(
            key,
            producer_id(flow.name, key),
            GapFill(
                flow.kept_offsets if flow.keeps_offsets(key.topic) else None,
                lease_transactional_id_prefix(flow.name, self._work.number),
            ),
            position=position,
            stay=self._stays[key],
            previous=previous,
            ledger_loaded=ledger_loaded,
            retry=RetryState(flow.retry_backoff),
        )

    def _handle(self, command: Command) -> None:
        if isinstance(command, EndLease):
            self.stop()
        elif isinstance(command, Grant):
            if self._clock.extend(command):
                self._pipeline.rate_limiter.rate = command.bytes_per_second
        elif isinstance(command, Change):
            self.change(command)
        else:
            use_levels(command.levels)

    def change(self, change: Change) -> None:
        """Copy other partitions from now on; those that stay are not interrupted. One that is dropped and added is
        resumed from the logs: what was known about its mirror is not true any more."""
        counts = len(change.added), len(change.dropped)
        log.debug("%s: lease %s adds %d partitions, drops %d", self._work.flow.name, self._work.lease, *counts)
        dropped = set(change.dropped)
        leaving = [cursor for cursor in self.cursors if cursor.key in dropped]
        self._leaving = {key: cursor for key, cursor in self._leaving.items() if not cursor.is_settled}
        for cursor in leaving:
            cursor.drop()
            self._stays[cursor.key] += 1
            self._leaving[cursor.key] = cursor
        self.cursors = [cursor for cursor in self.cursors if cursor.key not in dropped]
        known = {cursor.key for cursor in self.cursors}
        for key in change.added:
            if key not in known:
                previous = self._leaving.get(key)
                # The position that the driver gave at the start is out of date by now, and so is one from before
                # another lease had the partition.
                position = previous.position if previous is not None and key in dropped else None
                self.cursors.append(self._cursor(key, position, previous, ledger_loaded=False))
        self._pipeline.start_gap_filling(self._current_cursors)
        self._pipeline.assignment_changed(leaving)


def run_lease(work: Work, attempt: int) -> Outcome:
    """Run a lease to its end in this thread."""

    if work.flow.writing.compiled and work.flow.writing.join_up_to:
        load_in_background()

    async def main() -> Outcome:
        return await Copier(work, attempt).run()

    with traced_lease(work.flow.name, work.lease):
        return uvloop.run(main())  # it sends large requests without copying them, asyncio does not before Python 3.12
