"""Why a group's offset on the target is what it is, and what would change it: a state, a sentence and an advice.

The decision about a group is that of `TargetGroups.verdict`, as for syncing. Pure functions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from heliograph.control import group_translation
from heliograph.control.group_sync import NO_OFFSETS, SHARE_GROUP, TargetGroups, Verdict
from heliograph.control.group_translation import NotTranslatable, TranslatedOffset
from heliograph.model.flow import CHECKPOINT, Flow
from heliograph.service.partition_position import Missing, PartitionPosition
from heliograph.wire.consumer_groups import GroupDescription
from heliograph.wire.errors import BrokerError, WireError

SYNCED, DUE, AHEAD, ACTIVE = Verdict.SYNCED.value, Verdict.DUE.value, Verdict.AHEAD.value, Verdict.ACTIVE.value
UNREADABLE, NO_PERMISSION = group_translation.UNREADABLE, group_translation.NO_PERMISSION
NOT_COPIED, SWITCHED_OFF, SOURCE_OFFSET_GONE = "not-copied", "switched-off", "source-offset-gone"
GROUP_EXCLUDED, TOPIC_EXCLUDED, NO_OFFSET = "group-excluded", "topic-excluded", group_translation.NO_OFFSET

# The state of a group is that of its partitions which comes first here.
ORDER = (
    NO_PERMISSION,
    UNREADABLE,
    ACTIVE,
    AHEAD,
    SOURCE_OFFSET_GONE,
    group_translation.BEFORE_LEDGER,
    group_translation.TOPIC_GONE,
    group_translation.NO_MIRROR,
    group_translation.NOTHING_COPIED,
    SWITCHED_OFF,
    NOT_COPIED,
    DUE,
    SYNCED,
    GROUP_EXCLUDED,
    TOPIC_EXCLUDED,
    NO_OFFSET,
)
# The settings leave these out, or the group itself has committed nothing.
LEFT_OUT = frozenset({GROUP_EXCLUDED, TOPIC_EXCLUDED, NO_OFFSET})

_NAMED_MEMBERS = 3


@dataclass(frozen=True, slots=True)
class Reason:
    state: str
    text: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Rights:
    """What the target's brokers allow, for groups that are active or due, and for topics that are due."""

    groups: Mapping[str, GroupDescription]
    topics: Mapping[str, bool | None]


def reason(
    flow: Flow,
    translated: TranslatedOffset,
    position: PartitionPosition,
    missing: Missing | WireError | None,
    on_target: TargetGroups,
    rights: Rights,
) -> Reason:
    """For one partition of a group that the flow selects."""
    group, answer = translated.group, translated.answer
    if isinstance(answer, NotTranslatable):
        return _untranslated(flow, translated, answer, position)
    mirror = position.partition.mirror, translated.partition
    verdict = on_target.verdict(group, mirror, answer)
    if verdict is Verdict.ACTIVE:
        return _active(flow, on_target.states[group], rights.groups.get(group))
    if verdict is Verdict.AHEAD:
        committed = on_target.committed[group]
        assert isinstance(committed, dict)
        text = (
            f"its offset on {flow.target.alias} is {committed[mirror].offset - answer} ahead: it was read or set there"
        )
        return Reason(AHEAD, text, "nothing: offsets are never moved back")
    if verdict in (Verdict.UNREADABLE, Verdict.BEYOND):
        error = on_target.committed.get(group) if verdict is Verdict.UNREADABLE else on_target.ends.get(mirror)
        return unreadable(error, flow.target.alias, group)
    if verdict is Verdict.DUE and (refused := _not_written(flow, group, mirror[0], rights)):
        return refused
    to_copy = _records_to_copy(translated.committed.offset, position, missing)
    if to_copy:
        text = f"{to_copy} records that it has read on {flow.source.alias} are not copied yet"
        advice = f"wait for copying: {to_copy} records to go; until then its offset is the mirror's end"
        return Reason(NOT_COPIED, text, advice)
    if verdict is Verdict.DUE:
        advice = f"wait: the running flow syncs within {flow.groups.sync_every:g} s; or use --sync now"
        return Reason(DUE, f"the next sync writes it{_early(translated)}", advice)
    return Reason(SYNCED, _deleted_offset(flow, translated, position) or _early(translated).removeprefix("; "))


