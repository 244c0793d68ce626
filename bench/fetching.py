"""A minimal long poll on all partitions of one topic, to measure when records arrive."""

import struct
from collections.abc import Sequence

from clusters import Trouble

from heliograph.wire.connection import Connection
from heliograph.wire.errors import error_name

_LONG_POLL = 0.5

_FETCH = 1
_VERSION = 4  # the oldest that brokers still take
_MAX_BYTES = 1 << 20
_READ_COMMITTED = 1
_PARTITION = struct.Struct(">ihqqi")  # partition, error, high watermark, last stable offset, aborted transactions
_ABORTED = 16


async def fetch(connection: Connection, topic: str, positions: Sequence[int]) -> list[tuple[int, bytes]]:
    """Partitions and batches after each position, as soon as there are any."""
    name = topic.encode()
    head = struct.pack(">iiiib", -1, int(_LONG_POLL * 1000), 1, _MAX_BYTES, _READ_COMMITTED)
    wanted = [struct.pack(">iqi", partition, offset, _MAX_BYTES) for partition, offset in enumerate(positions)]
    parts = [head, struct.pack(f">ih{len(name)}si", 1, len(name), name, len(positions)), *wanted]
    batches: list[tuple[int, bytes]] = await connection.send_parts(_FETCH, _VERSION, parts, _read)
    return batches


def _read(frame: memoryview) -> list[tuple[int, bytes]]:
    batches = []
    (topics,) = struct.unpack_from(">i", frame, 4)  # after the throttle time
    at = 8
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", frame, at)
        (partitions,) = struct.unpack_from(">i", frame, at + 2 + length)
        at += 2 + length + 4
        for _ in range(partitions):
            partition, error, _, _, aborted = _PARTITION.unpack_from(frame, at)
            if error:
                raise Trouble(f"the mirror cannot be read: {error_name(error)}")
            at += _PARTITION.size + max(0, aborted) * _ABORTED
            (size,) = struct.unpack_from(">i", frame, at)
            at += 4
            if size > 0:
                batches.append((partition, bytes(frame[at : at + size])))
            at += max(0, size)
    return batches
