"""The internal topic through which driver and running leases talk: commands to them, their reports, the flow's status.

The topic may be deleted or created again while the flow runs.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from heliograph.control.internal_topic_setup import MissingTopics, ensure_signals_topic
from heliograph.model.internal_topics import COMMANDS, PROGRESS, STATUS, signals_topic
from heliograph.service.events import FlowEvent, emit
from heliograph.service.flow_context import FlowContext
from heliograph.service.task_groups import raise_if_cancelled
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError, WireError
from heliograph.wire.following import Follower
from heliograph.wire.metadata import Topic
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.records import Record, own_topic, write

log = logging.getLogger(__name__)

_RETRY_AFTER = 1.0


class SignalsChannel:
    """`next_offset` is where a lease that starts now reads commands from. `lost_at` is when records were last found to
    be lost, by the monotonic clock."""

    def __init__(self, context: FlowContext) -> None:
        self._context = context
        self.topic = signals_topic(context.flow.source.alias)
        self.next_offset = 0
        self.lost_at = float("-inf")
        self._progress = Follower(context.signals, self.topic, PROGRESS, 0, self._on_loss)

    async def seek_to_end(self) -> int:
        """Ignores what earlier runs have written. Returns the end of the status partition."""
        topic = await self.metadata()
        partitions = [(self.topic, partition) for partition in (COMMANDS, PROGRESS, STATUS)]
        offsets = await list_offsets(self._context.signals, {self.topic: topic}, partitions, LATEST, False)
        ends: list[int] = []
        for partition in partitions:
            end = offsets[partition]
            if isinstance(end, WireError):
                raise end
            ends.append(end)
        self.next_offset, self._progress.position, status_end = ends
        return status_end

    async def metadata(self) -> Topic:
        return await own_topic(self._context.signals, self.topic)

    async def send(self, command: tuple[bytes, bytes]) -> None:
        """Appends a command for running leases."""
        topic = await self.metadata()
        self.next_offset = await write(self._context.signals, topic, COMMANDS, [command]) + 1

    async def follow(self, handle: Callable[[list[Record]], Awaitable[None]]) -> None:
        """Passes on the reports of leases as they are written, without an end."""
        while True:
            is_missing = False
            try:
                async for records in self._progress.records():
                    await handle(records)
                    self._context.errors.recovered("reports")
            except WireError as error:
                log.debug("%s: reports of leases cannot be read: %s", self._context.name, error)
                is_missing = isinstance(error, BrokerError) and error.code == UNKNOWN_TOPIC_OR_PARTITION
                self._warn_if_forbidden(error)
            except Exception:  # reading continues: without reports no lease would be renewed
                log.exception("%s: reports of leases cannot be handled", self._context.name)
            raise_if_cancelled()
            if is_missing:
                await self._recreate()
            await asyncio.sleep(_RETRY_AFTER)

    def _warn_if_forbidden(self, error: WireError) -> None:
        is_forbidden = isinstance(error, BrokerError) and error.forbidden
        if is_forbidden and self._context.errors.is_new("reports", str(error)):
            effect = "the status is not known, and leases end at their deadlines and start again"
            text = f"reports of leases cannot be read: {error}; {effect}"
            emit(log, FlowEvent(self._context.name, text, logging.WARNING))

    async def _recreate(self) -> None:
        """The topic is missing, or a partition of it."""
        context = self._context
        try:
            missing = (await context.signals.metadata([self.topic])).topics[self.topic].error
            if missing and context.errors.is_new("signals", "missing"):
                text = f"internal topic {self.topic} is missing: it is created again"
                emit(log, FlowEvent(context.name, text, logging.WARNING))
            await ensure_signals_topic(context.flow, context.signals)
            context.errors.recovered("signals")
        except (WireError, MissingTopics) as error:
            if context.errors.is_new("signals", str(error)):
                text = f"reports of leases cannot be read: {error}"
                emit(log, FlowEvent(context.name, text, logging.WARNING))
        except Exception:  # retried, like reading
            log.exception("%s: the signals topic cannot be created", context.name)

    def _on_loss(self, what: str) -> None:
        effect = "reports and commands may be lost, so leases that run end at their deadlines and start again"
        emit(log, FlowEvent(self._context.name, f"{what}; {effect}", logging.WARNING))
        self.next_offset = 0
        self.lost_at = time.monotonic()
