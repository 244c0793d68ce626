"""Group offsets: the latest checkpoints become the committed offsets of groups that nobody uses on the target.

A group that is empty there, or not there, only goes forward; one that has members, or may have some, is not touched. So
a group that was read on the target keeps what it has reached. Only one that is beyond the end of a mirror, which must
have lost records, is brought back: it would wait for offsets to come again, and pass over what comes before them.

A checkpoint is true for one mirror only. After a mirror was deleted and created again, its checkpoints are not used
until they are computed anew.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from heliograph.control.checkpoints import MirrorCheckpoint
from heliograph.model.partitions import TopicPartition
from heliograph.wire.cluster import ClusterClient, Topic, are_different, id_text
from heliograph.wire.consumer_groups import (
    DEAD,
    EMPTY,
    Committed,
    GroupListing,
    Offsets,
    commit_offsets,
    committed_offsets,
    delete_groups,
    group_states,
    list_groups,
)
from heliograph.wire.errors import BrokerError, WireError
from heliograph.wire.offsets import LATEST, list_offsets

IDLE = frozenset({EMPTY, DEAD})
REFUSED, SHARE_GROUP = "refused", "share-group"  # why a group is not synced, besides three verdicts
NO_OFFSETS = "it is a share group: it has no committed offsets, only records that were acknowledged or not"


@dataclass(slots=True)
class GroupRound:
    """How many groups were written, and why others were not."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    untouched: dict[str, str] = field(default_factory=dict)  # group -> why
    reasons: dict[str, str] = field(default_factory=dict)  # the same in a word

    def leave(self, group: str, reason: str, why: str) -> None:
        self.reasons[group], self.untouched[group] = reason, why


class Verdict(StrEnum):
    """What is to be done about one partition of a group on the target."""

    SYNCED = "synced"
    DUE = "due"  # to be written
    AHEAD = "ahead"
    ACTIVE = "active"  # members, or perhaps
    UNREADABLE = "unreadable"  # without knowing what is there it could be moved back
    BEYOND = "beyond"  # of the mirror's end: of a checkpoint for a mirror that was made anew since
    OUTDATED = "outdated"  # the checkpoint is for an earlier mirror of that name


@dataclass(frozen=True, slots=True)
class TargetGroups:
    """What the target has of some groups, as of one moment."""

    states: Mapping[str, str]
    committed: Mapping[str, Offsets | WireError]
    ends: Mapping[TopicPartition, int | WireError]
    topics: Mapping[str, Topic] = field(default_factory=dict)

    def verdict(self, group: str, place: TopicPartition, offset: int, mirror_id: str = "") -> Verdict:
        """The one rule: an idle group goes forward, to what is there, or back to it from beyond the mirror's end; any
        other is not touched. `mirror_id` tells for which mirror the offset is."""
        if self.states.get(group) not in IDLE:
            return Verdict.ACTIVE
        known = self.committed.get(group)
        if not isinstance(known, dict):
            return Verdict.UNREADABLE
        if are_different(mirror_id, self.id_of(place[0])):
            return Verdict.OUTDATED
        end = self.ends.get(place)
        if not isinstance(end, int) or offset > end:
            return Verdict.BEYOND
        if place not in known or known[place].offset < offset or known[place].offset > end:
            return Verdict.DUE
        return Verdict.AHEAD if known[place].offset > offset else Verdict.SYNCED

    def id_of(self, topic: str) -> str:
        return id_text(self.topics[topic].id) if topic in self.topics else ""

    def shows(self, group: str, place: TopicPartition, offset: int, mirror_id: str) -> bool:
        """Whether what was committed is known to be with the mirror that it was for, or to be gone."""
        known = self.committed.get(group)
        is_gone = isinstance(known, dict) and (place not in known or known[place].offset != offset)
        return is_gone or self.id_of(place[0]) == mirror_id


async def look_at_target(
    target: ClusterClient, places: Mapping[str, Collection[TopicPartition]], active_too: bool = False
) -> TargetGroups:
    """A request per coordinator, and one per leader. `active_too` asks for the offsets of groups in use as well."""
    states = await group_states(target, places.keys())
    asked = [group for group, state in states.items() if active_too or state in IDLE]
    committed = await committed_offsets(target, asked)
    wanted = {place for group in asked for place in places[group]}
    topics = (await target.metadata({topic for topic, _partition in wanted})).topics if wanted else {}
    return TargetGroups(states, committed, await list_offsets(target, topics, wanted, LATEST, False), topics)


