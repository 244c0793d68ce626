"""The syncers of one flow: heartbeats, topic settings, ACLs, offset syncs, the ledger, checkpoints, groups."""

import asyncio

from heliograph.control.checkpoints import Checkpoints, GroupTopicPartition
from heliograph.control.group_sync import GroupRound
from heliograph.control.heartbeats import write_heartbeat
from heliograph.control.internal_topic_setup import create_missing_topics, ensure_internal_topics
from heliograph.control.packing import Packer
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE, Flow
from heliograph.service.flow_clients import FlowClients
from heliograph.service.group_syncers import CheckpointSyncer, GroupListSyncer, GroupOffsetSyncer
from heliograph.service.measures import JobMeasure
from heliograph.service.source_syncers import (
    AclSyncer,
    LedgerPacker,
    LedgerPruner,
    Mm2OffsetSyncer,
    OffsetSyncSyncer,
    Positions,
    TopicConfigSyncer,
)
from heliograph.service.syncer_runner import Syncer, SyncerRunner
from heliograph.service.window import Window
from heliograph.wire.cluster import ClusterClient

_TOPICS_INTERVAL = 60.0
_OFF = float("inf")  # the interval of a syncer that runs only when it is asked to


class HeartbeatSyncer(Syncer):
    name = "heartbeats"

    def __init__(self, flow: Flow, target: ClusterClient, interval: float) -> None:
        super().__init__(interval)
        self._flow = flow
        self._target = target

    async def run(self) -> None:
        await write_heartbeat(self._flow, self._target)


class InternalTopicSyncer(Syncer):
    """Creates internal topics that are missing: they may have been deleted, or creating them may be allowed by now."""

    name = "internal topics"

    def __init__(self, flow: Flow, clients: FlowClients) -> None:
        super().__init__(_TOPICS_INTERVAL)
        self._flow = flow
        self._clients = clients

    async def wait_until_ready(self) -> None:
        """`FlowSyncers.prepare` has just done it."""
        await asyncio.sleep(self.interval)

    async def run(self) -> None:
        await create_missing_topics(self._flow, self._clients.source, self._clients.target)


class FlowSyncers:
    def __init__(self, flow: Flow, positions: Positions = dict, clients: FlowClients | None = None) -> None:
        """`positions` returns how far this flow is copied. Clients that are passed in stay open after `close`."""
        self.flow = flow
        self._owns_clients = clients is None
        self._clients = clients = clients if clients is not None else FlowClients(flow)
        self.packer = Packer(flow, clients.source, clients.target, clients.ledger)
        self.checkpoints = Checkpoints(flow, clients.source, clients.target, clients.ledger)
        groups, topics = flow.groups, flow.topic_sync
        self.topic_configs = TopicConfigSyncer(flow, clients, _interval(topics.configs_every))
        self.acls = AclSyncer(flow, clients, _interval(topics.acls_every))
        self.offset_syncs = OffsetSyncSyncer(flow, clients, positions)
        self.mm2_offsets = Mm2OffsetSyncer(flow, clients, positions)
        self.group_list = GroupListSyncer(self.checkpoints, _interval(groups.refresh_every))
        self.checkpoint_syncer = CheckpointSyncer(flow, self.checkpoints, _interval(groups.checkpoints_every))
        self.group_offsets = GroupOffsetSyncer(
            flow, clients, self.checkpoints, self.checkpoint_syncer, _interval(groups.sync_every)
        )
        self.runner = SyncerRunner(flow.name, self._syncers(), lambda: self.requests)

    def _syncers(self) -> list[Syncer]:
        """Those that the flow's parts and settings ask for."""
        flow, clients = self.flow, self._clients
        syncers: list[Syncer] = [InternalTopicSyncer(flow, clients)] if flow.parts else []
        if HEARTBEAT in flow.parts:
            syncers.append(HeartbeatSyncer(flow, clients.target, _interval(flow.heartbeats.every)))
        if SOURCE in flow.parts:
            syncers += [self.topic_configs, self.acls]
            if flow.offset_syncs.enabled:
                syncers.append(self.offset_syncs)
            syncers += [self.mm2_offsets, LedgerPacker(flow, clients, self.packer), LedgerPruner(flow, self.packer)]
        if CHECKPOINT in flow.parts and flow.groups.checkpoints_every is not None:
            syncers += [self.group_list, self.checkpoint_syncer, self.group_offsets]
        return [syncer for syncer in syncers if syncer.interval != _OFF]

    def take_over(self, earlier: "FlowSyncers") -> None:
        """Takes over the state of syncers that continue, until their own first runs are over."""
        if self.checkpoint_syncer in self.runner.syncers:
            self.checkpoint_syncer.take_over(earlier.checkpoint_syncer)
        if self.group_offsets in self.runner.syncers:
            self.group_offsets.take_over(earlier.group_offsets)
        self.runner.take_over(earlier.runner)

    async def prepare(self) -> None:
        """Connects to both clusters, and creates the internal topics that are missing."""
        await ensure_internal_topics(self.flow, self._clients.source, self._clients.target)

    async def run(self) -> None:
        """Until cancelled."""
        await self.runner.run()

    async def finish(self) -> None:
        """Before a flow ends: writes how far it is copied now, for MirrorMaker 2 and its tools."""
        if SOURCE not in self.flow.parts:
            return
        if self.flow.offset_syncs.enabled:
            await self.runner.attempt(self.offset_syncs, self.offset_syncs.flush)
        await self.runner.attempt(self.mm2_offsets)

    async def translate_once(self) -> None:
        """Runs the syncers of groups now, whatever their intervals."""
        if CHECKPOINT not in self.flow.parts:
            return
        if self.flow.groups.checkpoints_every is not None:
            await self.runner.attempt(self.group_list)
            await self.runner.attempt(self.checkpoint_syncer)
        if self.flow.groups.sync_every is not None:
            await self.runner.attempt(self.group_offsets)

    async def run_once(self) -> None:
        """Syncs topic settings, ACLs, checkpoints and groups now. Raises what fails."""
        for syncer in (self.topic_configs, self.acls, self.checkpoint_syncer, self.group_offsets):
            await syncer.run()

    def close(self) -> None:
        if self._owns_clients:
            self._clients.close()

    def trouble(self, *names: str) -> str:
        """Why these syncers failed the last time, if they did."""
        return self.runner.errors(*names)

    def jobs(self) -> list[JobMeasure]:
        return self.runner.measures()

    def drift(self) -> dict[str, int]:
        """What the target did not take the last time, though the syncers themselves succeeded."""
        if SOURCE not in self.flow.parts:
            return {}
        return {"settings": len(self.topic_configs.failed), "access rules": self.acls.refused}

    @property
    def requests(self) -> int:
        return self._clients.requests

    @property
    def synced_groups(self) -> GroupRound:
        return self.group_offsets.last_round

    @property
    def untranslated(self) -> int:
        return self.checkpoint_syncer.untranslated

    @property
    def checkpoints_written(self) -> int:
        return self.checkpoint_syncer.written

    @property
    def checkpoint_ages(self) -> dict[GroupTopicPartition, Window]:
        return self.checkpoint_syncer.ages


def _interval(seconds: float | None) -> float:
    return _OFF if seconds is None else seconds
