"""Topics that retention empties, or that are deleted and recreated."""

from collections.abc import Callable

import pytest

from copying.lease import copy
from faults.topics import (
    LENIENT,
    STRICT,
    Reported,
    flow_of,
    is_copied,
    lease_with,
    reported,
    write_records,
)
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.sandbox import SandboxCluster
from logs import Log, Pair, some_records


def _stop_and_go(pair: Pair, topic: str, act: Callable[[str], None], when: str) -> list[Reported]:
    """The same happens to two topics with 100 copied records each: one stops there, the other continues."""
    names = [f"{topic}-stop", f"{topic}-go"]
    flows = [flow_of(pair, name, policies) for name, policies in zip(names, (STRICT, LENIENT), strict=True)]
    positions: dict[MirrorPartition, Position] = {}
    for name, flow in zip(names, flows, strict=True):
        for source in (name, f"{name}-other"):
            pair.a.create(source)
            write_records(pair.a, source, 100)
        positions |= {key: at.position for key, at in copy(flow).progress.items()}
    first = [pair.a.read(name) for name in names]

    def change() -> None:
        for name in names:
            act(name)
            write_records(pair.a, f"{name}-other", 10)

    if when == "in a lease":
        outcomes = lease_with(flows, pair.a, change)
    else:
        change()
        outcomes = lease_with(flows, pair.a, lambda: None, positions=positions if when == "positions handed on" else {})
    assert pair.b.read(f"A.{names[0]}") == first[0]
    assert pair.b.read(f"A.{names[1]}") == first[1] + pair.a.read(names[1])
    assert all(is_copied(pair, f"{name}-other") for name in names)
    return [reported(outcome) for outcome in outcomes]


def test_retention_that_has_overtaken_the_copier_is_reported(both: Pair, topic: str) -> None:
    def act(name: str) -> None:
        write_records(both.a, name, 100)
        both.a.delete_before(name, 0, 150)

    stopped, went_on = _stop_and_go(both, topic, act, "between leases")
    assert stopped == ([(0, "data-loss", 100, 100)], [])
    assert went_on == ([], [(0, "data-loss", 50, 150, 100)])


def test_retention_that_overtakes_the_copier_in_a_lease_is_reported(both: Pair, topic: str) -> None:
    names = [f"{topic}-stop", f"{topic}-go"]
    flows = [
        flow_of(both, name, policies, max_partition_fetch_bytes=2000)
        for name, policies in zip(names, (STRICT, LENIENT), strict=True)
    ]
    for name in names:
        both.a.create(name, partitions=2)
        both.a.write(name, some_records(5000))
    records = [both.a.read(name) for name in names]

    def act() -> None:
        for name in names:
            both.a.delete_before(name, 0, 4500)
            write_records(both.a, name, 0, 10)

    stopped, went_on = lease_with(flows, both.a, act, bytes_per_second=100_000)
    mirrors = [both.b.read(f"A.{name}") for name in names]
    m, n = len(mirrors[0]), len(mirrors[1]) - 500
    assert reported(stopped) == ([(0, "data-loss", m, m)], [])
    assert reported(went_on) == ([], [(0, "data-loss", 4500 - n, 4500, n)])
    assert mirrors == [records[0][:m], records[1][:n] + records[1][4500:]]
    assert all(is_copied(both, name, 1) for name in names)


@pytest.mark.parametrize("count", [40, 160])
@pytest.mark.parametrize("when", ["between leases", "in a lease"])
def test_a_recreated_source_topic_is_reported(both: Pair, topic: str, count: int, when: str) -> None:
    stopped, went_on = _stop_and_go(both, topic, lambda name: both.a.recreate(name, count), when)
    assert stopped == ([(0, "recreated-topic", 100, 100)], [])
    assert went_on == ([], [(0, "recreated-topic", 0, 0, 100)])
    write_records(both.a, f"{topic}-go", 10)
    assert reported(copy(flow_of(both, f"{topic}-go"))) == ([], [])
    assert both.b.bounds(f"A.{topic}-go") == (0, 110 + count)


def test_a_deleted_mirror_is_copied_again_from_the_sources_start(both: Pair, topic: str) -> None:
    both.a.create(topic, partitions=2)
    write_records(both.a, topic, 100, 100)
    copy(flow_of(both, topic, STRICT))
    both.a.delete_before(topic, 0, 30)
    both.b.delete(f"A.{topic}")
    write_records(both.a, topic, 10, 10)
    outcome = copy(flow_of(both, topic, STRICT))
    assert reported(outcome) == ([], [(0, "mirror-recreated", 0, 30, 0), (1, "mirror-recreated", 0, 0, 0)])
    assert is_copied(both, topic, 0, 1)


@pytest.mark.parametrize("pace", [{}, {"bytes_per_second": 100_000}], ids=["idle", "busy"])
def test_a_mirror_that_is_deleted_during_a_lease_is_copied_again(both: Pair, topic: str, pace: dict[str, int]) -> None:
    both.a.create(topic)
    both.a.create(f"{topic}-other")
    both.b.place(f"A.{topic}", [1, 2])
    both.a.write(topic, some_records(2000))

    def act() -> None:
        both.b.delete(f"A.{topic}")
        both.b.place(f"A.{topic}", [1, 2])
        write_records(both.a, topic, 50)
        write_records(both.a, f"{topic}-other", 50)

    (outcome,) = lease_with([flow_of(both, topic, STRICT, max_partition_fetch_bytes=2000)], both.a, act, **pace)
    assert is_copied(both, f"{topic}-other")
    assert reported(outcome) == ([], [(0, "mirror-recreated", 0, 0, 0)])
    assert is_copied(both, topic)


@pytest.mark.parametrize(
    ("when", "count"),
    [("between leases", 40), ("between leases", 160), ("positions handed on", 160), ("in a lease", 40)],
)
def test_a_recreated_topic_without_a_topic_id_is_reported(
    both: Pair, olds: SandboxCluster, topic: str, count: int, when: str
) -> None:
    """By its records only. (One that grows past the position while a fetch waits is reported by the next lease.)"""
    log = Log(olds.bootstrap)
    stopped, went_on = _stop_and_go(Pair(log, both.b), topic, lambda name: log.recreate(name, count), when)
    assert stopped == ([(0, "recreated-topic", 100, 100)], [])
    assert went_on == ([], [(0, "recreated-topic", 100, 0, 100)])
