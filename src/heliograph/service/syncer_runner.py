"""Runs syncers: each repeats at its own interval, and is retried at the next one when it fails."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence

from heliograph.service.error_log import ErrorLog
from heliograph.service.events import FlowEvent, emit, flow_scope
from heliograph.service.measures import JobMeasure
from heliograph.service.task_groups import raise_if_cancelled
from heliograph.wire.errors import Fenced, WireError

log = logging.getLogger(__name__)

_SLOW = 10.0  # a run that takes longer is logged


class Syncer:
    """Something that a flow keeps in sync besides records. `interval` is the seconds from the start of one run to the
    start of the next."""

    name: str
    check_interval = math.inf  # how often `is_due_early` is asked

    def __init__(self, interval: float) -> None:
        self.interval = interval

    async def wait_until_ready(self) -> None:
        """Called before the first run."""

    async def run(self) -> None:
        raise NotImplementedError

    async def is_due_early(self) -> bool:
        """Whether to run before the interval is over."""
        return False


class SyncerRunner:
    """`requests` returns how many requests were sent so far."""

    def __init__(self, flow_name: str, syncers: Sequence[Syncer], requests: Callable[[], int]) -> None:
        self.syncers = syncers
        self._flow_name = flow_name
        self._requests = requests
        self._last_success: dict[str, float] = {}
        self._errors: dict[str, str] = {}  # of syncers that failed the last time
        self._error_log = ErrorLog()

    def take_over(self, earlier: "SyncerRunner") -> None:
        """The state of syncers of the same names, until their own first runs are over."""
        names = {syncer.name for syncer in self.syncers}
        self._last_success = {name: when for name, when in earlier._last_success.items() if name in names}
        self._errors = {name: text for name, text in earlier._errors.items() if name in names}
        self._error_log = earlier._error_log

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for syncer in self.syncers:
                tasks.create_task(self._repeat(syncer))

    async def _repeat(self, syncer: Syncer) -> None:
        await syncer.wait_until_ready()
        due = time.monotonic()
        while True:
            await self.attempt(syncer)
            raise_if_cancelled()
            due = max(due + syncer.interval, time.monotonic())
            while (left := due - time.monotonic()) > 0:
                await asyncio.sleep(min(left, syncer.check_interval))
                if await syncer.is_due_early():
                    due = time.monotonic()
                raise_if_cancelled()

    async def attempt(self, syncer: Syncer, run: Callable[[], Awaitable[None]] | None = None) -> None:
        """Runs it once, or another method of it. A failure is not raised; it is logged once until a run succeeds."""
        name = syncer.name
        started, requests_before = time.monotonic(), self._requests()
        try:
            with flow_scope(self._flow_name):
                await (run or syncer.run)()
        except Fenced as error:  # another member syncs it by now
            log.debug("%s: %s is not synced: %s", self._flow_name, name, error)
        except WireError as error:
            self._note_failure(name, str(error), None)
        except Exception as error:
            self._note_failure(name, repr(error), error)
        else:
            self._last_success[name] = time.monotonic()
            took = time.monotonic() - started
            if took > _SLOW:
                requests = self._requests() - requests_before
                text = f"syncing {name} took {took:.1f} s and about {requests} requests"
                emit(log, FlowEvent(self._flow_name, text))
            self._errors.pop(name, None)
            if self._error_log.recovered(name):
                emit(log, FlowEvent(self._flow_name, f"syncing {name} succeeds again"))

    def _note_failure(self, name: str, reason: str, unexpected: Exception | None) -> None:
        self._errors[name] = reason
        if self._error_log.is_new(name, reason):
            level = logging.WARNING if unexpected is None else logging.ERROR
            text = f"{name} could not be synced and will be tried again: {reason}"
            emit(log, FlowEvent(self._flow_name, text, level), unexpected)

    def errors(self, *names: str) -> str:
        """Why these failed the last time, if they did."""
        return "\n".join(f"{name}: {self._errors[name]}" for name in names if name in self._errors)

    def measures(self) -> list[JobMeasure]:
        now, last_success = time.monotonic(), self._last_success
        return [
            JobMeasure(
                syncer.name,
                syncer.name in self._errors,
                now - last_success[syncer.name] if syncer.name in last_success else None,
            )
            for syncer in self.syncers
        ]
