"""Source offsets of connectors that are stopped, changed through Connect's REST API (KIP-875)."""

import asyncio
import logging
import time
from collections.abc import Mapping

from heliograph.control.internal_topic_setup import MissingTopics
from heliograph.copy.altered_position import NotAlterable
from heliograph.model.connect_records import STOPPED
from heliograph.model.flow import SOURCE
from heliograph.model.partitions import Position, TopicPartition
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors, Invalid
from heliograph.service.events import PartitionEvent, emit
from heliograph.service.flow_supervisor import FlowSupervisor
from heliograph.service.offset_changes import Busy, WantedOffsets, change_offsets

log = logging.getLogger(__name__)

_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
    "connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
)
_STOPS_WITHIN = 10.0
_POLL = 0.05


class ConnectorOffsets:
    """Offsets of checkpoint and heartbeat connectors mean nothing: like MirrorMaker 2, accepts changes and ignores
    them."""

    def __init__(self, connectors: Connectors, states: ConnectorStates) -> None:
        self._connectors = connectors
        self._states = states

    def check_stopped(self, name: str) -> None:
        """Raises NotFound or Invalid."""
        if self._connectors.wanted(name).state != STOPPED or self._states.status(name)[0].state != STOPPED:
            raise Invalid(_NOT_STOPPED.format(name=name))

    async def alter(self, name: str, last: Mapping[TopicPartition, int | None]) -> None:
        """By source partition, the offset of the last record that counts as copied; None resets a partition. Raises
        Invalid, Busy and WireError."""
        await self._change(name, {partition: at if at is None else at + 1 for partition, at in last.items()})

    async def reset(self, name: str) -> None:
        """Resets all partitions."""
        await self._change(name, None)

    async def _change(self, name: str, wanted: WantedOffsets | None) -> None:
        async with self._connectors.changing:  # nobody resumes it meanwhile
            self.check_stopped(name)
            if self._connectors.part(name) != SOURCE:
                return
            deployed = self._connectors.deployed_of(name)
            if deployed is None or deployed.wanted is None:
                why = self._connectors.unfit(name) or "its settings disable it"
                raise Invalid(f"Connector {name} is part of no flow: {why}")
            await _until_stopped(name, deployed)
            flow, copying = deployed.wanted, deployed.copying
            try:
                changes = await change_offsets(flow, self._connectors.copying(), wanted, copying.run_ids)
            except (NotAlterable, MissingTopics) as error:
                raise Invalid(f"The offsets of {name} are not changed: {error}") from error
            copying.alter(
                {
                    change.partition: Position(change.source, change.mirror_end, mirror_id=change.mirror_id)
                    for change in changes
                    if not change.is_reset
                },
                {change.partition for change in changes if change.is_reset},
            )
            for change in changes:
                if change.source != change.before:
                    emit(log, PartitionEvent(flow.name, change.partition, str(change)))


async def _until_stopped(name: str, deployed: FlowSupervisor) -> None:
    """A connector is STOPPED when its leases have ended; then the flow still writes how far it has copied."""
    deadline = time.monotonic() + _STOPS_WITHIN
    while not deployed.has_stopped_copying:
        if time.monotonic() > deadline:
            raise Busy(f"Connector {name} is still stopping: try again")
        await asyncio.sleep(_POLL)
