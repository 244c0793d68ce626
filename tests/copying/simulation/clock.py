"""Virtual time: an event loop that never sleeps, and a `time` module that goes by it."""

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

# Where wall clocks stand when a schedule begins, in seconds since 1970.
BEGINNING = 1_700_000_000.0


class NothingHappens(Exception):
    """Everybody waits for something that nobody will do."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Where others would sleep, the clock jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._selector = self
        self._rounds = 0
        self._wanted: asyncio.Future[None] | None = None

    def time(self) -> float:
        return self.now

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None and self._wanted is None:
            raise NothingHappens
        if timeout is None:
            self._rounds = 0
        else:
            self.now += timeout
        return []

    def _process_events(self, events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def _run_once(self) -> None:
        super()._run_once()  # type: ignore[misc]
        self._rounds -= 1
        if self._rounds <= 0 and self._wanted is not None:
            wanted, self._wanted = self._wanted, None
            wanted.set_result(None)

    def run_for(self, seconds: float) -> None:
        self.run_until_complete(asyncio.sleep(seconds))

    def run_rounds(self, count: int) -> None:
        """So many rounds of whatever is ready: what runs may be left at any place where it waits."""
        self._rounds, self._wanted = count, self.create_future()
        self.run_until_complete(self._wanted)


class VirtualTime(ModuleType):
    """What the product's modules take for the `time` module."""

    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__("time")
        self._loop = loop

    def monotonic(self) -> float:
        return self._loop.now

    def clock_gettime(self, _clock: int) -> float:
        return self._loop.now

    def time(self) -> float:
        return BEGINNING + self._loop.now


@contextmanager
def virtual_time(loop: VirtualLoop) -> Iterator[None]:
    """Every module of the product that has imported `time` goes by the loop's clock."""
    instead = VirtualTime(loop)
    product = [module for name, module in list(sys.modules.items()) if name.startswith("heliograph.")]
    patches = [patch.object(module, "time", instead) for module in product if getattr(module, "time", None) is time]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()
