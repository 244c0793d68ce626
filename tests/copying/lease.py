"""Running a copier in a test, without Spark."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.control.topic_sync import sync_topics
from heliograph.copy.copier import Copier
from heliograph.copy.work import Outcome, Work
from heliograph.model.flow import CONTINUE, Flow
from heliograph.model.names import NameFilter
from heliograph.model.partitions import MirrorPartition
from heliograph.wire.cluster import ClusterClient
from logs import PATIENCE


async def prepare(flow: Flow) -> tuple[MirrorPartition, ...]:
    """Create mirrors and internal topics, as the control plane does."""
    source, target = ClusterClient(flow.source), ClusterClient(flow.target)
    try:
        await source.connect()
        await target.connect()
        parking = replace(flow, policies=replace(flow.policies, refused_record=CONTINUE))
        await ensure_internal_topics(parking, source, target)
        synced = await sync_topics(flow, source, target, (await source.metadata(None)).topics)
        assert not synced.failed, synced.failed
        return tuple(
            MirrorPartition(topic, flow.mirror_name(topic), partition)
            for topic, count in synced.partitions.items()
            for partition in range(count)
        )
    finally:
        source.close()
        target.close()


def only(flow: Flow, topic: str) -> Flow:
    return replace(flow, topics=NameFilter((topic + ".*",)))


def copy(flow: Flow, done: Callable[[Copier], bool] | None = None, seconds: float = PATIENCE) -> Outcome:
    """Run one lease over all the flow's partitions until `done`, by default until everything is copied or refused."""

    async def main() -> Outcome:
        partitions = await prepare(flow)
        copier = Copier(Work(flow, f"test-{time.time()}", seconds, partitions))
        lease = asyncio.create_task(copier.run())
        check = done or settled
        await until(lambda: lease.done() or check(copier))
        copier.stop()
        async with asyncio.timeout(PATIENCE):
            return await lease

    return asyncio.run(main())


def cut_off(flow: Flow, seconds: float) -> None:
    """Cancel a lease after some time, whatever it does then."""

    async def main() -> None:
        copier = Copier(Work(flow, "cut", 20.0, await prepare(flow)))
        lease = asyncio.create_task(copier.run())
        await asyncio.sleep(seconds)
        lease.cancel()
        with suppress(asyncio.CancelledError):
            async with asyncio.timeout(PATIENCE):
                await lease

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, for a limited time."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


def settled(copier: Copier) -> bool:
    """Every partition has reached the source's end as it knows it, or is refused."""
    return all(
        (cursor.refusal is not None and cursor.sending.is_idle)
        or (
            cursor.position is not None
            and cursor.source.end >= 0
            and cursor.position.source >= cursor.source.end
            and cursor.state.value == "copying"
        )
        for cursor in copier.cursors
    )
