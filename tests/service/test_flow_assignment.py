"""Which member drives which flow."""

import random
from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from heliograph.model.member import Assignment, Member, decode_assignment, decode_member, encode
from heliograph.service.flow_assignment import assign

FLOWS = tuple(f"S{number}->B" for number in range(9))
SETTINGS = {"flows": "1", "topics": "2", "tasks_max": "3"}


def _member(run: str, driven: Mapping[str, float | None] | None = None, **changes: object) -> Member:
    """`driven` with the loads; None: not known."""
    made = Member(run, f"host-{run}", version="1.2.0", settings=SETTINGS, flows=FLOWS)
    return replace(_driving(made, driven or {}), **changes)  # type: ignore[arg-type]


def _driving(member: Member, driven: Mapping[str, float | None]) -> Member:
    loads = {flow: load for flow, load in driven.items() if load is not None}
    return replace(member, driven=tuple(driven), loads=loads)


@st.composite
def _groups(draw: st.DrawFn) -> list[Member]:
    runs = [f"m{number}" for number in range(draw(st.integers(1, 5)))]
    driven: dict[str, dict[str, float | None]] = {run: {} for run in runs}
    for flow in FLOWS:
        run = draw(st.sampled_from([*runs, ""]))
        if run:
            driven[run][flow] = draw(st.sampled_from([None, 0.0, 1.0, 10.0, 1000.0]))
    return [_member(run, driven[run]) for run in runs]


def _flows(assignment: Assignment) -> dict[str, tuple[str, ...]]:
    """What each member has, or will."""
    return {share.run: tuple(sorted((*share.flows, *share.coming))) for share in assignment.shares}


def _settled(members: list[Member]) -> list[Member]:
    """The members when all flows that move have moved."""
    loads = {flow: load for member in members for flow, load in member.loads.items()}
    target = _flows(assign(members, members[0].run))
    return [_driving(member, {flow: loads.get(flow) for flow in target[member.run]}) for member in members]


@given(_groups())
def test_every_flow_has_one_member_and_none_has_two_drivers(members: list[Member]) -> None:
    assignment = assign(members, "m0")
    assert sorted(flow for flows in _flows(assignment).values() for flow in flows) == sorted(FLOWS)
    drivers = {flow: member.run for member in members for flow in member.driven}
    for share in assignment.shares:
        assert all(drivers.get(flow, share.run) == share.run for flow in share.flows)
        assert all(drivers[flow] != share.run for flow in share.coming)


@given(_groups(), st.randoms(use_true_random=False))
def test_the_order_of_the_members_does_not_matter(members: list[Member], rng: random.Random) -> None:
    shuffled = rng.sample(members, len(members))
    assert assign(members, "m0") == assign(shuffled, "m0")


@given(_groups())
def test_what_has_been_assigned_stays(members: list[Member]) -> None:
    settled = _settled(members)
    assert _flows(assign(settled, "m0")) == {member.run: tuple(sorted(member.driven)) for member in settled}


@given(_groups())
def test_without_load_the_numbers_of_flows_differ_by_one_at_most(members: list[Member]) -> None:
    idle = [_driving(member, dict.fromkeys(member.driven)) for member in members]
    counts = [len(flows) for flows in _flows(assign(idle, "m0")).values()]
    assert max(counts) - min(counts) <= 1


@given(_groups())
def test_no_member_is_so_much_busier_that_moving_a_flow_would_level_it(members: list[Member]) -> None:
    busy = [load for member in members for load in member.loads.values() if load]
    mean = sum(busy) / len(busy) if busy else 1.0
    weights = [
        [1 + member.loads[flow] / mean if flow in member.loads else 2.0 for flow in member.driven]
        for member in _settled(members)
    ]
    least = min(sum(own) for own in weights)
    for own in weights:
        assert all(weight > 0.8 * (sum(own) - least) for weight in own)


@given(_groups())
def test_flows_of_a_member_that_is_gone_move_and_the_others_stay(members: list[Member]) -> None:
    settled = [_driving(member, dict.fromkeys(member.driven)) for member in _settled(members)]
    if len(settled) < 2:
        return
    gone, *rest = settled
    after = assign(rest, rest[0].run)
    kept = sum(len(set(member.driven) & set(_flows(after)[member.run])) for member in rest)
    moved = sum(len(member.driven) for member in rest) - kept
    assert not any(share.coming for share in after.shares) or moved <= len(gone.driven)


def test_a_flow_moves_when_its_driver_has_stopped_it() -> None:
    first, second = _member("a", dict.fromkeys(FLOWS, 0.0)), _member("b")
    before = assign([first, second], "a")
    coming = before.share("b").coming
    assert len(coming) == 4
    assert before.share("b").flows == ()
    released = replace(first, driven=tuple(flow for flow in FLOWS if flow not in coming))  # it still knows the loads
    after = assign([released, second], "a")
    assert after.share("b").flows == coming
    assert after.share("a").flows == before.share("a").flows


def test_load_counts() -> None:
    """The flow with nine tenths of the load is alone with few others."""
    loads = dict.fromkeys(FLOWS, 1.0) | {FLOWS[0]: 500.0}
    shares = _flows(assign([_member("a", loads), _member("b")], "a"))
    with_it = next(flows for flows in shares.values() if FLOWS[0] in flows)
    assert len(with_it) < 5
    elsewhere = _flows(assign([_member("a", other_load=1000.0), _member("b", {FLOWS[0]: 1.0})], "a"))
    assert elsewhere["a"] == ()


def test_another_file_gets_no_flows_and_the_reason_names_the_difference_and_the_member() -> None:
    other = _member("b", settings=SETTINGS | {"topics": "x"})
    share = assign([_member("a", dict.fromkeys(FLOWS, 0.0)), other], "b").share("b")
    assert (share.flows, share.coming) == ((), ())
    assert share.refused == "its file differs from that of member a on host-a in: topics"
    alone = assign([other], "b").share("b")
    assert (alone.flows, alone.refused) == (FLOWS, "")


def test_versions_may_differ_by_one_minor_version() -> None:
    driving = _member("a", dict.fromkeys(FLOWS, 0.0))
    for version, is_refused in (("1.1.9", False), ("1.3.0", False), ("1.4.0", True), ("2.2.0", True)):
        share = assign([driving, _member("b", version=version)], "a").share("b")
        assert bool(share.refused) == is_refused, share
        assert version in share.refused or not is_refused


def test_a_field_that_only_one_version_has_is_no_difference() -> None:
    newer = _member("b", settings=SETTINGS | {"later": "x"})
    assert not assign([_member("a", dict.fromkeys(FLOWS, 0.0)), newer], "a").share("b").refused


def test_held_flows_wait_for_a_member_that_drives_nothing() -> None:
    lost = FLOWS[:3]
    driving = _member("a", dict.fromkeys(FLOWS[3:], 0.0))
    assert set(_flows(assign([driving], "a", lost))["a"]) == set(FLOWS[3:])
    assert set(lost) <= set(_flows(assign([driving, _member("b")], "a", lost))["b"])
    assert set(_flows(assign([driving], "a"))["a"]) == set(FLOWS)


def test_what_members_tell_each_other_survives_other_versions() -> None:
    member = _member("a", {FLOWS[0]: 1.5})
    assert decode_member(encode(member)) == member
    assert decode_member(b'{"run": "a", "later": [1]}') == Member("a")
    assert decode_member(b"\x00\x01") is None
    assert decode_member(b"{}") is None
    assignment = assign([member, _member("b")], "a")
    assert decode_assignment(encode(assignment)) == assignment
    assert decode_assignment(b"") == Assignment()
