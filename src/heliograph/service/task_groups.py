"""Task groups: their errors as callers expect them, and cancellation that is not lost."""

import asyncio
import sys
from collections.abc import Coroutine, Iterable
from typing import Any


async def run_all(coroutines: Iterable[Coroutine[Any, Any, object]]) -> None:
    """Runs them side by side. The first that fails cancels the others, and its error is raised."""
    try:
        async with asyncio.TaskGroup() as tasks:
            for coroutine in coroutines:
                tasks.create_task(coroutine)
    except BaseExceptionGroup as errors:
        raise first_error(errors) from None


def raise_if_cancelled() -> None:
    """For loops that catch errors and retry. asyncio.gather swallows a cancellation if one of its parts fails at the
    same moment, and a TaskGroup cancels only once: the loop would run forever."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def continue_after_failure() -> None:
    """For a task that continues after its TaskGroup has failed: before Python 3.13 it counts as being cancelled then.
    Raises CancelledError if it really is."""
    task = asyncio.current_task()
    if task is not None and sys.version_info < (3, 13):
        task.uncancel()
    raise_if_cancelled()


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error