class GroupSync:
    """Brings groups on the target forward, round by round. One for as long as a flow runs.

    Brokers before 4.1 take offsets for a topic's name. If a mirror is deleted and created again between our look and
    our commit, the new one gets an offset of the earlier. The next round sees that and takes it back, as it remembers
    for which mirror it has committed.
    """

    def __init__(self, target: ClusterClient) -> None:
        self._target = target
        self._unproven: dict[tuple[str, TopicPartition], tuple[int, str]] = {}  # of the last commits: offset, mirror id

    def follow(self, earlier: "GroupSync") -> None:
        """Go on where another one ends."""
        self._unproven = dict(earlier._unproven)

    async def run(self, latest: Iterable[MirrorCheckpoint]) -> GroupRound:
        """A request per coordinator to look, one per group that is to change."""
        by_group: dict[str, list[MirrorCheckpoint]] = {}
        for one in latest:
            by_group.setdefault(one.checkpoint.group, []).append(one)
        outcome = GroupRound()
        found = await look_at_target(self._target, {group: list(map(_place, some)) for group, some in by_group.items()})
        self._unproven = {
            (group, place): (offset, mirror_id)
            for (group, place), (offset, mirror_id) in self._unproven.items()
            if not found.shows(group, place, offset, mirror_id)
        }
        wanted: dict[str, Offsets] = {}
        for group, some in by_group.items():
            verdicts = [self._verdict(found, one) for one in some]
            due = [one for one, verdict in zip(some, verdicts, strict=True) if verdict is Verdict.DUE]
            if Verdict.ACTIVE in verdicts:
                outcome.leave(group, Verdict.ACTIVE, f"it is in use on the target (state {found.states[group]})")
            elif Verdict.UNREADABLE in verdicts:
                why = f"its offsets on the target cannot be read: {found.committed.get(group)}"
                outcome.leave(group, Verdict.UNREADABLE, why)
            elif due:
                wanted[group] = {
                    _place(one): Committed(one.checkpoint.downstream, one.checkpoint.metadata) for one in due
                }
                self._unproven |= {(group, _place(one)): (one.checkpoint.downstream, one.mirror_id) for one in due}
            elif Verdict.OUTDATED in verdicts:
                why = "a mirror was deleted and created again, and its offset there is not computed anew yet"
                outcome.leave(group, Verdict.OUTDATED, why)
            else:
                outcome.unchanged.append(group)
        ids = {name: topic.id for name, topic in found.topics.items()}
        for group, error in (await commit_offsets(self._target, wanted, ids)).items():
            if error is None:
                outcome.written.append(group)
            else:
                outcome.leave(group, REFUSED, f"the target does not take its offsets: {error}")
        return outcome

    async def delete(self, groups: Mapping[str, Mapping[TopicPartition, int]]) -> dict[str, str]:
        """Delete groups that the source has deleted, which stood at these offsets of mirrors. What became of those of
        which that is known: empty if it is deleted or was not there, else why it stays."""
        listed = await list_groups(self._target)
        there = [group for group in groups if group in listed]
        committed = await committed_offsets(self._target, there)
        told = {group: "" for group in groups if group not in listed}
        ours = []
        for group in there:
            offsets = committed.get(group)
            if not isinstance(offsets, dict):
                continue  # to be tried again
            if is_only_ours(listed[group], offsets, groups[group]):
                ours.append(group)
            else:
                told[group] = "it is or was in use there, or has offsets that were not synced"
        for group, error in (await delete_groups(self._target, ours)).items():
            if error is None:
                told[group] = ""
            elif isinstance(error, BrokerError) and not error.transient:
                told[group] = f"the target says {error}"
        return told

    def _verdict(self, found: TargetGroups, one: MirrorCheckpoint) -> Verdict:
        group, place = one.checkpoint.group, _place(one)
        verdict = found.verdict(group, place, one.checkpoint.downstream, one.mirror_id)
        return Verdict.DUE if verdict is Verdict.AHEAD and (group, place) in self._unproven else verdict


def is_only_ours(found: GroupListing, committed: Offsets, synced: Mapping[TopicPartition, int]) -> bool:
    """Whether a group on the target was never used there, and has nothing but what we have committed for it."""
    return (
        found == GroupListing("", EMPTY)
        and bool(committed)
        and all(place in synced and one.offset <= synced[place] for place, one in committed.items())
    )


def _place(one: MirrorCheckpoint) -> TopicPartition:
    return one.checkpoint.topic, one.checkpoint.partition
