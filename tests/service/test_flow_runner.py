"""A part of a running flow that dies ends the flow with its error, and its leases with it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_runner import FlowRunner
from service.fakes import FLOW, FakeEngine, FakeLedger, partitions
from service.runner import until
from waiting import PATIENCE

PARTS = ("_signals.follow", "_watcher.run", "_checker.run", "_status_writer.run")


@pytest.mark.parametrize("dying", PARTS)
def test_a_part_that_dies_ends_the_flow_with_its_error(monkeypatch: pytest.MonkeyPatch, dying: str) -> None:
    engine = FakeEngine()

    async def main() -> None:
        clients = FlowClients(FLOW)
        monkeypatch.setattr(clients, "ledger", FakeLedger())
        runner = FlowRunner(FLOW, (FLOW,), engine.run, engine.cancel, "run", clients)
        die = asyncio.Event()
        for part in PARTS:
            owner, method = part.split(".")
            monkeypatch.setattr(getattr(runner, owner), method, _waits_or_dies(die if part == dying else None))
        await runner._pool.assign(partitions(0))
        task = asyncio.create_task(runner.run())
        await until(lambda: len(engine.running()) == 1)
        die.set()
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(ExceptionGroup) as raised:
                await task
        (error,) = raised.value.exceptions
        assert isinstance(error, ZeroDivisionError)
        assert engine.running() == []

    asyncio.run(main())


def _waits_or_dies(die: asyncio.Event | None) -> Callable[..., Any]:
    async def part(*_arguments: object) -> None:
        await (die or asyncio.Event()).wait()
        raise ZeroDivisionError

    return part


def test_a_flow_that_is_stopped_ends_even_if_a_part_swallows_a_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    """As asyncio.gather can."""
    engine = FakeEngine()
    swallowed: list[str] = []

    async def part(*_arguments: object) -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if len(swallowed) == len(PARTS):
                    raise
                swallowed.append("cancellation")

    async def main() -> None:
        runner = FlowRunner(FLOW, (FLOW,), engine.run, engine.cancel, "run")
        for owner, method in (name.split(".") for name in PARTS):
            monkeypatch.setattr(getattr(runner, owner), method, part)
        task = asyncio.create_task(runner.run())
        await asyncio.sleep(0)
        await runner.stop()
        async with asyncio.timeout(PATIENCE):
            await task
        runner.close()

    asyncio.run(main())
    assert len(swallowed) == len(PARTS)
