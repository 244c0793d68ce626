"""Topics that lose records, are deleted and recreated, or are written to by others while they are mirrored."""

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from kafka import KafkaAdminClient, TopicPartition

from copying.lease import copy, only, prepare, settled
from heliograph.copy.copier import Copier
from heliograph.copy.work import Outcome, Work
from heliograph.model.flow import CONTINUE, FAIL, Flow, Policies, Reading
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from heliograph.wire.records import encode
from logs import PATIENCE, Log, Pair, Record, Seen, some_records
from service.runner import running, until

Clusters = tuple[SandboxCluster, SandboxCluster]
Reported = tuple[list[tuple[int, str, int, int]], list[tuple[int, str, int, int, int]]]
STRICT = Policies(FAIL, FAIL, FAIL, FAIL)
LENIENT = Policies(CONTINUE, CONTINUE, CONTINUE, CONTINUE)
CUT = ["cut-stop", "cut-go", "cut-late-stop", "cut-late-go", "cut-late-short", "cut-late-resent"]


@pytest.fixture(scope="module")
def threes() -> Iterator[Clusters]:
    with Sandbox() as sandbox:
        settings = {"min.insync.replicas": "1", "log.cleaner.backoff.ms": "300"}
        spec = ClusterSpec(brokers=3, settings=settings, fast_start=True, heap_mb=192)
        a, b = sandbox.start({"A": spec, "B": spec})
        yield a, b


@pytest.fixture(scope="module")
def both(threes: Clusters) -> Pair:
    return Pair(*(Log(cluster.bootstrap) for cluster in threes))


@pytest.fixture(scope="module")
def olds() -> Iterator[SandboxCluster]:
    with Sandbox() as sandbox:
        # A leader that hands over in order tries for 15 s where there is nobody to take over.
        settings = {"controlled.shutdown.enable": "false"}
        (cluster,) = sandbox.start({"A": ClusterSpec(brokers=2, version="1.1.1", settings=settings, fast_start=True)})
        yield cluster


def _flow(pair: Pair, topic: str, policies: Policies = LENIENT, **reading: Any) -> Flow:
    return replace(only(pair.flow(), topic), replication_factor=3, policies=policies, reading=Reading(**reading))


def _reported(outcome: Outcome) -> Reported:
    """Refusals (partition, reason, offsets) and notices (partition, kind, count, offsets)."""
    return (
        sorted((r.partition.partition, r.reason, r.source_offset, r.target_offset) for r in outcome.refusals),
        sorted((n.partition.partition, n.kind, n.count, n.source_offset, n.target_offset) for n in outcome.notices),
    )


def _write(log: Log, topic: str, *counts: int) -> None:
    """So many records to partition 0, 1, ..."""
    for partition, count in enumerate(counts):
        log.write(topic, some_records(count), partition, per_batch=10)


def _copied(pair: Pair, topic: str, *partitions: int) -> bool:
    return all(
        pair.b.read(f"A.{topic}", partition) == pair.a.read(topic, partition) for partition in partitions or (0,)
    )


