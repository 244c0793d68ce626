"""The workloads: source topics, each difficult in its own way.

A tuned MirrorMaker 2 copies each of the first six in about ten seconds on two cores at 2.8 GHz.
"""

import asyncio
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

from clusters import Pair, Trouble, alter, clear, client_of, create, data
from logfiles import Survey, survey
from payloads import (
    PER_BATCH,
    PER_LARGE_BATCH,
    incompressible_batches,
    large_batches,
    megabyte_batches,
    small_batches,
    ten_kilobyte_batches,
)
from producing import append_all
from transactions import write_transactions
from writers import SEGMENT_MS, Write, evenly, write_compacted, write_evenly, write_skewed, write_small, write_thin

from heliograph.sandbox import SandboxCluster

ROUND_TRIP = 0.1

_WARM_UP_PARTITIONS = 6
_SETTLED = 4.0
_CLEANED_WITHIN = 180.0


@dataclass(frozen=True)
class Pool:
    """Batches to append again and again: the rate of a target without any reading.

    `batches` takes the number of records per batch: `per_batch` as in the source, None where that does not pay, and
    `per_large_batch` for batches of 900 KB.
    """

    batches: Callable[[int], list[bytes]]
    per_batch: int | None
    per_large_batch: int

    def writer(self) -> Write:
        """Writes a source of these batches."""
        return write_evenly(self.batches, self.per_batch or self.per_large_batch)


_SMALL = Pool(small_batches, None, 8000)


@dataclass(frozen=True)
class Workload:
    """A source topic. `committed`: a tool must be configured to omit aborted records.

    `write` is None where the source has the pool's batches. `two_way`: both clusters have the topic, and each gets the
    mirror of the other's. `far`: the source is `ROUND_TRIP` away from tool and target. `tls`: the tool connects to both
    clusters over TLS.
    """

    number: int
    name: str
    about: str
    records: int
    write: Write | None = None
    partitions: int = 6
    configs: tuple[tuple[str, str], ...] = ()
    compression: str = "none"
    committed: bool = False
    two_tasks: bool = False
    two_way: bool = False
    far: bool = False
    tls: bool = False
    pool: Pool = _SMALL

    @property
    def topic(self) -> str:
        return f"w{self.number}"

    @property
    def max_message_bytes(self) -> int | None:
        """Of the topic; None if it is the broker's."""
        size = dict(self.configs).get("max.message.bytes")
        return int(size) if size else None

    @property
    def compacted(self) -> bool:
        return ("cleanup.policy", "compact") in self.configs


WORKLOADS = (
    Workload(
        1,
        "small records",
        "100-byte values in batches of 16 KB, 6 partitions",
        3_500_000,
        two_tasks=True,
        pool=Pool(small_batches, PER_BATCH, 8000),
    ),
    Workload(
        2,
        "large compressed batches",
        "1 KB values of JSON, lz4 (2.9 : 1), batches of 128 KB, 6 partitions",
        1_300_000,
        compression="lz4",
        pool=Pool(large_batches, PER_LARGE_BATCH, 2400),
    ),
    Workload(3, "thin batches", "one 100-byte value per batch, 6 partitions", 2_000_000, write_thin, two_tasks=True),
    Workload(
        4,
        "compacted",
        "100-byte values with keys in batches of 16 KB, half of the records gone, 6 partitions",
        5_000_000,
        write_compacted,
        configs=(
            ("cleanup.policy", "compact"),
            ("segment.bytes", str(16 * 1024 * 1024)),
            ("segment.ms", str(SEGMENT_MS)),
            ("min.cleanable.dirty.ratio", "0.01"),
        ),
    ),
    Workload(
        5,
        "transactions",
        "100-byte values, transactions of 1 001 records in 7 batches, one in ten aborted, 6 partitions",
        3_000_000,
        write_transactions,
        committed=True,
    ),
    Workload(
        6,
        "1 000 partitions",
        "100-byte values in batches of up to 16 KB, the busiest partition with a quarter of all, most nearly idle",
        3_000_000,
        write_skewed,
        partitions=1000,
    ),
    Workload(
        7,
        "incompressible",
        "1 KB values that lz4 compresses to 98 %, batches of 128 KB, 6 partitions",
        600_000,
        compression="lz4",
        pool=Pool(incompressible_batches, 128, 875),
    ),
    Workload(
        8,
        "small compressed batches",
        "1 KB values of JSON, lz4 (2.9 : 1), batches of 16 KB, 6 partitions",
        1_300_000,
        compression="lz4",
        pool=Pool(large_batches, 46, 2400),
    ),
    Workload(
        9,
        "records of 10 KB",
        "one 10 KB value per batch, as a producer with the default batch.size writes them, 6 partitions",
        70_000,
        pool=Pool(ten_kilobyte_batches, 1, 86),
    ),
    Workload(
        10,
        "records of 1 MB",
        "one 1 MB value per batch, 6 partitions, max.message.bytes of 2 MB",
        900,
        configs=(("max.message.bytes", str(2 * 1024 * 1024)),),
        pool=Pool(megabyte_batches, None, 1),
    ),
    Workload(
        11,
        "two ways",
        "100-byte values in batches of 16 KB, 6 partitions in each cluster, mirrored in both directions at once",
        2_500_000,
        two_way=True,
        pool=Pool(small_batches, PER_BATCH, 8000),
    ),
    Workload(
        12,
        "far away",
        f"100-byte values in batches of 16 KB, 6 partitions, a round trip of {ROUND_TRIP * 1000:.0f} ms to the source",
        3_500_000,
        far=True,
        pool=Pool(small_batches, PER_BATCH, 8000),
    ),
    Workload(
        13,
        "TLS on both sides",
        "as workload 1, over TLS 1.3 from the source and to the target",
        3_500_000,
        tls=True,
        pool=Pool(small_batches, PER_BATCH, 8000),
    ),
)

