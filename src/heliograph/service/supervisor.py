"""A running deployment: Spark and all flows, from start to an orderly end."""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from heliograph.copy.ledger import Ledger
from heliograph.copy.work import Outcome, Work
from heliograph.engine.spark import Engine
from heliograph.model.flow import SOURCE, Cluster, Flow
from heliograph.model.partitions import MirrorPartition
from heliograph.service.flow_runner import FlowRunner
from heliograph.service.flow_status import FlowStatus
from heliograph.service.flow_supervisor import FlowSupervisor
from heliograph.service.flow_syncers import FlowSyncers, finished
from heliograph.wire.background import in_thread
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)

_SAMPLE_EVERY = 0.25
# SIGTERM to exit takes two seconds at most: this much for leases to end, for last words, for Spark.
_LEASES_END = 0.8
_KEEPERS_END = 0.2
_SPARK_ENDS = 0.8
_UNHURRIED = 10.0
# Leases that Spark can run side by side, also those of flows that come later. Only threads: they cost nothing idle.
_SLOTS = 256


class UnreachableCluster(Exception):
    """A cluster of the configuration does not answer."""

    def __init__(self, cluster: Cluster, reason: str) -> None:
        self.cluster = cluster
        super().__init__(f"cluster {cluster.alias} cannot be reached: {reason}")


class SparkDied(Exception):
    """The JVM is gone."""


class _Stopped(Exception):
    """Stop was asked for before the flows ran."""


