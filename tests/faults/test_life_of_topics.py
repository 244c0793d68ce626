"""What happens to topics while they are mirrored: they lose records, are deleted, made again, or written to by others."""

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from copying.lease import copy, only, prepare, settled
from heliograph.copy.copier import Copier
from heliograph.copy.work import Outcome, Work
from heliograph.model.flow import CONTINUE, FAIL, Flow, Policies, Reading
from heliograph.sandbox import Cluster, ClusterSpec, Sandbox
from logs import Log, Pair, Record, Seen, some_records

STRICT = Policies(FAIL, FAIL, FAIL, FAIL)
LENIENT = Policies(CONTINUE, CONTINUE, CONTINUE, CONTINUE)
# Partition 0 is gone when brokers 2 and 3 are; partition 1 outlives that.
FRAGILE = ([2, 3], [1, 2])
CUT = ["cut-stop", "cut-go", "cut-late-stop-long", "cut-late-go-long", "cut-late-stop-short", "cut-late-go-short"]


@pytest.fixture(scope="module")
def threes() -> Iterator[tuple[Cluster, Cluster]]:
    with Sandbox() as sandbox:
        spec = ClusterSpec(brokers=3, settings={"min.insync.replicas": "1"}, fast_start=True)
        a, b = sandbox.start({"A": spec, "B": spec})
        yield a, b


@pytest.fixture(scope="module")
def both(threes: tuple[Cluster, Cluster]) -> Pair:
    return Pair(*(Log(cluster.bootstrap) for cluster in threes))


@pytest.fixture(scope="module")
def old() -> Iterator[Log]:
    """A source without topic ids."""
    with Sandbox() as sandbox:
        (cluster,) = sandbox.start({"A": ClusterSpec(version="1.1.1")})
        yield Log(cluster.bootstrap)


def _flow(both: Pair, topic: str, policies: Policies = LENIENT) -> Flow:
    return replace(only(both.flow(), topic), replication_factor=3, policies=policies)


def _notices(outcome: Outcome) -> list[tuple[int, str, int, int, int]]:
    return [(n.partition.partition, n.kind, n.count, n.source_offset, n.target_offset) for n in outcome.notices]


def _refusals(outcome: Outcome) -> list[tuple[int, str, int, int]]:
    return [(r.partition.partition, r.reason, r.source_offset, r.target_offset) for r in outcome.refusals]


def _write(log: Log, topic: str, *counts: int) -> None:
    """So many records to partition 0, 1, ..."""
    for partition, count in enumerate(counts):
        log.write(topic, some_records(count), partition, per_batch=10)


def _copied(both: Pair, topic: str, partition: int = 0) -> bool:
    return both.b.read(f"A.{topic}", partition) == both.a.read(topic, partition)


def _place(log: Log, topic: str, *replicas: list[int]) -> None:
    """A topic with one partition for each list of brokers, the first of which leads."""
    admin: Any = KafkaAdminClient(bootstrap_servers=log.bootstrap)
    configs = {"unclean.leader.election.enable": "true"}
    admin.create_topics({topic: {"assignments": dict(enumerate(replicas)), "configs": configs}})
    admin.close()
    for partition in range(len(replicas)):
        log.bounds(topic, partition)


