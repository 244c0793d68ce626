"""`heliograph demo`: mirrors two clusters both ways under load, then compares them."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from heliograph.cli.screen import flow_table, number, set_up_logging, size
from heliograph.cli.shop import TOPICS, Shop
from heliograph.config import load
from heliograph.copy.compare import compare
from heliograph.engine.spark import SparkFailed
from heliograph.model.flow import Flow
from heliograph.model.partitions import MirrorPartition
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxError
from heliograph.service.supervisor import SparkDied, Supervisor, UnreachableCluster
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError

_PATIENCE = 90.0

_SETTINGS = """\
clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}

east->west.enabled = true
east->west.topics = orders, payments
west->east.enabled = true
west->east.topics = orders, payments

replication.factor = 1
refresh.topics.interval.seconds = 5
# Without heartbeats, only the records of the shops are counted.
emit.heartbeats.enabled = false
"""

_NEXT = """
Next, on clusters of your own:
  heliograph run mm2.properties --until-caught-up   copy all existing records, then end
  heliograph run mm2.properties                     mirror until Ctrl-C
  heliograph sandbox                                start two empty clusters to experiment with
"""


def demo(
    seconds: Annotated[float, typer.Option(min=1, help="How long to produce records.")] = 20.0,
    keep: Annotated[bool, typer.Option("--keep", help="Keep mirroring after the check, until Ctrl-C.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also log details.")] = False,
) -> None:
    """Start two clusters, mirror them both ways while producers write, and compare every byte.

    Example: heliograph demo --seconds 30
    """
    console = Console(stderr=True)
    set_up_logging(console, verbose)
    if not verbose:
        logging.getLogger("heliograph").setLevel(logging.WARNING)
    try:
        with Sandbox() as sandbox:
            console.print("starting two Kafka clusters, east and west")
            east, west = sandbox.start({"east": ClusterSpec(), "west": ClusterSpec()})
            file = sandbox.folder / "mm2.properties"
            file.write_text(_SETTINGS.format(east=east.bootstrap, west=west.bootstrap))
            fine = asyncio.run(Demo(file, console).show(seconds, keep))
    except (SandboxError, SparkDied, SparkFailed, UnreachableCluster, WireError) as error:
        typer.echo(f"heliograph: {error}", err=True)
        raise typer.Exit(1) from error
    if not fine:
        raise typer.Exit(1)


class Demo:
    def __init__(self, file: Path, console: Console) -> None:
        deployment = load(file)
        self._file = file
        self._console = console
        self._flows = deployment.flows
        self._running = Supervisor((*deployment.flows, *deployment.heartbeat_only_flows))
        self._clients = [ClusterClient(cluster) for cluster in deployment.clusters.values()]
        self._interrupted = False

    async def show(self, seconds: float, keep: bool) -> bool:
        """Returns whether mirror and source are identical; true if interrupted."""
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(signal_number, self._interrupt)
        shops = [Shop(client) for client in self._clients]
        for shop in shops:
            await shop.open()
        self._console.print("producing orders and payments on both; starting Spark")
        selling = [asyncio.create_task(shop.run()) for shop in shops]
        mirroring = asyncio.create_task(self._running.run())
        try:
            fine = await self._acts(shops, selling, mirroring, seconds)
            if keep and fine and not self._interrupted:
                self._console.print(f"still mirroring, from {self._file}; Ctrl-C ends everything")
                selling = [asyncio.create_task(Shop(client).run()) for client in self._clients]
                await self._table("mirroring both ways", mirroring, lambda: False)
            return fine
        finally:
            for task in selling:
                task.cancel()
            self._running.stop()
            await asyncio.gather(*selling, return_exceptions=True)
            await mirroring
            for client in self._clients:
                client.close()

    def _interrupt(self) -> None:
        self._interrupted = True
        self._running.stop()

    async def _acts(
        self,
        shops: list[Shop],
        selling: "list[asyncio.Task[None]]",
        mirroring: "asyncio.Task[None]",
        seconds: float,
    ) -> bool:
        await self._table("starting Spark", mirroring, self._started)
        began = time.monotonic()
        await self._table("mirroring while producers write", mirroring, lambda: time.monotonic() > began + seconds)
        for shop in shops:
            shop.close()
        await asyncio.gather(*selling)
        patient = time.monotonic() + _PATIENCE
        await self._table(
            "producers have ended", mirroring, lambda: self._caught_up(shops) or time.monotonic() > patient
        )
        elapsed = time.monotonic() - began
        if self._interrupted or mirroring.done():
            return self._interrupted
        flows = self._running.status()
        fine = await self._identical() and not any(flow.refusals or flow.failed_topics for flow in flows)
        copied = sum(flow.records for flow in flows)
        self._console.print(
            f"mirrored: {copied:,} records, {size(sum(flow.size for flow in flows))}, in {len(flows)} flows with "
            f"{sum(flow.mirrors for flow in flows)} mirrors; {number(copied / elapsed)} records/s",
            soft_wrap=True,
        )
        if fine:
            self._console.print(_NEXT, highlight=False, soft_wrap=True)
        return fine

    def _started(self) -> bool:
        return self._running.ready.is_set() and all(flow.records for flow in self._running.status())

    def _caught_up(self, shops: list[Shop]) -> bool:
        return sum(flow.records for flow in self._running.status()) >= sum(shop.records for shop in shops)

    async def _table(self, title: str, mirroring: "asyncio.Task[None]", until: Callable[[], bool]) -> None:
        with Live(console=self._console, refresh_per_second=4, transient=True) as live:
            while not (until() or self._interrupted or mirroring.done()):
                if self._console.is_terminal:
                    live.update(flow_table(self._running.status(), title))
                await asyncio.sleep(0.25)
        self._console.print(flow_table(self._running.status(), title))

    async def _identical(self) -> bool:
        records = total = 0
        differences = []
        for flow, partition in self._pairs():
            source, target = ClusterClient(flow.source), ClusterClient(flow.target)
            compared = await compare(source, target, partition)
            source.close()
            target.close()
            records += compared.records
            total += compared.size
            if compared.difference:
                differences.append(f"{flow.name} {compared.difference}")
        for difference in differences:
            self._console.print(f"DIFFERENT: {difference}", style="bold red", soft_wrap=True)
        if not differences:
            what = f"{records:,} records, {size(total)}"
            self._console.print(
                f"identical: {what}, byte for byte on source and mirror", style="bold green", soft_wrap=True
            )
        return not differences

    def _pairs(self) -> list[tuple[Flow, MirrorPartition]]:
        return [
            (flow, MirrorPartition(name, flow.mirror_name(name), partition))
            for flow in self._flows
            for name, count in TOPICS.items()
            for partition in range(count)
        ]
