"""The two parts of a running flow: copying records, and syncing everything else."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from heliograph.model.flow import SOURCE, Flow
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_runner import FlowRunner
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.service.flow_view import Task

MakeRunner = Callable[[Flow, FlowClients], FlowRunner]

_FINISH_WITHIN = 2.0


class CopyingPart:
    """The flow's runner, if it copies. Its positions and tasks are still known after it has ended."""

    def __init__(self, make_runner: MakeRunner) -> None:
        self.runner: FlowRunner | None = None
        self._make_runner = make_runner
        self._task: asyncio.Task[None] | None = None
        self._last_positions: Mapping[MirrorPartition, Position] = {}
        self._last_tasks: list[Task] = []
        self.run_ids: set[str] = set()  # of all its runners so far

    async def prepare(self, flow: Flow, clients: FlowClients) -> FlowRunner:
        runner = self._make_runner(flow, clients)
        self.run_ids.add(runner.run_id)
        await runner.connect()
        await runner.prepare()
        self.runner = runner
        return runner

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """If it is prepared and does not run yet."""
        if self.runner is not None and self._task is None:
            self._task = tasks.create_task(self.runner.run())

    async def end(self) -> None:
        """Returns when all leases have ended."""
        runner = self.runner
        if runner is None:
            return
        if self._task is not None:
            await runner.stop()
            await self._task
            self._task = None
        self._last_positions = runner.view.positions()
        self._last_tasks = [Task(task.partitions, False) for task in runner.view.tasks()]
        self.runner = None

    async def end_within(self, seconds: float) -> None:
        """What has not ended by then is cancelled. Positions and tasks stay those of the runner."""
        if self.runner is None or self._task is None:
            return
        stopping = asyncio.create_task(self.runner.stop())
        await asyncio.wait([stopping, self._task], timeout=seconds)
        for task in (stopping, self._task):
            task.cancel()
        await asyncio.gather(stopping, self._task, return_exceptions=True)

    @property
    def is_running(self) -> bool:
        return self._task is not None

    def positions(self) -> Mapping[MirrorPartition, Position]:
        """How far it has copied, or had when it ended."""
        return self.runner.view.positions() if self.runner is not None else self._last_positions

    def alter(self, altered: Mapping[MirrorPartition, Position], forgotten: Collection[MirrorPartition]) -> None:
        """Positions that an operator has set, and those that were reset, while it does not run."""
        known = {**self._last_positions, **altered}
        self._last_positions = {partition: at for partition, at in known.items() if partition not in forgotten}

    def tasks(self) -> list[Task]:
        """The leases that should run, or should have when it ended."""
        return self.runner.view.tasks() if self.runner is not None else self._last_tasks


class SyncingPart:
    """The flow's syncers."""

    def __init__(self) -> None:
        self.syncers: FlowSyncers | None = None
        self.started_parts: frozenset[str] = frozenset()  # that run, or have run
        self._had_groups = False
        self._task: asyncio.Task[None] | None = None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """If they are prepared and do not run yet."""
        if self.syncers is not None and self._task is None:
            self.started_parts |= self.syncers.flow.parts
            self._task = tasks.create_task(self.syncers.run())

    async def replace(self, syncers: FlowSyncers | None, tasks: asyncio.TaskGroup) -> None:
        """The new ones start before the old ones end, so that what both sync does not pause."""
        self._had_groups = self.has_groups
        old, old_task = self.syncers, self._task
        self.syncers, self._task = syncers, None
        self.start(tasks)
        if syncers is not None and old is not None:
            syncers.take_over(old)
        if old_task is not None:
            old_task.cancel()
            await asyncio.gather(old_task, return_exceptions=True)
        if old is not None and (syncers is None or SOURCE not in syncers.flow.parts):
            with suppress(TimeoutError):
                async with asyncio.timeout(_FINISH_WITHIN):
                    await old.finish()

    @property
    def has_groups(self) -> bool:
        """Whether there are groups to translate, or were before the syncers ended or were replaced."""
        if self.syncers is None or not self.syncers.checkpoint_syncer.loaded:
            return self._had_groups
        return bool(self.syncers.checkpoints.groups)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def runs_part(self, part: str) -> bool:
        return self._task is not None and self.syncers is not None and part in self.syncers.flow.parts
