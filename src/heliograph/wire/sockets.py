"""Sockets to brokers: names become addresses, and the first address that answers is used."""

import asyncio
import socket
from collections.abc import Sequence
from functools import partial
from typing import Any

from heliograph.model.connecting import SYSTEM_BUFFER, Connecting
from heliograph.wire.background import in_thread
from heliograph.wire.racing import AllFailed, first_success

# Seconds until the next address of a name is tried as well.
_HEAD_START = 0.5
_AddressInfo = tuple[Any, ...]  # of socket.getaddrinfo


async def open_socket(host: str, port: int, connecting: Connecting, turn: int = 0) -> socket.socket:
    """A connected socket. `turn` says which of the host's addresses is tried first. Raises OSError."""
    # Not by asyncio's resolver: its threads are joined when a loop ends, and a name server may take minutes.
    found = await in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    first = turn % max(1, len(found))
    attempts = [partial(_connect, address, connecting) for address in (*found[first:], *found[:first])]
    try:
        return await first_success(attempts, _HEAD_START, OSError, socket.socket.close)
    except AllFailed as failed:
        raise (failed.errors[-1] if failed.errors else OSError("no address")) from None


async def _connect(address: _AddressInfo, connecting: Connecting) -> socket.socket:
    family, kind, protocol, _name, place = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # Before the connection is made: the window's scale, which limits a receive buffer, is part of the handshake.
        for option, size in (
            (socket.SO_SNDBUF, connecting.send_buffer),
            (socket.SO_RCVBUF, connecting.receive_buffer),
        ):
            if size != SYSTEM_BUFFER:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
        await asyncio.get_running_loop().sock_connect(sock, place)
    except BaseException:
        sock.close()
        raise
    return sock


async def canonical_servers(servers: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Each server replaced by the canonical names of all its addresses, as Kerberos needs it behind an alias. One that
    has none stays as it is: connecting to it says why."""
    names = await asyncio.gather(*(in_thread(partial(_canonical_names, host)) for host, _port in servers))
    return [(name, port) for (_host, port), found in zip(servers, names, strict=True) for name in found]


def _canonical_names(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(socket.getnameinfo(place, 0)[0] for *_kind, place in found))
    except (OSError, UnicodeError):
        return [host]
