"""Group offsets: the latest checkpoints become the committed offsets of groups that nobody uses on the target.

A group that is empty there, or not there, only goes forward; one that has members, or may have some, is not touched. So
a group that was read on the target keeps what it has reached. Only one that is beyond the end of a mirror, which must
have lost records, is brought back: it would wait for offsets to come again, and pass over what comes before them.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from heliograph.model.mm2_records import Checkpoint
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.groups import DEAD, EMPTY, Committed, Offsets, commit_offsets, committed_offsets, group_states
from heliograph.wire.offsets import LATEST, list_offsets

Place = tuple[str, int]
IDLE = frozenset({EMPTY, DEAD})
REFUSED = "refused"  # why a group is not synced, besides two verdicts


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


@dataclass(frozen=True, slots=True)
class OnTarget:
    """What the target has of some groups, as of one moment."""

    states: Mapping[str, str]
    committed: Mapping[str, Offsets | WireError]
    ends: Mapping[Place, int | WireError]

    def verdict(self, group: str, place: Place, offset: int) -> Verdict:
        """The one rule: an idle group goes forward, to what is there, or back to it from beyond the mirror's end; any
        other is not touched."""
        if self.states.get(group) not in IDLE:
            return Verdict.ACTIVE
        known = self.committed.get(group)
        if not isinstance(known, dict):
            return Verdict.UNREADABLE
        end = self.ends.get(place)
        if not isinstance(end, int) or offset > end:
            return Verdict.BEYOND
        if place not in known or known[place].offset < offset or known[place].offset > end:
            return Verdict.DUE
        return Verdict.AHEAD if known[place].offset > offset else Verdict.SYNCED


async def look_at_target(
    target: ClusterClient, places: Mapping[str, Collection[Place]], active_too: bool = False
) -> OnTarget:
    """A request per coordinator, and one per leader. `active_too` asks for the offsets of groups in use as well."""
    states = await group_states(target, places.keys())
    asked = [group for group, state in states.items() if active_too or state in IDLE]
    committed = await committed_offsets(target, asked)
    return OnTarget(states, committed, await _ends(target, {place for group in asked for place in places[group]}))


async def sync_groups(target: ClusterClient, latest: Iterable[Checkpoint]) -> GroupRound:
    """Bring the groups on the target forward. A request per coordinator to look, one per group that is to change."""
    by_group: dict[str, list[Checkpoint]] = {}
    for one in latest:
        by_group.setdefault(one.group, []).append(one)
    outcome = GroupRound()
    places = {group: [(one.topic, one.partition) for one in some] for group, some in by_group.items()}
    found = await look_at_target(target, places)
    wanted: dict[str, Offsets] = {}
    for group, checkpoints in by_group.items():
        verdicts = [found.verdict(group, (one.topic, one.partition), one.downstream) for one in checkpoints]
        if Verdict.ACTIVE in verdicts:
            outcome.leave(group, Verdict.ACTIVE, f"it is in use on the target (state {found.states[group]})")
        elif Verdict.UNREADABLE in verdicts:
            why = f"its offsets on the target cannot be read: {found.committed.get(group)}"
            outcome.leave(group, Verdict.UNREADABLE, why)
        elif Verdict.DUE in verdicts:
            wanted[group] = {
                (one.topic, one.partition): Committed(one.downstream, one.metadata)
                for one, verdict in zip(checkpoints, verdicts, strict=True)
                if verdict is Verdict.DUE
            }
        else:
            outcome.unchanged.append(group)
    for group, error in (await commit_offsets(target, wanted)).items():
        if error is None:
            outcome.written.append(group)
        else:
            outcome.leave(group, REFUSED, f"the target does not take its offsets: {error}")
    return outcome


async def _ends(target: ClusterClient, places: Collection[Place]) -> Mapping[Place, int | WireError]:
    topics = (await target.metadata({topic for topic, _partition in places})).topics if places else {}
    return await list_offsets(target, topics, places, LATEST, False)
