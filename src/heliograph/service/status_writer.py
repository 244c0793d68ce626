"""Writes a flow's status to its signals topic every few seconds, and notices other processes that do."""

import asyncio
import logging
from collections.abc import Callable

from heliograph.copy.log_levels import levels
from heliograph.copy.signals import levels_command
from heliograph.model.internal_topics import STATUS
from heliograph.service.events import FlowEvent, emit
from heliograph.service.flow_context import FlowContext
from heliograph.service.flow_status import FlowStatus, encode
from heliograph.service.other_runs import OtherRuns
from heliograph.service.signals_channel import SignalsChannel
from heliograph.service.task_groups import raise_if_cancelled
from heliograph.wire.errors import BrokerError, WireError
from heliograph.wire.records import read, write

log = logging.getLogger(__name__)

_STATUS_EVERY = 5.0
_SOURCE_ANSWERS_WITHIN = 5.0  # the status is written even if the source does not answer


class StatusWriter:
    def __init__(self, context: FlowContext, signals: SignalsChannel) -> None:
        self._context = context
        self._signals = signals
        self.other_runs = OtherRuns(context.name, context.run_id, _STATUS_EVERY)
        self._position = 0  # where statuses of other runs are read on
        self._levels = levels()  # as running leases have them

    def start_at(self, offset: int) -> None:
        """Ignores the statuses before this offset."""
        self._position = offset

    async def run(self, status: Callable[[], FlowStatus]) -> None:
        """Without an end."""
        while True:
            await self._check_transactions()
            try:
                await self._write(status())
                await self._send_levels()
                self._context.errors.recovered("status")
            except WireError as error:
                # Leases cannot report, either: nothing else shows that their reports are missing.
                lasting = isinstance(error, BrokerError) and not error.transient
                text = f"status and progress cannot be written to {self._signals.topic}: {error}"
                failure = FlowEvent(self._context.name, text, logging.WARNING)
                if lasting and self._context.errors.is_new("status", str(error)):
                    emit(log, failure)
                else:
                    log.debug("%s", failure)
            except Exception as error:  # copying continues: a status is only shown
                if self._context.errors.is_new("status", repr(error)):
                    log.exception("%s: the status cannot be written", self._context.name)
            raise_if_cancelled()
            await asyncio.sleep(_STATUS_EVERY)

    async def _write(self, status: FlowStatus) -> None:
        topic = await self._signals.metadata()
        offset = await write(self._context.signals, topic, STATUS, [(b"status", encode(status))])
        start, self._position = self._position, offset + 1
        if start < offset:  # others have written since our last status
            records = [record async for record in read(self._context.signals, topic, STATUS, start, offset)]
            self.other_runs.apply(records)

    async def _send_levels(self) -> None:
        """Running leases log at the driver's levels."""
        if self._levels != (current := levels()):
            await self._signals.send(levels_command(current))
            self._levels = current

    async def _check_transactions(self) -> None:
        try:
            async with asyncio.timeout(_SOURCE_ANSWERS_WITHIN):
                await self._context.stats.stalled.look(self._context.source)
        except (TimeoutError, WireError) as error:
            log.debug("%s: open transactions cannot be listed: %r", self._context.name, error)
        except Exception:  # the status must be written
            log.exception("%s: open transactions cannot be listed", self._context.name)
