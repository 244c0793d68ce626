"""One flow of a running deployment: started, changed while it runs, and ended, without touching the others."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

from heliograph.control.internal_topic_setup import MissingTopics
from heliograph.control.mm2_workers import StillRunning
from heliograph.engine.spark import SparkFailed
from heliograph.model.flow import SOURCE, Flow
from heliograph.model.ledger_records import NewerFormat
from heliograph.service.events import FlowEvent, emit, flow_scope
from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_parts import CopyingPart, MakeRunner, SyncingPart
from heliograph.service.flow_runner import FlowRunner
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.service.task_groups import first_error, raise_if_cancelled
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)

_RETRY_INTERVAL = 10.0
# What can keep a flow from running, with messages for the operator. Anything else is a bug.
EXPECTED = (WireError, MissingTopics, StillRunning, SparkFailed, NewerFormat)


class FlowSupervisor:
    """A flow without parts is paused: nothing of it runs and it has no connections, but its positions and tasks are
    known.

    `trouble` is why the flow does not run as configured; empty if it does. The flow is then retried every 10 s."""

    def __init__(
        self,
        flow: Flow,
        make_runner: MakeRunner,
        wait_for_spark: Callable[[], Awaitable[None]],
        make_clients: Callable[[Flow], FlowClients] = FlowClients,
    ) -> None:
        self.wanted: Flow | None = flow
        self._applied: Flow | None = flow  # the last one that was wanted, and is or was being started
        self._is_applying = False
        self.name = flow.name
        self.trouble = ""
        self._wait_for_spark = wait_for_spark
        self._make_clients = make_clients
        self._clients: FlowClients | None = None
        self.copying = CopyingPart(make_runner)
        self.syncing = SyncingPart()
        self._reconciling: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._restart = False
        self._leases_to_restart: set[int] = set()

    # --- what it is asked to do -----------------------------------------------------------------------------

    def want(self, flow: Flow | None) -> None:
        """None: the flow is to end."""
        if flow != self.wanted:
            self.wanted = flow
            self._changed.set()

    def restart(self, whole_flow: bool, leases: Collection[int]) -> None:
        """`whole_flow`: prepare everything again. `leases`: those that are to end and start again."""
        self._restart = self._restart or whole_flow
        self._leases_to_restart |= set(leases)
        self._changed.set()

    async def prepare(self, until_caught_up: bool) -> None:
        """Everything but starting, before the first `run`. Raises what fails."""
        assert self.wanted is not None
        if not self.wanted.parts:
            return
        with flow_scope(self.name):
            self._clients = self._make_clients(self.wanted)
            self.syncing.syncers = await self._prepared_syncers(self.wanted, self._clients)
            if SOURCE in self.wanted.parts:
                runner = await self.copying.prepare(self.wanted, self._clients)
                if until_caught_up:
                    await runner.set_goals()

    async def run(self, ended: Callable[[], None]) -> None:
        """Until `end`; or until nothing is wanted any more, then calls `ended`. Raises what copying or syncing fails
        with: neither should."""
        try:
            with flow_scope(self.name):
                async with asyncio.TaskGroup() as tasks:
                    self._start(tasks)
                    self._reconciling = tasks.create_task(self._reconcile(tasks, ended))
        except BaseExceptionGroup as errors:
            raise first_error(errors) from None

    async def end(self, within: float) -> None:
        """Ends copying and syncing, leases first and in an orderly way. What takes longer is cancelled."""
        if self._reconciling is not None:
            self._reconciling.cancel()
            await asyncio.gather(self._reconciling, return_exceptions=True)
        self.syncing.cancel()
        await self.copying.end_within(within)

    async def finish(self) -> None:
        """After `end`: writes how far the flow is copied."""
        if self.syncers is not None:
            await self.syncers.finish()

    async def translate_once(self) -> None:
        if self.syncers is not None:
            await self.syncers.translate_once()

    def close(self) -> None:
        if self._clients is not None:
            self._clients.close()
            self._clients = None

    # --- what others see ------------------------------------------------------------------------------------

    @property
    def runner(self) -> FlowRunner | None:
        return self.copying.runner

    @property
    def syncers(self) -> FlowSyncers | None:
        return self.syncing.syncers

    @property
    def is_copying(self) -> bool:
        return self.copying.is_running

    @property
    def has_stopped_copying(self) -> bool:
        """Whether it neither copies nor is about to, and has written how far it has."""
        is_settled = not self._is_applying and self._applied == self.wanted
        return is_settled and self.runner is None and (self.wanted is None or SOURCE not in self.wanted.parts)

    def runs_part(self, part: str) -> bool:
        """For parts other than copying."""
        return self.syncing.runs_part(part)

    # --- from what runs to what is wanted -------------------------------------------------------------------

    async def _reconcile(self, tasks: asyncio.TaskGroup, ended: Callable[[], None]) -> None:
        while True:
            self._changed.clear()
            wanted = self._applied = self.wanted
            self._is_applying = True
            try:
                await self._apply(wanted, tasks)
                self.trouble = ""
            except EXPECTED as error:
                self._note_failure(wanted, str(error), None)
            except Exception as error:
                self._note_failure(wanted, repr(error), error)
            self._is_applying = False
            raise_if_cancelled()
            if wanted is None and self.wanted is None:
                self.close()
                ended()
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_INTERVAL if self.trouble else None):
                    await self._changed.wait()

    def _note_failure(self, wanted: Flow | None, trouble: str, unexpected: Exception | None) -> None:
        if trouble != self.trouble and (wanted is not None or unexpected is not None):
            text = f"does not run and will be tried again: {trouble.removeprefix(f'{self.name}: ')}"
            emit(log, FlowEvent(self.name, text, logging.ERROR), unexpected)
        self.trouble = trouble

    async def _apply(self, flow: Flow | None, tasks: asyncio.TaskGroup) -> None:
        restart, self._restart = self._restart or bool(self.trouble), False
        leases, self._leases_to_restart = self._leases_to_restart, set()
        runner = self.runner
        if runner is not None and (flow is None or SOURCE not in flow.parts or runner.flow.needs_new_runner(flow)):
            await self.copying.end()
        if flow is None or not flow.parts:
            await self.syncing.replace(None, tasks)
            self.close()
            return
        if self.syncers is None or self.syncers.flow != flow or restart:
            await self._replace_syncers(flow, tasks)
        assert self._clients is not None
        if SOURCE in flow.parts:
            if self.runner is None:
                await self.copying.prepare(flow, self._clients)
            elif self.runner.flow != flow:
                await self.runner.change(flow)
            elif restart:
                await self.runner.refresh_topics()
            assert self.runner is not None
            await self.runner.restart_leases(leases)
            await self._wait_for_spark()
        self._start(tasks)

    def _start(self, tasks: asyncio.TaskGroup) -> None:
        self.copying.start(tasks)
        self.syncing.start(tasks)

    async def _replace_syncers(self, flow: Flow, tasks: asyncio.TaskGroup) -> None:
        """With new clients where the clusters are others. The old ones are needed until the old syncers have ended."""
        old = self._clients
        clients = old if old is not None and old.are_for(flow) else self._make_clients(flow)
        try:
            syncers = await self._prepared_syncers(flow, clients)
        except BaseException:
            if clients is not old:
                clients.close()
            raise
        self._clients = clients
        try:
            await self.syncing.replace(syncers, tasks)
        finally:
            if old is not None and old is not clients:
                old.close()

    async def _prepared_syncers(self, flow: Flow, clients: FlowClients) -> FlowSyncers:
        syncers = FlowSyncers(flow, self.copying.positions, clients)
        await syncers.prepare()
        return syncers
