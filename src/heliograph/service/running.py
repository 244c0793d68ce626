"""A running deployment: Spark and all flows, from start to an orderly end."""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from heliograph.copy.work import MirrorPartition, Outcome, Work
from heliograph.engine.spark import Engine
from heliograph.model.flow import SOURCE, Cluster, Flow
from heliograph.service.flow import FlowRunner
from heliograph.service.keeper import Keeper, finished
from heliograph.service.status import FlowStatus
from heliograph.wire.background import in_thread
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)

_SAMPLE_EVERY = 0.25
# SIGTERM to exit takes two seconds at most: this much for leases to end, for last words, for Spark.
_LEASES_END = 0.8
_KEEPERS_END = 0.2
_SPARK_ENDS = 0.8


class UnreachableCluster(Exception):
    """A cluster of the configuration does not answer."""

    def __init__(self, cluster: Cluster, reason: str) -> None:
        self.cluster = cluster
        super().__init__(f"cluster {cluster.alias} cannot be reached: {reason}")


class SparkDied(Exception):
    """The JVM is gone."""


class _Stopped(Exception):
    """Stop was asked for before the flows ran."""


class Running:
    def __init__(
        self,
        flows: Sequence[Flow],
        *,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        until_caught_up: bool = False,
    ) -> None:
        self._flows = tuple(flows)
        copying = tuple(flow for flow in flows if SOURCE in flow.parts)
        # One slot more than leases: Spark never pre-empts, and a lease that is retried needs a place.
        slots = sum(flow.tasks_max for flow in copying) + 1
        self._engine = Engine(slots, master, conf)
        self._until_caught_up = until_caught_up
        self._stop = asyncio.Event()
        self._run_id = uuid.uuid4().hex[:8]
        self._runners = [FlowRunner(flow, copying, self._lease, self._cancel, self._run_id) for flow in copying]
        self._keepers = [Keeper(runner.flow, runner.positions) for runner in self._runners]
        self._keepers += [Keeper(flow) for flow in flows if flow not in copying]
        self.ready = asyncio.Event()

    def stop(self) -> None:
        """Ask for an orderly end; from the event loop's thread."""
        self._stop.set()

    def status(self) -> list[FlowStatus]:
        return [runner.status() for runner in self._runners]

    def behind(self) -> list[tuple[str, MirrorPartition]]:
        """With until_caught_up: what could not be caught up with."""
        return [(runner.flow.name, one) for runner in self._runners for one in runner.behind()]

    async def run(self) -> None:
        """Until stopped, or caught up if that was asked for."""
        flows: list[asyncio.Task[None]] = []
        keeping: list[asyncio.Task[None]] = []
        try:
            await self._unless_stopped(self._reach_clusters())
            spark = in_thread(self._engine.start if self._runners else lambda: None)
            spark.add_done_callback(lambda done: done.cancelled() or done.exception())  # if it comes too late to matter
            await self._unless_stopped(self._prepare())
            await self._unless_stopped(spark)
            flows = [asyncio.create_task(runner.run()) for runner in self._runners]
            keeping = [asyncio.create_task(keeper.run()) for keeper in self._keepers]
            self.ready.set()
            await self._watch(flows)
            if not self._stop.is_set():  # caught up
                await asyncio.gather(*(keeper.translate_once() for keeper in self._keepers))
        except _Stopped:
            pass
        finally:
            for task in keeping:
                task.cancel()
            await self._end(flows)

    async def _reach_clusters(self) -> None:
        clusters = {
            one.alias: one
            for flow in self._flows
            for one in ((flow.source, flow.target) if flow.reads_source else (flow.target,))
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

    async def _prepare(self) -> None:
        async def prepare(runner: FlowRunner) -> None:
            await runner.connect()
            await runner.prepare()
            if self._until_caught_up:
                await runner.set_goals()

        await asyncio.gather(*(keeper.prepare() for keeper in self._keepers))
        await asyncio.gather(*(prepare(runner) for runner in self._runners))

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

    async def _watch(self, flows: list[asyncio.Task[None]]) -> None:
        while not self._stop.is_set():
            for runner in self._runners:
                runner.sample()
            if self._until_caught_up and all(runner.caught_up() for runner in self._runners):
                return
            if not self._engine.alive:
                raise SparkDied("Spark's JVM has died")
            for flow in flows:
                if flow.done():
                    flow.result()
            with suppress(TimeoutError):
                async with asyncio.timeout(_SAMPLE_EVERY):
                    await self._stop.wait()

    async def _end(self, flows: list[asyncio.Task[None]]) -> None:
        began = time.monotonic()
        if flows:
            asking = [asyncio.create_task(runner.stop()) for runner in self._runners]
            await asyncio.wait([*asking, *flows], timeout=_LEASES_END)
            for task in (*asking, *flows):
                task.cancel()
            await asyncio.gather(*asking, *flows, return_exceptions=True)
        await finished(self._keepers, _KEEPERS_END)
        for runner in self._runners:
            runner.sample()
            runner.close()
        for keeper in self._keepers:
            keeper.close()
        try:
            async with asyncio.timeout(_SPARK_ENDS):
                await in_thread(self._engine.stop)
        except Exception as error:
            log.debug("Spark is killed: %r", error)
            self._engine.kill()
        log.debug("ended in %.2f s", time.monotonic() - began)
