"""A flow's runner in a test, with leases that run in this process: all but Spark."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from copying.lease import prepare
from heliograph.copy.copier import Copier
from heliograph.copy.work import Outcome, Work
from heliograph.model.flow import Flow
from heliograph.service.flow import FlowRunner
from logs import PATIENCE


@asynccontextmanager
async def running(flow: Flow) -> AsyncIterator[FlowRunner]:
    async def run_lease(work: Work) -> Outcome:
        return await Copier(work).run()

    async def cancel_lease(lease: str) -> None:
        raise AssertionError(f"lease {lease} is overdue")

    await prepare(flow)
    runner = FlowRunner(flow, (flow,), run_lease, cancel_lease, uuid.uuid4().hex[:8])
    await runner.connect()
    await runner.prepare()
    task = asyncio.create_task(runner.run())
    try:
        yield runner
    finally:
        await runner.stop()
        await task
        runner.close()


async def until(what: Callable[[], object], told: Callable[[], object] = lambda: "did not happen in time") -> None:
    """Wait for it; `told` is what is shown if it does not come."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not what():
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(told()) from None
