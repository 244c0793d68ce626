"""Produces raw batches as fast as a broker accepts them: one batch for each of several partitions per request.

It supports less than `heliograph.wire.append` (one topic, one version of the request) and is cheaper: the benchmark's
own work must not limit a broker.
"""

import asyncio
import struct
import time
from collections import deque
from collections.abc import Iterator, Sequence

from clusters import BROKER, Trouble

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Buffer, Connection
from heliograph.wire.errors import error_name

PRODUCE = 0
VERSION = 7  # the last whose answers always have the same size

_TIMEOUT_MS = 30_000
_IN_FLIGHT = 5
_REQUEST_BYTES = 1 << 20
_ANSWERED = struct.Struct(">ihqqq")  # partition, error, base offset, time, start of the log

Queues = dict[int, Iterator[bytes]]


def body(topic: str, batches: Sequence[tuple[int, Buffer]], transactional_id: str | None = None) -> list[Buffer]:
    """A Produce request without its header."""
    name = topic.encode()
    parts: list[Buffer] = [_nullable(transactional_id), struct.pack(">hii", -1, _TIMEOUT_MS, 1)]
    parts.append(struct.pack(f">h{len(name)}si", len(name), name, len(batches)))
    for partition, batch in batches:
        parts += [struct.pack(">ii", partition, len(batch)), batch]
    return parts


def answer_size(topic: str, partitions: int) -> int:
    """Correlation id, number of topics, name, number of partitions, each partition's answer, throttle time."""
    return 4 + 4 + 2 + len(topic.encode()) + 4 + partitions * _ANSWERED.size + 4


async def produce(
    connection: Connection, topic: str, batches: Sequence[tuple[int, Buffer]], transactional_id: str | None = None
) -> None:
    """Sends one request. Raises Trouble unless every partition accepts its batch."""
    _check(topic, await _sent(connection, topic, batches, transactional_id))


async def append_all(client: ClusterClient, topic: str, queues: Queues) -> float:
    """Appends each partition's batches as fast as the broker accepts them. Returns the seconds."""
    connection = await client.connection(BROKER)
    under_way: deque[asyncio.Future[list[tuple[int, int]]]] = deque()
    began = time.monotonic()
    while queues:
        for batches in _turn(queues):
            under_way.append(_sent(connection, topic, batches, None))
            if len(under_way) >= _IN_FLIGHT:
                _check(topic, await under_way.popleft())
    for answer in under_way:
        _check(topic, await answer)
    return time.monotonic() - began


def _turn(queues: Queues) -> Iterator[list[tuple[int, Buffer]]]:
    """The next batch of each partition, in as many requests as it takes; partitions without one are dropped."""
    request: list[tuple[int, Buffer]] = []
    size = 0
    for partition in list(queues):
        batch = next(queues[partition], None)
        if batch is None:
            del queues[partition]
            continue
        if request and size + len(batch) > _REQUEST_BYTES:
            yield request
            request, size = [], 0
        request.append((partition, batch))
        size += len(batch)
    if request:
        yield request


def _sent(
    connection: Connection, topic: str, batches: Sequence[tuple[int, Buffer]], transactional_id: str | None
) -> asyncio.Future[list[tuple[int, int]]]:
    begin = answer_size(topic, 0) - 8  # without correlation id and throttle time

    def decode(frame: memoryview) -> list[tuple[int, int]]:
        return [(partition, error) for partition, error, *_ in _ANSWERED.iter_unpack(frame[begin:-4])]

    return connection.send_parts(PRODUCE, VERSION, body(topic, batches, transactional_id), decode)


def _check(topic: str, answers: Sequence[tuple[int, int]]) -> None:
    for partition, error in answers:
        if error:
            raise Trouble(f"{topic}-{partition} rejects a batch: {error_name(error)}")


def _nullable(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    return struct.pack(f">h{len(text)}s", len(text), text.encode())
