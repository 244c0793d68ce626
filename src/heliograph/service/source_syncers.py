"""What the source connector keeps in sync besides records: topic settings, ACLs, offset syncs, the ledger."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from heliograph.control.acl_sync import AclSync
from heliograph.control.config_sync import sync_configs
from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.control.mm2_offsets import OffsetsForMm2
from heliograph.control.offset_syncs import SyncWriter
from heliograph.control.packing import Packer
from heliograph.control.topic_sync import plan
from heliograph.model.flow import Flow
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service.events import FlowEvent, TopicEvent, emit
from heliograph.service.flow_clients import FlowClients
from heliograph.service.syncer_runner import Syncer
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError, WireError
from heliograph.wire.metadata import are_different, id_text
from heliograph.wire.offsets import LATEST, list_offsets

log = logging.getLogger(__name__)

Positions = Callable[[], Mapping[MirrorPartition, Position]]

_SYNC_INTERVAL = 5.0
_PACK_INTERVAL = 10.0
_PRUNE_INTERVAL = 3600.0
_FIRST_PRUNE = 60.0


class TopicConfigSyncer(Syncer):
    name = "topic settings"

    def __init__(self, flow: Flow, clients: FlowClients, interval: float) -> None:
        super().__init__(interval)
        self._flow = flow
        self._clients = clients
        self.failed: dict[str, str] = {}  # topic -> why its mirror has other settings

    async def run(self) -> None:
        source, target = self._clients.source, self._clients.target
        source_topics, target_topics = await asyncio.gather(source.metadata(None), target.metadata(None))
        existing = plan(self._flow, source_topics.topics, target_topics.topics).existing
        failed = await sync_configs(self._flow, source, target, existing)
        for topic, reason in failed.items():
            if self.failed.get(topic) != reason:
                text = f"settings of {topic}: {reason}"
                emit(log, TopicEvent(self._flow.name, topic, text, logging.WARNING))
        self.failed = failed


class AclSyncer(Syncer):
    name = "access rules"

    def __init__(self, flow: Flow, clients: FlowClients, interval: float) -> None:
        super().__init__(interval)
        self._clients = clients
        self._sync = AclSync(flow)

    @property
    def refused(self) -> int:
        """ACLs that the target did not take the last time."""
        return len(self._sync.refused)

    async def run(self) -> None:
        await self._sync.run(self._clients.source, self._clients.target)


class OffsetSyncSyncer(Syncer):
    name = "offset syncs"

    def __init__(self, flow: Flow, clients: FlowClients, positions: Positions) -> None:
        super().__init__(min(_SYNC_INTERVAL, flow.flush_offsets_every))
        self._flush_interval = flow.flush_offsets_every
        self._target = clients.target
        self._written_to = clients.target if flow.offset_syncs.on_target else clients.source
        self._positions = positions
        self._writer = SyncWriter(flow, clients.ledger)
        self._last: Mapping[MirrorPartition, Position] = {}
        self._settled: dict[MirrorPartition, Position] = {}  # of the last flush: there is nothing to write for them
        self._flushed = time.monotonic()

    async def run(self) -> None:
        await self._write(flush=time.monotonic() - self._flushed >= self._flush_interval)

    async def flush(self) -> None:
        await self._write(flush=True)

    async def _write(self, flush: bool) -> None:
        positions = dict(self._positions())
        if flush:
            # A position that a lease has reported again, even an equal one, is another object.
            moved = {k: at for k, at in positions.items() if self._settled.get(k) is not at}
        elif positions == self._last:  # compares by identity first, and thousands in no time
            return
        else:
            moved = {k: at for k, at in positions.items() if self._last.get(k) != at}
        if moved:
            topics = (await self._target.metadata({key.mirror for key in moved})).topics
            ids = {name: id_text(topic.id) for name, topic in topics.items() if not topic.error}
            ends = await list_offsets(self._target, topics, {(k.mirror, k.partition) for k in moved}, LATEST, False)
            moved = {
                k: at
                for k, at in moved.items()
                if _has_reached(ends[k.mirror, k.partition], at)
                and not are_different(at.mirror_id, ids.get(k.mirror, ""))
            }
            settled = await self._writer.run(moved, ids, self._written_to, flush=flush)
            if flush:
                self._settled = {k: at for k, at in positions.items() if k in settled or self._settled.get(k) is at}
        self._writer.forget(positions)
        self._last = positions
        if flush:
            self._flushed = time.monotonic()


def _has_reached(end: int | WireError, at: Position) -> bool:
    """False if the mirror was deleted and created again, and the copiers have not reported it yet."""
    return isinstance(end, int) and at.target <= end


class Mm2OffsetSyncer(Syncer):
    name = "offsets for MirrorMaker 2"

    def __init__(self, flow: Flow, clients: FlowClients, positions: Positions) -> None:
        super().__init__(flow.flush_offsets_every)
        self._target = clients.target
        self._positions = positions
        self._offsets = OffsetsForMm2(flow)

    async def run(self) -> None:
        await self._offsets.run(self._positions(), self._target)


class LedgerPacker(Syncer):
    name = "the ledger"

    def __init__(self, flow: Flow, clients: FlowClients, packer: Packer) -> None:
        super().__init__(_PACK_INTERVAL)
        self._flow = flow
        self._clients = clients
        self._packer = packer

    async def run(self) -> None:
        try:
            count = await self._packer.pack_if_due()
        except BrokerError as error:
            if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                raise
            text = f"internal topic {self._clients.ledger.topic} was deleted; creating it again"
            emit(log, FlowEvent(self._flow.name, text, logging.WARNING))
            await ensure_internal_topics(self._flow, self._clients.source, self._clients.target)
            count = await self._packer.pack_if_due()
        if count:
            log.debug("%s: intervals of %d mirror partitions packed", self._flow.name, count)


class LedgerPruner(Syncer):
    name = "intervals that are past"

    def __init__(self, flow: Flow, packer: Packer) -> None:
        super().__init__(_PRUNE_INTERVAL)
        self._flow = flow
        self._packer = packer

    async def wait_until_ready(self) -> None:
        """At a start there is more urgent work."""
        await asyncio.sleep(_FIRST_PRUNE)

    async def run(self) -> None:
        count = await self._packer.prune()
        if count:
            text = f"ledger intervals of {count} mirror partitions deleted: no cluster has their records any more"
            emit(log, FlowEvent(self._flow.name, text))
