"""What a flow keeps in sync besides records: settings, access rules, heartbeats, offset syncs, checkpoints, groups.

Each is a job that runs now and then, on connections of its own so that copying does not wait behind them. A job that
fails says so once, and is tried again the next time.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from heliograph.control.acl_sync import AclSync
from heliograph.control.checkpoints import Checkpoints, GroupTopicPartition, Untranslated
from heliograph.control.config_sync import sync_configs
from heliograph.control.group_sync import NO_OFFSETS, SHARE_GROUP, GroupRound, GroupSync
from heliograph.control.heartbeats import beat
from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.control.mm2_offsets import OffsetsForMm2
from heliograph.control.offset_syncs import SyncWriter
from heliograph.control.packing import Packer
from heliograph.control.topic_sync import plan
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE, Flow
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service.error_log import ErrorLog
from heliograph.service.events import Recovered, SyncFailed, SyncSlow, emit, flow_scope
from heliograph.service.measures import JobMeasure
from heliograph.service.window import Window
from heliograph.wire.cluster import ClusterClient, are_different, id_text
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError, WireError
from heliograph.wire.offsets import LATEST, list_offsets

log = logging.getLogger(__name__)

Positions = Callable[[], Mapping[MirrorPartition, Position]]
Job = Callable[[], Awaitable[None]]

_SYNCS_EVERY = 5.0
# Pairs that are not far enough behind the last are written after this time at the latest, and how far copying has come;
# as MM2 does by default.
_FLUSHED_EVERY = 60.0
_PRUNED_EVERY = 3600.0
_PACKED_EVERY = 10.0
_LOOK_EVERY = 5.0  # whether mirrors are still those that checkpoints were computed for
_CHECKPOINTS, _GROUP_OFFSETS = "checkpoints", "group offsets"
_SLOW = 10.0  # a job that takes longer is worth a line


class FlowSyncers:
    def __init__(self, flow: Flow, positions: Positions = dict, ledger: Ledger | None = None) -> None:
        """`positions` tells where the copying of this flow stands."""
        self.flow = flow
        self._positions = positions
        self._source = ClusterClient(flow.source)
        self._target = ClusterClient(flow.target)
        self._ledger = ledger if ledger is not None else Ledger(self._target, flow.source.alias)
        self._packer = Packer(flow, self._source, self._target, self._ledger)
        self._acls = AclSync(flow)
        self._syncs = SyncWriter(flow, self._ledger)
        self._for_mm2 = OffsetsForMm2(flow)
        self._synced: Mapping[MirrorPartition, Position] = {}
        self._flushed = time.monotonic()
        self.checkpoints = Checkpoints(flow, self._source, self._target, self._ledger)
        self._groups = GroupSync(self._target)
        self._loaded = False
        self._tried = asyncio.Event()  # to write checkpoints
        self.synced_groups = GroupRound()  # the last one
        self.untranslated = 0  # partitions of groups in the last look at them
        self._early: set[Untranslated] = set()
        self.checkpoints_written = 0
        self.checkpoint_ages: dict[GroupTopicPartition, Window] = {}  # when they had been written, in milliseconds
        self._went_well: dict[str, float] = {}
        self._failed_settings: dict[str, str] = {}
        self._said: dict[str, str] = {}  # job -> what went wrong with it last
        self._complaints = ErrorLog()

    def follow(self, earlier: "FlowSyncers") -> None:
        """Until its own first rounds are over, what is seen of its jobs is what the one before it has seen."""
        jobs = {name for name, _every, _job in self._jobs()}
        if _CHECKPOINTS in jobs:
            self.untranslated, self.checkpoint_ages = earlier.untranslated, earlier.checkpoint_ages
            self.checkpoints_written = earlier.checkpoints_written
        if _GROUP_OFFSETS in jobs:
            self.synced_groups = earlier.synced_groups
            self._groups.follow(earlier._groups)
        self._went_well = {name: when for name, when in earlier._went_well.items() if name in jobs}
        self._said = {name: text for name, text in earlier._said.items() if name in jobs}
        self._complaints = earlier._complaints

    async def prepare(self) -> None:
        """Reach both clusters, and see that the topics that the flow needs for itself are there."""
        await ensure_internal_topics(self.flow, self._source, self._target)

    async def run(self) -> None:
        """All jobs of the parts that run, until cancelled."""
        await asyncio.gather(*(self._repeat(*one) for one in self._jobs()))

    async def finish(self) -> None:
        """Before a flow ends: write down what others go by, as of now."""
        if SOURCE not in self.flow.parts:
            return
        if self.flow.offset_syncs.enabled:
            await self._try("offset syncs", lambda: self._write_syncs(flush=True))
        await self._try("offsets for MirrorMaker 2", self._write_for_mm2)

    async def translate_once(self) -> None:
        """One look at all groups now, whatever the intervals."""
        if CHECKPOINT not in self.flow.parts:
            return
        if self.flow.groups.checkpoints_every is not None:
            await self._try("groups", self.checkpoints.refresh_groups)
            await self._try(_CHECKPOINTS, self._write_checkpoints)
        if self.flow.groups.sync_every is not None:
            await self._try(_GROUP_OFFSETS, self._sync_groups)

    async def one_round(self) -> None:
        """Settings, access rules, checkpoints and groups once, now."""
        await self._sync_configs()
        await self._acls.run(self._source, self._target)
        await self._write_checkpoints()
        await self._sync_groups()

    def close(self) -> None:
        self._source.close()
        self._target.close()

    def _jobs(self) -> list[tuple[str, float, Job]]:
        """Those that run: their names, how often, and what they do."""
        flow, groups = self.flow, self.flow.groups
        jobs: list[tuple[str, float | None, Job]] = []
        if HEARTBEAT in flow.parts:
            jobs.append(("heartbeats", flow.heartbeats.every, lambda: beat(flow, self._target)))
        if SOURCE in flow.parts:
            jobs += [
                ("topic settings", flow.topic_sync.configs_every, self._sync_configs),
                ("access rules", flow.topic_sync.acls_every, lambda: self._acls.run(self._source, self._target)),
                ("offset syncs", _SYNCS_EVERY if flow.offset_syncs.enabled else None, self._write_syncs),
                ("offsets for MirrorMaker 2", _FLUSHED_EVERY, self._write_for_mm2),
                ("the ledger", _PACKED_EVERY, self._pack),
                ("intervals that are past", _PRUNED_EVERY, self._prune),
            ]
        if CHECKPOINT in flow.parts and groups.checkpoints_every is not None:
            jobs += [
                ("groups", groups.refresh_every, self.checkpoints.refresh_groups),
                (_CHECKPOINTS, groups.checkpoints_every, self._write_checkpoints),
                (_GROUP_OFFSETS, groups.sync_every, self._sync_groups),
            ]
        return [(name, every, job) for name, every, job in jobs if every is not None]

    async def _repeat(self, name: str, every: float, job: Job) -> None:
        if name == _GROUP_OFFSETS:
            await self._tried.wait()  # the first round comes right after the first checkpoints, not an interval later
        due = time.monotonic()
        while True:
            await self._try(name, job)
            due = max(due + every, time.monotonic())
            while (left := due - time.monotonic()) > 0:
                await asyncio.sleep(min(left, _LOOK_EVERY) if name == _CHECKPOINTS else left)
                if name == _CHECKPOINTS and await self._mirrors_are_others():
                    due = time.monotonic()

    async def _mirrors_are_others(self) -> bool:
        """Whether checkpoints are to be computed anew, and not only when it is time for the next."""
        try:
            return await self.checkpoints.mirrors_are_others()
        except WireError:
            return False  # the next round says what is wrong

    def trouble(self, *jobs: str) -> str:
        """What went wrong with these the last time, if it did."""
        return "\n".join(f"{name}: {self._said[name]}" for name in jobs if name in self._said)

    def jobs(self) -> list[JobMeasure]:
        """How they went."""
        now, well = time.monotonic(), self._went_well
        return [
            JobMeasure(name, name in self._said, now - well[name] if name in well else None)
            for name, _every, _job in self._jobs()
        ]

    def drift(self) -> dict[str, int]:
        """What could not be carried over to mirrors the last time, though the jobs themselves went well."""
        if SOURCE not in self.flow.parts:
            return {}
        return {"settings": len(self._failed_settings), "access rules": len(self._acls.refused)}

    @property
    def requests(self) -> int:
        """How many were sent so far, to both clusters."""
        return self._source.requests + self._target.requests

    async def _try(self, name: str, job: Job) -> None:
        began, before = time.monotonic(), self.requests
        try:
            with flow_scope(self.flow.name):
                await job()
            self._went_well[name] = time.monotonic()
            if time.monotonic() - began > _SLOW:
                took, cost = time.monotonic() - began, self.requests - before
                emit(log, SyncSlow(self.flow.name, name, took, cost))
        except WireError as error:
            if self._complaints.is_new(name, str(error)):
                emit(log, SyncFailed(self.flow.name, name, str(error)))
            self._said[name] = str(error)
        except Exception as error:
            if self._complaints.is_new(name, repr(error)):
                emit(log, SyncFailed(self.flow.name, name, repr(error), logging.ERROR), error)
            self._said[name] = repr(error)
        else:
            self._said.pop(name, None)
            if self._complaints.is_well(name):
                emit(log, Recovered(self.flow.name, f"{name} are synced again"))

    async def _sync_configs(self) -> None:
        there, here = await asyncio.gather(self._source.metadata(None), self._target.metadata(None))
        existing = plan(self.flow, there.topics, here.topics).existing
        failed = await sync_configs(self.flow, self._source, self._target, existing)
        for topic, why in failed.items():
            if self._failed_settings.get(topic) != why:
                log.warning("%s: settings of %s: %s", self.flow.name, topic, why)
        self._failed_settings = failed

    async def _write_syncs(self, flush: bool = False) -> None:
        positions = dict(self._positions())
        flush = flush or time.monotonic() - self._flushed >= _FLUSHED_EVERY
        moved = positions if flush else {k: at for k, at in positions.items() if self._synced.get(k) != at}
        if moved:
            topics = (await self._target.metadata({one.mirror for one in moved})).topics
            ids = {name: id_text(topic.id) for name, topic in topics.items() if not topic.error}
            ends = await list_offsets(self._target, topics, {(k.mirror, k.partition) for k in moved}, LATEST, False)
            moved = {
                k: at
                for k, at in moved.items()
                if _has_come_to(ends[k.mirror, k.partition], at)
                and not are_different(at.mirror_id, ids.get(k.mirror, ""))
            }
            client = self._target if self.flow.offset_syncs.on_target else self._source
            await self._syncs.run(moved, ids, client, flush=flush)
        self._syncs.forget(positions)
        self._synced = positions
        if flush:
            self._flushed = time.monotonic()

    async def _write_for_mm2(self) -> None:
        await self._for_mm2.run(self._positions(), self._target)

    async def _pack(self) -> None:
        try:
            count = await self._packer.pack_if_due()
        except BrokerError as error:
            if error.code != UNKNOWN_TOPIC_OR_PARTITION:
                raise
            log.warning("%s: internal topic %s is gone; it is created again", self.flow.name, self._ledger.topic)
            await ensure_internal_topics(self.flow, self._source, self._target)
            count = await self._packer.pack_if_due()
        if count:
            log.debug("%s: intervals of %d mirror partitions packed", self.flow.name, count)

    async def _prune(self) -> None:
        count = await self._packer.prune()
        if count:
            words = "%s: intervals of records that are gone from both clusters deleted, of %d mirror partitions"
            log.info(words, self.flow.name, count)

    async def _write_checkpoints(self) -> None:
        began = time.monotonic()
        try:
            if not self._loaded:
                await self.checkpoints.load()
                await self.checkpoints.refresh_groups()
                self._loaded = True
                began = time.monotonic()
            outcome = await self.checkpoints.run()
        finally:
            self._tried.set()
        self.untranslated = len(outcome.missing)
        self.checkpoints_written += len(outcome.emitted)
        for new in outcome.emitted:
            window = self.checkpoint_ages.setdefault((new.group, new.topic, new.partition), Window())
            window.note((time.monotonic() - began) * 1000)
        self.checkpoint_ages = {one: window for one, window in self.checkpoint_ages.items() if window.spread()}
        if outcome.emitted:
            log.debug("%s: %d checkpoints written", self.flow.name, len(outcome.emitted))
        for one in outcome.early:
            if one not in self._early:
                log.info(
                    "%s: group %s would read some records of %s-%d again: %s",
                    self.flow.name,
                    one.group,
                    one.topic,
                    one.partition,
                    one.why,
                )
        self._early = set(outcome.early)

    async def _sync_groups(self) -> None:
        if not self._loaded:
            return  # half of the history may say something else than all of it
        names = self.flow.groups.names
        placed = [one for place, one in self.checkpoints.placed.items() if names.matches(place[0])]
        outcome = await self._groups.run(placed)
        for group in self.checkpoints.share_groups:
            outcome.leave(group, SHARE_GROUP, NO_OFFSETS)
        if outcome.written:
            log.info("%s: offsets of %d groups written to the target", self.flow.name, len(outcome.written))
        for group, why in outcome.untouched.items():
            if self.synced_groups.untouched.get(group) != why:
                log.info("%s: group %s is left alone: %s", self.flow.name, group, why)
        self.synced_groups = outcome
        if self.checkpoints.deleted:
            await self._delete_groups()

    async def _delete_groups(self) -> None:
        for group, why in (await self._groups.delete(self.checkpoints.deleted)).items():
            self.checkpoints.deleted.pop(group, None)
            if why:
                words = "%s: group %s is gone from the source, and stays on the target: %s"
                log.info(words, self.flow.name, group, why)
            else:
                log.info("%s: group %s is gone from the source, and from the target, too", self.flow.name, group)


def _has_come_to(end: int | WireError, at: Position) -> bool:
    """Not so if the mirror was deleted and made again, and we have not heard of it from the copiers."""
    return isinstance(end, int) and at.target <= end


async def finished(keepers: "list[FlowSyncers]", within: float) -> None:
    """Give all of them a moment to finish."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within):
            await asyncio.gather(*(keeper.finish() for keeper in keepers))
