"""Bounded waits. No test waits for anything in another way."""

import asyncio
import inspect
import time
from collections.abc import Callable

PATIENCE = 240.0  # seconds until a test gives up: only a failing test, or one on a very slow machine, waits so long


def _nothing() -> object:
    return "did not happen in time"


def until(
    condition: Callable[[], object],
    describe: Callable[[], object] = _nothing,
    *,
    seconds: float = PATIENCE,
    every: float = 0.1,
) -> None:
    """Waits until the condition is true. `describe` says what there is instead, if it does not become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, describe()
        time.sleep(every)


async def async_until(
    condition: Callable[[], object],
    describe: Callable[[], object] = _nothing,
    *,
    seconds: float = PATIENCE,
    every: float = 0.02,
) -> None:
    """The same on an event loop. The condition may be a coroutine function."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if inspect.isawaitable(result):
            result = await result
        if result:
            return
        assert time.monotonic() < deadline, describe()
        await asyncio.sleep(every)
