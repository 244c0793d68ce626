"""A clock for modules of the product. Everything else, pytest and asyncio included, goes by the real one."""

import time
from types import ModuleType
from typing import Any

import pytest


class FakeClock(ModuleType):
    """The `time` module of these modules, with a clock that stands still until a test moves it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: str, now: float = 1_000_000.0) -> None:
        super().__init__("time")
        self.now = now
        for module in modules:
            monkeypatch.setattr(f"{module}.time", self)

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)  # strftime and the like
