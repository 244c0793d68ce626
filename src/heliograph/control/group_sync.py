"""Syncing group offsets: the latest checkpoints are committed for groups that are not in use on the target.

A group that is empty or does not exist there only goes forward; one that has members, or may have some, is not touched.
So a group that was used on the target keeps its offsets. Only an offset beyond the end of a mirror, which must have
lost records, is set back: its consumer would wait for that offset, and miss the records before it.

A checkpoint is valid for one mirror only. After a mirror was recreated, its checkpoints are not used until they are
computed again.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from heliograph.control.checkpoints import MirrorCheckpoint
from heliograph.model.partitions import TopicPartition
from heliograph.wire.cluster import ClusterClient
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
from heliograph.wire.metadata import Topic, are_different, id_text
from heliograph.wire.offsets import LATEST, list_offsets

IDLE = frozenset({EMPTY, DEAD})
REFUSED, SHARE_GROUP = "refused", "share-group"  # reasons why a group is not synced, besides three verdicts
NO_OFFSETS = "it is a share group: it has no committed offsets, only acknowledged records"


@dataclass(slots=True)
class GroupRound:
    """The groups whose offsets were committed, and why others were not."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    untouched: dict[str, str] = field(default_factory=dict)  # why, by group
    reasons: dict[str, str] = field(default_factory=dict)  # stable reasons, by group

    def leave(self, group: str, reason: str, why: str) -> None:
        self.reasons[group], self.untouched[group] = reason, why


class Verdict(StrEnum):
    """What to do about one partition of a group on the target."""

    SYNCED = "synced"
    DUE = "due"  # to be committed
    AHEAD = "ahead"
    ACTIVE = "active"  # has members, or may have some
    UNREADABLE = "unreadable"  # without its present offset it could be moved back
    BEYOND = "beyond"  # the mirror's end: the checkpoint is for a mirror that was recreated since
    OUTDATED = "outdated"  # the checkpoint is for an earlier mirror of that name


@dataclass(frozen=True, slots=True)
class TargetGroups:
    """States and offsets of groups on the target, as of one moment."""

    states: Mapping[str, str]
    committed: Mapping[str, Offsets | WireError]
    ends: Mapping[TopicPartition, int | WireError]
    topics: Mapping[str, Topic] = field(default_factory=dict)

    def verdict(self, group: str, partition: TopicPartition, offset: int, mirror_id: str = "") -> Verdict:
        """An idle group goes forward up to the mirror's end, or back from beyond it; any other is not touched.
        `mirror_id` is the topic id of the mirror that the offset is for."""
        if self.states.get(group) not in IDLE:
            return Verdict.ACTIVE
        known = self.committed.get(group)
        if not isinstance(known, dict):
            return Verdict.UNREADABLE
        if are_different(mirror_id, self.id_of(partition[0])):
            return Verdict.OUTDATED
        end = self.ends.get(partition)
        if not isinstance(end, int) or offset > end:
            return Verdict.BEYOND
        if partition not in known or known[partition].offset < offset or known[partition].offset > end:
            return Verdict.DUE
        return Verdict.AHEAD if known[partition].offset > offset else Verdict.SYNCED

    def id_of(self, topic: str) -> str:
        return id_text(self.topics[topic].id) if topic in self.topics else ""

    def shows(self, group: str, partition: TopicPartition, offset: int, mirror_id: str) -> bool:
        """Whether an offset that was committed is known to be with the mirror it was for, or to be gone."""
        known = self.committed.get(group)
        is_gone = isinstance(known, dict) and (partition not in known or known[partition].offset != offset)
        return is_gone or self.id_of(partition[0]) == mirror_id


async def look_at_target(
    target: ClusterClient, partitions: Mapping[str, Collection[TopicPartition]], active_too: bool = False
) -> TargetGroups:
    """One request per coordinator, and one per leader. With `active_too`, offsets of groups in use as well."""
    states = await group_states(target, partitions.keys())
    asked = [group for group, state in states.items() if active_too or state in IDLE]
    committed = await committed_offsets(target, asked)
    wanted = {partition for group in asked for partition in partitions[group]}
    topics = (await target.metadata({topic for topic, _partition in wanted})).topics if wanted else {}
    return TargetGroups(states, committed, await list_offsets(target, topics, wanted, LATEST, False), topics)


