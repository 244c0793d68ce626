"""What the checkpoint connector keeps in sync: the list of groups, checkpoints, and the groups' offsets."""

import asyncio
import logging
import time

from heliograph.control.checkpoints import CheckpointIssue, Checkpoints, GroupTopicPartition
from heliograph.control.group_sync import NO_OFFSETS, SHARE_GROUP, GroupRound, GroupSync
from heliograph.model.flow import Flow
from heliograph.service.events import FlowEvent, emit
from heliograph.service.flow_clients import FlowClients
from heliograph.service.syncer_runner import Syncer
from heliograph.service.window import Window
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)

_MIRROR_CHECK_INTERVAL = 5.0


class GroupListSyncer(Syncer):
    name = "groups"

    def __init__(self, checkpoints: Checkpoints, interval: float) -> None:
        super().__init__(interval)
        self._checkpoints = checkpoints

    async def run(self) -> None:
        await self._checkpoints.refresh_groups()


class CheckpointSyncer(Syncer):
    name = "checkpoints"
    check_interval = _MIRROR_CHECK_INTERVAL

    def __init__(self, flow: Flow, checkpoints: Checkpoints, interval: float) -> None:
        super().__init__(interval)
        self._flow = flow
        self._checkpoints = checkpoints
        self.loaded = False  # the checkpoints that were written before this start
        self.tried = asyncio.Event()
        self.untranslated = 0  # group partitions in the last run
        self.written = 0
        self.ages: dict[GroupTopicPartition, Window] = {}  # when they were written, in milliseconds
        self._early: set[CheckpointIssue] = set()
        self._unreadable: set[CheckpointIssue] = set()

    def take_over(self, earlier: "CheckpointSyncer") -> None:
        self.untranslated, self.written, self.ages = earlier.untranslated, earlier.written, earlier.ages

    async def run(self) -> None:
        started = time.monotonic()
        try:
            if not self.loaded:
                await self._checkpoints.load()
                await self._checkpoints.refresh_groups()
                self.loaded = True
                started = time.monotonic()
            outcome = await self._checkpoints.run()
        finally:
            self.tried.set()
        self.untranslated = len(outcome.missing)
        self.written += len(outcome.emitted)
        for checkpoint in outcome.emitted:
            key = (checkpoint.group, checkpoint.topic, checkpoint.partition)
            self.ages.setdefault(key, Window()).note((time.monotonic() - started) * 1000)
        self.ages = {key: window for key, window in self.ages.items() if window.spread()}
        if outcome.emitted:
            log.debug("%s: %d checkpoints written", self._flow.name, len(outcome.emitted))
        unreadable = {issue for issue in outcome.missing if issue.is_about_group}
        for issue in sorted(unreadable - self._unreadable, key=lambda issue: issue.group):
            text = f"offsets of group {issue.group} are not translated: {issue.why}"
            emit(log, FlowEvent(self._flow.name, text, logging.WARNING))
        self._unreadable = unreadable
        for early in outcome.early:
            if early not in self._early:
                where = f"{early.topic}-{early.partition}"
                text = f"group {early.group} would read some records of {where} again: {early.why}"
                emit(log, FlowEvent(self._flow.name, text))
        self._early = set(outcome.early)

    async def is_due_early(self) -> bool:
        """Checkpoints of a mirror that was deleted and created again are wrong until they are computed again."""
        try:
            return await self._checkpoints.mirrors_are_others()
        except WireError:
            return False  # the next run reports what is wrong


class GroupOffsetSyncer(Syncer):
    name = "group offsets"

    def __init__(
        self,
        flow: Flow,
        clients: FlowClients,
        checkpoints: Checkpoints,
        checkpoint_syncer: CheckpointSyncer,
        interval: float,
    ) -> None:
        super().__init__(interval)
        self._flow = flow
        self._checkpoints = checkpoints
        self._checkpoint_syncer = checkpoint_syncer
        self._sync = GroupSync(clients.target)
        self.last_round = GroupRound()

    def take_over(self, earlier: "GroupOffsetSyncer") -> None:
        self.last_round = earlier.last_round
        self._sync.follow(earlier._sync)

    async def wait_until_ready(self) -> None:
        """The first run comes right after the first checkpoints, not an interval later."""
        await self._checkpoint_syncer.tried.wait()

    async def run(self) -> None:
        if not self._checkpoint_syncer.loaded:
            return  # the checkpoints that are read so far may be older than those that are not
        flow, checkpoints = self._flow, self._checkpoints
        matches = flow.groups.names.matches
        placed = [checkpoint for key, checkpoint in checkpoints.mirror_checkpoints.items() if matches(key[0])]
        outcome = await self._sync.run(placed)
        for group in checkpoints.share_groups:
            outcome.leave(group, SHARE_GROUP, NO_OFFSETS)
        if outcome.written:
            text = f"offsets of {len(outcome.written)} groups written to the target"
            emit(log, FlowEvent(flow.name, text))
        for group, reason in outcome.untouched.items():
            if self.last_round.untouched.get(group) != reason:
                emit(log, FlowEvent(flow.name, f"group {group} is left alone: {reason}"))
        self.last_round = outcome
        if checkpoints.deleted:
            await self._delete_groups()

    async def _delete_groups(self) -> None:
        deleted = self._checkpoints.deleted
        for group, reason in (await self._sync.delete(deleted)).items():
            deleted.pop(group, None)
            outcome = f"and stays on the target: {reason}" if reason else "and is deleted on the target as well"
            emit(log, FlowEvent(self._flow.name, f"group {group} was deleted on the source, {outcome}"))