def _until(seen: Callable[[], Any], wanted: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while (now := seen()) != wanted:
        assert time.monotonic() < deadline, f"{now} is not {wanted}"
        time.sleep(0.05)


def _elect_uncleanly(
    cluster: SandboxCluster, log: Log, topics: Sequence[str], leader: int, follower: int, meanwhile: Callable[[], None]
) -> None:
    """What is written `meanwhile` is with the leader alone, which goes down; the follower leads on without it."""
    cluster.stop_broker(follower)
    log.until_led(topics, leader, leader)
    meanwhile()
    cluster.stop_broker(leader)
    cluster.start_broker(follower)
    log.until_led(topics, follower, follower)


def _lease(flows: Sequence[Flow], log: Log, act: Callable[[], None], **work: Any) -> list[Outcome]:
    """A lease for each flow: when all is copied (at a slow pace: some), `act`; then on until all is, or refused."""

    async def main() -> list[Outcome]:
        copiers = [Copier(Work(flow, "life", PATIENCE + 60, await prepare(flow), **work)) for flow in flows]
        leases = [asyncio.create_task(copier.run()) for copier in copiers]
        cursors = [cursor for copier in copiers for cursor in copier.cursors]
        async with asyncio.timeout(PATIENCE):
            while not all(
                settled(each) or ("bytes_per_second" in work and each.counts.records > 300) for each in copiers
            ):
                await asyncio.sleep(0.01)
            await asyncio.to_thread(act)
            for each in cursors:
                _start, end = await asyncio.to_thread(log.bounds, each.key.topic, each.key.partition)
                while not (each.refusal or (each.position and each.position.source == end)):
                    await asyncio.sleep(0.01)
        for copier in copiers:
            copier.stop()
        async with asyncio.timeout(PATIENCE):
            return await asyncio.gather(*leases)

    return asyncio.run(main())


# --- unclean elections -----------------------------------------------------------------------------------------------


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
    flows = {name: _flow(both, name, STRICT if "stop" in name else LENIENT) for name in CUT}
    before: dict[str, list[Seen]] = {}
    resent = some_records(50)

    def lose(name: str, count: int, end: int, idle: bool) -> list[Seen]:
        if "resent" in name:
            a.write(name, resent, per_batch=10)
        else:
            _write(a, name, count)
        if idle:
            copy(flows[name])
        _until(lambda: b.bounds(f"A.{name}")[1], end)
        return b.read(f"A.{name}")

    def elect() -> None:
        _elect_uncleanly(
            cluster, a, CUT, 2, 3, lambda: before.update({name: lose(name, 50, 150, "late" in name) for name in CUT})
        )
        for name in CUT:
            if "resent" in name:
                a.write(name, [*some_records(1), *resent], per_batch=10)
            _write(a, name, 0 if "resent" in name else 20 if "short" in name else 80, 20)

    def cut(name: str, outcome: Outcome) -> Cut:
        sides = [[log.read(topic_name, n) for n in (0, 1)] for log, topic_name in ((a, name), (b, f"A.{name}"))]
        return Cut(_reported(outcome), before[name], *sides)

    for name in CUT:
        a.place(name, [2, 3], [1, 2])
        _write(a, name, 100, 100)
    running = _lease([flows[name] for name in CUT[:2]], a, elect)
    found = {name: cut(name, outcome) for name, outcome in zip(CUT, running, strict=False)}
    found |= {name: cut(name, copy(flows[name])) for name in CUT[2:]}
    cluster.start_broker(2)
    a.until_led(CUT, 3, 2, 3)
    _elect_uncleanly(cluster, a, CUT, 3, 2, lambda: before.update({"cut-go": lose("cut-go", 30, 260, True)}))
    _write(a, "cut-go", 40, 10)
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
        _write(both.a, name, 100, 100)
    copy(_flow(both, later, STRICT))

    def lose() -> None:
        for name in names:
            _write(both.a, name, 50)
        copy(_flow(both, later, STRICT))
        _until(lambda: [both.b.bounds(mirror)[1] for mirror in mirrors], [150, 150])

    def elect() -> None:
        _elect_uncleanly(threes[1], both.b, mirrors, 2, 3, lose)
        assert both.b.bounds(mirrors[1]) == (0, 100)
        for name in names:
            _write(both.a, name, 30, 30)

    (outcome,) = _lease([_flow(both, running, STRICT)], both.a, elect)
    assert _reported(outcome) == ([], [(0, "mirror-truncated", 50, 100, 100)])
    assert _reported(copy(_flow(both, later, STRICT))) == ([], [])
    assert all(_copied(both, name, 0, 1) for name in names)
    threes[1].start_broker(2)
    both.b.until_led(mirrors, 3, 2, 3)


def test_a_truncated_mirror_is_copied_again_while_the_source_is_quiet(threes: Clusters, both: Pair, topic: str) -> None:
    mirror = f"A.{topic}"
    both.a.create(topic, replicas=3)
    both.b.place(mirror, [2, 3])
    _write(both.a, topic, 100)

    def lose() -> None:
        _write(both.a, topic, 50)
        _until(lambda: both.b.bounds(mirror)[1], 150)

    async def main() -> None:
        async with running(_flow(both, topic, STRICT)) as runner:
            await until(lambda: runner.view.status().lag == 0)
            await asyncio.to_thread(_elect_uncleanly, threes[1], both.b, [mirror], 2, 3, lose)
            await until(lambda: runner.view.status().notices, runner.view.status)
            await until(lambda: runner.view.status().lag == 0, runner.view.status)
            (notice,) = runner.view.status().notices
            assert (notice.kind, notice.count, notice.target_offset) == ("mirror-truncated", 50, 100)

    asyncio.run(main())
    assert _copied(both, topic)
    threes[1].start_broker(2)
    both.b.until_led([mirror], 3, 2, 3)


# --- topics that are emptied, or deleted and recreated --------------------------------------------------------------


def _stop_and_go(pair: Pair, topic: str, act: Callable[[str], None], when: str) -> list[Reported]:
    """The same happens to two topics with 100 copied records each: one stops there, the other continues."""
    names = [f"{topic}-stop", f"{topic}-go"]
    flows = [_flow(pair, name, policies) for name, policies in zip(names, (STRICT, LENIENT), strict=True)]
    positions: dict[MirrorPartition, Position] = {}
    for name, flow in zip(names, flows, strict=True):
        for source in (name, f"{name}-other"):
            pair.a.create(source)
            _write(pair.a, source, 100)
        positions |= {key: at.position for key, at in copy(flow).progress.items()}
    first = [pair.a.read(name) for name in names]

    def change() -> None:
        for name in names:
            act(name)
            _write(pair.a, f"{name}-other", 10)

    if when == "in a lease":
        outcomes = _lease(flows, pair.a, change)
    else:
        change()
        outcomes = _lease(flows, pair.a, lambda: None, positions=positions if when == "positions handed on" else {})
    assert pair.b.read(f"A.{names[0]}") == first[0]
    assert pair.b.read(f"A.{names[1]}") == first[1] + pair.a.read(names[1])
    assert all(_copied(pair, f"{name}-other") for name in names)
    return [_reported(outcome) for outcome in outcomes]


def test_retention_that_has_overtaken_the_copier_is_reported(both: Pair, topic: str) -> None:
    def act(name: str) -> None:
        _write(both.a, name, 100)
        both.a.delete_before(name, 0, 150)

    stopped, went_on = _stop_and_go(both, topic, act, "between leases")
    assert stopped == ([(0, "data-loss", 100, 100)], [])
    assert went_on == ([], [(0, "data-loss", 50, 150, 100)])


def test_retention_that_overtakes_the_copier_in_a_lease_is_reported(both: Pair, topic: str) -> None:
    names = [f"{topic}-stop", f"{topic}-go"]
    flows = [
        _flow(both, name, policies, max_partition_fetch_bytes=2000)
        for name, policies in zip(names, (STRICT, LENIENT), strict=True)
    ]
    for name in names:
        both.a.create(name, partitions=2)
        both.a.write(name, some_records(5000))
    records = [both.a.read(name) for name in names]

    def act() -> None:
        for name in names:
            both.a.delete_before(name, 0, 4500)
            _write(both.a, name, 0, 10)

    stopped, went_on = _lease(flows, both.a, act, bytes_per_second=100_000)
    mirrors = [both.b.read(f"A.{name}") for name in names]
    m, n = len(mirrors[0]), len(mirrors[1]) - 500
    assert _reported(stopped) == ([(0, "data-loss", m, m)], [])
    assert _reported(went_on) == ([], [(0, "data-loss", 4500 - n, 4500, n)])
    assert mirrors == [records[0][:m], records[1][:n] + records[1][4500:]]
    assert all(_copied(both, name, 1) for name in names)


@pytest.mark.parametrize("count", [40, 160])
@pytest.mark.parametrize("when", ["between leases", "in a lease"])
def test_a_recreated_source_topic_is_reported(both: Pair, topic: str, count: int, when: str) -> None:
    stopped, went_on = _stop_and_go(both, topic, lambda name: both.a.recreate(name, count), when)
    assert stopped == ([(0, "recreated-topic", 100, 100)], [])
    assert went_on == ([], [(0, "recreated-topic", 0, 0, 100)])
    _write(both.a, f"{topic}-go", 10)
    assert _reported(copy(_flow(both, f"{topic}-go"))) == ([], [])
    assert both.b.bounds(f"A.{topic}-go") == (0, 110 + count)


def test_a_deleted_mirror_is_copied_again_from_the_sources_start(both: Pair, topic: str) -> None:
    both.a.create(topic, partitions=2)
    _write(both.a, topic, 100, 100)
    copy(_flow(both, topic, STRICT))
    both.a.delete_before(topic, 0, 30)
    both.b.delete(f"A.{topic}")
    _write(both.a, topic, 10, 10)
    outcome = copy(_flow(both, topic, STRICT))
    assert _reported(outcome) == ([], [(0, "mirror-recreated", 0, 30, 0), (1, "mirror-recreated", 0, 0, 0)])
    assert _copied(both, topic, 0, 1)


@pytest.mark.parametrize("pace", [{}, {"bytes_per_second": 100_000}], ids=["idle", "busy"])
def test_a_mirror_that_is_deleted_during_a_lease_is_copied_again(both: Pair, topic: str, pace: dict[str, int]) -> None:
    """If a batch was on its way, the new mirror may have it: appends name the topic only. Then it must go once more."""
    both.a.create(topic)
    both.a.create(f"{topic}-other")
    both.b.place(f"A.{topic}", [1, 2])
    both.a.write(topic, some_records(2000))

    def act() -> None:
        both.b.delete(f"A.{topic}")
        both.b.place(f"A.{topic}", [1, 2])
        _write(both.a, topic, 50)
        _write(both.a, f"{topic}-other", 50)

    (outcome,) = _lease([_flow(both, topic, STRICT, max_partition_fetch_bytes=2000)], both.a, act, **pace)
    assert _copied(both, f"{topic}-other")
    if outcome.refusals:
        (refusal,) = outcome.refusals
        assert (refusal.reason, "delete it once more" in refusal.text) == ("unknown-origin", True)
        both.b.delete(f"A.{topic}")
        outcome = copy(_flow(both, topic, STRICT))
    assert _reported(outcome) == ([], [(0, "mirror-recreated", 0, 0, 0)])
    assert _copied(both, topic)


# --- others who write to the mirror ----------------------------------------------------------------------------------


def _intrude(pair: Pair, topic: str, count: int, ours: int = 0) -> None:
    """Write to the mirror, and then to its source."""
    pair.b.write(f"A.{topic}", [Record(0, 1, b"foreign", b"%d" % number) for number in range(count)])
    _write(pair.a, topic, ours)


def _ours(log: Log, mirror: str) -> tuple[list[Seen], int]:
    """What the mirror holds beside the records of others, and how many those are."""
    everything = log.read(mirror)
    ours = [record for record in everything if record.key != b"foreign"]
    return ours, len(everything) - len(ours)


def _create_with_holes(log: Log, topic: str) -> None:
    log.create_compacted(topic, lambda n: b"k%d" % (n if n % 5 else n % 50), count=4000)


def test_every_foreign_write_stops_the_partition_or_is_skipped(both: Pair, topic: str) -> None:
    mirror = f"A.{topic}"
    both.a.create(topic, partitions=2)
    _write(both.a, topic, 100, 100)
    copy(_flow(both, topic))
    _intrude(both, topic, 7, ours=50)
    _write(both.a, topic, 0, 50)
    assert _reported(copy(_flow(both, topic, STRICT))) == ([(0, "foreign-writer", 107, 107)], [])
    assert both.b.bounds(mirror) == (0, 107)
    assert _copied(both, topic, 1)
    assert _reported(copy(_flow(both, topic))) == ([], [(0, "foreign-writer", 7, 100, 107)])
    _write(both.a, topic, 50)
    assert _reported(copy(_flow(both, topic))) == ([], [])
    assert _ours(both.b, mirror) == (both.a.read(topic), 7)
    _intrude(both, topic, 300, ours=50)
    assert _reported(copy(_flow(both, topic))) == ([], [(0, "foreign-writer", 300, 200, 507)])
    assert _ours(both.b, mirror) == (both.a.read(topic), 307)


@pytest.mark.parametrize("how", ["now and then", "where there are holes", "all the time"])
def test_foreign_writes_between_batches_in_flight_are_skipped(both: Pair, topic: str, how: str) -> None:
    both.a.create(f"{topic}-other")
    if how == "where there are holes":
        _create_with_holes(both.a, topic)
    else:
        both.a.create(topic)
        _write(both.a, topic, 5000)

    def act() -> None:
        if how == "all the time":
            enough = time.monotonic() + 1.0  # for several seconds on end it would be given up
            while time.monotonic() < enough:
                both.b.append(f"A.{topic}", [encode([Record(0, 1, b"foreign", b"")])] * 20)
        else:
            for _ in range(20):
                _intrude(both, topic, 3)
        for name in (topic, f"{topic}-other"):
            _write(both.a, name, 10)

    flow = _flow(both, topic, max_partition_fetch_bytes=20_000)
    (outcome,) = _lease([flow], both.a, act, bytes_per_second=300_000)
    assert _copied(both, f"{topic}-other")
    assert outcome.refusals == ()
    ours, foreign = _ours(both.b, f"A.{topic}")
    assert ours == both.a.read(topic)
    assert {notice.kind for notice in outcome.notices} == {"foreign-writer"}
    assert sum(notice.count for notice in outcome.notices) == foreign
    _write(both.a, topic, 10)
    assert _reported(copy(flow)) == ([], [])
    assert _ours(both.b, f"A.{topic}") == (both.a.read(topic), foreign)


@pytest.mark.parametrize("also", ["recreated-topic", "data-loss"])
def test_a_foreign_write_hides_nothing_else(both: Pair, topic: str, also: str) -> None:
    both.a.create(topic)
    _write(both.a, topic, 100)
    copy(_flow(both, topic))
    first = both.a.read(topic)
    _intrude(both, topic, 50)
    if also == "recreated-topic":
        both.a.recreate(topic, 200)
    else:
        _write(both.a, topic, 100)
        both.a.delete_before(topic, 0, 120)
    outcome = copy(_flow(both, topic))
    assert outcome.refusals == ()
    assert _ours(both.b, f"A.{topic}") == (first + both.a.read(topic), 50)
    lost = 20 if also == "data-loss" else 0
    assert {notice.kind: notice.count for notice in outcome.notices} == {"foreign-writer": 50, also: lost}


@pytest.mark.parametrize("what", ["data-loss", "recreated-topic", "foreign-writer", "foreign-writer before us"])
def test_the_next_lease_does_not_report_the_same_again(both: Pair, topic: str, what: str) -> None:
    """Though nothing has been copied since."""
    both.a.create(topic)
    _write(both.a, topic, 100)
    flow = _flow(both, topic)
    copy(flow)
    if what == "foreign-writer before us":  # a batch of ours is the last one, but not where it was meant to be
        (outcome,) = _lease([flow], both.a, lambda: _intrude(both, topic, 5, ours=10))
    else:
        if what == "data-loss":
            _write(both.a, topic, 50)
            both.a.delete_before(topic, 0, 150)
        elif what == "recreated-topic":
            both.a.recreate(topic, 0)
        else:
            _intrude(both, topic, 5)
        outcome = copy(flow)
    assert [notice.kind for notice in outcome.notices] == [what.removesuffix(" before us")]
    assert _reported(copy(flow)) == ([], [])


# --- leaders that move, partitions that are added --------------------------------------------------------------------


def test_a_topic_with_holes_is_copied_while_source_leaders_move(both: Pair, topic: str) -> None:
    _create_with_holes(both.a, topic)
    both.a.create(f"{topic}-other")
    admin: Any = KafkaAdminClient(bootstrap_servers=both.a.bootstrap)

    def act() -> None:
        for order in ([2, 3], [3, 1], [1, 2]):  # the leader has no replica any more
            admin.alter_partition_reassignments({TopicPartition(topic, 0): order})
            _until(admin.list_partition_reassignments, {})
            admin.elect_leaders(0, {topic: [0]})
            both.a.until_led([topic], order[0], *sorted(order))
            _write(both.a, topic, 5)
        _write(both.a, f"{topic}-other", 5)

    flow = _flow(both, topic, STRICT, max_partition_fetch_bytes=4000)
    (outcome,) = _lease([flow], both.a, act, bytes_per_second=100_000)
    admin.close()
    assert _reported(outcome) == ([], [])
    _write(both.a, topic, 5)
    assert _reported(copy(flow)) == ([], [])  # which finds its position by the ledger
    assert _copied(both, topic)
    assert _copied(both, f"{topic}-other")


def test_holes_are_recorded_while_target_brokers_restart(threes: Clusters, both: Pair, topic: str) -> None:
    both.a.create(topic, partitions=2)

    def act() -> None:
        over = threading.Event()

        def write() -> None:
            for number in itertools.count():
                both.a.transaction(topic, 5, commit=number % 2 == 0)
                if over.is_set():
                    return

        writing = threading.Thread(target=write)
        writing.start()
        for broker in (1, 2, 3):
            threes[1].stop_broker(broker)
            threes[1].start_broker(broker)
        over.set()
        writing.join(PATIENCE)
        assert not writing.is_alive()
        _write(both.a, topic, 5, 5)

    (outcome,) = _lease([_flow(both, topic, STRICT)], both.a, act)
    assert _reported(outcome) == ([], [])
    _write(both.a, topic, 5)
    assert _reported(copy(_flow(both, topic, STRICT))) == ([], [])
    assert _copied(both, topic, 0, 1)
    assert both.b.bounds(f"A.{topic}")[1] > 50


def test_added_partitions_are_copied_by_the_next_lease(both: Pair, topic: str) -> None:
    both.a.create(topic, partitions=2)
    _write(both.a, topic, 10, 10)
    copy(_flow(both, topic))
    both.a.grow(topic, 4)
    _write(both.a, topic, 10, 10, 20, 30)
    outcome = copy(_flow(both, topic, STRICT))
    assert (outcome.records, _reported(outcome)) == (70, ([], []))
    assert _copied(both, topic, 0, 1, 2, 3)


# --- a source without topic ids ---------------------------------------------------------------------------------------


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


def test_an_old_source_that_is_truncated_stops_the_partition(olds: SandboxCluster, both: Pair, topic: str) -> None:
    """Its fetches have no leader epochs: when the new leader's log has grown longer, only the records show it."""
    log, mirror = Log(olds.bootstrap), f"A.{topic}"
    for name in (topic, f"{topic}-other"):
        log.create(name, replicas=2, unclean_leader_election_enable="true")
    _write(log, topic, 100)
    leader = log.leader(topic)
    before: list[Seen] = []

    def lose() -> None:
        _write(log, topic, 50)
        _until(lambda: both.b.bounds(mirror)[1], 150)
        before.extend(both.b.read(mirror))

    def act() -> None:
        _elect_uncleanly(olds, log, [topic], leader, 3 - leader, lose)
        _write(log, topic, 80)
        _write(log, f"{topic}-other", 10)

    pair = Pair(log, both.b)
    (outcome,) = _lease([_flow(pair, topic, STRICT)], log, act)
    assert both.b.read(mirror) == before
    assert [(refusal.source_offset, refusal.target_offset) for refusal in outcome.refusals] == [(150, 150)]
    assert _copied(pair, f"{topic}-other")
