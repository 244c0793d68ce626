"""Running a blocking call without blocking the event loop, or the end of the process."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def in_thread(function: Callable[[], T]) -> "asyncio.Future[T]":
    """Runs a blocking function in a daemon thread: one that never returns must not keep the process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(settle: Callable[[Any], None], value: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(lambda: None if future.done() else settle(value))

    def run() -> None:
        try:
            result = function()
        except BaseException as error:
            deliver(future.set_exception, error)
        else:
            deliver(future.set_result, result)

    threading.Thread(target=run, daemon=True).start()
    return future
