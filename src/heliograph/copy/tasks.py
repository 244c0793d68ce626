"""The background tasks and callbacks of a lease: one that fails ends the lease with its error."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

P = ParamSpec("P")
_CANCEL_EVERY = 0.1


class Tasks:
    """Not an asyncio.TaskGroup, which cancels its tasks once: asyncio.gather swallows a cancellation if one of its
    parts fails at the same moment. Here it is repeated until all tasks have ended.
    """

    def __init__(self, on_failure: Callable[[], None]) -> None:
        self._on_failure = on_failure
        self._tasks: dict[asyncio.Task[None], bool] = {}  # whether it may finish what it has begun
        self.failure: BaseException | None = None

    def start(self, coroutine: Coroutine[Any, Any, None], drains: bool = False) -> None:
        """Run a task. With `drains` it continues while the lease waits for what is in flight."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks[task] = drains
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def guard(self, callback: Callable[P, None]) -> Callable[P, None]:
        """For callbacks of the event loop, whose errors it would only log: they end the lease as well."""

        def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                callback(*args, **kwargs)
            except Exception as error:
                self._fail(error)

        return guarded

    def _fail(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self._on_failure()

    def begin_draining(self) -> None:
        """Cancel all tasks but those that finish what is in flight."""
        for task, drains in self._tasks.items():
            if not drains:
                task.cancel()

    async def cancel(self) -> None:
        """Returns when all tasks have ended."""
        while running := [task for task in self._tasks if not task.done()]:
            for task in running:
                task.cancel()
            await asyncio.wait(running, timeout=_CANCEL_EVERY)
