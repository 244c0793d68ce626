"""Looks for changes of the source's topics, and has their mirrors and leases follow."""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress

from heliograph.copy.position import UNKNOWN_ORIGIN
from heliograph.service.catch_up import CatchUpGoals
from heliograph.service.events import FlowEvent, emit
from heliograph.service.flow_context import FlowContext
from heliograph.service.lease_pool import LeasePool
from heliograph.service.mirrors import Mirrors
from heliograph.service.task_groups import raise_if_cancelled
from heliograph.wire.errors import Fenced, WireError
from heliograph.wire.metadata import Topic

log = logging.getLogger(__name__)

# How often to list the source's topics; less often where that takes long.
_LIST_EVERY = 5.0
_LIST_COST = 50
# Partitions are not reassigned for their load more often than this.
_REASSIGN_EVERY = 30.0
_PAUSE = 1.0


class TopicWatcher:
    def __init__(self, context: FlowContext, mirrors: Mirrors, pool: LeasePool, goals: CatchUpGoals) -> None:
        self._context = context
        self._mirrors = mirrors
        self._pool = pool
        self._goals = goals
        self._refreshing = asyncio.Lock()

    async def run(self) -> None:
        """Refreshes at the configured interval, and at once when the source's topics have changed. Without an end."""
        context, needed = self._context, self._context.refresh_needed
        refreshed, pause = time.monotonic(), _LIST_EVERY
        while True:
            interval = context.flow.refresh_topics_every
            with suppress(TimeoutError):
                async with asyncio.timeout(None if interval is None else min(pause, interval)):
                    await needed.wait()
            interval = context.flow.refresh_topics_every
            if interval is None:
                needed.clear()
                continue
            began = time.monotonic()
            try:
                topics = (await context.source.metadata(None)).topics
                is_due = began - refreshed >= interval
                if is_due or needed.is_set() or self._mirrors.have_changed(topics):
                    needed.clear()
                    refreshed = began
                    await self.refresh(topics)
                elif began - self._pool.assignor.computed_at >= _REASSIGN_EVERY:
                    await self._pool.assign(self._mirrors.partitions)
                if context.errors.recovered("topics"):
                    emit(log, FlowEvent(context.name, "topics are refreshed again"))
            except WireError as error:
                if not isinstance(error, Fenced) and context.errors.is_new("topics", str(error)):
                    text = f"topics could not be refreshed: {error}"
                    emit(log, FlowEvent(context.name, text, logging.WARNING))
            except Exception:  # leases continue with the topics that are known
                log.exception("%s: topics could not be refreshed", context.name)
            raise_if_cancelled()
            took = time.monotonic() - began
            pause = min(max(_LIST_EVERY, _LIST_COST * took), interval)
            await asyncio.sleep(min(_PAUSE, pause))  # however often a refresh is asked for

    async def refresh(self, topics: Mapping[str, Topic] | None = None) -> None:
        """Creates and grows mirrors, and assigns their partitions. Without `topics`, the source is asked for them."""
        async with self._refreshing:
            if not await self._mirrors.refresh(topics):
                return
            partitions, stats = self._mirrors.partitions, self._context.stats
            stats.retain(partitions)
            self._goals.retain(partitions)
            unknown = {refusal.partition for refusal in stats.refusals.values() if refusal.reason == UNKNOWN_ORIGIN}
            await self._mirrors.take_over(unknown, at_start=not self._pool.is_started)
            await self._pool.assign(partitions)
