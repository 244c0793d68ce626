"""Shared by `heliograph run` and `heliograph serve`: Spark's options, the REST address, events and signals."""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from heliograph.cli.json_log import LogFormat
from heliograph.cli.screen import fail, progress_line
from heliograph.config.declare.kinds import LISTENERS
from heliograph.model.rest_settings import NONE, REQUIRED, ListenerTls, RestOptions, RestSettings
from heliograph.model.security import PEM, KeyStore, TrustStore
from heliograph.rest.authentication import Authenticator
from heliograph.rest.server import AddressTaken, OpenListener, RestServer, open_listener
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
RestCert = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Serve the REST API over TLS, with this certificate (PEM).", show_default=False),
]
RestKey = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Its private key (PEM), if the certificate's file has none.", show_default=False),
]
RestClientCa = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Callers need a certificate issued by one of these (PEM).", show_default=False),
]
RestUsers = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Callers need a login: lines of name=password.", show_default=False),
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


def rest_options(
    rest: str | None, cert: Path | None, key: Path | None, client_ca: Path | None, users: Path | None
) -> RestOptions:
    addresses = None
    if rest is not None:
        try:
            addresses = LISTENERS.parse(rest if "://" in rest else f"{'https' if cert else 'http'}://{rest}")
        except ValueError:
            fail(f"--rest {rest}: write HOST:PORT, e.g. --rest 127.0.0.1:8083, or :8083 for all interfaces", 2)
    if cert is None and (key or client_ca):
        fail("--rest-key and --rest-client-ca need --rest-cert: a file with the certificate of the REST address", 2)
    tls = None
    if cert is not None:
        trust = TrustStore(PEM, str(client_ca)) if client_ca is not None else None
        auth = NONE if client_ca is None else REQUIRED
        tls = ListenerTls(KeyStore(PEM, str(cert)), str(key) if key is not None else "", trust, auth)
    return RestOptions(addresses, tls, str(users) if users is not None else "")


def open_listeners(settings: RestSettings, *, search: bool = False) -> list[OpenListener]:
    """Warns if anyone who reaches the address can change everything."""
    for listener in settings.listeners:
        if not listener.is_loopback and not settings.needs_login:
            log.warning(
                "the REST API listens on %s without authentication: anyone who reaches it can change and delete every "
                "connector. Set heliograph.rest.users, or listen on 127.0.0.1",
                f"{listener.host or 'all interfaces'}, port {listener.port},",
            )
        if not listener.is_loopback and listener.tls is None and settings.takes_credentials:
            log.warning(
                "the REST API takes passwords and tokens on port %d without TLS: anyone on the way can read them. "
                "Listen on https://",
                listener.port,
            )
    try:
        Authenticator(settings)  # files that cannot be used are reported before Spark starts
        return [open_listener(listener, search=search) for listener in settings.listeners]
    except (AddressTaken, ValueError) as error:
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
    servers: Sequence[RestServer],
    hang_up: Callable[[], None] | None = None,
) -> None:
    """Runs the flows and the servers until SIGTERM or SIGINT. SIGHUP calls `hang_up`."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        running.stop()
        for server in servers:
            server.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    if hang_up is not None:
        loop.add_signal_handler(signal.SIGHUP, hang_up)
    display = asyncio.create_task(_display(running, console))
    for server in servers:
        server.start()
    try:
        await running.run()
    finally:
        display.cancel()
        for server in servers:
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
