"""Spark, started in the background when it is first needed, and never blocking the event loop."""

import asyncio
import logging
from collections.abc import Mapping

from heliograph.copy.work import Outcome, Work
from heliograph.engine import spark_ahead
from heliograph.engine.spark import Engine
from heliograph.wire.background import in_thread

log = logging.getLogger(__name__)


class LeaseEngine:
    def __init__(
        self, slots: int, master: str | None, conf: Mapping[str, str] | None, secure: bool | None = None
    ) -> None:
        self._engine = Engine(slots, master, conf, secure=secure)
        self._starting: asyncio.Future[None] | None = None

    def start(self) -> None:
        if self._starting is None:
            self._starting = in_thread(self._engine.start)
            # An error that comes after the last `check` must not be reported as never retrieved.
            self._starting.add_done_callback(lambda done: done.cancelled() or done.exception())

    def end_ahead(self) -> None:
        """It is not needed yet."""
        spark_ahead.end()

    async def wait_until_up(self) -> None:
        """Starts it if need be. Raises SparkFailed."""
        self.start()
        assert self._starting is not None
        await asyncio.shield(self._starting)

    @property
    def is_up(self) -> bool:
        starting = self._starting
        is_started = starting is not None and starting.done() and not starting.cancelled()
        return is_started and starting is not None and starting.exception() is None and self._engine.alive

    @property
    def is_alive(self) -> bool:
        """False if the JVM has died. Raises SparkFailed if it did not start."""
        if self._starting is not None and not self._starting.done():
            return True  # or it says itself why it did not start
        if self._starting is not None:
            self._starting.result()
        return self._engine.alive

    async def run(self, work: Work) -> Outcome:
        return await in_thread(lambda: self._engine.run(work))

    async def cancel(self, lease: str) -> None:
        await in_thread(lambda: self._engine.cancel(lease))

    async def stop(self, within: float) -> None:
        """Kills it if it takes longer."""
        try:
            async with asyncio.timeout(within):
                await in_thread(self._engine.stop)
        except Exception as error:
            log.debug("Spark is killed: %r", error)
            self._engine.kill()
