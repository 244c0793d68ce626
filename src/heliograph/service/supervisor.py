"""A running deployment: Spark and all flows, from start to an orderly end."""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from heliograph.model.flow import SOURCE, Cluster, Flow
from heliograph.model.partitions import MirrorPartition
from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_runner import FlowRunner
from heliograph.service.flow_status import FlowStatus
from heliograph.service.flow_supervisor import FlowSupervisor
from heliograph.service.lease_engine import LeaseEngine
from heliograph.service.members import Members
from heliograph.service.task_groups import run_all
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)

_SAMPLE_INTERVAL = 0.25
# From SIGTERM to exit takes two seconds at most: these are the shares of leases, of the last offsets, and of Spark.
_LEASES_END_WITHIN = 0.8
_FINISH_WITHIN = 0.2
_SPARK_STOPS_WITHIN = 0.8
_FINISH_WITHOUT_HURRY = 10.0
_DECIDED_WITHIN = 10.0  # which flows this member drives; a new cluster takes seconds to have a group coordinator
# Leases that Spark can run side by side, also those of flows that are added later. Slots are threads: idle, they cost
# nothing.
_SLOTS = 256


class UnreachableCluster(Exception):
    """A cluster of the configuration does not answer."""

    def __init__(self, cluster: Cluster, reason: str) -> None:
        self.cluster = cluster
        super().__init__(f"cluster {cluster.alias} cannot be reached: {reason}")


class SparkDied(Exception):
    """The JVM is gone."""


class _Stopped(Exception):
    """`stop` was called before the flows ran."""


