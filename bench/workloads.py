"""The workloads: six source topics, each difficult in its own way.

A tuned MirrorMaker 2 copies each in about ten seconds on two cores at 2.8 GHz.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from clusters import Trouble, alter, client_of, create, data
from logfiles import Survey, survey
from payloads import PER_BATCH, PER_LARGE_BATCH, large_batches, small_batches
from producing import append_all
from transactions import write_transactions
from writers import SEGMENT_MS, evenly, write_compacted, write_large, write_skewed, write_small, write_thin

from heliograph.sandbox import SandboxCluster
from heliograph.wire.cluster import ClusterClient

Write = Callable[[ClusterClient, str, int, int], Awaitable[float]]

_SETTLED = 4.0
_CLEANED_WITHIN = 180.0


@dataclass(frozen=True)
class Pool:
    """Batches to append again and again, for the ceiling: the rate of a target without any reading."""

    batches: Callable[[], list[bytes]]
    per_batch: int


@dataclass(frozen=True)
class Workload:
    """A source topic. `committed`: MirrorMaker 2 must be configured to omit aborted records."""

    number: int
    name: str
    about: str
    records: int
    write: Write
    partitions: int = 6
    configs: tuple[tuple[str, str], ...] = ()
    compression: str = "none"
    committed: bool = False
    two_tasks: bool = False
    ceiling: Pool | None = None

    @property
    def topic(self) -> str:
        return f"w{self.number}"

    @property
    def compacted(self) -> bool:
        return ("cleanup.policy", "compact") in self.configs


WORKLOADS = (
    Workload(
        1,
        "small records",
        "100-byte values in batches of 16 KB, 6 partitions",
        3_500_000,
        write_small,
        two_tasks=True,
        ceiling=Pool(small_batches, PER_BATCH),
    ),
    Workload(
        2,
        "large compressed batches",
        "1 KB values of JSON, lz4 (2.9 : 1), batches of 128 KB, 6 partitions",
        1_300_000,
        write_large,
        compression="lz4",
        ceiling=Pool(large_batches, PER_LARGE_BATCH),
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
        await workload.write(client, workload.topic, workload.partitions, records)
        if not workload.compacted:
            return survey(data(cluster), workload.topic)
        result = await _cleaned(workload, cluster)
        await alter(client, workload.topic, _AT_REST)
        return result


async def measure_ceiling(workload: Workload, pool: Pool, cluster: SandboxCluster, records: int) -> float:
    """Records per second that a cluster accepts from memory."""
    topic = f"ceiling-{workload.topic}"
    queues = evenly(pool.batches(), pool.per_batch, workload.partitions, records)
    async with client_of(cluster) as client:
        await create(client, topic, workload.partitions)
        took = await append_all(client, topic, queues)
    return survey(data(cluster), topic).visible / took


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