def _until(seen: Callable[[], Any], wanted: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while (now := seen()) != wanted:
        assert time.monotonic() < deadline, f"{now} is not {wanted}"
        time.sleep(0.05)


def _until_led(log: Log, topics: Sequence[str], leader: int, *in_sync: int) -> None:
    """Until the first partitions of these topics have this leader, and these replicas in sync."""
    admin: Any = KafkaAdminClient(bootstrap_servers=log.bootstrap)

    def seen() -> set[tuple[int, ...]]:
        firsts = [topic["partitions"][0] for topic in admin.describe_topics(list(topics))]
        return {(one["leader_id"], *sorted(one["isr_nodes"])) for one in firsts}

    _until(seen, {(leader, *sorted(in_sync))})
    admin.close()


def _elect_uncleanly(
    cluster: Cluster, log: Log, topics: Sequence[str], leader: int, follower: int, meanwhile: Callable[[], None]
) -> None:
    """What is written `meanwhile` is with the leader alone, which goes down; the follower leads on without it."""
    cluster.stop_broker(follower)
    _until_led(log, topics, leader, leader)
    meanwhile()
    cluster.stop_broker(leader)
    cluster.start_broker(follower)
    _until_led(log, topics, follower, follower)


def _lease(flows: Sequence[Flow], log: Log, act: Callable[[], None], pace: float = 0.0) -> list[Outcome]:
    """A lease for each flow: when they have copied all (with a pace: some), `act`; then until all is copied or refused."""

    async def main() -> list[Outcome]:
        works = [Work(flow, "life", 100.0, await prepare(flow), bytes_per_second=pace) for flow in flows]
        copiers = [Copier(work) for work in works]
        leases = [asyncio.create_task(copier.run(signals=False)) for copier in copiers]
        cursors = [cursor for copier in copiers for cursor in copier.cursors]
        async with asyncio.timeout(90):
            while not all(settled(copier) or (pace and copier._records > 300) for copier in copiers):
                await asyncio.sleep(0.01)
            await asyncio.to_thread(act)
            ends = [(one, (await asyncio.to_thread(log.bounds, one.key.topic, one.key.partition))[1]) for one in cursors]
            while not all(one.refusal or (one.position and one.position.source == end) for one, end in ends):
                await asyncio.sleep(0.01)
        for copier in copiers:
            copier.stop()
        return await asyncio.gather(*leases)

    return asyncio.run(main())


# --- unclean elections ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """How it went with a topic whose source lost its end; records by partition."""

    outcome: Outcome
    before: list[Seen]  # what the mirror's first partition held
    source: list[list[Seen]]
    mirror: list[list[Seen]]


@pytest.fixture(scope="module")
def cuts(threes: tuple[Cluster, Cluster], both: Pair) -> dict[str, Cut]:
    """Two elections: in the first all topics lose 50 records of 150, in the second `cut-go` (now `again`) 30 of 210."""
    cluster, a, b = threes[0], both.a, both.b
    flows = {name: _flow(both, name, STRICT if "stop" in name else LENIENT) for name in CUT}
    before: dict[str, list[Seen]] = {}

    def lose(name: str, count: int, end: int, idle: bool) -> None:
        _write(a, name, count)
        if idle:
            copy(flows[name])
        _until(lambda: b.bounds(f"A.{name}")[1], end)
        before[name] = b.read(f"A.{name}")

    def elect() -> None:
        _elect_uncleanly(cluster, a, CUT, 2, 3, lambda: [lose(name, 50, 150, "late" in name) for name in CUT])
        for name in CUT:
            _write(a, name, 20 if "short" in name else 80, 20)

    def cut(name: str, outcome: Outcome) -> Cut:
        sides = ([log.read(one, n) for n in (0, 1)] for log, one in ((a, name), (b, f"A.{name}")))
        return Cut(outcome, before[name], *sides)

    for name in CUT:
        _place(a, name, *FRAGILE)
        _write(a, name, 100, 100)
    for name in CUT[2:]:
        copy(flows[name])
    running = _lease([flows[name] for name in CUT[:2]], a, elect)
    found = {name: cut(name, outcome) for name, outcome in zip(CUT, running, strict=False)}
    found |= {name: cut(name, copy(flows[name])) for name in CUT[2:]}
    cluster.start_broker(2)
    _until_led(a, CUT, 3, 2, 3)
    _elect_uncleanly(cluster, a, CUT, 3, 2, lambda: lose("cut-go", 30, 260, True))
    _write(a, "cut-go", 40, 10)
    found["again"] = cut("cut-go", copy(flows["cut-go"]))
    cluster.start_broker(3)
    _until_led(a, CUT, 2, 2, 3)
    return found


@pytest.mark.parametrize(
    ("name", "reason"),
    [("cut-stop", "source-truncated"), ("cut-late-stop-long", "not-a-copy"), ("cut-late-stop-short", "source-truncated")],
)
def test_a_source_that_has_lost_its_end_stops_the_partition(cuts: dict[str, Cut], name: str, reason: str) -> None:
    one = cuts[name]
    assert (_refusals(one.outcome), _notices(one.outcome)) == ([(0, reason, 150, 150)], [])
    assert one.mirror == [one.before, one.source[1]]
    assert (len(one.before), len(one.source[1])) == (150, 120)


@pytest.mark.parametrize("name", ["cut-go", "cut-late-go-long", "cut-late-go-short"])
def test_a_source_that_has_lost_its_end_is_followed_from_there(cuts: dict[str, Cut], name: str) -> None:
    one = cuts[name]
    assert (_refusals(one.outcome), _notices(one.outcome)) == ([], [(0, "source-truncated", 50, 100, 150)])
    assert one.before[:100] == one.source[0][:100]
    assert one.mirror == [one.before + one.source[0][100:], one.source[1]]


def test_a_source_that_loses_its_end_again_is_followed_from_the_second_place(cuts: dict[str, Cut]) -> None:
    one = cuts["again"]
    assert (_refusals(one.outcome), _notices(one.outcome)) == ([], [(0, "source-truncated", 30, 180, 260)])
    assert one.mirror == [one.before + one.source[0][180:], one.source[1]]


def test_a_mirror_that_loses_its_end_is_copied_again_from_there(
    threes: tuple[Cluster, Cluster], both: Pair, topic: str
) -> None:
    names = [f"{topic}-running", f"{topic}-later"]
    running, later = (_flow(both, name, STRICT) for name in names)
    for name in names:
        both.a.create(name, partitions=2, replicas=3)
        _place(both.b, f"A.{name}", *FRAGILE)
        _write(both.a, name, 100, 100)
    mirrors = [f"A.{name}" for name in names]

    def lose() -> None:
        for name in names:
            _write(both.a, name, 50)
        copy(later)
        for mirror in mirrors:
            _until(lambda mirror=mirror: both.b.bounds(mirror)[1], 150)

    def elect() -> None:
        _elect_uncleanly(threes[1], both.b, mirrors, 2, 3, lose)
        assert [both.b.bounds(mirror)[1] for mirror in mirrors[1:]] == [100]
        for name in names:
            _write(both.a, name, 30, 30)

    copy(later)
    (through,) = _lease([running], both.a, elect)
    assert (_refusals(through), _notices(through)) == ([], [(0, "mirror-truncated", 50, 100, 100)])
    assert copy(later).refusals == ()
    for name, partition in itertools.product(names, (0, 1)):
        assert _copied(both, name, partition)
    threes[1].start_broker(2)
    _until_led(both.b, mirrors, 3, 2, 3)


# --- retention -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policies", [Policies(), STRICT], ids=["go", "stop"])
def test_retention_that_has_overtaken_the_copier_is_told(both: Pair, topic: str, policies: Policies) -> None:
    both.a.create(topic, partitions=2)
    _write(both.a, topic, 100, 100)
    flow = _flow(both, topic, policies)
    copy(flow)
    first = both.a.read(topic)
    _write(both.a, topic, 100, 100)
    both.a.delete_before(topic, 0, 150)
    outcome = copy(flow)
    if policies.data_loss == CONTINUE:
        assert (_refusals(outcome), _notices(outcome)) == ([], [(0, "data-loss", 50, 150, 100)])
        assert both.b.read(f"A.{topic}") == first + both.a.read(topic)
    else:
        assert (_refusals(outcome), _notices(outcome)) == ([(0, "data-loss", 100, 100)], [])
        assert both.b.read(f"A.{topic}") == first
    assert _copied(both, topic, 1)


def test_retention_that_overtakes_the_copier_in_a_lease_is_told(both: Pair, topic: str) -> None:
    names = [f"{topic}-go", f"{topic}-stop"]
    slow = Reading(max_partition_fetch_bytes=2000)
    flows = [replace(_flow(both, one, policies), reading=slow) for one, policies in zip(names, (LENIENT, STRICT))]
    for name in names:
        both.a.create(name, partitions=2)
        both.a.write(name, some_records(5000))
        _write(both.a, name, 0, 10)
    records = [both.a.read(name) for name in names]

    def act() -> None:
        for name in names:
            both.a.delete_before(name, 0, 4500)
            _write(both.a, name, 0, 10)

    went_on, stopped = _lease(flows, both.a, act, pace=100_000)
    mirrors = [both.b.read(f"A.{name}") for name in names]
    n, m = len(mirrors[0]) - 500, len(mirrors[1])
    assert (_refusals(went_on), _notices(went_on)) == ([], [(0, "data-loss", 4500 - n, 4500, n)])
    assert mirrors[0] == records[0][:n] + records[0][4500:]
    assert (_refusals(stopped), _notices(stopped)) == ([(0, "data-loss", m, m)], [])
    assert mirrors[1] == records[1][:m]
    assert all(_copied(both, name, 1) for name in names)


# --- topics that are deleted and made again --------------------------------------------------------------------------


def _recreate(log: Log, topic: str, count: int) -> None:
    log.delete(topic)
    log.create(topic)
    _write(log, topic, count)


@pytest.mark.parametrize("count", [40, 160])
@pytest.mark.parametrize("policies", [Policies(), LENIENT], ids=["stop", "go"])
@pytest.mark.parametrize("running", [False, True])
def test_a_source_topic_that_is_created_again_is_told(
    both: Pair, topic: str, count: int, policies: Policies, running: bool
) -> None:
    other = f"{topic}-other"
    flow = _flow(both, topic, policies)
    for name in (topic, other):
        both.a.create(name)
        _write(both.a, name, 100)
    copy(flow)
    first = both.a.read(topic)

    def act() -> None:
        _recreate(both.a, topic, count)
        _write(both.a, other, 10)

    (outcome,) = _lease([flow], both.a, act) if running else [(act(), copy(flow))[1]]
    if policies.recreated_topic == CONTINUE:
        assert (_refusals(outcome), _notices(outcome)) == ([], [(0, "recreated-topic", 0, 0, 100)])
        _write(both.a, topic, 10)
        assert copy(flow).notices == ()
        assert both.b.read(f"A.{topic}") == first + both.a.read(topic)
    else:
        assert (_refusals(outcome), _notices(outcome)) == ([(0, "recreated-topic", 100, 100)], [])
        assert both.b.read(f"A.{topic}") == first
    assert _copied(both, other)


def test_a_mirror_that_was_deleted_is_copied_again_from_the_sources_start(both: Pair, topic: str) -> None:
    both.a.create(topic, partitions=2)
    flow = _flow(both, topic, STRICT)
    _write(both.a, topic, 100, 100)
    copy(flow)
    both.a.delete_before(topic, 0, 30)
    both.b.delete(f"A.{topic}")
    _write(both.a, topic, 10, 10)
    outcome = copy(flow)
    assert (_refusals(outcome), sorted(_notices(outcome))) == (
        [],
        [(0, "mirror-recreated", 0, 30, 0), (1, "mirror-recreated", 0, 0, 0)],
    )
    assert (_copied(both, topic), _copied(both, topic, 1)) == (True, True)
    assert both.b.bounds(f"A.{topic}") == (0, 80)


@pytest.mark.parametrize("pace", [0.0, 100_000.0], ids=["idle", "busy"])
def test_a_mirror_that_is_deleted_in_a_lease_is_copied_again(both: Pair, topic: str, pace: float) -> None:
    """The new mirror has the same leader, so that nothing but its contents shows that it is another one."""
    mirror = f"A.{topic}"
    both.a.create(topic, partitions=2)
    _place(both.b, mirror, [1, 2], [2, 3])
    both.a.write(topic, some_records(3000))
    flow = replace(_flow(both, topic, STRICT), reading=Reading(max_partition_fetch_bytes=2000))

    def act() -> None:
        both.b.delete(mirror)
        _place(both.b, mirror, [1, 2], [2, 3])
        _write(both.a, topic, 50, 50)

    (outcome,) = _lease([flow], both.a, act, pace)
    assert (_refusals(outcome), _notices(outcome)[:1]) == ([], [(0, "mirror-recreated", 0, 0, 0)])
    assert (_copied(both, topic), _copied(both, topic, 1)) == (True, True)


# --- others who write to the mirror ----------------------------------------------------------------------------------


def _intrude(log: Log, topic: str, count: int) -> None:
    log.write(topic, [Record(0, 1, b"foreign", b"%d" % number) for number in range(count)])


def _ours(log: Log, mirror: str) -> tuple[list[Seen], int]:
    """What the mirror holds beside the records of others, and how many those are."""
    everything = log.read(mirror)
    ours = [one for one in everything if one.key != b"foreign"]
    return ours, len(everything) - len(ours)


def _transactions(log: Log, topic: str, count: int) -> None:
    """Small ones, committed and aborted, so that there are holes everywhere."""
    producer: Any = KafkaProducer(bootstrap_servers=log.bootstrap, transactional_id=topic)
    producer.init_transactions()
    for number in range(count):
        producer.begin_transaction()
        for which in range(4):
            producer.send(topic, b"%d-%d" % (number, which), partition=0)
        producer.commit_transaction() if number % 3 else producer.abort_transaction()
    producer.close()


def test_a_foreign_write_stops_the_partition_or_is_copied_around_time_and_again(both: Pair, topic: str) -> None:
    both.a.create(topic, partitions=2)
    _write(both.a, topic, 100, 100)
    copy(_flow(both, topic))
    _intrude(both.b, f"A.{topic}", 7)
    _write(both.a, topic, 50, 50)
    outcome = copy(_flow(both, topic, Policies()))
    assert (_refusals(outcome), _notices(outcome)) == ([(0, "foreign-writer", 107, 107)], [])
    assert (both.b.bounds(f"A.{topic}"), _copied(both, topic, 1)) == ((0, 107), True)
    outcome = copy(_flow(both, topic))
    assert (_refusals(outcome), _notices(outcome)) == ([], [(0, "foreign-writer", 7, 100, 107)])
    _write(both.a, topic, 50)
    assert _notices(copy(_flow(both, topic))) == []
    assert _ours(both.b, f"A.{topic}") == (both.a.read(topic), 7)
    _intrude(both.b, f"A.{topic}", 300)
    _write(both.a, topic, 50)
    outcome = copy(_flow(both, topic))
    assert (_refusals(outcome), _notices(outcome)) == ([], [(0, "foreign-writer", 300, 200, 507)])
    assert _ours(both.b, f"A.{topic}") == (both.a.read(topic), 307)


@pytest.mark.parametrize("holes", [False, True])
def test_foreign_writes_between_batches_under_way_are_copied_around(both: Pair, topic: str, holes: bool) -> None:
    both.a.create(topic, partitions=2)
    if holes:
        _transactions(both.a, topic, 300)
    else:
        _write(both.a, topic, 5000)

    def act() -> None:
        for _ in range(20):
            _intrude(both.b, f"A.{topic}", 3)
        _write(both.a, topic, 10, 10)

    flow = replace(_flow(both, topic), reading=Reading(max_partition_fetch_bytes=20_000))
    (outcome,) = _lease([flow], both.a, act, pace=20_000 if holes else 300_000)
    assert _refusals(outcome) == []
    assert _ours(both.b, f"A.{topic}") == (both.a.read(topic), 60)
    assert {one.kind for one in outcome.notices} == {"foreign-writer"}
    assert sum(one.count for one in outcome.notices) == 60
    assert _copied(both, topic, 1)
    _write(both.a, topic, 10)
    assert copy(flow).notices == ()
    assert _ours(both.b, f"A.{topic}") == (both.a.read(topic), 60)


@pytest.mark.parametrize("also", ["recreated-topic", "data-loss"])
def test_a_foreign_write_hides_nothing_else(both: Pair, topic: str, also: str) -> None:
    both.a.create(topic)
    _write(both.a, topic, 100)
    copy(_flow(both, topic))
    first = both.a.read(topic)
    _intrude(both.b, f"A.{topic}", 50)
    if also == "recreated-topic":
        _recreate(both.a, topic, 200)
    else:
        _write(both.a, topic, 100)
        both.a.delete_before(topic, 0, 120)
    outcome = copy(_flow(both, topic))
    assert _refusals(outcome) == []
    assert {one.kind for one in outcome.notices} == {"foreign-writer", also}
    assert _ours(both.b, f"A.{topic}") == (first + both.a.read(topic), 50)


def test_what_was_told_is_not_told_again_by_the_next_lease(both: Pair, topic: str) -> None:
    names = [f"{topic}-{name}" for name in ("deleted", "recreated", "foreign")]
    for name in names:
        both.a.create(name)
        _write(both.a, name, 100)
    copy(_flow(both, topic))
    _write(both.a, names[0], 50)
    both.a.delete_before(names[0], 0, 150)
    _recreate(both.a, names[1], 0)
    _intrude(both.b, f"A.{names[2]}", 5)
    assert sorted(one.kind for one in copy(_flow(both, topic)).notices) == ["data-loss", "foreign-writer", "recreated-topic"]
    again = copy(_flow(both, topic))
    assert (again.refusals, again.notices) == ((), ())


# --- leaders that move, partitions that are added --------------------------------------------------------------------


def test_source_leaders_that_move_while_a_topic_with_holes_is_copied(both: Pair, topic: str) -> None:
    _place(both.a, topic, [1, 2, 3], [1, 2, 3])
    _transactions(both.a, topic, 300)
    admin: Any = KafkaAdminClient(bootstrap_servers=both.a.bootstrap)

    def act() -> None:
        for order in ([2, 3, 1], [3, 1, 2], [1, 2, 3]):
            admin.alter_partition_reassignments({TopicPartition(topic, 0): order})
            _until(lambda: admin.list_partition_reassignments(), {})
            admin.elect_leaders(0, {topic: [0]})
            _until_led(both.a, [topic], order[0], 1, 2, 3)
            _write(both.a, topic, 5, 5)

    flow = replace(_flow(both, topic, STRICT), reading=Reading(max_partition_fetch_bytes=1000))
    (outcome,) = _lease([flow], both.a, act, pace=25_000)
    admin.close()
    assert (_refusals(outcome), _notices(outcome)) == ([], [])
    assert (_copied(both, topic), _copied(both, topic, 1)) == (True, True)


def test_target_brokers_that_restart_while_holes_are_written_down(
    threes: tuple[Cluster, Cluster], both: Pair, topic: str
) -> None:
    both.a.create(topic, partitions=2)

    def act() -> None:
        over = threading.Event()

        def write() -> None:
            while not over.is_set():
                _transactions(both.a, topic, 5)

        writing = threading.Thread(target=write)
        writing.start()
        for broker in (1, 2, 3):
            threes[1].stop_broker(broker)
            threes[1].start_broker(broker)
        over.set()
        writing.join()
        _write(both.a, topic, 5, 5)

    (outcome,) = _lease([_flow(both, topic, STRICT)], both.a, act)
    assert (_refusals(outcome), _notices(outcome)) == ([], [])
    assert (_copied(both, topic), _copied(both, topic, 1)) == (True, True)
    assert both.b.bounds(f"A.{topic}")[1] > 50


def test_partitions_that_are_added_are_copied_by_the_next_lease(both: Pair, topic: str) -> None:
    both.a.create(topic, partitions=2)
    _write(both.a, topic, 10, 10)
    copy(_flow(both, topic))
    both.a.grow(topic, 4)
    _write(both.a, topic, 10, 10, 20, 30)
    outcome = copy(_flow(both, topic, STRICT))
    assert (outcome.records, outcome.refusals, outcome.notices) == (70, (), ())
    assert [_copied(both, topic, partition) for partition in range(4)] == [True] * 4


# --- a source without topic ids --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [40, 160])
@pytest.mark.parametrize("policies", [STRICT, LENIENT], ids=["stop", "go"])
@pytest.mark.parametrize("running", [False, True])
def test_an_old_source_topic_that_is_created_again_is_told(
    both: Pair, old: Log, topic: str, count: int, policies: Policies, running: bool
) -> None:
    mixed = Pair(old, both.b)
    flow = replace(_flow(mixed, topic, policies), reading=Reading(fetch_max_wait=3.0))
    other = f"{topic}-other"
    for name in (topic, other):
        old.create(name)
        _write(old, name, 100)
    copy(flow)
    first = old.read(topic)

    def act() -> None:
        _recreate(old, topic, count)
        _write(old, other, 10)

    (outcome,) = _lease([flow], old, act) if running else [(act(), copy(flow))[1]]
    reason = "source-truncated" if count < 100 else "recreated-topic"
    if policies == LENIENT:
        assert (_refusals(outcome), _notices(outcome)) == ([], [(0, reason, 100, 0, 100)])
        assert both.b.read(f"A.{topic}") == first + old.read(topic)
    else:
        assert (_refusals(outcome), _notices(outcome)) == ([(0, reason, 100, 100)], [])
        assert both.b.read(f"A.{topic}") == first
    assert _copied(mixed, other)
