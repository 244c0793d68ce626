"""A flow that runs in a test, with its leases in this process instead of on Spark."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.copy.copier import Copier
from heliograph.copy.work import Outcome, Work
from heliograph.model.flow import Flow
from heliograph.service.flow_runner import FlowRunner
from heliograph.service.lease_pool import RunLease
from heliograph.wire.cluster import ClusterClient
from logs import PATIENCE


async def run_here(work: Work) -> Outcome:
    return await Copier(work).run()


@asynccontextmanager
async def running(flow: Flow, run_id: str = "", run_lease: RunLease = run_here) -> AsyncIterator[FlowRunner]:
    source, target = ClusterClient(flow.source), ClusterClient(flow.target)
    await ensure_internal_topics(flow, source, target)
    source.close()
    target.close()

    async def cancel(_lease: str) -> None:
        return None

    runner = FlowRunner(flow, (flow,), run_lease, cancel, run_id or uuid.uuid4().hex[:8])
    await runner.connect()
    await runner.prepare()
    task = asyncio.create_task(runner.run())
    try:
        yield runner
        assert not task.done(), task
    finally:
        await runner.stop()
        await task
        runner.close()


async def until(condition: Callable[[], object], shown: Callable[[], object] = lambda: "not in time") -> None:
    """Waits for a condition while the flow runs; `shown` is part of the failure if it does not come true."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(shown()) from None
