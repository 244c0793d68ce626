"""Why a group's offset on the target is what it is, and what would change it: one word, and sentences. Pure.

What is decided about a group is decided by `TargetGroups.verdict`, as for syncing; here it is put into words.
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

# What says most about a group comes first: the word for it is that of its first partition in this order.
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
# As the file, or the group itself, wants it.
LEFT_OUT = frozenset({GROUP_EXCLUDED, TOPIC_EXCLUDED, NO_OFFSET})

_NAMED = 3  # members


@dataclass(frozen=True, slots=True)
class Reason:
    state: str
    text: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Rights:
    """What the target's brokers tell about groups that are active or to be written, and topics to be committed for."""

    groups: Mapping[str, GroupDescription]
    topics: Mapping[str, bool | None]


def reason(
    flow: Flow,
    one: TranslatedOffset,
    at: PartitionPosition,
    missing: Missing | WireError | None,
    seen: TargetGroups,
    rights: Rights,
) -> Reason:
    """For one partition of a group that the flow takes care of."""
    if isinstance(one.answer, NotTranslatable):
        return _untranslated(flow, one, one.answer, at)
    place = at.partition.mirror, one.partition
    verdict = seen.verdict(one.group, place, one.answer)
    if verdict is Verdict.ACTIVE:
        return _active(flow, seen.states[one.group], rights.groups.get(one.group))
    if verdict is Verdict.AHEAD:
        known = seen.committed[one.group]
        assert isinstance(known, dict)
        text = f"{known[place].offset - one.answer} records further on {flow.target.alias}, where it was read or set"
        return Reason(AHEAD, text, "nothing has to: it is never moved back")
    if verdict in (Verdict.UNREADABLE, Verdict.BEYOND):
        error = seen.committed.get(one.group) if verdict is Verdict.UNREADABLE else seen.ends.get(place)
        return unreadable(error, flow.target.alias, one.group)
    if verdict is Verdict.DUE and (why := _kept_from_writing(flow, one.group, place[0], rights)):
        return why
    to_go = _to_go(one.committed.offset, at, missing)
    if to_go:
        text = f"the mirror lacks {to_go} records that it has read on {flow.source.alias}"
        advice = f"waits for copying: {to_go} records to go; until then it gets the mirror's end"
        return Reason(NOT_COPIED, text, advice)
    if verdict is Verdict.DUE:
        soon = f"the running flow does it within {flow.groups.sync_every:g} s; --sync does it now"
        return Reason(DUE, f"to be written by the next round{_early(one)}", soon)
    return Reason(SYNCED, _gone(flow, one, at) or _early(one).removeprefix("; "))


def share_group(flow: Flow) -> Reason:
    advice = f"leave it out by groups.exclude; on {flow.target.alias} it begins where its share.auto.offset.reset says"
    return Reason(SHARE_GROUP, NO_OFFSETS, advice)


def unreadable(error: object, alias: str, group: str) -> Reason:
    """Its offsets on one of the clusters."""
    if isinstance(error, BrokerError) and error.forbidden:
        text = f"{alias} says {error.name} when asked for its offsets"
        return Reason(NO_PERMISSION, text, f"allow DESCRIBE on group {group} on {alias}")
    return Reason(UNREADABLE, f"{alias} does not tell its offsets: {error}", f"see to the brokers of {alias}")


def _untranslated(flow: Flow, one: TranslatedOffset, answer: NotTranslatable, at: PartitionPosition) -> Reason:
    source, target = flow.source.alias, flow.target.alias
    gone = _gone(flow, one, at)
    if gone and answer.reason in (group_translation.BEFORE_LEDGER, group_translation.NOTHING_COPIED):
        return Reason(SOURCE_OFFSET_GONE, gone, f"let the group read on {source}, or set its offset there")
    advice = {
        NO_PERMISSION: "allow DESCRIBE and READ on it",
        group_translation.TOPIC_GONE: f"nothing: what the group has on {target} stays",
        group_translation.NO_MIRROR: "run the flow, which creates it",
        group_translation.NOTHING_COPIED: "run the flow",
        group_translation.BEFORE_LEDGER: f"comes when the group has read on {source} up to what Heliograph has copied",
    }
    return Reason(answer.reason, answer.text, advice.get(answer.reason, f"see to the brokers of {target}"))


def _early(one: TranslatedOffset) -> str:
    return f"; it would read some records again: {one.why}" if one.why else ""


def _gone(flow: Flow, one: TranslatedOffset, at: PartitionPosition) -> str:
    if at.source_start is None or one.committed.offset >= at.source_start:
        return ""
    where = f"{flow.source.alias} begins at {at.source_start} now"
    return f"offset {one.committed.offset} is gone, {where}: a reader there goes by its auto.offset.reset"


def _active(flow: Flow, state: str, about: GroupDescription | None) -> Reason:
    who = f"state {state}"
    if about is not None and about.members:
        more = len(about.members) - _NAMED
        named = ", ".join(about.members[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        who += f", {len(about.members)} member{'s' if len(about.members) > 1 else ''}: {named}"
    return Reason(ACTIVE, f"in use on {flow.target.alias} ({who})", f"stop its members on {flow.target.alias}")


def _kept_from_writing(flow: Flow, group: str, topic: str, rights: Rights) -> Reason | None:
    target = flow.target.alias
    about = rights.groups.get(group)
    if about is not None and about.may_commit is False:
        return Reason(NO_PERMISSION, f"{target} does not allow READ on group {group}", f"allow it on {target}")
    if rights.topics.get(topic) is False:
        return Reason(NO_PERMISSION, f"{target} does not allow READ on topic {topic}", f"allow it on {target}")
    if CHECKPOINT not in flow.parts:
        return Reason(SWITCHED_OFF, "this flow runs without its checkpoint part", "add checkpoint to heliograph.parts")
    for every, setting in (
        (flow.groups.checkpoints_every, "emit.checkpoints"),
        (flow.groups.sync_every, "sync.group.offsets"),
    ):
        if every is None:
            advice = f"set {setting}.enabled = true, and its interval above 0"
            return Reason(SWITCHED_OFF, f"{setting} is switched off", advice)
    return None


def _to_go(committed: int, at: PartitionPosition, missing: Missing | WireError | None) -> int:
    """How many records before a group's position are not copied yet; offsets without records do not count."""
    if at.position is None or committed <= at.position or missing is None:
        return 0
    first = missing.offset if isinstance(missing, Missing) else at.position
    return max(0, committed - first)
