"""Group offsets: the latest checkpoints become the committed offsets of groups that nobody uses on the target.

A group that is empty there, or not there, only goes forward; one that has members, or may have some, is not touched. So
a group that was read on the target keeps what it has reached. Only one that is beyond the end of a mirror, which must
have lost records, is brought back: it would wait for offsets to come again, and pass over what comes before them.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from heliograph.model.mm2_records import Checkpoint
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.groups import DEAD, EMPTY, Committed, Offsets, commit_offsets, committed_offsets, group_states
from heliograph.wire.offsets import LATEST, list_offsets

Place = tuple[str, int]
Ends = Mapping[Place, int | WireError]
_IDLE = frozenset({EMPTY, DEAD})


@dataclass(slots=True)
class GroupRound:
    """How many groups were written, and why others were not."""

    written: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    untouched: dict[str, str] = field(default_factory=dict)  # group -> why


def wanted_offsets(checkpoints: Iterable[Checkpoint], there: Offsets, ends: Ends) -> Offsets:
    """What to commit for one group that has committed `there`: what brings it forward, or back to where something is.
    Nothing beyond the mirror's end: one that was made anew may end before what an old checkpoint says."""
    wanted: Offsets = {}
    for one in checkpoints:
        place = one.topic, one.partition
        end, before = ends.get(place), there.get(place)
        if not isinstance(end, int) or one.downstream > end:
            continue
        if before is None or before.offset < one.downstream or before.offset > end:
            wanted[place] = Committed(one.downstream, one.metadata)
    return wanted


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
        elif offsets := wanted_offsets(checkpoints, known, ends):
            wanted[group] = offsets
        else:
            outcome.unchanged.append(group)
    for group, error in (await commit_offsets(target, wanted)).items():
        if error is None:
            outcome.written.append(group)
        else:
            outcome.untouched[group] = f"the target does not take its offsets: {error}"
    return outcome


async def _ends(target: ClusterClient, places: Collection[Place]) -> Ends:
    topics = (await target.metadata({topic for topic, _partition in places})).topics if places else {}
    return await list_offsets(target, topics, places, LATEST, False)
