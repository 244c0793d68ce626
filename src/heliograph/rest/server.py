"""The HTTP server, in the event loop of the process."""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from heliograph.model.rest_settings import Listener
from heliograph.rest.gate import App
from heliograph.rest.http_connection import Connection
from heliograph.rest.tls import listener_context
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)

_TRIES = 100  # ports to try if the first one is taken
_ENDS_WITHIN = 0.2
_MAX_CONNECTIONS = 500
_MAX_HEADERS = 32 * 1024  # bytes, the request line included
_KEEP_ALIVE = 30  # seconds; Prometheus asks every 15 s


class AddressTaken(Exception):
    """The address cannot be used; the reason in one line."""


@dataclass(frozen=True, slots=True)
class OpenListener:
    """`tls` is None for plain HTTP."""

    socket: socket.socket
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://{self.address}"

    @property
    def address(self) -> str:
        """Host and port for a URL; loopback if the socket listens on all interfaces."""
        host, port = self.socket.getsockname()[:2]
        if host in ("0.0.0.0", "::"):
            host = "127.0.0.1"
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def open_listener(listener: Listener, *, search: bool = False) -> OpenListener:
    """`search` takes the next free port if this one is taken. Raises AddressTaken, also if a certificate cannot be
    used."""
    try:
        tls = listener_context(listener.tls) if listener.tls is not None else None
    except (OSError, WireError) as error:
        raise AddressTaken(f"cannot listen on https://{listener.host}:{listener.port}: {error}") from None
    return OpenListener(_listen(listener.host, listener.port, search=search), tls)


def _listen(host: str, port: int, *, search: bool) -> socket.socket:
    for offset in range(_TRIES if search else 1):
        try:
            return _bound(host, port + offset)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or not search:
                raise AddressTaken(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    raise AddressTaken(f"cannot listen on {host}: the ports from {port} to {port + _TRIES - 1} are all taken")


def _bound(host: str, port: int) -> socket.socket:
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The commands handle signals themselves."""
        yield


class RestServer:
    """One application on one or more addresses."""

    def __init__(self, app: App, listeners: Sequence[OpenListener], what: str = "the REST API is") -> None:
        """`what` begins the log line with its addresses."""
        logging.getLogger("uvicorn").setLevel(logging.ERROR)  # it warns about each malformed request
        self._listeners = listeners
        self._what = what
        self._servers = [_Server(_config(app, listener)) for listener in listeners]
        self._serving: list[asyncio.Task[None]] = []

    @property
    def urls(self) -> list[str]:
        return [listener.url for listener in self._listeners]

    def start(self) -> None:
        for url in self.urls:
            log.info("%s at %s", self._what, url)
        self._serving = [
            asyncio.create_task(server.serve(sockets=[listener.socket]))
            for server, listener in zip(self._servers, self._listeners, strict=True)
        ]

    def end(self) -> None:
        """Accepts no more requests; `stop` waits for those in flight."""
        for server in self._servers:
            server.should_exit = True

    async def stop(self) -> None:
        """Gives requests in flight a moment, then closes everything."""
        if self._serving:
            self.end()
            await asyncio.wait(self._serving, timeout=_ENDS_WITHIN)
            for serving in self._serving:
                serving.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)
        for listener in self._listeners:
            listener.socket.close()


def _config(app: App, listener: OpenListener) -> uvicorn.Config:
    tls = listener.tls
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # any client on this machine could name another address
        lifespan="off",
        timeout_graceful_shutdown=1,
        timeout_keep_alive=_KEEP_ALIVE,
        limit_concurrency=_MAX_CONNECTIONS,
        h11_max_incomplete_event_size=_MAX_HEADERS,
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
    )
