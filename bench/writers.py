"""Writers of source topics. A Python producer would need minutes for what a broker accepts in seconds.

Each writer gets a client, an existing topic, its number of partitions and a number of records, and writes about that
many. `logfiles` counts afterwards what the topic holds.
"""

import asyncio
import itertools
import random
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from clusters import BROKER
from payloads import PER_BATCH, keyed_batches, now, small_batches
from producing import PRODUCE, VERSION, Queues, answer_size, append_all, body

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import Record, encode

SEGMENT_MS = 1000

Write = Callable[[ClusterClient, str, int, int], Awaitable[float]]

_SKEW = -1.2
_THIN_CONNECTIONS = 3
_THIN_REQUESTS_AT_ONCE = 32
_TIMEOUT = 30.0


def evenly(batches: Sequence[bytes], per_batch: int, partitions: int, records: int) -> Queues:
    """The same number of whole batches for each partition."""
    each = max(1, records // per_batch // partitions)
    return {partition: itertools.islice(itertools.cycle(batches), each) for partition in range(partitions)}


def write_evenly(batches: Callable[[int], list[bytes]], per_batch: int) -> Write:
    """A writer of batches of one kind."""

    async def write(client: ClusterClient, topic: str, partitions: int, records: int) -> float:
        return await append_all(client, topic, evenly(batches(per_batch), per_batch, partitions, records))

    return write


write_small = write_evenly(small_batches, PER_BATCH)


async def write_skewed(client: ClusterClient, topic: str, partitions: int, records: int) -> float:
    """The k-th busiest partition gets a share of k to the power of -1.2; all get something, in mixed order."""
    weights = [(rank + 1) ** _SKEW for rank in range(partitions)]
    random.Random(3).shuffle(weights)
    whole = small_batches()
    parts: dict[int, list[bytes]] = {0: []}  # a batch with the last records of a partition, by their number
    queues: Queues = {}
    for partition, weight in enumerate(weights):
        full, left = divmod(max(1, round(records * weight / sum(weights))), PER_BATCH)
        if left not in parts:
            parts[left] = small_batches(left)[:1]
        queues[partition] = itertools.chain(itertools.islice(itertools.cycle(whole), full), parts[left])
    return await append_all(client, topic, queues)


async def write_compacted(client: ClusterClient, topic: str, partitions: int, records: int) -> float:
    each = max(10, records // PER_BATCH // partitions)
    took = await append_all(client, topic, {partition: keyed_batches(each) for partition in range(partitions)})
    # The cleaner ignores the active segment: one more record rolls it.
    await asyncio.sleep(SEGMENT_MS / 1000 + 0.2)
    last = encode([Record(0, now(), b"last", b"")])
    return took + await append_all(client, topic, {partition: iter([last]) for partition in range(partitions)})


async def write_thin(client: ClusterClient, topic: str, partitions: int, records: int) -> float:
    """One record per batch: whole requests, encoded once, through plain sockets; the answers are only counted."""
    batches = list(enumerate(itertools.islice(itertools.cycle(small_batches(1)), partitions)))
    head = struct.pack(">hhih5s", PRODUCE, VERSION, 0, 5, b"bench")
    request = b"".join([head, *body(topic, batches)])
    frame, answer = struct.pack(">i", len(request)) + request, 4 + answer_size(topic, partitions)
    count, loop = max(1, records // partitions), asyncio.get_running_loop()
    shares = [count // _THIN_CONNECTIONS + (turn < count % _THIN_CONNECTIONS) for turn in range(_THIN_CONNECTIONS)]
    began = loop.time()
    with ThreadPoolExecutor(_THIN_CONNECTIONS) as threads:
        pushing = [loop.run_in_executor(threads, _push, client.brokers[BROKER], frame, answer, n) for n in shares]
        await asyncio.gather(*pushing)
    return loop.time() - began


def _push(address: tuple[str, int], frame: bytes, answer: int, count: int) -> None:
    """Sends a request `count` times on its own connection, with two groups in flight."""
    with socket.create_connection(address, _TIMEOUT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        awaited = 0
        for at in range(0, count, _THIN_REQUESTS_AT_ONCE):
            group = min(_THIN_REQUESTS_AT_ONCE, count - at)
            connection.sendall(frame * group)
            _skip(connection, awaited)
            awaited = group * answer
        _skip(connection, awaited)


def _skip(connection: socket.socket, size: int) -> None:
    while size:
        got = connection.recv(min(size, 65536))
        if not got:
            raise ConnectionError("the broker closed the connection")
        size -= len(got)
