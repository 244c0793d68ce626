"""Unclean elections: a source or a mirror loses the end of its log."""

import asyncio
from dataclasses import dataclass

import pytest

from copying.lease import copy
from faults.topics import (
    LENIENT,
    STRICT,
    Clusters,
    Reported,
    elect_uncleanly,
    flow_of,
    is_copied,
    lease_with,
    reported,
    until_equal,
    write_records,
)
from heliograph.copy.work import Outcome
from heliograph.sandbox import SandboxCluster
from logs import Log, Pair, Seen, some_records
from service.runner import running, until

CUT = ["cut-stop", "cut-go", "cut-late-stop", "cut-late-go", "cut-late-short", "cut-late-resent"]


@dataclass(frozen=True)
class Cut:
    """How it went with a topic whose source lost its end."""

    reported: Reported
    before: list[Seen]  # what the mirror's first partition held
    source: list[list[Seen]]  # by partition
    mirror: list[list[Seen]]


@pytest.fixture(scope="module")
def cuts(threes: Clusters, both: Pair) -> dict[str, Cut]:
    """Two elections: in the first all topics lose 50 records of 150, in the second `cut-go` (now `again`) 30 of 210."""
    cluster, a, b = threes[0], both.a, both.b
    flows = {name: flow_of(both, name, STRICT if "stop" in name else LENIENT) for name in CUT}
    before: dict[str, list[Seen]] = {}
    resent = some_records(50)

    def lose(name: str, count: int, end: int, idle: bool) -> list[Seen]:
        if "resent" in name:
            a.write(name, resent, per_batch=10)
        else:
            write_records(a, name, count)
        if idle:
            copy(flows[name])
        until_equal(lambda: b.bounds(f"A.{name}")[1], end)
        return b.read(f"A.{name}")

    def elect() -> None:
        elect_uncleanly(
            cluster, a, CUT, 2, 3, lambda: before.update({name: lose(name, 50, 150, "late" in name) for name in CUT})
        )
        for name in CUT:
            if "resent" in name:
                a.write(name, [*some_records(1), *resent], per_batch=10)
            write_records(a, name, 0 if "resent" in name else 20 if "short" in name else 80, 20)

    def cut(name: str, outcome: Outcome) -> Cut:
        sides = [[log.read(topic_name, n) for n in (0, 1)] for log, topic_name in ((a, name), (b, f"A.{name}"))]
        return Cut(reported(outcome), before[name], *sides)

    for name in CUT:
        a.place(name, [2, 3], [1, 2])
        write_records(a, name, 100, 100)
    running = lease_with([flows[name] for name in CUT[:2]], a, elect)
    found = {name: cut(name, outcome) for name, outcome in zip(CUT, running, strict=False)}
    found |= {name: cut(name, copy(flows[name])) for name in CUT[2:]}
    cluster.start_broker(2)
    a.until_led(CUT, 3, 2, 3)
    elect_uncleanly(cluster, a, CUT, 3, 2, lambda: before.update({"cut-go": lose("cut-go", 30, 260, True)}))
    write_records(a, "cut-go", 40, 10)
    found["again"] = cut("cut-go", copy(flows["cut-go"]))
    cluster.start_broker(3)
    a.until_led(CUT, 2, 2, 3)
    return found


def test_a_truncated_source_stops_the_partition(cuts: dict[str, Cut]) -> None:
    running, longer = cuts["cut-stop"], cuts["cut-late-stop"]
    assert running.reported == ([(0, "source-truncated", 150, 150)], [])
    assert longer.reported == ([(0, "not-a-copy", 150, 150)], [])
    for cut in (running, longer):
        assert cut.mirror == [cut.before, cut.source[1]]
        assert (len(cut.before), len(cut.source[1])) == (150, 120)


@pytest.mark.parametrize("name", ["cut-go", "cut-late-go", "cut-late-short"])
def test_a_truncated_source_is_copied_on_from_there(cuts: dict[str, Cut], name: str) -> None:
    cut = cuts[name]
    assert cut.reported == ([], [(0, "source-truncated", 50, 100, 150)])
    assert cut.before[:100] == cut.source[0][:100]
    assert cut.mirror == [cut.before + cut.source[0][100:], cut.source[1]]


