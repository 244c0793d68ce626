"""The HTTP server, in the event loop of the process."""

import asyncio
import errno
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

_TRIES = 100  # ports to try if the first one is taken
_ENDS_WITHIN = 0.2


class AddressTaken(Exception):
    """The address cannot be used; the reason in one line."""


def listen(host: str, port: int, *, search: bool = False) -> socket.socket:
    """A socket on an address; an empty host means all interfaces. `search` takes the next free port if this one is
    taken. Raises AddressTaken."""
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


def address(listening: socket.socket) -> str:
    """Host and port for a URL; loopback if the socket listens on all interfaces."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The commands handle signals themselves."""
        yield


class RestServer:
    def __init__(self, app: FastAPI, listening: socket.socket) -> None:
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._listening = listening
        self._serving: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        return address(self._listening)

    def start(self) -> None:
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._listening]))

    def end(self) -> None:
        """Accepts no more requests; `stop` waits for those in flight."""
        self._server.should_exit = True

    async def stop(self) -> None:
        """Gives requests in flight a moment, then closes everything."""
        if self._serving is not None:
            self.end()
            await asyncio.wait([self._serving], timeout=_ENDS_WITHIN)
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        self._listening.close()
