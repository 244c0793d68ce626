"""Asks a broker, or the ZooKeeper of an old one, which brokers there are, to see whether a cluster is up.

The broker is asked with a hand-written Metadata request, version 1, which all from 0.10 to 4.x answer. This is not
a client: it asks one question over a plaintext connection and takes any trouble to mean "not yet".
"""

import socket
import struct

from heliograph.sandbox.ports import HOST

_METADATA, _VERSION, _CORRELATION = 3, 1, 7
_CLIENT = b"heliograph-sandbox"


def brokers_known_to(port: int, timeout: float = 2.0) -> set[int]:
    """Ids of the brokers that the broker at this port names to clients; empty while it does not answer.

    A KRaft broker names only those the controller has unfenced, so that being named means being usable.
    """
    try:
        with socket.create_connection((HOST, port), timeout) as connection:
            # No topics at all: an empty array. (A null array would mean every topic.)
            return _broker_ids(exchange(connection, _METADATA, _VERSION, struct.pack(">i", 0)))
    except (OSError, struct.error):
        return set()


def exchange(connection: socket.socket, api_key: int, version: int, body: bytes) -> bytes:
    """Sends one request and returns the answer, which begins with the correlation id."""
    request = struct.pack(">hhih", api_key, version, _CORRELATION, len(_CLIENT)) + _CLIENT + body
    connection.sendall(struct.pack(">i", len(request)) + request)
    (length,) = struct.unpack(">i", _read(connection, 4))
    return _read(connection, length)


def is_in_zookeeper(zookeeper_port: int, broker: int, timeout: float = 2.0) -> bool:
    """Whether a broker is registered, be it by a session that has not ended yet."""
    dump = b""
    try:
        with socket.create_connection((HOST, zookeeper_port), timeout) as connection:
            connection.sendall(b"dump")
            while chunk := connection.recv(65536):
                dump += chunk
    except OSError:
        return False
    return f"/brokers/ids/{broker}".encode() in dump.split()


def _read(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        chunk = connection.recv(length - len(received))
        if not chunk:
            raise ConnectionError("the broker closed the connection")
        received += chunk
    return received


def _broker_ids(answer: bytes) -> set[int]:
    # correlation id, then the brokers: id, host, port, nullable rack
    _, count = struct.unpack_from(">ii", answer)
    at, ids = 8, set()
    for _ in range(count):
        broker_id, host_length = struct.unpack_from(">ih", answer, at)
        at += 6 + host_length + 4
        (rack_length,) = struct.unpack_from(">h", answer, at)
        at += 2 + max(rack_length, 0)
        ids.add(broker_id)
    return ids