class Supervisor:
    """`stays`: runs on without any flow, and a flow that cannot run does not keep the others from running. Otherwise
    all flows must be able to start. `elsewhere`: flows that copy in other processes. `members`: they share the flows,
    and only those that are assigned to this one run here."""

    def __init__(
        self,
        flows: Sequence[Flow],
        *,
        elsewhere: Sequence[Flow] = (),
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        secure_spark: bool | None = None,
        until_caught_up: bool = False,
        stays: bool = False,
        members: Members | None = None,
    ) -> None:
        # One slot more than leases: Spark never pre-empts, and a lease that is retried needs one.
        slots = sum(flow.tasks_max for flow in flows if SOURCE in flow.parts) + 1
        self._spark = LeaseEngine(max(slots, _SLOTS), master, conf, secure_spark)
        self._until_caught_up = until_caught_up
        self._stays = stays
        self._flows = tuple(flows)
        self._elsewhere = elsewhere
        self._members = members
        self._assigned: frozenset[str] = frozenset()
        self._stop = asyncio.Event()
        self.deployed: dict[str, FlowSupervisor] = {}
        self._tasks: set[asyncio.Task[None]] = set()  # one per flow
        self.ready = asyncio.Event()
        self._is_ending = False
        self._deploy()

    def start_spark(self, without_flows: bool = False) -> None:
        """Ahead of `run`: it starts while other things are prepared. Ends it if it is not needed yet."""
        if self.copying() or without_flows:
            self._spark.start()
        else:
            self._spark.end_ahead()

    def stop(self) -> None:
        """Asks for an orderly end; call it from the event loop's thread."""
        self._stop.set()

    def apply(self, flows: Sequence[Flow], elsewhere: Sequence[Flow] | None = None) -> None:
        """These are the flows from now on. Flows that do not differ are not touched. `elsewhere`: if they have
        changed."""
        self._flows = tuple(flows)
        self._elsewhere = self._elsewhere if elsewhere is None else elsewhere
        self._deploy()

    def assign(self, flows: Collection[str]) -> None:
        """Of all flows, these run here; other members run the others."""
        if self._assigned != frozenset(flows):
            self._assigned = frozenset(flows)
            self._deploy()

    def loads(self) -> dict[str, float | None]:
        """The flows that run here, that are about to, or that have not ended yet, with their loads; None if it is not
        known yet."""
        return {
            name: supervisor.runner.view.load if supervisor.runner is not None else None
            for name, supervisor in self.deployed.items()
        }

    def _is_assigned(self, flow: Flow) -> bool:
        return self._members is None or flow.name in self._assigned or not self._members.shares(flow)

    def _deploy(self) -> None:
        if self._is_ending:
            return
        wanted = {flow.name: flow for flow in self._flows if self._is_assigned(flow)}
        for name, supervisor in self.deployed.items():
            supervisor.want(wanted.get(name))
        for name, flow in wanted.items():
            if name not in self.deployed:
                supervisor = self._add(flow)
                if self.ready.is_set():
                    self._start(supervisor)
        for runner in self._runners():
            runner.use_flows(self.copying_anywhere())

    def status(self) -> list[FlowStatus]:
        return [runner.view.status() for runner in self._runners()]

    @property
    def spark_is_up(self) -> bool:
        return self._spark.is_up

    def behind(self) -> list[tuple[str, MirrorPartition]]:
        """With until_caught_up: partitions that did not catch up."""
        return [(runner.flow.name, partition) for runner in self._runners() for partition in runner.behind()]

    def copying(self) -> tuple[Flow, ...]:
        """The flows that copy."""
        wanted = (supervisor.wanted for supervisor in self.deployed.values())
        return tuple(flow for flow in wanted if flow is not None and SOURCE in flow.parts)

    def copying_anywhere(self) -> tuple[Flow, ...]:
        """With those of other processes: together they may form a cycle."""
        of_others = (flow for flow in self._flows if not self._is_assigned(flow) and SOURCE in flow.parts)
        return *self.copying(), *of_others, *self._elsewhere

    async def run(self) -> None:
        """Until stopped, or caught up if that was asked for."""
        try:
            await self._unless_stopped(self._prepare())
            for supervisor in self.deployed.values():
                self._start(supervisor)
            self.ready.set()
            if self._members is not None:
                self._members.settle()
            await self._watch()
            if not self._stop.is_set():  # caught up
                await run_all(supervisor.translate_once() for supervisor in self.deployed.values())
        except _Stopped:
            pass
        finally:
            await self._end()

    async def _prepare(self) -> None:
        if self._stays:
            self._spark.start()
            return
        await _reach_clusters([flow for flow in self._flows if flow.parts])
        if self._members is not None:
            await self._members.wait_until_decided(_DECIDED_WITHIN)
        if self.copying():
            self._spark.start()
        await run_all(supervisor.prepare(self._until_caught_up) for supervisor in self.deployed.values())
        if self.copying():
            await self._spark.wait_until_up()

    def _add(self, flow: Flow) -> FlowSupervisor:
        supervisor = FlowSupervisor(flow, self._make_runner, self._spark.wait_until_up, self._make_clients)
        self.deployed[flow.name] = supervisor
        return supervisor

    def _start(self, supervisor: FlowSupervisor) -> None:
        self._tasks.add(asyncio.create_task(supervisor.run(lambda: self._remove(supervisor))))

    def _remove(self, supervisor: FlowSupervisor) -> None:
        del self.deployed[supervisor.name]

    def _make_clients(self, flow: Flow) -> FlowClients:
        return FlowClients(flow, self._members.tenure(flow) if self._members is not None else None)

    def _make_runner(self, flow: Flow, clients: FlowClients) -> FlowRunner:
        # Lease ids are never reused: a lease that the driver counts as ended may still report.
        run_id = uuid.uuid4().hex[:8]
        return FlowRunner(flow, self.copying_anywhere(), self._spark.run, self._spark.cancel, run_id, clients)

    def _runners(self) -> list[FlowRunner]:
        return [supervisor.runner for supervisor in self.deployed.values() if supervisor.runner is not None]

    async def _unless_stopped(self, work: Awaitable[Any]) -> None:
        """Waits for it, or cancels it when `stop` is called."""
        task = asyncio.ensure_future(work)
        stop: asyncio.Future[Any] = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if self._stop.is_set():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise _Stopped
        await task

    async def _watch(self) -> None:
        """Until stopped or caught up. Raises what a flow or Spark fails with."""
        while not self._stop.is_set():
            for runner in self._runners():
                runner.view.sample()
            if self._until_caught_up and await self._caught_up():
                return
            if not self._spark.is_alive:
                raise SparkDied("Spark's JVM has died")
            if self._members is not None:
                self._members.check()
            for task in [task for task in self._tasks if task.done()]:
                self._tasks.remove(task)
                task.result()
            with suppress(TimeoutError):
                async with asyncio.timeout(_SAMPLE_INTERVAL):
                    await self._stop.wait()

    async def _caught_up(self) -> bool:
        for runner in self._runners():
            if not await runner.caught_up():
                return False
        return True

    async def _end(self) -> None:
        started = time.monotonic()
        self._is_ending = True
        supervisors = list(self.deployed.values())
        ends = (supervisor.end(_LEASES_END_WITHIN) for supervisor in supervisors)
        for error in await asyncio.gather(*ends, return_exceptions=True):
            if isinstance(error, Exception):
                log.error("a flow did not stop cleanly", exc_info=error)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # MirrorMaker 2 resumes from what is written last. When all is copied nobody waits for the exit.
        left = _LEASES_END_WITHIN + _FINISH_WITHIN - (time.monotonic() - started)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(left, _FINISH_WITHIN) if self._stop.is_set() else _FINISH_WITHOUT_HURRY):
                await asyncio.gather(*(supervisor.finish() for supervisor in supervisors), return_exceptions=True)
        for runner in self._runners():
            runner.view.sample()
        for supervisor in supervisors:
            supervisor.close()
        if self._members is not None:
            await self._members.leave()
        await self._spark.stop(_SPARK_STOPS_WITHIN)
        log.debug("ended in %.2f s", time.monotonic() - started)


async def _reach_clusters(flows: Iterable[Flow]) -> None:
    clusters = {
        cluster.alias: cluster
        for flow in flows
        for cluster in ((flow.source, flow.target) if flow.reads_source else (flow.target,))
    }

    async def reach(cluster: Cluster) -> None:
        client = ClusterClient(cluster)
        try:
            await client.connect()
        except WireError as error:
            raise UnreachableCluster(cluster, str(error)) from error
        finally:
            client.close()

    await run_all(reach(cluster) for cluster in clusters.values())
