"""Shared by `heliograph run` and `heliograph serve`: Spark's options, the REST address, events and signals."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from heliograph.cli.json_log import LogFormat
from heliograph.cli.screen import fail, progress_line
from heliograph.rest.server import AddressTaken, RestServer, listen
from heliograph.service.events import Events
from heliograph.service.notifier import Notifier
from heliograph.service.supervisor import Supervisor

log = logging.getLogger(__name__)

_LINE_EVERY = 10.0

Master = Annotated[
    str | None, typer.Option(help="Spark master, e.g. local[4] or spark://host:7077.", show_default="local[N]")
]
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A Spark setting; may be given several times.", show_default=False),
]
Logs = Annotated[LogFormat, typer.Option("--log-format", help="Plain text, or one JSON object per line.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also log details and what Spark prints.")]


def spark_settings(pairs: list[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            fail(f"--conf {pair}: write KEY=VALUE, e.g. --conf spark.driver.memory=1g", 2)
        settings[key.strip()] = value.strip()
    return settings


def host_and_port(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        fail(f"--rest {text}: write HOST:PORT, e.g. --rest 127.0.0.1:8083, or :8083 for all interfaces", 2)
    return host.strip("[]"), int(port)


def listening(host: str, port: int, *, search: bool = False) -> socket.socket:
    try:
        return listen(host, port, search=search)
    except AddressTaken as error:
        fail(str(error), 2)


@contextmanager
def gathered_events(webhook: str) -> Iterator[Events]:
    """Collects events from now on. Posts warnings and errors to the webhook, if there is one."""
    events = Events()
    logging.getLogger("heliograph").addHandler(events)
    notifier = Notifier(webhook) if webhook else None
    if notifier is not None:
        events.subscribe(notifier.notify)
    try:
        yield events
    finally:
        logging.getLogger("heliograph").removeHandler(events)
        if notifier is not None:
            notifier.end()


async def run_until_stopped(
    running: Supervisor,
    console: Console,
    server: RestServer | None,
    hang_up: Callable[[], None] | None = None,
) -> None:
    """Runs the flows and the REST API until SIGTERM or SIGINT. SIGHUP calls `hang_up`."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        running.stop()
        if server is not None:
            server.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    if hang_up is not None:
        loop.add_signal_handler(signal.SIGHUP, hang_up)
    display = asyncio.create_task(_display(running, console))
    if server is not None:
        server.start()
        log.info("the REST API is at http://%s", server.address)
    try:
        await running.run()
    finally:
        display.cancel()
        if server is not None:
            await server.stop()
        await asyncio.gather(display, return_exceptions=True)


async def _display(running: Supervisor, console: Console) -> None:
    await running.ready.wait()
    if not console.is_terminal:
        while True:
            await asyncio.sleep(_LINE_EVERY)
            if line := progress_line(running.status()):
                log.info("%s", line)
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while True:
            live.update(progress_line(running.status()))
            await asyncio.sleep(0.25)
