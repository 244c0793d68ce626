"""Every consumer group of a flow's source: its offsets on both clusters, and if it is not synced, why."""

import asyncio
import difflib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from heliograph.control.checkpoints import Checkpoints
from heliograph.control.group_sync import IDLE, GroupRound, GroupSync, TargetGroups, Verdict, look_at_target
from heliograph.control.group_translation import TranslatedOffset
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import CHECKPOINT, Flow
from heliograph.model.names import why_not
from heliograph.model.partitions import MirrorPartition, TopicPartition
from heliograph.service.group_reasons import (
    GROUP_EXCLUDED,
    LEFT_OUT,
    NO_OFFSET,
    ORDER,
    SYNCED,
    TOPIC_EXCLUDED,
    Reason,
    Rights,
    reason,
    share_group,
    unreadable,
)
from heliograph.service.partition_position import Missing, PartitionPosition, first_missing, partition_positions
from heliograph.wire.acl_requests import READ, may_do
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Committed, Offsets, committed_offsets, describe_groups, list_groups
from heliograph.wire.errors import WireError


class NoAnswer(Exception):
    """There is no such group, or the flow has never run."""


class SwitchedOff(NoAnswer):
    """The flow's settings do not allow this."""


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """A group's offsets in one partition. None: there is none, or it is not known.

    `source_offset` is what it has committed on the source, `mirror_offset` is that translated, and `target_offset` is
    what the target has. `mirror_lag` counts from the translated offset. `state` is one of `group_reasons.ORDER`.
    """

    topic: str
    mirror: str
    partition: int
    source_offset: int
    source_end: int | None
    source_lag: int | None
    mirror_offset: int | None
    target_offset: int | None
    mirror_end: int | None
    mirror_lag: int | None
    state: str
    text: str
    advice: str


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """A group, with the state of the partition that matters most."""

    group: str
    state: str
    text: str
    advice: str
    partitions: tuple[GroupPartition, ...]

    @property
    def left_out(self) -> bool:
        """By the settings, or because it has committed nothing."""
        return self.state in LEFT_OUT

    @property
    def synced(self) -> bool:
        return self.state == SYNCED


@dataclass(frozen=True, slots=True)
class FlowGroups:
    flow: str
    groups: tuple[GroupStanding, ...]


async def look_at_groups(flow: Flow, group: str | None = None) -> FlowGroups:
    """All consumer groups of the source, or one. Reads only, and the number of requests does not grow with that of
    groups. Raises NoAnswer."""
    with closing(ClusterClient(flow.source)) as source, closing(ClusterClient(flow.target)) as target:
        if group is None:
            listed = await list_groups(source)
            share_groups = [name for name, listing in listed.items() if listing.is_share_group]
            committed = await committed_offsets(
                source, [name for name, listing in listed.items() if listing.has_offsets]
            )
        else:
            committed, share_groups = await committed_offsets(source, [group]), []
            if not committed[group]:
                committed, share_groups = {}, [await _share_group_of(flow, source, group)]
        ledger = await _ledger(flow, target)
        readable = {name: offsets for name, offsets in committed.items() if isinstance(offsets, dict)}
        facts = await _facts(flow, source, target, ledger, readable)
        groups = [
            _group(flow, name, offsets, facts) if isinstance(offsets, dict) else _unreadable(flow, name, offsets)
            for name, offsets in committed.items()
        ]
        groups += [_share_group(flow, name) for name in share_groups]
        return FlowGroups(flow.name, tuple(sorted(groups, key=lambda standing: standing.group)))


async def sync_now(flow: Flow, group: str | None = None) -> GroupRound:
    """Translates and syncs now, all groups that the flow selects or one of them, even where sync.group.offsets is off.
    The rules are the same: a group in use is not touched, and no offset is moved back."""
    if CHECKPOINT not in flow.parts or flow.groups.checkpoints_every is None:
        raise SwitchedOff(f"{flow.name} translates no offsets: its checkpoints are switched off or paused")
    with closing(ClusterClient(flow.source)) as source, closing(ClusterClient(flow.target)) as target:
        checkpoints = Checkpoints(flow, source, target, await _ledger(flow, target))
        await checkpoints.load()
        await checkpoints.refresh_groups()
        checkpoints.groups = tuple(name for name in checkpoints.groups if group in (None, name))
        await checkpoints.run()
        chosen = set(checkpoints.groups)
        placed = [checkpoint for key, checkpoint in checkpoints.mirror_checkpoints.items() if key[0] in chosen]
        return await GroupSync(target).run(placed)


async def _ledger(flow: Flow, target: ClusterClient) -> Ledger:
    ledger = Ledger(target, flow.source.alias)
    if (await target.metadata([ledger.topic])).topics[ledger.topic].error:
        raise NoAnswer(f"{flow.name} has never run: there is no topic {ledger.topic} on {flow.target.alias}")
    return ledger


