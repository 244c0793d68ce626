"""A TCP proxy in front of brokers. Its links can be delayed, throttled, cut, reset, half-closed, and lose traffic.

    python proxy.py NAME=LISTEN ...

It reads one JSON object per line on its standard input, and answers each with a line. `{"link": NAME, "upstream":
PORT}` says where a link leads, `{"link": NAME, "rule": {...}}` sets what holds for it from now on, `{"link": NAME,
"act": "reset"}` does something once to its connections. It ends with its standard input. A connection that has lost
bytes is reset when the rule ends.
"""

import asyncio
import contextlib
import json
import socket
import struct
import sys
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
REQUESTS, ANSWERS = "requests", "answers"
_PIECE = 64 * 1024


@dataclass(frozen=True)
class Rule:
    """`lose`: requests, answers or both are read and thrown away. `refuse`: new connections are closed at once."""

    delay: float = 0.0
    bytes_per_second: float = 0.0
    lose: tuple[str, ...] = ()
    refuse: bool = False


class _Connection:
    """`is_damaged`: bytes are missing, so it cannot be used again."""

    def __init__(self, writers: dict[str, asyncio.StreamWriter]) -> None:
        self.writers = writers  # by what they carry
        self.is_damaged = False

    def reset(self) -> None:
        for writer in self.writers.values():
            with contextlib.suppress(OSError):
                # Without lingering, a close is an RST.
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    def half_close(self, direction: str) -> None:
        """The receiver of this direction reads the end of the stream; the other direction stays open."""
        self.is_damaged = True
        with contextlib.suppress(OSError, RuntimeError):
            self.writers[direction].write_eof()


class Link:
    def __init__(self, listen: int) -> None:
        self._listen = listen
        self.upstream = 0
        self._rule = Rule()
        self._connections: set[_Connection] = set()

    async def serve(self) -> None:
        await asyncio.start_server(self._connected, HOST, self._listen, limit=_PIECE)

    def set_rule(self, rule: Rule) -> None:
        self._rule = rule
        for connection in list(self._connections):
            if rule.refuse or (connection.is_damaged and not rule.lose):
                connection.reset()

    def act(self, name: str) -> None:
        for connection in list(self._connections):
            if name == "reset":
                connection.reset()
            else:
                connection.half_close(name.removeprefix("half-close-"))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._rule.refuse:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self.upstream, limit=_PIECE)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection({REQUESTS: far_writer, ANSWERS: writer})
        self._connections.add(connection)
        try:
            await asyncio.gather(
                self._carry(connection, REQUESTS, reader), self._carry(connection, ANSWERS, far_reader)
            )
        finally:
            self._connections.discard(connection)
            for each in connection.writers.values():
                each.transport.abort()

    async def _carry(self, connection: _Connection, direction: str, reader: asyncio.StreamReader) -> None:
        writer = connection.writers[direction]
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: it was half-closed
            while data := await reader.read(_PIECE):
                rule = self._rule
                if direction in rule.lose:
                    connection.is_damaged = True
                    continue
                pause = rule.delay + (len(data) / rule.bytes_per_second if rule.bytes_per_second else 0.0)
                if pause:
                    await asyncio.sleep(pause)
                if not connection.is_damaged:
                    writer.write(data)
                    await writer.drain()
            writer.write_eof()


async def _main(descriptions: list[str]) -> None:
    links = {}
    for description in descriptions:
        name, _, listen = description.partition("=")
        links[name] = Link(int(listen))
        await links[name].serve()
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    _answer("listening")
    while line := await lines.readline():
        command: dict[str, Any] = json.loads(line)
        link = links[command["link"]]
        if "upstream" in command:
            link.upstream = command["upstream"]
        elif "rule" in command:
            rule = command["rule"]
            link.set_rule(Rule(**{**rule, "lose": tuple(rule.get("lose", ()))}))
        else:
            link.act(command["act"])
        _answer("done")


def _answer(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