class Supervisor:
    """`stays`: goes on without any flow, and a flow that cannot run keeps nobody else from it. Otherwise what is wanted
    from the start must be possible."""

    def __init__(
        self,
        flows: Sequence[Flow],
        *,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        until_caught_up: bool = False,
        stays: bool = False,
    ) -> None:
        # One slot more than leases: Spark never pre-empts, and a lease that is retried needs a place.
        slots = sum(flow.tasks_max for flow in flows if SOURCE in flow.parts) + 1
        self._engine = Engine(max(slots, _SLOTS), master, conf)
        self._until_caught_up = until_caught_up
        self._stays = stays
        self._stop = asyncio.Event()
        self._spark: asyncio.Future[None] | None = None
        self.deployed: dict[str, FlowSupervisor] = {}
        self._lives: dict[str, asyncio.Task[None]] = {}
        for flow in flows:
            self._deploy(flow)
        self.ready = asyncio.Event()

    def stop(self) -> None:
        """Ask for an orderly end; from the event loop's thread."""
        self._stop.set()

    def apply(self, flows: Sequence[Flow]) -> None:
        """What is wanted from now on. Only flows that differ are touched, and each of them on its own."""
        wanted = {flow.name: flow for flow in flows}
        for name, one in self.deployed.items():
            one.want(wanted.get(name))
        for name, flow in wanted.items():
            if name not in self.deployed:
                one = self._deploy(flow)
                if self.ready.is_set():
                    self._begin(name, one)
        copying = self.copying()
        for one in self.deployed.values():
            if one.runner is not None:
                one.runner.use_flows(copying)

    def status(self) -> list[FlowStatus]:
        return [runner.view.status() for runner in self._runners()]

    @property
    def spark_is_up(self) -> bool:
        started = self._spark is not None and self._spark.done() and not self._spark.cancelled()
        return started and self._spark is not None and self._spark.exception() is None and self._engine.alive

    def behind(self) -> list[tuple[str, MirrorPartition]]:
        """With until_caught_up: what could not be caught up with."""
        return [(runner.flow.name, one) for runner in self._runners() for one in runner.behind()]

    async def run(self) -> None:
        """Until stopped, or caught up if that was asked for."""
        try:
            await self._unless_stopped(self._get_ready())
            for name, one in self.deployed.items():
                one.start()
                self._begin(name, one)
            self.ready.set()
            await self._watch()
            if not self._stop.is_set():  # caught up
                await asyncio.gather(*(keeper.translate_once() for keeper in self._keepers()))
        except _Stopped:
            pass
        finally:
            await self._end()

    async def _get_ready(self) -> None:
        if self._stays:
            self._start_spark()
            return
        await self._reach_clusters()
        if self.copying():
            self._start_spark()
        await asyncio.gather(*(one.prepare(self._until_caught_up) for one in self.deployed.values()))
        if self.copying():
            await self._spark_is_up()

    def _deploy(self, flow: Flow) -> FlowSupervisor:
        one = self.deployed[flow.name] = FlowSupervisor(flow, self._make_runner, self._spark_is_up)
        return one

    def _begin(self, name: str, one: FlowSupervisor) -> None:
        async def live() -> None:
            await one.live()
            del self.deployed[name], self._lives[name]

        self._lives[name] = asyncio.create_task(live())

    def _make_runner(self, flow: Flow, ledger: Ledger) -> FlowRunner:
        # Names of leases are never used twice: one that was thought to have ended may still speak.
        return FlowRunner(flow, self.copying(), self._lease, self._cancel, uuid.uuid4().hex[:8], ledger)

    def _start_spark(self) -> None:
        if self._spark is None:
            self._spark = in_thread(self._engine.start)
            self._spark.add_done_callback(lambda done: done.cancelled() or done.exception())  # if it comes too late

    async def _spark_is_up(self) -> None:
        """Started when it is needed first."""
        self._start_spark()
        assert self._spark is not None
        await asyncio.shield(self._spark)

    def copying(self) -> tuple[Flow, ...]:
        wanted = (one.wanted for one in self.deployed.values())
        return tuple(flow for flow in wanted if flow is not None and SOURCE in flow.parts)

    def _runners(self) -> list[FlowRunner]:
        return [one.runner for one in self.deployed.values() if one.runner is not None]

    def _keepers(self) -> list[FlowSyncers]:
        return [one.keeper for one in self.deployed.values() if one.keeper is not None]

    async def _reach_clusters(self) -> None:
        clusters = {
            cluster.alias: cluster
            for flow in (one.wanted for one in self.deployed.values())
            if flow is not None
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

        await asyncio.gather(*(reach(cluster) for cluster in clusters.values()))

    async def _unless_stopped(self, work: Awaitable[Any]) -> None:
        """Wait for this, or give it up as soon as somebody says stop."""
        wanted = asyncio.ensure_future(work)
        stop: asyncio.Future[Any] = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({wanted, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if self._stop.is_set():
            wanted.cancel()
            await asyncio.gather(wanted, return_exceptions=True)
            raise _Stopped
        await wanted

    async def _lease(self, work: Work) -> Outcome:
        return await in_thread(lambda: self._engine.run(work))

    async def _cancel(self, lease: str) -> None:
        await in_thread(lambda: self._engine.cancel(lease))

    async def _watch(self) -> None:
        while not self._stop.is_set():
            for runner in self._runners():
                runner.view.sample()
            if self._until_caught_up and await self._caught_up():
                return
            if self._spark is not None and self._spark.done():
                self._spark.result()
            if not self._engine.alive:
                raise SparkDied("Spark's JVM has died")
            for one in self.deployed.values():
                one.check()
            with suppress(TimeoutError):
                async with asyncio.timeout(_SAMPLE_EVERY):
                    await self._stop.wait()

    async def _caught_up(self) -> bool:
        for runner in self._runners():
            if not await runner.caught_up():
                return False
        return True

    async def _end(self) -> None:
        began = time.monotonic()
        for task in self._lives.values():
            task.cancel()
        await asyncio.gather(*self._lives.values(), return_exceptions=True)
        for one in self.deployed.values():
            one.cancel_keeping()
        flows = [task for one in self.deployed.values() for task in one.running()]
        if flows:
            asking = [asyncio.create_task(runner.stop()) for runner in self._runners()]
            await asyncio.wait([*asking, *flows], timeout=_LEASES_END)
            for task in (*asking, *flows):
                task.cancel()
            await asyncio.gather(*asking, *flows, return_exceptions=True)
        # What is written last is what MirrorMaker 2 goes by: nobody waits when everything is copied.
        left = _LEASES_END + _KEEPERS_END - (time.monotonic() - began)
        await finished(self._keepers(), max(left, _KEEPERS_END) if self._stop.is_set() else _UNHURRIED)
        for runner in self._runners():
            runner.view.sample()
            runner.close()
        for keeper in self._keepers():
            keeper.close()
        for one in self.deployed.values():
            one.close_ledger()
        try:
            async with asyncio.timeout(_SPARK_ENDS):
                await in_thread(self._engine.stop)
        except Exception as error:
            log.debug("Spark is killed: %r", error)
            self._engine.kill()
        log.debug("ended in %.2f s", time.monotonic() - began)