async def _share_group_of(flow: Flow, source: ClusterClient, group: str) -> str:
    """The group, if it is a share group: these never commit. Raises NoAnswer."""
    listed = await list_groups(source)
    if group in listed and listed[group].is_share_group:
        return group
    known = [name for name, listing in listed.items() if listing.has_offsets]
    if group in known:
        raise NoAnswer(f"group {group} has committed nothing on {flow.source.alias}")
    near = difflib.get_close_matches(group, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise NoAnswer(f"{flow.source.alias} has no consumer group {group}{hint}")


@dataclass(frozen=True, slots=True)
class _Facts:
    translated: Mapping[tuple[str, str, int], TranslatedOffset]
    positions: Mapping[TopicPartition, PartitionPosition]
    missing: Mapping[TopicPartition, Missing | WireError | None]
    on_target: TargetGroups
    rights: Rights


async def _facts(
    flow: Flow, source: ClusterClient, target: ClusterClient, ledger: Ledger, committed: Mapping[str, Offsets]
) -> _Facts:
    wanted = {
        group: {key: commit for key, commit in offsets.items() if commit.offset >= 0 and flow.selects(key[0])}
        for group, offsets in committed.items()
    }
    translated = await Checkpoints(flow, source, target, ledger).translate(wanted)
    keys = sorted({(offset.topic, offset.partition) for offset in translated})
    partitions = [MirrorPartition(topic, flow.mirror_name(topic), number) for topic, number in keys]
    source_metadata, target_metadata = await asyncio.gather(
        source.metadata({partition.topic for partition in partitions}),
        target.metadata({ledger.topic, *(partition.mirror for partition in partitions)}),
    )
    # After translating, so that no mirror ends before what was translated.
    found = await partition_positions(
        flow, source, target, ledger, partitions, source_metadata.topics, target_metadata.topics
    )
    positions = {(position.partition.topic, position.partition.partition): position for position in found}
    not_copied = {
        at
        for offset in translated
        if (at := positions[offset.topic, offset.partition]).position is not None
        and offset.committed.offset > at.position
    }
    missing = await first_missing(flow, source, source_metadata.topics, list(not_copied))
    mirrors = {
        group: [(flow.mirror_name(topic), number) for topic, number in offsets] for group, offsets in wanted.items()
    }
    on_target = await look_at_target(target, mirrors, active_too=True)
    due = [
        offset
        for offset in translated
        if isinstance(offset.answer, int)
        and on_target.verdict(offset.group, (flow.mirror_name(offset.topic), offset.partition), offset.answer)
        is Verdict.DUE
    ]
    active = {group for group, state in on_target.states.items() if state not in IDLE}
    rights = Rights(
        await describe_groups(target, {offset.group for offset in due} | active),
        await may_do(target, READ, {flow.mirror_name(offset.topic) for offset in due}),
    )
    by_key = {(offset.group, offset.topic, offset.partition): offset for offset in translated}
    return _Facts(by_key, positions, missing, on_target, rights)


def _group(flow: Flow, group: str, committed: Offsets, facts: _Facts) -> GroupStanding:
    excluded = _excluded(flow, group)
    rows = tuple(
        _partition(flow, group, key, commit, facts, excluded)
        for key, commit in sorted(committed.items())
        if commit.offset >= 0
    )
    if not rows:
        return GroupStanding(group, NO_OFFSET, "it has committed nothing", "", ())
    first = min(rows, key=lambda row: ORDER.index(row.state))
    return GroupStanding(group, first.state, first.text, first.advice, rows)


def _share_group(flow: Flow, group: str) -> GroupStanding:
    return _without_partitions(group, _excluded(flow, group) or share_group(flow))


def _unreadable(flow: Flow, group: str, error: WireError) -> GroupStanding:
    return _without_partitions(group, unreadable(error, flow.source.alias, group))


def _without_partitions(group: str, why: Reason) -> GroupStanding:
    return GroupStanding(group, why.state, why.text, why.advice, ())


def _excluded(flow: Flow, group: str) -> Reason | None:
    names = flow.groups.names
    return None if names.matches(group) else Reason(GROUP_EXCLUDED, *why_not(names, group, "groups"))


def _partition(
    flow: Flow, group: str, key: TopicPartition, committed: Committed, facts: _Facts, excluded: Reason | None
) -> GroupPartition:
    topic, number = key
    mirror = flow.mirror_name(topic)
    translated, at = facts.translated.get((group, topic, number)), facts.positions.get(key)
    if translated is None or at is None:
        why = excluded or Reason(TOPIC_EXCLUDED, *flow.why_left_out(topic))
        return GroupPartition(topic, mirror, number, committed.offset, *(None,) * 6, why.state, why.text, why.advice)
    why = excluded or reason(flow, translated, at, facts.missing.get(key), facts.on_target, facts.rights)
    mirror_offset = translated.answer if isinstance(translated.answer, int) else None
    target_offsets = facts.on_target.committed.get(group)
    on_target = target_offsets.get((mirror, number)) if isinstance(target_offsets, dict) else None
    return GroupPartition(
        topic,
        mirror,
        number,
        committed.offset,
        at.source_end,
        None if at.source_end is None else max(0, at.source_end - committed.offset),
        mirror_offset,
        on_target.offset if on_target is not None and on_target.offset >= 0 else None,
        at.mirror_end,
        None if mirror_offset is None or at.mirror_end is None else at.mirror_end - mirror_offset,
        why.state,
        why.text,
        why.advice,
    )