# Once compacted: nothing more is cleaned, here or in the mirrors, which are created with the same settings.
_AT_REST = {
    "min.compaction.lag.ms": str(7 * 24 * 3600 * 1000),
    "segment.bytes": None,
    "segment.ms": None,
    "min.cleanable.dirty.ratio": None,
}


async def write(workload: Workload, cluster: SandboxCluster, records: int) -> Survey:
    """Write the workload's topic and count what a read-committed consumer of it would see."""
    async with client_of(cluster) as client:
        await create(client, workload.topic, workload.partitions, workload.configs)
        write_source = workload.write or workload.pool.writer()
        await write_source(client, workload.topic, workload.partitions, records)
        if not workload.compacted:
            return survey(data(cluster), workload.topic)
        result = await _cleaned(workload, cluster)
        await alter(client, workload.topic, _AT_REST)
        return result


def warm_up(pair: Pair, records: int) -> None:
    """A broker's JVM needs some millions of records to reach full speed. The topics are gone afterwards."""
    for _ in range(2):
        for cluster in (pair.source, pair.target):
            asyncio.run(_fill(cluster, records))
            asyncio.run(clear(cluster))


async def _fill(cluster: SandboxCluster, records: int) -> None:
    async with client_of(cluster) as client:
        await create(client, "warm-up", _WARM_UP_PARTITIONS)
        await write_small(client, "warm-up", _WARM_UP_PARTITIONS, records)


async def produce_only(
    workload: Workload, per_batch: int, cluster: SandboxCluster, records: int
) -> tuple[float, float]:
    """Records per second that a cluster accepts from memory, and core-seconds of this process per million of them."""
    topic = f"limit-{workload.topic}"
    partitions = min(workload.partitions, max(1, records // per_batch))
    queues = evenly(_prepared(workload.pool, per_batch), per_batch, partitions, records)
    limits = [(name, value) for name, value in workload.configs if name == "max.message.bytes"]
    async with client_of(cluster) as client:
        await create(client, topic, partitions, limits)
        cpu = time.process_time()
        took = await append_all(client, topic, queues)
        cpu = time.process_time() - cpu
    produced = survey(data(cluster), topic).visible
    return produced / took, cpu / produced * 1e6


@functools.cache
def _prepared(pool: Pool, per_batch: int) -> list[bytes]:
    return pool.batches(per_batch)


async def _cleaned(workload: Workload, cluster: SandboxCluster) -> Survey:
    """Waits until the cleaner has nothing more to do."""
    began = changed = time.monotonic()
    result = survey(data(cluster), workload.topic)
    while result.holes == 0 or time.monotonic() < changed + _SETTLED:
        if time.monotonic() > began + _CLEANED_WITHIN:
            raise Trouble(f"the cleaner has not finished with {workload.topic} within {_CLEANED_WITHIN:g} s")
        await asyncio.sleep(0.5)
        before, result = result, survey(data(cluster), workload.topic)
        if result != before:
            changed = time.monotonic()
    return result
