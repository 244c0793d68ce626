"""The physical limit of a copy on this machine: bytes read from one local socket and written to another, without Kafka.

A sender and a receiver take the place of the brokers, so that the bytes pass the kernel as often as those of a mirror
do. All three are threads of this process: system calls release the interpreter's lock, and there is one call per MB.
"""

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

_HOST = "127.0.0.1"
_PIECE = 1 << 20
_TIMEOUT = 60.0
_DONE = b"."


@dataclass(frozen=True)
class Relayed:
    """`cpu` is that of the relay alone, in core-seconds."""

    seconds: float
    cpu: float


def relay(size: int, way: Callable[[int], int] = lambda port: port) -> Relayed:
    """Passes that many bytes on, until the receiver has read the last one.

    `way` returns the port through which the sender's port is reached: another one if it is far away.
    """
    with _listening() as sending, _listening() as receiving:
        source_port, target_port = way(_port(sending)), _port(receiving)
        ends = [
            threading.Thread(target=_send, args=(sending, size)),
            threading.Thread(target=_receive, args=(receiving, size)),
        ]
        for end in ends:
            end.start()
        with _connected(source_port) as source, _connected(target_port) as target:
            began, cpu = time.monotonic(), time.thread_time()
            _pass_on(source, target, size)
            target.recv(len(_DONE))
            relayed = Relayed(time.monotonic() - began, time.thread_time() - cpu)
        for end in ends:
            end.join()
    return relayed


def _pass_on(source: socket.socket, target: socket.socket, size: int) -> None:
    buffer = memoryview(bytearray(_PIECE))
    while size:
        got = source.recv_into(buffer)
        if not got:
            raise ConnectionError("the sender closed the connection")
        target.sendall(buffer[:got])
        size -= got


def _send(listener: socket.socket, size: int) -> None:
    with listener.accept()[0] as connection:
        piece = memoryview(bytes(_PIECE))
        while size:
            size -= connection.send(piece[:size])


def _receive(listener: socket.socket, size: int) -> None:
    with listener.accept()[0] as connection:
        buffer = bytearray(_PIECE)
        while size and (got := connection.recv_into(buffer)):
            size -= got
        connection.sendall(_DONE)


def _listening() -> socket.socket:
    listener = socket.create_server((_HOST, 0))
    listener.settimeout(_TIMEOUT)
    return listener


def _connected(port: int) -> socket.socket:
    return socket.create_connection((_HOST, port), _TIMEOUT)


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port
