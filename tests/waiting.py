"""Bounded waits. No test waits for anything in another way."""

import asyncio
import inspect
import time
from collections.abc import Callable

PATIENCE = 240.0  # seconds until a test gives up: only a failing test, or one on a very slow machine, waits so long
# Many conditions ask a broker, which costs processor time: the longer the wait, the longer the pauses.
_SHORTEST, _SHARE, _LONGEST = 0.05, 0.05, 0.5


def _nothing() -> object:
    return "did not happen in time"


def until(
    condition: Callable[[], object],
    describe: Callable[[], object] = _nothing,
    *,
    seconds: float = PATIENCE,
    every: float | None = None,
) -> None:
    """Waits until the condition is true. `describe` says what there is instead, if it does not become true."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        assert waited < seconds, describe()
        time.sleep(min(_SHORTEST + waited * _SHARE, _LONGEST) if every is None else every)


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
