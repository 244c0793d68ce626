"""Reports what a lease does to the driver: progress, refusals, notices, and requests for more time."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from heliograph.copy.budget import Budget
from heliograph.copy.counts import SOURCE, TARGET, Counts, Recent
from heliograph.copy.cursor import Cursor, State
from heliograph.copy.lease_clock import LeaseClock
from heliograph.copy.send_queue import Sent
from heliograph.copy.signals import Report
from heliograph.copy.work import Outcome, Progress, Work
from heliograph.model.internal_topics import PROGRESS, signals_topic
from heliograph.model.partitions import MirrorPartition
from heliograph.model.problems import Notice, Refusal
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.records import own_topic, write

log = logging.getLogger(__name__)

_REPORT_EVERY = 0.5
_MAX_PARTITIONS = 1000  # in one report: a batch has a size limit


class ProgressReporter:
    def __init__(self, work: Work, attempt: int, target: ClusterClient, clock: LeaseClock) -> None:
        self._work = work
        self._attempt = attempt
        self._target = target
        self._clock = clock
        self.counts = Counts()
        self.notices: list[Notice] = []
        self._changed: set[Cursor] = set()
        self._largest_batch = 0  # since the last report
        self._report_took = 0.0
        self._throttled_until = {SOURCE: 0.0, TARGET: 0.0}  # as the brokers say

    def changed(self, *cursors: Cursor) -> None:
        self._changed.update(cursors)

    def notice(self, notice: Notice) -> None:
        self.notices.append(notice)

    def landed(self, cursor: Cursor, sent: Sent) -> None:
        batch, copied = sent.outgoing.batch, cursor.copied
        self.counts.append(batch.codec, sent.outgoing.reencode_reason, batch.count, batch.size)
        self._largest_batch = max(self._largest_batch, batch.count)
        copied.add(batch.count, batch.size, batch.max_timestamp, int(time.time() * 1000))
        self._changed.add(cursor)

    def throttled(self, side: str, seconds: float) -> None:
        """Count throttled time. What several brokers say at the same time counts once."""
        moment = time.monotonic()
        before = max(moment, self._throttled_until[side])
        self._throttled_until[side] = max(before, moment + seconds)
        self.counts.throttled[side] += self._throttled_until[side] - before

    async def run(self, cursors: Callable[[], Sequence[Cursor]], budget: Budget) -> None:
        """Write a report whenever there is something to report. Never returns."""
        reported: dict[MirrorPartition, Refusal | None] = {}
        reported_notices = 0
        is_known = False  # that this attempt is the one that runs
        while True:
            await asyncio.sleep(_REPORT_EVERY)
            stopped = {cursor.key: cursor.refusal or cursor.retry.waiting for cursor in cursors()}
            refusals = tuple(
                refusal for key, refusal in stopped.items() if refusal is not None and refusal != reported.get(key)
            )
            changed = self._next_changed()
            notices = tuple(self.notices[reported_notices : reported_notices + _MAX_PARTITIONS])
            ask = self._clock.ask()
            if is_known and not changed and not refusals and not notices and not ask:
                continue
            self._changed.difference_update(changed.values())
            recent = self._recent(cursors(), budget)
            report = Report(
                self._work.lease,
                self._attempt,
                ask,
                self.counts.copy(),
                progress_of(changed.values()),
                refusals[:_MAX_PARTITIONS],
                notices,
                reported_notices,
                recent,
            )
            try:
                await self._write(report)
                reported.update({refusal.partition: refusal for refusal in report.refusals})
                reported_notices += len(notices)
                is_known = True
            except WireError as error:
                self._changed.update(changed.values())
                self._largest_batch = max(self._largest_batch, recent.largest_batch)
                log.debug("%s: progress cannot be reported: %s", self._work.flow.name, error)

    def _recent(self, cursors: Sequence[Cursor], budget: Budget) -> Recent:
        active = sum(cursor.sending.offsets_on_their_way for cursor in cursors if not cursor.sending.is_idle)
        largest, self._largest_batch = self._largest_batch, 0
        return Recent(active, budget.free, largest, round(self._report_took, 4))

    async def _write(self, report: Report) -> None:
        began = time.monotonic()
        try:
            topic = await own_topic(self._target, signals_topic(self._work.flow.source.alias))
            await write(self._target, topic, PROGRESS, [report.to_record()])
        except WireError:
            self._note_written(time.monotonic() - began, failed=True)
            raise
        self._note_written(time.monotonic() - began, failed=False)

    def _note_written(self, seconds: float, failed: bool) -> None:
        self._report_took = seconds
        self.counts.reports.note(seconds, failed)

    def _next_changed(self) -> dict[MirrorPartition, Cursor]:
        """The cursors of the next report. If a partition has left and come back, the cursor that left is first."""
        chosen: dict[MirrorPartition, Cursor] = {}
        for cursor in sorted(self._changed, key=lambda cursor: cursor.state is not State.DROPPED):
            if len(chosen) == _MAX_PARTITIONS:
                break
            chosen.setdefault(cursor.key, cursor)
        return chosen

    def outcome(self, cursors: Sequence[Cursor]) -> Outcome:
        refusals = (cursor.refusal or cursor.retry.waiting for cursor in cursors)
        return Outcome(
            self._work.lease,
            self.counts,
            progress_of(cursors),
            tuple(refusal for refusal in refusals if refusal is not None),
            tuple(self.notices),
            self._attempt,
        )


def progress_of(cursors: Iterable[Cursor]) -> dict[MirrorPartition, Progress]:
    """The progress of those that have started and know their position."""
    progress = {}
    for cursor in cursors:
        source = cursor.source
        if cursor.position is not None and cursor.has_started:
            end = max(source.end, source.high_watermark)
            progress[cursor.key] = Progress(cursor.position, source.end, replace(cursor.copied), source.start, end)
    return progress
