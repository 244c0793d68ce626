"""A TCP proxy that delivers everything later, in both directions: a cluster that is far away.

It is a link without losses and with as much bandwidth as the proxy can carry. How much is on its way is limited: a
receiver that does not read stops the sender, as it would without the proxy. Opening a connection is not delayed.
"""

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import Sequence

from heliograph.sandbox.ports import HOST, free_ports
from heliograph.sandbox.processes import Processes

_ON_THE_WAY = 64 * 1024 * 1024  # bytes, per direction of a connection
_PIECE = 1024 * 1024
_START_WITHIN = 20.0
_LISTENING = "listening"


def start_proxy(processes: Processes, port: int, round_trip: float, listen: int | None = None) -> tuple[int, int]:
    """Starts a proxy to a port of this machine, as a process of its own. Returns its port and its pid."""
    listen = listen or free_ports(1)[0]
    name = f"delay-{listen}"
    command = [sys.executable, __file__, str(listen), str(port), str(round_trip)]
    log = processes.folder / f"{name}.log"
    pid = processes.start(name, command, cwd=processes.folder, log=log)
    deadline = time.monotonic() + _START_WITHIN
    # No connection is made to find out: it would be the first that the port behind the proxy accepts.
    while _LISTENING not in log.read_text():
        if time.monotonic() > deadline or processes.exits()[name] is not None:
            raise ConnectionError(f"the proxy does not start: {log.read_text()}")
        time.sleep(0.05)
    return listen, pid


class _Direction:
    """Carries bytes from a reader to a writer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
        self._reader = reader
        self._writer = writer
        self._delay = delay
        self._pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        self._size = 0
        self._has_room = asyncio.Event()

    async def carry(self) -> None:
        """Returns when everything until the end of the reader's stream is delivered."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._receive())
            tasks.create_task(self._deliver())

    async def _receive(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            data = await self._reader.read(_PIECE)
            self._size += len(data)
            self._pieces.put_nowait((loop.time() + self._delay, data))
            if not data:
                return
            while self._size > _ON_THE_WAY:
                self._has_room.clear()
                await self._has_room.wait()

    async def _deliver(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, data = await self._pieces.get()
            if (wait := due - loop.time()) > 0:
                await asyncio.sleep(wait)
            if not data:
                self._writer.close()
                return
            self._writer.write(data)
            await self._writer.drain()
            self._size -= len(data)
            self._has_room.set()


async def _serve(listen: int, port: int, round_trip: float) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(ConnectionError, ExceptionGroup):
            far_reader, far_writer = await asyncio.open_connection(HOST, port, limit=_PIECE)
            with contextlib.closing(far_writer):
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(_Direction(reader, far_writer, round_trip / 2).carry())
                    tasks.create_task(_Direction(far_reader, writer, round_trip / 2).carry())

    server = await asyncio.start_server(connected, HOST, listen, limit=_PIECE)
    sys.stdout.write(f"{_LISTENING}\n")
    sys.stdout.flush()
    await server.serve_forever()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("listen", type=int, help="the port of the proxy")
    parser.add_argument("port", type=int, help="the port that it leads to")
    parser.add_argument("round_trip", type=float, help="seconds")
    options = parser.parse_args(arguments)
    asyncio.run(_serve(options.listen, options.port, options.round_trip))


if __name__ == "__main__":
    main()