def test_records_that_are_sent_again_after_another_are_copied_again(cuts: dict[str, Cut]) -> None:
    """None of them is left out, the other one not either, and what is there twice is counted."""
    cut = cuts["cut-late-resent"]
    assert cut.reported == ([], [(0, "copied-twice", 50, 100, 150)])
    assert cut.before[100:] == cut.source[0][101:]
    assert cut.mirror == [cut.before + cut.source[0][100:], cut.source[1]]


def test_a_source_that_is_truncated_again_is_copied_on_from_there(cuts: dict[str, Cut]) -> None:
    cut = cuts["again"]
    assert cut.mirror == [cut.before + cut.source[0][180:], cut.source[1]]
    assert cut.reported == ([], [(0, "source-truncated", 30, 180, 260)])


def test_a_truncated_mirror_is_copied_again_from_there(threes: Clusters, both: Pair, topic: str) -> None:
    running, later = names = [f"{topic}-running", f"{topic}-later"]
    mirrors = [f"A.{name}" for name in names]
    for name, mirror in zip(names, mirrors, strict=True):
        both.a.create(name, partitions=2, replicas=3)
        both.b.place(mirror, [2, 3], [1, 2])
        write_records(both.a, name, 100, 100)
    copy(flow_of(both, later, STRICT))

    def lose() -> None:
        for name in names:
            write_records(both.a, name, 50)
        copy(flow_of(both, later, STRICT))
        until_equal(lambda: [both.b.bounds(mirror)[1] for mirror in mirrors], [150, 150])

    def elect() -> None:
        elect_uncleanly(threes[1], both.b, mirrors, 2, 3, lose)
        assert both.b.bounds(mirrors[1]) == (0, 100)
        for name in names:
            write_records(both.a, name, 30, 30)

    (outcome,) = lease_with([flow_of(both, running, STRICT)], both.a, elect)
    assert reported(outcome) == ([], [(0, "mirror-truncated", 50, 100, 100)])
    assert reported(copy(flow_of(both, later, STRICT))) == ([], [])
    assert all(is_copied(both, name, 0, 1) for name in names)
    threes[1].start_broker(2)
    both.b.until_led(mirrors, 3, 2, 3)


def test_a_truncated_mirror_is_copied_again_while_the_source_is_quiet(threes: Clusters, both: Pair, topic: str) -> None:
    mirror = f"A.{topic}"
    both.a.create(topic, replicas=3)
    both.b.place(mirror, [2, 3])
    write_records(both.a, topic, 100)

    def lose() -> None:
        write_records(both.a, topic, 50)
        until_equal(lambda: both.b.bounds(mirror)[1], 150)

    async def main() -> None:
        async with running(flow_of(both, topic, STRICT)) as runner:
            await until(lambda: runner.view.status().lag == 0)
            await asyncio.to_thread(elect_uncleanly, threes[1], both.b, [mirror], 2, 3, lose)
            await until(lambda: runner.view.status().notices, runner.view.status)
            await until(lambda: runner.view.status().lag == 0, runner.view.status)
            (notice,) = runner.view.status().notices
            assert (notice.kind, notice.count, notice.target_offset) == ("mirror-truncated", 50, 100)

    asyncio.run(main())
    assert is_copied(both, topic)
    threes[1].start_broker(2)
    both.b.until_led([mirror], 3, 2, 3)


def test_an_old_source_that_is_truncated_stops_the_partition(olds: SandboxCluster, both: Pair, topic: str) -> None:
    """Its fetches have no leader epochs: when the new leader's log has grown longer, only the records show it."""
    log, mirror = Log(olds.bootstrap), f"A.{topic}"
    for name in (topic, f"{topic}-other"):
        log.create(name, replicas=2, unclean_leader_election_enable="true")
    write_records(log, topic, 100)
    leader = log.leader(topic)
    before: list[Seen] = []

    def lose() -> None:
        write_records(log, topic, 50)
        until_equal(lambda: both.b.bounds(mirror)[1], 150)
        before.extend(both.b.read(mirror))

    def act() -> None:
        elect_uncleanly(olds, log, [topic], leader, 3 - leader, lose)
        write_records(log, topic, 80)
        write_records(log, f"{topic}-other", 10)

    pair = Pair(log, both.b)
    (outcome,) = lease_with([flow_of(pair, topic, STRICT)], log, act)
    assert both.b.read(mirror) == before
    assert [(refusal.source_offset, refusal.target_offset) for refusal in outcome.refusals] == [(150, 150)]
    assert is_copied(pair, f"{topic}-other")
