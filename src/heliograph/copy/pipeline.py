"""The way of a batch inside a lease: readers queue it, the ledger writer records what it needs, writers append it.

Each part calls back here when its step is done, and the next step is started.
"""

import logging
from collections.abc import Callable, Sequence

from heliograph.copy.budget import Budget
from heliograph.copy.counts import SOURCE, TARGET
from heliograph.copy.cursor import Cursor, State
from heliograph.copy.gap_filler import GapFiller, lease_transactional_id_prefix
from heliograph.copy.leader_refresh import refresh_leaders
from heliograph.copy.lease_clock import LeaseClock
from heliograph.copy.ledger import Ledger
from heliograph.copy.ledger_writer import LedgerWriter
from heliograph.copy.partition_logs import FetchFrom
from heliograph.copy.position import not_kept
from heliograph.copy.progress_reporter import ProgressReporter
from heliograph.copy.rate_limiter import RateLimiter
from heliograph.copy.reader import Reader
from heliograph.copy.resumer import Resumer
from heliograph.copy.send_queue import Sent
from heliograph.copy.start_filler import DeleteRecordsRefused, fill, keep_mirror_starts
from heliograph.copy.tasks import Tasks
from heliograph.copy.work import Work
from heliograph.copy.writer import Writer
from heliograph.model.problems import Notice
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)