def share_group(flow: Flow) -> Reason:
    advice = f"add it to groups.exclude; on {flow.target.alias} it starts where its share.auto.offset.reset says"
    return Reason(SHARE_GROUP, NO_OFFSETS, advice)


def unreadable(error: object, alias: str, group: str) -> Reason:
    """The group's offsets on one of the clusters."""
    if isinstance(error, BrokerError) and error.forbidden:
        text = f"{alias} answers {error.name} to a request for its offsets"
        return Reason(NO_PERMISSION, text, f"allow DESCRIBE on group {group} on {alias}")
    return Reason(UNREADABLE, f"its offsets on {alias} cannot be read: {error}", f"check the brokers of {alias}")


def _untranslated(
    flow: Flow, translated: TranslatedOffset, answer: NotTranslatable, position: PartitionPosition
) -> Reason:
    source, target = flow.source.alias, flow.target.alias
    deleted = _deleted_offset(flow, translated, position)
    if deleted and answer.reason in (group_translation.BEFORE_LEDGER, group_translation.NOTHING_COPIED):
        return Reason(SOURCE_OFFSET_GONE, deleted, f"let the group read on {source}, or set its offset there")
    advice = {
        NO_PERMISSION: "allow DESCRIBE and READ on it",
        group_translation.TOPIC_GONE: f"nothing: the group keeps its offset on {target}",
        group_translation.NO_MIRROR: "run the flow, which creates it",
        group_translation.NOTHING_COPIED: "run the flow",
        group_translation.BEFORE_LEDGER: f"let the group read on {source} up to the records that Heliograph has copied",
    }
    return Reason(answer.reason, answer.text, advice.get(answer.reason, f"check the brokers of {target}"))


def _early(translated: TranslatedOffset) -> str:
    return f"; it would read some records again: {translated.why}" if translated.why else ""


def _deleted_offset(flow: Flow, translated: TranslatedOffset, position: PartitionPosition) -> str:
    offset, start = translated.committed.offset, position.source_start
    if start is None or offset >= start:
        return ""
    where = f"{flow.source.alias} starts at {start} now"
    return f"offset {offset} is deleted, {where}: a consumer there goes by its auto.offset.reset"


def _active(flow: Flow, state: str, description: GroupDescription | None) -> Reason:
    details = f"state {state}"
    if description is not None and description.members:
        members = description.members
        more = len(members) - _NAMED_MEMBERS
        named = ", ".join(members[:_NAMED_MEMBERS]) + (f" and {more} more" if more > 0 else "")
        details += f", {len(members)} member{'s' if len(members) > 1 else ''}: {named}"
    return Reason(ACTIVE, f"in use on {flow.target.alias} ({details})", f"stop its members on {flow.target.alias}")


def _not_written(flow: Flow, group: str, topic: str, rights: Rights) -> Reason | None:
    target = flow.target.alias
    description = rights.groups.get(group)
    if description is not None and description.may_commit is False:
        return Reason(NO_PERMISSION, f"{target} does not allow READ on group {group}", f"allow it on {target}")
    if rights.topics.get(topic) is False:
        return Reason(NO_PERMISSION, f"{target} does not allow READ on topic {topic}", f"allow it on {target}")
    if CHECKPOINT not in flow.parts:
        return Reason(SWITCHED_OFF, "this flow runs without its checkpoint part", "add checkpoint to heliograph.parts")
    for interval, setting in (
        (flow.groups.checkpoints_every, "emit.checkpoints"),
        (flow.groups.sync_every, "sync.group.offsets"),
    ):
        if interval is None:
            advice = f"set {setting}.enabled = true, and its interval above 0"
            return Reason(SWITCHED_OFF, f"{setting} is switched off", advice)
    return None


def _records_to_copy(committed: int, at: PartitionPosition, missing: Missing | WireError | None) -> int:
    """How many records before a group's offset are not copied yet. Offsets without records before the first of them do
    not count."""
    if at.position is None or committed <= at.position or missing is None:
        return 0
    first = missing.offset if isinstance(missing, Missing) else at.position
    return max(0, committed - first)