class GroupSync:
    """Commits offsets of groups on the target, round by round. One for as long as a flow runs.

    Brokers before 4.1 commit by topic name. If a mirror is recreated between our look and our commit, the new mirror
    gets an offset of the earlier one. The next round sees that and sets it back, as it remembers the mirror's id.
    """

    def __init__(self, target: ClusterClient) -> None:
        self._target = target
        self._unproven: dict[
            tuple[str, TopicPartition], tuple[int, str]
        ] = {}  # offset and mirror id of the last commits

    def follow(self, earlier: "GroupSync") -> None:
        """Continues from another instance."""
        self._unproven = dict(earlier._unproven)

    async def run(self, latest: Iterable[MirrorCheckpoint]) -> GroupRound:
        """One request per coordinator to read, one per group that changes."""
        by_group: dict[str, list[MirrorCheckpoint]] = {}
        for entry in latest:
            by_group.setdefault(entry.checkpoint.group, []).append(entry)
        outcome = GroupRound()
        partitions = {group: list(map(_mirror_partition, entries)) for group, entries in by_group.items()}
        present = await look_at_target(self._target, partitions)
        self._unproven = {
            (group, partition): (offset, mirror_id)
            for (group, partition), (offset, mirror_id) in self._unproven.items()
            if not present.shows(group, partition, offset, mirror_id)
        }
        wanted: dict[str, Offsets] = {}
        for group, entries in by_group.items():
            verdicts = [self._verdict(present, entry) for entry in entries]
            due = [entry for entry, verdict in zip(entries, verdicts, strict=True) if verdict is Verdict.DUE]
            if Verdict.ACTIVE in verdicts:
                outcome.leave(group, Verdict.ACTIVE, f"it is in use on the target (state {present.states[group]})")
            elif Verdict.UNREADABLE in verdicts:
                why = f"its offsets on the target cannot be read: {present.committed.get(group)}"
                outcome.leave(group, Verdict.UNREADABLE, why)
            elif due:
                wanted[group] = {
                    _mirror_partition(entry): Committed(entry.checkpoint.downstream, entry.checkpoint.metadata)
                    for entry in due
                }
                self._unproven |= {
                    (group, _mirror_partition(entry)): (entry.checkpoint.downstream, entry.mirror_id) for entry in due
                }
            elif Verdict.OUTDATED in verdicts:
                why = "a mirror was deleted and created again, and the group's offset for it is not computed yet"
                outcome.leave(group, Verdict.OUTDATED, why)
            else:
                outcome.unchanged.append(group)
        ids = {name: topic.id for name, topic in present.topics.items()}
        for group, error in (await commit_offsets(self._target, wanted, ids)).items():
            if error is None:
                outcome.written.append(group)
            else:
                outcome.leave(group, REFUSED, f"the target refuses its offsets: {error}")
        return outcome

    async def delete(self, groups: Mapping[str, Mapping[TopicPartition, int]]) -> dict[str, str]:
        """Deletes groups that were deleted on the source and had these mirror offsets. Returns the outcome by group:
        empty if it is deleted or did not exist, else why it stays. Groups to retry are left out."""
        listed = await list_groups(self._target)
        existing = [group for group in groups if group in listed]
        committed = await committed_offsets(self._target, existing)
        outcomes = {group: "" for group in groups if group not in listed}
        ours = []
        for group in existing:
            offsets = committed.get(group)
            if not isinstance(offsets, dict):
                continue  # retried the next time
            if is_only_ours(listed[group], offsets, groups[group]):
                ours.append(group)
            else:
                outcomes[group] = "it is or was in use there, or has offsets that were not synced"
        for group, error in (await delete_groups(self._target, ours)).items():
            if error is None:
                outcomes[group] = ""
            elif isinstance(error, BrokerError) and not error.transient:
                outcomes[group] = f"the target says {error}"
        return outcomes

    def _verdict(self, present: TargetGroups, entry: MirrorCheckpoint) -> Verdict:
        group, partition = entry.checkpoint.group, _mirror_partition(entry)
        verdict = present.verdict(group, partition, entry.checkpoint.downstream, entry.mirror_id)
        return Verdict.DUE if verdict is Verdict.AHEAD and (group, partition) in self._unproven else verdict


def is_only_ours(listing: GroupListing, committed: Offsets, synced: Mapping[TopicPartition, int]) -> bool:
    """Whether a group on the target was never used there, and has only offsets that we have committed."""
    return (
        listing == GroupListing("", EMPTY)
        and bool(committed)
        and all(partition in synced and offset.offset <= synced[partition] for partition, offset in committed.items())
    )


def _mirror_partition(entry: MirrorCheckpoint) -> TopicPartition:
    return entry.checkpoint.topic, entry.checkpoint.partition
