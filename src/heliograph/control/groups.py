"""Group offsets: the latest checkpoints become the committed offsets of groups that nobody uses on the target.

A group that is empty there, or not there, only goes forward; one that has members, or may have some, is not touched. So
a group that was read on the target keeps what it has reached.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from heliograph.model.mm2_records import Checkpoint
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.groups import DEAD, EMPTY, Committed, Offsets, commit_offsets, committed_offsets, group_states
from heliograph.wire.offsets import LATEST, list_offsets

Place = tuple[str, int]
_IDLE = frozenset({EMPTY, DEAD})


@dataclass(slots=True)
class GroupRound:
    """How many groups were written, and why others were not."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    untouched: dict[str, str] = field(default_factory=dict)  # group -> why


def wanted_offsets(checkpoints: Iterable[Checkpoint], there: Offsets) -> Offsets:
    """What to commit for one group that has committed `there`: only what brings it forward."""
    return {
        place: Committed(one.downstream, one.metadata)
        for one in checkpoints
        if (place := (one.topic, one.partition)) not in there or there[place].offset < one.downstream
    }


async def sync_groups(target: ClusterClient, latest: Iterable[Checkpoint]) -> GroupRound:
    """Bring the groups on the target forward. A request per coordinator to look, one per group that is to change."""
    by_group: dict[str, list[Checkpoint]] = {}
    for one in latest:
        by_group.setdefault(one.group, []).append(one)
    outcome = GroupRound()
    states = await group_states(target, by_group.keys())
    idle = [group for group, state in states.items() if state in _IDLE]
    there = await committed_offsets(target, idle)
    ends = await _ends(target, {(one.topic, one.partition) for group in idle for one in by_group[group]})
    wanted: dict[str, Offsets] = {}
    for group, checkpoints in by_group.items():
        known = there.get(group)
        if states[group] not in _IDLE:
            outcome.untouched[group] = f"it is in use on the target (state {states[group]})"
        elif not isinstance(known, dict):  # without knowing what is there it could be moved back
            outcome.untouched[group] = f"its offsets on the target cannot be read: {known}"
        elif offsets := wanted_offsets((one for one in checkpoints if _is_there(one, ends)), known):
            wanted[group] = offsets
        else:
            outcome.unchanged.append(group)
    for group, error in (await commit_offsets(target, wanted)).items():
        if error is None:
            outcome.written.append(group)
        else:
            outcome.untouched[group] = f"the target does not take its offsets: {error}"
    return outcome


async def _ends(target: ClusterClient, places: Collection[Place]) -> Mapping[Place, int | WireError]:
    topics = (await target.metadata({topic for topic, _partition in places})).topics if places else {}
    return await list_offsets(target, topics, places, LATEST, False)


def _is_there(one: Checkpoint, ends: Mapping[Place, int | WireError]) -> bool:
    """A mirror that was made anew may end before what an old checkpoint says."""
    end = ends.get((one.topic, one.partition))
    return isinstance(end, int) and one.downstream <= end
