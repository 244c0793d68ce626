"""`heliograph run`: mirror what a file says, until stopped."""

import asyncio
import dataclasses
import json
import logging
import signal
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from heliograph.cli.plan import show_plan
from heliograph.cli.screen import FILES, fail, progress_line, set_up_logging
from heliograph.config import ConfigError, Deployment, load_all
from heliograph.control.internal_topics import MissingTopics
from heliograph.control.kept_offsets import CannotKeepOffsets
from heliograph.control.takeover import StillRunning
from heliograph.engine.spark import SparkFailed
from heliograph.service.running import Running, SparkDied, UnreachableCluster
from heliograph.service.status import FlowStatus
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)

_LINE_EVERY = 10.0


def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help=FILES, show_default=False)],
    until_caught_up: Annotated[
        bool,
        typer.Option("--until-caught-up", help="End when every mirror has reached the source's end as of the start."),
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print what would be created, changed and copied, and change nothing.")
    ] = False,
    master: Annotated[
        str | None, typer.Option(help="Spark master, e.g. local[4] or spark://host:7077.", show_default="local[N]")
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A Spark setting; may be given several times.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="At the end, print what was done as one JSON line.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also log details and what Spark prints.")] = False,
) -> None:
    """Mirror every enabled flow of FILE until stopped with Ctrl-C or SIGTERM.

    Example: heliograph run mm2.properties --until-caught-up
    """
    console = Console(stderr=True)
    set_up_logging(console, verbose)
    settings = _settings(conf or [])
    try:
        deployment = load_all(files)
    except ConfigError as error:
        for warning in error.warnings:
            log.warning("%s", warning)
        fail(str(error), 2)
    for warning in deployment.warnings:
        log.warning("%s", warning)
    for note in deployment.notes:
        log.info("%s", note)
    if plan:
        try:
            show_plan(deployment, as_json)
        except (StillRunning, WireError) as error:
            fail(f"{deployment.file}: {error}", 1)
        return
    try:
        flows, behind = asyncio.run(_main(deployment, until_caught_up, master, settings, console))
    except UnreachableCluster as error:
        fail(f"{deployment.file}: {error.cluster.alias}.bootstrap.servers: {error}", 2)
    except (MissingTopics, CannotKeepOffsets, StillRunning, SparkDied, SparkFailed, WireError) as error:
        fail(f"{deployment.file}: {error}", 1)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(flow) for flow in flows]))
    stopped = sum(flow.stopped for flow in flows)
    failed = {topic: why for flow in flows for topic, why in flow.failed_topics.items()}
    for flow in flows:
        log.info("%s: %d records, %d bytes copied to %d mirrors", flow.name, flow.records, flow.size, flow.mirrors)
    if until_caught_up and (behind or failed):
        names = ", ".join([*sorted(failed), *behind])
        fail(f"not caught up: {names}; the reasons are in the log above", 1)
    if stopped:
        log.warning("%d partitions or topics were stopped; the reasons are in the log above", stopped)


async def _main(
    deployment: Deployment, until_caught_up: bool, master: str | None, conf: dict[str, str], console: Console
) -> tuple[list[FlowStatus], list[str]]:
    flows = (*deployment.flows, *deployment.beats)
    running = Running(flows, master=master, conf=conf, until_caught_up=until_caught_up)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.stop)
    log.info("mirroring %s; starting Spark", ", ".join(flow.name for flow in deployment.flows))
    display = asyncio.create_task(_display(running, console))
    try:
        await running.run()
    finally:
        display.cancel()
        await asyncio.gather(display, return_exceptions=True)
    return running.status(), [f"{flow} {one}" for flow, one in running.behind()]


async def _display(running: Running, console: Console) -> None:
    await running.ready.wait()
    if not console.is_terminal:
        while True:
            await asyncio.sleep(_LINE_EVERY)
            log.info("%s", progress_line(running.status()))
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while True:
            live.update(progress_line(running.status()))
            await asyncio.sleep(0.25)


def _settings(pairs: list[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            fail(f"--conf {pair}: write KEY=VALUE, e.g. --conf spark.driver.memory=1g", 2)
        settings[key.strip()] = value.strip()
    return settings
