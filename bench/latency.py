"""How long a record takes from the producer on the source to a reader of the mirror, at fixed moderate rates.

Producer and reader are in this process and use one clock. Each value begins with the time at which it was sent; the
reader waits in a long poll, as a consumer does, and records when an answer arrives. The first seconds do not count.
"""

import asyncio
import struct
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from clusters import BROKER, Ends, client_of, create
from fetching import fetch
from measuring import POLL, Patience
from processes import Machine
from producing import produce
from results import Latency
from stage import Run, Stage, ToolFailed, running
from tools import Tool
from workloads import Workload
from writers import write_small

from heliograph.wire.batches import split
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import Record, decode, encode

RATES = (100, 1_000, 10_000)
WARM_UP = 5.0

_TOPIC = "latency"
_PARTITIONS = 6
_TICK = 0.005
_ARRIVE_WITHIN = 30.0
_STAMP = struct.Struct(">q")
_SEED_RECORDS = 6 * 143
_FILLING = b"." * (100 - _STAMP.size)

WORKLOAD = Workload(0, "latency", "records of 100 bytes at a fixed rate, 6 partitions", 0, write_small)


@dataclass(frozen=True)
class _Arrival:
    nanoseconds: int
    data: bytes
    start: int  # the offset that was asked for; earlier ones in the data are not new


def measure(stage: Stage, tool: Tool, rate: int, number: int, seconds: float, patience: Patience) -> Latency:
    """Latency of one tool on a fresh topic, at a rate of records per second."""
    alias = f"{tool.key}-{number}-latency"
    result = Latency(tool.key, rate, number)
    before = Machine.now()
    try:
        asyncio.run(_prepare(stage))
        with running(stage, tool, alias, WORKLOAD, _TOPIC) as run:
            delays = asyncio.run(_delays(stage, run, f"{alias}.{_TOPIC}", rate, seconds, patience))
        result = replace(
            result, records=len(delays), p50=_percentile(delays, 50), p99=_percentile(delays, 99), worst=delays[-1]
        )
    except ToolFailed as failure:
        result = replace(result, failure=str(failure))
    return replace(result, steal=Machine.now().steal_since(before))


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


async def _prepare(stage: Stage) -> None:
    """A topic with a few records in it: when they are in the mirror, the tool is ready."""
    async with client_of(stage.pair.source) as client:
        await create(client, _TOPIC, _PARTITIONS)
        await write_small(client, _TOPIC, _PARTITIONS, _SEED_RECORDS)


async def _delays(stage: Stage, run: Run, mirror: str, rate: int, seconds: float, patience: Patience) -> list[float]:
    """Milliseconds of every record after the warm-up, sorted."""
    async with client_of(stage.pair.source) as source, client_of(stage.pair.target) as target:
        await _until_ready(target, run, mirror, patience)
        reader = _Reader(target, mirror)
        reading = asyncio.create_task(reader.run())
        try:
            count, counted_from = await _send(source, rate, seconds)
            await _until_read(reader, run, _SEED_RECORDS + count)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
    return sorted(_milliseconds(reader.arrivals, counted_from))


async def _until_ready(target: ClusterClient, run: Run, mirror: str, patience: Patience) -> None:
    """Waits until the tool has copied the seed records."""
    ends = Ends(await target.connection(BROKER), [mirror], _PARTITIONS)
    deadline = time.monotonic() + patience.start
    while (end := await ends.total()) < _SEED_RECORDS:
        run.check()
        if time.monotonic() > deadline:
            raise ToolFailed(f"{end:,} of {_SEED_RECORDS:,} records in {patience.start:g} s: {run.last_words()}")
        await asyncio.sleep(POLL)


async def _until_read(reader: "_Reader", run: Run, goal: int) -> None:
    """Waits until every record has arrived: slow ones count as well."""
    deadline = time.monotonic() + _ARRIVE_WITHIN
    while (end := sum(reader.positions)) < goal:
        run.check()
        if time.monotonic() > deadline:
            raise ToolFailed(f"{end:,} of {goal:,} records have arrived {_ARRIVE_WITHIN:g} s after the last was sent")
        await asyncio.sleep(POLL)


async def _send(source: ClusterClient, rate: int, seconds: float) -> tuple[int, int]:
    """Sends at the rate. Returns the number of records, and the time in nanoseconds from which they count."""
    connection = await source.connection(BROKER)
    under_way: deque[asyncio.Task[None]] = deque()
    began, count = time.monotonic_ns(), 0
    while (passed := (time.monotonic_ns() - began) / 1e9) < WARM_UP + seconds:
        due = int(passed * rate) - count
        if due >= _PARTITIONS:
            batches = list(_stamped(due))
            under_way.append(asyncio.create_task(produce(connection, _TOPIC, batches)))
            count += due
        while under_way and under_way[0].done():
            under_way.popleft().result()
        await asyncio.sleep(_TICK)
    await asyncio.gather(*under_way)
    return count, began + round(WARM_UP * 1e9)


def _stamped(count: int) -> Iterator[tuple[int, bytes]]:
    """One batch of that many records per partition, all with the current time."""
    value, now = _STAMP.pack(time.monotonic_ns()) + _FILLING, int(time.time() * 1000)
    for partition in range(_PARTITIONS):
        share = count // _PARTITIONS + (partition < count % _PARTITIONS)
        yield partition, encode(Record(0, now, None, value) for _ in range(share))


class _Reader:
    """Collects what arrives in the mirror, and when. Decodes later, to be back in the poll at once."""

    def __init__(self, target: ClusterClient, mirror: str) -> None:
        self.arrivals: list[_Arrival] = []
        self.positions = [0] * _PARTITIONS
        self._target = target
        self._mirror = mirror

    async def run(self) -> None:
        connection = await self._target.dedicated_connection(BROKER)
        try:
            while True:
                answers = await fetch(connection, self._mirror, self.positions)
                now = time.monotonic_ns()
                for partition, chunk in answers:
                    self.arrivals.append(_Arrival(now, chunk, self.positions[partition]))
                    for batch in split(chunk):
                        self.positions[partition] = batch.next_offset
        finally:
            connection.close()


def _milliseconds(arrivals: Sequence[_Arrival], counted_from: int) -> Iterator[float]:
    for arrival in arrivals:
        for record in decode(arrival.data, arrival.start):
            if record.value is None or not record.value.endswith(_FILLING):
                continue  # one of those from before
            (sent,) = _STAMP.unpack_from(record.value)
            if sent >= counted_from:
                yield (arrival.nanoseconds - sent) / 1e6
