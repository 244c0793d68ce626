"""Runs one flow: prepares the mirrors, then runs its parts until it is stopped or one of them fails."""

import asyncio
from collections.abc import Collection

from heliograph.copy.signals import fence_command
from heliograph.model.flow import Flow
from heliograph.model.partitions import MirrorPartition
from heliograph.service.catch_up import CatchUpGoals
from heliograph.service.error_log import ErrorLog
from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_context import FlowContext
from heliograph.service.flow_stats import SHOWN, FlowStats
from heliograph.service.flow_view import FlowView
from heliograph.service.lease_pool import CancelLease, LeasePool, RunLease
from heliograph.service.lease_reports import LeaseReports
from heliograph.service.mirror_check import MirrorChecker
from heliograph.service.mirrors import Mirrors
from heliograph.service.signals_channel import SignalsChannel
from heliograph.service.status_writer import StatusWriter
from heliograph.service.topic_watcher import TopicWatcher

_CANCEL_EVERY = 0.1


class FlowRunner:
    def __init__(
        self,
        flow: Flow,
        flows: tuple[Flow, ...],
        run_lease: RunLease,
        cancel_lease: CancelLease,
        run_id: str,
        clients: FlowClients | None = None,
    ) -> None:
        """Without `clients`, it makes and closes its own."""
        self._own_clients = FlowClients(flow) if clients is None else None
        clients = clients or self._own_clients
        assert clients is not None
        refresh_needed = asyncio.Event()
        stats = FlowStats(flow.name, refresh_needed.set)
        context = FlowContext(flow, run_id, clients, refresh_needed, stats, ErrorLog(), clients.epoch)
        self._context = context
        self._mirrors = Mirrors(context, flows)
        self._signals = SignalsChannel(context)
        self._pool = LeasePool(context, self._signals, run_lease, cancel_lease)
        self._reports = LeaseReports(context, self._pool, self._signals, self._mirrors)
        self._goals = CatchUpGoals(context)
        self._watcher = TopicWatcher(context, self._mirrors, self._pool, self._goals)
        self._checker = MirrorChecker(context, self._pool)
        self._status_writer = StatusWriter(context, self._signals)
        self.view = FlowView(context, self._mirrors, self._pool, self._status_writer.other_runs)

    @property
    def flow(self) -> Flow:
        return self._context.flow

    @property
    def run_id(self) -> str:
        """As the status has it."""
        return self._context.run_id

    async def connect(self) -> None:
        context = self._context
        await asyncio.gather(context.source.connect(), context.target.connect(), context.signals.connect())

    async def prepare(self) -> None:
        """Makes the mirrors ready, and reads the ledger."""
        await self._context.ledger.catch_up()
        await self._watcher.refresh()
        self._status_writer.start_at(await self._signals.seek_to_end())
        if self._context.epoch:
            await self._signals.send(fence_command(self._context.epoch))

    async def run(self) -> None:
        """Until `stop`; then returns when the last lease has ended. Raises what a part fails with."""
        async with asyncio.TaskGroup() as parts:
            background = [
                parts.create_task(part)
                for part in (
                    self._signals.follow(self._reports.handle),
                    self._watcher.run(),
                    self._checker.run(),
                    self._status_writer.run(lambda: self.view.status(SHOWN)),
                )
            ]
            await self._pool.run()
            # asyncio.gather swallows a cancellation if one of its parts fails at the same moment: cancel again.
            while unfinished := [task for task in background if not task.done()]:
                for task in unfinished:
                    task.cancel()
                await asyncio.wait(unfinished, timeout=_CANCEL_EVERY)

    async def stop(self) -> None:
        """Asks all running leases to end. They would at their deadline anyway."""
        await self._pool.stop()

    def close(self) -> None:
        if self._own_clients is not None:
            self._own_clients.close()

    async def change(self, flow: Flow) -> None:
        """Continues with other settings. What leases do not use takes effect while they run."""
        before, self._context.flow = self.flow, flow
        self._context.refresh_needed.set()  # the watcher's interval may have changed
        try:
            await self._watcher.refresh()
        finally:
            if before.lease_settings != flow.lease_settings:
                await self.restart_leases(range(len(self._pool.assignor.assignment)))

    async def restart_leases(self, numbers: Collection[int]) -> None:
        """Makes leases end and start again, one after the other."""
        await self._pool.restart(numbers)

    async def refresh_topics(self) -> None:
        await self._watcher.refresh()

    def use_flows(self, flows: tuple[Flow, ...]) -> None:
        """All flows that copy: together they may form a cycle."""
        self._mirrors.use_flows(flows)

    async def set_goals(self) -> None:
        """`caught_up` is measured against the present ends of the source."""
        await self._goals.set([partition for lease in self._pool.assignor.assignment for partition in lease])

    async def caught_up(self) -> bool:
        """Whether every partition has reached its goal or is stopped, and the mirrors hold what was copied."""
        return await self._goals.reached(self._checker)

    def behind(self) -> list[MirrorPartition]:
        """Partitions that have not reached their goal."""
        return self._goals.behind()
