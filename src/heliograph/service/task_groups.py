"""Errors of task groups as callers expect them: the error itself, not a group of one."""

import asyncio
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


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error = errors.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error
