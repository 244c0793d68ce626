"""Finds the positions of cursors that need one, at a lease's start and after faults."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from heliograph.copy.batch_size_limits import settle_limits
from heliograph.copy.callbacks import Callbacks
from heliograph.copy.classified import SPLIT_OVER, Rules
from heliograph.copy.cursor import Cursor, State
from heliograph.copy.gap_filler import GapFiller
from heliograph.copy.ledger import Ledger
from heliograph.copy.resume import resume
from heliograph.model.flow import CONTINUE, Flow
from heliograph.model.intervals import NotLoaded
from heliograph.wire.append import takes_zstd
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError

_MAX_PAUSE = 3600.0


class Resumer:
    def __init__(
        self,
        flow: Flow,
        source: ClusterClient,
        target: ClusterClient,
        ledger: Ledger,
        gaps: GapFiller,
        callbacks: Callbacks,
    ) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._ledger = ledger
        self._gaps = gaps
        self._callbacks = callbacks
        self._wake = asyncio.Event()
        parks = flow.policies.refused_record == CONTINUE
        writing = flow.writing
        self.rules = Rules(
            flow.reading.committed_only,
            writing.join_up_to,
            writing.compiled,
            parks=parks,
            compression=writing.compression,
            split_over=writing.join_up_to or SPLIT_OVER,
        )

    def wake(self) -> None:
        """A cursor may be ready to resume."""
        self._wake.set()

    async def run(self, cursors: Callable[[], Sequence[Cursor]]) -> None:
        while True:
            self._wake.clear()
            moment = time.monotonic()
            waiting = [cursor for cursor in cursors() if cursor.state is State.RESUMING and cursor.is_settled]
            due = [cursor for cursor in waiting if cursor.retry.not_before <= moment]
            if due:
                await self._resume(due)
                continue
            pause = min((cursor.retry.not_before for cursor in waiting), default=moment + _MAX_PAUSE) - moment
            # Not wait_for: before Python 3.12 it can swallow a cancellation.
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.001, pause)):
                    await self._wake.wait()

    async def _resume(self, due: list[Cursor]) -> None:
        flow = self._flow
        try:
            if unloaded := [cursor for cursor in due if not cursor.mirror.ledger_loaded]:
                await self._ledger.recall({(cursor.key.topic, cursor.key.partition) for cursor in unloaded})
                for cursor in unloaded:
                    cursor.mirror.ledger_was_loaded()
            await settle_limits(due, self._target, flow.may_raise_limits, self._callbacks.notice)
            resumable = [cursor for cursor in due if cursor.state is State.RESUMING]
            ready = await resume(resumable, flow, self._source, self._target, self._ledger, self._gaps, self._callbacks)
            for leader in {cursor.mirror.leader for cursor in ready}:
                zstd = takes_zstd(await self._target.connection(leader))
                self.rules = replace(self.rules, zstd=self.rules.zstd and zstd)
        except (WireError, NotLoaded) as error:
            for cursor in due:  # those that have their position, too: nobody reads for them yet
                self._callbacks.restart(cursor, f"positions cannot be found: {error}", False)
            return
        for cursor in due:
            self._callbacks.changed(cursor)
        self._callbacks.resumed(ready)
