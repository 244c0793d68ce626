"""Limits that hold whatever happens: memory, bytes per second, brokers' quotas, fairness."""

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from copying.lease import copy, only, prepare, settled, until
from heliograph.copy.copier import Copier
from heliograph.copy.rate_limiter import RateLimiter
from heliograph.copy.work import Work
from heliograph.model.flow import MIB, Reading
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from logs import PATIENCE, Log, Pair, some_records


@pytest.fixture(scope="module")
def stallable() -> Iterator[SandboxCluster]:
    with Sandbox() as sandbox:
        (cluster,) = sandbox.start({"stall": ClusterSpec(fast_start=True)})
        yield cluster


def test_a_burst_with_a_stalled_target_stays_within_the_memory_bound(
    pair: Pair, stallable: SandboxCluster, topic: str
) -> None:
    """Much more is written than the buffer holds, in messages large and small, while the target does not answer."""
    target = Log(stallable.bootstrap)
    pair.a.create(topic, partitions=8)
    flow = only(replace(pair.flow(), target=replace(target.cluster, alias="S")), topic)
    limit = 4 * MIB
    flow = replace(flow, buffer_memory=limit)
    most = 0

    async def main() -> None:
        partitions = await prepare(flow)
        copier = Copier(Work(flow, "burst", PATIENCE, partitions))
        lease = asyncio.create_task(copier.run())

        def watched(condition: bool) -> bool:
            nonlocal most
            most = max(most, copier.budget.held)
            return condition

        await until(lambda: settled(copier))
        stallable.pause(1)
        writing = threading.Thread(target=_burst, args=(pair.a, topic))
        writing.start()
        try:
            await until(lambda: watched(not writing.is_alive()))
            quiet = time.monotonic() + 1.0
            await until(lambda: watched(time.monotonic() >= quiet))
        finally:
            stallable.resume(1)
        await until(lambda: watched(settled(copier)))
        copier.stop()
        await lease
        assert copier.budget.held == 0
        assert all(held == 0 for held in copier.budget.held_for.values())

    asyncio.run(main())
    assert limit // 4 < most <= limit + 2 * MIB  # one batch may go over: a broker always gives at least one
    for partition in range(8):
        assert target.read(f"A.{topic}", partition) == pair.a.read(topic, partition)


def _burst(log: Log, topic: str) -> None:
    for partition in range(8):
        log.write(topic, some_records(2500, size=1000), partition, per_batch=100 if partition % 2 else 5)


def test_a_flow_stays_within_its_bytes_per_second(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(3000, size=1000))
    flow = only(pair.flow(), topic)

    async def main() -> float:
        partitions = await prepare(flow)
        copier = Copier(Work(flow, "slow", PATIENCE, partitions, bytes_per_second=1_000_000.0))
        lease = asyncio.create_task(copier.run())
        began = time.monotonic()
        await until(lambda: settled(copier))
        took = time.monotonic() - began
        copier.stop()
        await lease
        return took

    assert asyncio.run(main()) > 1.5  # 3 MB at 1 MB/s; half a second's worth may come at once
    assert pair.b.read(f"A.{topic}") == pair.a.read(topic)


def test_unused_bytes_per_second_are_saved_up_for_a_moment_only() -> None:
    limiter = RateLimiter(1_000_000.0)
    assert limiter.limit(50 * MIB) == 500_000
    assert limiter.limit(1000) == 1000
    assert RateLimiter(0.0).limit(50 * MIB) == 50 * MIB
    limiter.spent(1_000_000)
    began = time.monotonic()
    asyncio.run(limiter.wait())
    assert time.monotonic() - began > 0.3


def test_a_busy_partition_does_not_delay_quiet_ones(pair: Pair, topic: str) -> None:
    """With small fetches a busy partition takes hundreds of rounds; a quiet one must be served long before its end."""
    pair.a.create(topic, partitions=4)
    pair.a.write(topic, some_records(6000, size=500), per_batch=20)
    for partition in (1, 2, 3):
        pair.a.write(topic, some_records(5), partition)
    flow = replace(only(pair.flow(), topic), reading=Reading(fetch_max_bytes=20_000, max_partition_fetch_bytes=10_000))
    left = -1

    def quiet_ones_done(copier: Copier) -> bool:
        nonlocal left
        busy, *quiet = copier.cursors
        if all(cursor.position is not None and cursor.position.source == 5 for cursor in quiet):
            left = 6000 - (busy.position.source if busy.position else 0)
            return True
        return False

    copy(flow, quiet_ones_done)
    assert left > 3000
