"""Which member drives which flow: pure rules, computed by the leader of a group.

- A flow stays where it is driven, unless a member has so much more to do than another that moving it is worth a pause.
- What nobody drives goes to the member with the least to do.
- A flow that moves is stopped first: until then nobody else gets it.

The result depends on what the members say, not on their order.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence

from heliograph.model.fingerprint import differences
from heliograph.model.member import Assignment, Member, Share

# A flow moves only if that makes up for a good part of the difference between two members.
_WORTH_MOVING = 0.8


def assign(members: Sequence[Member], leader: str, held: Collection[str] = ()) -> Assignment:
    """`leader` is the run of the member that computes this. `held` are flows of a member that is gone: for now they
    wait for it, and only a member that drives nothing gets them."""
    model = deployed_file(members, leader)
    refused = {member.run: why_refused(member, model) for member in members}
    fitting = [member for member in members if not refused[member.run]]
    target = _target(fitting, model.flows, held)
    drivers = {flow: {member.run for member in members if flow in member.driven} for flow in target}
    shares = []
    for member in sorted(members, key=lambda member: member.run):
        own = sorted(flow for flow, run in target.items() if run == member.run)
        now = tuple(flow for flow in own if drivers[flow] <= {member.run})
        coming = tuple(flow for flow in own if flow not in now)
        shares.append(Share(member.run, member.host, member.rest, member.version, now, coming, refused[member.run]))
    return Assignment(leader, tuple(shares))


def deployed_file(members: Sequence[Member], leader: str) -> Member:
    """A member with the file that counts: the one with which the most flows are driven; else the leader's. So a changed
    file waits until the members with the earlier one have ended, or have reloaded it."""

    def key(member: Member) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(member.settings.items()))

    driven: dict[tuple[tuple[str, str], ...], int] = {}
    for member in members:
        driven[key(member)] = driven.get(key(member), 0) + len(member.driven)
    return max(members, key=lambda member: (driven[key(member)], member.run == leader, len(member.driven), member.run))


def why_refused(member: Member, model: Member) -> str:
    """Why this member gets no flows; empty if it fits to `model`."""
    if member.run == model.run:
        return ""
    if changed := differences(member.settings, model.settings):
        return f"its file differs from that of member {model} in: {', '.join(changed)}"
    if not _near(member.version, model.version):
        return (
            f"its version {member.version} is more than one minor version away from {model.version} of member {model}"
        )
    return ""


def _near(version: str, other: str) -> bool:
    (major, minor), (other_major, other_minor) = _numbers(version), _numbers(other)
    return major == other_major and abs(minor - other_minor) <= 1


def _numbers(version: str) -> tuple[int, int]:
    parts = [part for part in version.split(".")[:2] if part.isdigit()]
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 else (0, 0)


def _target(members: Sequence[Member], flows: Collection[str], held: Collection[str]) -> dict[str, str]:
    """Flow -> run of the member that should drive it."""
    if not members:
        return {}
    by_run = {member.run: member for member in members}
    loads = {flow: _load(members, flow) for flow in flows}
    busy = [load for load in loads.values() if load]
    mean = sum(busy) / len(busy) if busy else 1.0
    # An idle flow counts 1, one with the mean load 2. So does one whose load is not known.
    weights = {flow: 2.0 if load is None else 1.0 + load / mean for flow, load in loads.items()}
    burden = {member.run: member.other_load / mean for member in members}
    target: dict[str, str] = {}
    for flow in sorted(flows):
        drivers = sorted(run for run, member in by_run.items() if flow in member.driven)
        if drivers:
            target[flow] = drivers[0]
            burden[drivers[0]] += weights[flow]
    idle = [run for run in by_run if not by_run[run].driven]
    for flow in sorted((flow for flow in flows if flow not in target), key=lambda flow: (-weights[flow], flow)):
        candidates = idle if flow in held else list(by_run)
        if candidates:
            run = min(candidates, key=lambda run: (burden[run], _rank(flow, run)))
            target[flow] = run
            burden[run] += weights[flow]
    while (move := _best_move(target, weights, burden)) is not None:
        flow, run = move
        burden[target[flow]] -= weights[flow]
        burden[run] += weights[flow]
        target[flow] = run
    return target


def _load(members: Sequence[Member], flow: str) -> float | None:
    """As its driver says; while that does not know yet, as others who have driven it do."""
    for drives in (True, False):
        loads = [member.loads[flow] for member in members if flow in member.loads and (flow in member.driven) == drives]
        if loads:
            return max(loads)
    return None


def _best_move(
    target: Mapping[str, str], weights: Mapping[str, float], burden: Mapping[str, float]
) -> tuple[str, str] | None:
    """The flow whose move to the least busy member levels the burdens best, if it is worth it."""
    least = min(burden, key=lambda run: (burden[run], run))
    best: tuple[float, str] | None = None
    for flow, run in sorted(target.items()):
        gap, weight = burden[run] - burden[least], weights[flow]
        if weight <= _WORTH_MOVING * gap:
            gain = weight * (gap - weight)
            if best is None or gain > best[0]:
                best = gain, flow
    return None if best is None else (best[1], least)


def _rank(flow: str, run: str) -> str:
    """So that groups of several clusters do not all choose the same one of equal members."""
    return hashlib.sha256(f"{flow} {run}".encode()).hexdigest()
