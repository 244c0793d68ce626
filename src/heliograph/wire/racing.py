"""Trying several ways to the same result: the next begins when one fails, or takes longer than a head start."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")
Attempt = Callable[[], Coroutine[Any, Any, T]]


class AllFailed(Exception):
    """`errors` are those of all attempts, in the order in which they failed; there may be none."""

    def __init__(self, errors: list[Exception]) -> None:
        super().__init__(*errors)
        self.errors = errors


def _keep(_result: object) -> None:
    """Nothing has to be undone."""


async def first_success(
    attempts: Iterable[Attempt[T]],
    head_start: float,
    expected: type[Exception],
    discard: Callable[[T], None] = _keep,
    give_up_at: float = float("inf"),
) -> T:
    """Returns the first result; those of other attempts that succeed as well are passed to `discard`. Raises AllFailed
    if all attempts raise `expected` errors. After `give_up_at` (monotonic) no further attempt begins."""
    left = deque(attempts)
    started: list[asyncio.Task[T]] = []
    waiting: set[asyncio.Task[T]] = set()
    errors: list[Exception] = []
    winner: asyncio.Task[T] | None = None
    try:
        while waiting or (left and time.monotonic() < give_up_at):
            if left:
                started.append(asyncio.create_task(left.popleft()()))
                waiting.add(started[-1])
            timeout = head_start if left else None
            done, waiting = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                try:
                    result = task.result()
                except expected as error:
                    errors.append(error)
                else:
                    winner = task
                    return result
        raise AllFailed(errors)
    finally:
        for task in started:
            if task is not winner:
                task.cancel()
                task.add_done_callback(lambda task: _drop(task, discard))


def _drop(task: "asyncio.Task[T]", discard: Callable[[T], None]) -> None:
    """Retrieves the error, too: nobody waits for it any more, and asyncio would log it."""
    if not task.cancelled() and task.exception() is None:
        discard(task.result())