class Pipeline:
    """Implements `Callbacks`."""

    def __init__(
        self,
        work: Work,
        source: ClusterClient,
        target: ClusterClient,
        clock: LeaseClock,
        tasks: Tasks,
        reporter: ProgressReporter,
    ) -> None:
        flow = work.flow
        self._flow = flow
        self._source = source
        self._target = target
        self._clock = clock
        self._tasks = tasks
        self._reporter = reporter
        self.budget = Budget(flow.buffer_memory)
        self.rate_limiter = RateLimiter(work.bytes_per_second)
        self._ledger = Ledger(target, flow.source.alias, work.ledger)
        self._ledger_writer = LedgerWriter(flow, target, self._ledger, clock, self)
        self._gap_filler = GapFiller(target, lease_transactional_id_prefix(flow.name, work.number), clock, self)
        self._resumer = Resumer(flow, source, target, self._ledger, self._gap_filler, self)
        self._fills_gaps = False
        self._readers: dict[FetchFrom, Reader] = {}
        self._writers: dict[int, Writer] = {}

    def start(self, cursors: Callable[[], Sequence[Cursor]]) -> None:
        self._tasks.start(self._resumer.run(cursors))
        self._tasks.start(self._ledger_writer.run())
        for client, side in ((self._source, SOURCE), (self._target, TARGET)):
            self._tasks.start(refresh_leaders(client, side, cursors, self))
        self.start_gap_filling(cursors)

    def start_gap_filling(self, cursors: Callable[[], Sequence[Cursor]]) -> None:
        """Start what only mirrors with the source's offsets need, if there are such."""
        is_needed = self._ledger.knows_gaps or any(cursor.gap_fill.settings is not None for cursor in cursors())
        if is_needed and not self._fills_gaps:
            self._fills_gaps = True
            self._tasks.start(self._gap_filler.run(), drains=True)
            self._tasks.start(keep_mirror_starts(cursors, self._target, self._ledger, self.notice))

    def assignment_changed(self, dropped: Sequence[Cursor]) -> None:
        for cursor in dropped:
            self._update_reader(cursor)
        self._resumer.wake()

    # --- callbacks ------------------------------------------------------------------------------------------------

    def resumed(self, cursors: Sequence[Cursor]) -> None:
        for cursor in cursors:
            self.moved(cursor)
            self._offer(cursor)

    def moved(self, cursor: Cursor) -> None:
        self._reader(cursor.source.fetch_from).update(cursor)

    def changed(self, cursor: Cursor) -> None:
        self._reporter.changed(cursor)

    def notice(self, notice: Notice) -> None:
        self._reporter.notice(notice)

    def throttled(self, side: str, seconds: float) -> None:
        self._reporter.throttled(side, seconds)

    def fetched(self, size: int) -> None:
        self._reporter.counts.fetched += size

    def answered(self, seconds: float) -> None:
        self._reporter.counts.appends.note(seconds)

    def queued(self, cursor: Cursor, must_be_recorded: bool) -> None:
        self._reporter.changed(cursor)
        gap = cursor.gap_fill.take_too_wide()
        if gap is not None:
            kind, count, text = not_kept(f"the source has a gap of {gap.count} offsets, which is too wide to fill")
            self.notice(Notice(cursor.key, kind, count, gap.source_offset, gap.source_offset, text))
        if must_be_recorded:
            self._ledger_writer.add(cursor)
        self._offer(cursor)

    def recorded(self, cursor: Cursor) -> None:
        self._reporter.changed(cursor)
        self._offer(cursor)

    def landed(self, cursor: Cursor, sent: Sent) -> None:
        self._reporter.landed(cursor, sent)

    def gaps_filled(self, cursors: Sequence[Cursor]) -> None:
        self._reporter.changed(*cursors)
        writers = {cursor.mirror.leader: self._writer(cursor.mirror.leader) for cursor in cursors}
        for cursor in cursors:
            if cursor.gap is None:
                writers[cursor.mirror.leader].enqueue(cursor)
            else:
                self._offer(cursor)
        for writer in writers.values():
            writer.pump()  # once for all cursors, so that they share requests

    def settled(self, cursors: Sequence[Cursor]) -> None:
        """There may be room to read more, or a cursor may be ready to resume."""
        for cursor in cursors:
            if cursor.state in (State.RESUMING, State.DROPPED):
                self._resumer.wake()
            if cursor.source.fetch_from in self._readers:
                self._readers[cursor.source.fetch_from].room_freed(cursor)
            if cursor.gap is not None:
                self._offer(cursor)
        for reader in self._readers.values():
            reader.wake()  # memory that one partition has given back may be what another waits for

    def restart(self, cursor: Cursor, why: str, is_suspicious: bool) -> None:
        if cursor.state is not State.COPYING and cursor.state is not State.RESUMING:
            return
        log.debug("%s: %s finds its position again: %s", self._flow.name, cursor.key, why)
        self._reporter.counts.retries += 1
        if not cursor.restart(why, is_suspicious):
            cursor.give_up("keeps-failing", why, cursor.source.fetch_at, cursor.sending.append_at)
        self._reporter.changed(cursor)
        self._resumer.wake()
        self._update_reader(cursor)

    # --- the next step --------------------------------------------------------------------------------------------

    def _offer(self, cursor: Cursor) -> None:
        """Start the next step for this cursor."""
        gap = cursor.gap
        if gap is None:
            if cursor.sending.steps:
                self._writer(cursor.mirror.leader).offer(cursor)
        elif not gap.filler:
            self._gap_filler.offer(cursor)
        elif cursor.gap_fill.claim_start():
            self._tasks.start(self._fill_start(cursor), drains=True)

    async def _fill_start(self, cursor: Cursor) -> None:
        """Bring a new mirror to where the source begins."""
        generation = cursor.generation
        cursor.gap_fill.begin()
        try:
            await fill(cursor, self._target, self._clock)
            if cursor.generation == generation:
                cursor.filled()
        except WireError as error:
            if isinstance(error, DeleteRecordsRefused):
                cursor.gap_fill.refuse_start()
            if cursor.generation == generation:
                self.restart(cursor, f"the mirror cannot be filled up: {error}", False)
        finally:
            cursor.gap_fill.end()
            cursor.gap_fill.release_start()
        self.gaps_filled([cursor])
        self.settled([cursor])

    def _update_reader(self, cursor: Cursor) -> None:
        if cursor.source.fetch_from in self._readers:
            self._readers[cursor.source.fetch_from].update(cursor)

    def _reader(self, fetch_from: FetchFrom) -> Reader:
        if fetch_from not in self._readers:
            self._readers[fetch_from] = Reader(
                self._source,
                fetch_from,
                self._flow.reading,
                self.budget,
                self.rate_limiter,
                lambda: self._resumer.rules,
                self,
            )
            self.budget.readers = len(self._readers)
            self._tasks.start(self._readers[fetch_from].run())
        return self._readers[fetch_from]

    def _writer(self, node: int) -> Writer:
        if node not in self._writers:
            parks = self._resumer.rules.parks
            self._writers[node] = Writer(self._target, node, self._flow.writing, self._clock, parks, self._tasks, self)
        return self._writers[node]
