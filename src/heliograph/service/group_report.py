"""Every consumer group of a flow's source: where it stands on both clusters, whether it is synced, and if not, why."""

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
    """The flow does not do this, by its settings."""


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """A group's position in one partition. None stands for what is not there or not known.

    `source_offset` is what it has committed on the source, `mirror_offset` is that translated, and `target_offset` is
    what the target has. `mirror_lag` counts from the translated position. `state` is a stable word.
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
    """A group, with the state that says most about its partitions."""

    group: str
    state: str
    text: str
    advice: str
    partitions: tuple[GroupPartition, ...]

    @property
    def left_out(self) -> bool:
        """As the file, or the group itself, wants it."""
        return self.state in LEFT_OUT

    @property
    def synced(self) -> bool:
        return self.state == SYNCED


@dataclass(frozen=True, slots=True)
class FlowGroups:
    flow: str
    groups: tuple[GroupStanding, ...]


async def look_at_groups(flow: Flow, group: str | None = None) -> FlowGroups:
    """All consumer groups of the source, or one. Only asks, and with as few requests for thousands as for one. Raises
    NoAnswer."""
    with closing(ClusterClient(flow.source)) as source, closing(ClusterClient(flow.target)) as target:
        if group is None:
            listed = await list_groups(source)
            shares = [name for name, one in listed.items() if one.is_share_group]
            committed = await committed_offsets(source, [name for name, one in listed.items() if one.has_offsets])
        else:
            committed, shares = await committed_offsets(source, [group]), []
            if not committed[group]:
                committed, shares = {}, [await _share_group_of(flow, source, group)]
        ledger = await _ledger(flow, target)
        known = {name: found for name, found in committed.items() if isinstance(found, dict)}
        facts = await _ask(flow, source, target, ledger, known)
        standing = [
            _group(flow, name, found, facts) if isinstance(found, dict) else _unread(flow, name, found)
            for name, found in committed.items()
        ]
        standing += [_share_group(flow, name) for name in shares]
        return FlowGroups(flow.name, tuple(sorted(standing, key=lambda one: one.group)))


async def sync_now(flow: Flow, group: str | None = None) -> GroupRound:
    """One round of translating and syncing now, of all groups that the flow takes care of or of one, even where rounds
    now and then are switched off. By the same rules: a group in use is not touched, and none is moved back."""
    if CHECKPOINT not in flow.parts or flow.groups.checkpoints_every is None:
        raise SwitchedOff(f"{flow.name} translates no offsets: its checkpoints are switched off or paused")
    with closing(ClusterClient(flow.source)) as source, closing(ClusterClient(flow.target)) as target:
        checkpoints = Checkpoints(flow, source, target, await _ledger(flow, target))
        await checkpoints.load()
        await checkpoints.refresh_groups()
        checkpoints.groups = tuple(name for name in checkpoints.groups if group in (None, name))
        await checkpoints.run()
        chosen = set(checkpoints.groups)
        return await GroupSync(target).run(
            [one for place, one in checkpoints.mirror_checkpoints.items() if place[0] in chosen]
        )


async def _ledger(flow: Flow, target: ClusterClient) -> Ledger:
    ledger = Ledger(target, flow.source.alias)
    if (await target.metadata([ledger.topic])).topics[ledger.topic].error:
        raise NoAnswer(f"{flow.name} has never run: there is no topic {ledger.topic} on {flow.target.alias}")
    return ledger


async def _share_group_of(flow: Flow, source: ClusterClient, group: str) -> str:
    """A group that has committed nothing, if it is one that never does. Raises NoAnswer."""
    listed = await list_groups(source)
    if group in listed and listed[group].is_share_group:
        return group
    known = [name for name, one in listed.items() if one.has_offsets]
    if group in known:
        raise NoAnswer(f"group {group} has committed nothing on {flow.source.alias}")
    near = difflib.get_close_matches(group, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise NoAnswer(f"{flow.source.alias} has no consumer group {group}{hint}")


@dataclass(frozen=True, slots=True)
class _Facts:
    translated: Mapping[tuple[str, str, int], TranslatedOffset]
    standing: Mapping[TopicPartition, PartitionPosition]
    missing: Mapping[TopicPartition, Missing | WireError | None]
    seen: TargetGroups
    rights: Rights


async def _ask(
    flow: Flow, source: ClusterClient, target: ClusterClient, ledger: Ledger, committed: Mapping[str, Offsets]
) -> _Facts:
    wanted = {
        group: {place: one for place, one in found.items() if one.offset >= 0 and flow.selects(place[0])}
        for group, found in committed.items()
    }
    translated = await Checkpoints(flow, source, target, ledger).translate(wanted)
    places = {(one.topic, one.partition) for one in translated}
    partitions = [MirrorPartition(topic, flow.mirror_name(topic), number) for topic, number in sorted(places)]
    there, here = await asyncio.gather(
        source.metadata({one.topic for one in partitions}),
        target.metadata({ledger.topic, *(one.mirror for one in partitions)}),
    )
    # After translating, so that no mirror ends before what was translated.
    standing = await partition_positions(flow, source, target, ledger, partitions, there.topics, here.topics)
    by_place = {(one.partition.topic, one.partition.partition): one for one in standing}
    overtaken = {
        at
        for one in translated
        if (at := by_place[one.topic, one.partition]).position is not None and one.committed.offset > at.position
    }
    missing = await first_missing(flow, source, there.topics, list(overtaken))
    mirrors = {group: [(flow.mirror_name(topic), number) for topic, number in found] for group, found in wanted.items()}
    seen = await look_at_target(target, mirrors, active_too=True)
    due = [
        one
        for one in translated
        if isinstance(one.answer, int)
        and seen.verdict(one.group, (flow.mirror_name(one.topic), one.partition), one.answer) is Verdict.DUE
    ]
    active = {group for group, state in seen.states.items() if state not in IDLE}
    rights = Rights(
        await describe_groups(target, {one.group for one in due} | active),
        await may_do(target, READ, {flow.mirror_name(one.topic) for one in due}),
    )
    return _Facts({(one.group, one.topic, one.partition): one for one in translated}, by_place, missing, seen, rights)


def _group(flow: Flow, group: str, committed: Offsets, facts: _Facts) -> GroupStanding:
    excluded = _excluded(flow, group)
    rows = tuple(
        _partition(flow, group, place, one, facts, excluded)
        for place, one in sorted(committed.items())
        if one.offset >= 0
    )
    if not rows:
        return GroupStanding(group, NO_OFFSET, "it has committed nothing", "", ())
    says_most = min(rows, key=lambda row: ORDER.index(row.state))
    return GroupStanding(group, says_most.state, says_most.text, says_most.advice, rows)


def _share_group(flow: Flow, group: str) -> GroupStanding:
    why = _excluded(flow, group) or share_group(flow)
    return GroupStanding(group, why.state, why.text, why.advice, ())


def _excluded(flow: Flow, group: str) -> Reason | None:
    names = flow.groups.names
    return None if names.matches(group) else Reason(GROUP_EXCLUDED, *why_not(names, group, "groups"))


def _unread(flow: Flow, group: str, error: WireError) -> GroupStanding:
    why = unreadable(error, flow.source.alias, group)
    return GroupStanding(group, why.state, why.text, why.advice, ())


def _partition(
    flow: Flow, group: str, place: TopicPartition, committed: Committed, facts: _Facts, excluded: Reason | None
) -> GroupPartition:
    topic, number = place
    one, at, mirror = facts.translated.get((group, topic, number)), facts.standing.get(place), flow.mirror_name(topic)
    if one is None or at is None:
        why = excluded or Reason(TOPIC_EXCLUDED, *flow.why_left_out(topic))
        return GroupPartition(topic, mirror, number, committed.offset, *(None,) * 6, why.state, why.text, why.advice)
    why = excluded or reason(flow, one, at, facts.missing.get(place), facts.seen, facts.rights)
    translated = one.answer if isinstance(one.answer, int) else None
    known = facts.seen.committed.get(group)
    there = known.get((mirror, number)) if isinstance(known, dict) else None
    return GroupPartition(
        topic,
        mirror,
        number,
        committed.offset,
        at.source_end,
        None if at.source_end is None else max(0, at.source_end - committed.offset),
        translated,
        there.offset if there is not None and there.offset >= 0 else None,
        at.mirror_end,
        None if translated is None or at.mirror_end is None else at.mirror_end - translated,
        why.state,
        why.text,
        why.advice,
    )
