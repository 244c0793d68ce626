"""`client.rack`: records are fetched from a replica in the same rack (KIP-392), and nothing is lost or repeated."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from kafka import KafkaAdminClient, TopicPartition

import heliograph.copy.reader
from faults.topics import (
    RACKS,
    STRICT,
    Clusters,
    create_with_holes,
    flow_of,
    is_copied,
    lease_with,
    reported,
    until_equal,
    write_records,
)
from heliograph.model.partitions import TopicPartition as Place
from heliograph.wire.fetch import FetchPartition, FetchSession, Limits
from heliograph.wire.fetch_response import Fetched
from logs import Pair
from waiting import until

_LEADER, _FOLLOWER = 1, 2


class Served:
    """Bytes of records that each broker has sent, by the connections that they came through."""

    def __init__(self, clusters: Clusters) -> None:
        self._brokers = {clusters[0].port(broker): broker for broker in clusters[0].broker_ids}
        self.bytes: Counter[int] = Counter()

    def add(self, address: str, answers: Iterable[Fetched]) -> None:
        self.bytes[self._brokers[int(address.rpartition(":")[2])]] += sum(len(answer.data) for answer in answers)


@pytest.fixture
def served(threes: Clusters, monkeypatch: pytest.MonkeyPatch) -> Served:
    served = Served(threes)

    class Spied(FetchSession):
        async def fetch(
            self, changed: Iterable[FetchPartition], dropped: Iterable[Place], limits: Limits
        ) -> list[Fetched]:
            answers = await super().fetch(changed, dropped, limits)
            served.add(self._connection.address, answers)
            return answers

    monkeypatch.setattr(heliograph.copy.reader, "FetchSession", Spied)
    return served


def _create(both: Pair, topic: str) -> None:
    both.a.create(topic, replicas=3)
    _move(both, topic, [_LEADER, _FOLLOWER])


def _move(both: Pair, topic: str, replicas: list[int]) -> None:
    """Give the first partition these replicas; the first one leads."""
    admin: Any = KafkaAdminClient(bootstrap_servers=both.a.bootstrap)
    try:
        admin.alter_partition_reassignments({TopicPartition(topic, 0): replicas})
        until_equal(admin.list_partition_reassignments, {})
        admin.elect_leaders(0, {topic: [0]})
        both.a.until_led([topic], replicas[0], *sorted(replicas))
    finally:
        admin.close()


def test_without_a_rack_the_leader_serves_all(both: Pair, topic: str, served: Served) -> None:
    _create(both, topic)
    write_records(both.a, topic, 50)
    (outcome,) = lease_with([flow_of(both, topic, STRICT)], both.a, lambda: write_records(both.a, topic, 50))
    assert reported(outcome) == ([], [])
    assert is_copied(both, topic)
    assert set(served.bytes) == {_LEADER}


def test_a_follower_in_the_same_rack_serves_all(both: Pair, topic: str, served: Served) -> None:
    _create(both, topic)
    write_records(both.a, topic, 50)
    both.a.transaction(topic, 20, commit=False)
    open_producer = both.a.transaction(topic, 20, commit=None)

    def act() -> None:
        write_records(both.a, topic, 50)
        open_producer.commit_transaction()
        open_producer.close()
        write_records(both.a, topic, 50)

    flow = flow_of(both, topic, STRICT, rack=RACKS[_FOLLOWER - 1], max_partition_fetch_bytes=2000)
    (outcome,) = lease_with([flow], both.a, act)
    assert reported(outcome) == ([], [])
    assert is_copied(both, topic)
    assert served.bytes[_LEADER] == 0
    assert served.bytes[_FOLLOWER] > 10_000


def test_copying_continues_from_the_leader_when_the_follower_dies(
    threes: Clusters, both: Pair, topic: str, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heliograph.copy.reader, "_AVOID_FOLLOWERS_FOR", 1.0)
    _create(both, topic)
    write_records(both.a, topic, 500)
    by_leader = 0

    def act() -> None:
        nonlocal by_leader
        threes[0].kill(_FOLLOWER)
        both.a.until_led([topic], _LEADER, _LEADER)
        write_records(both.a, topic, 200)
        until(lambda: served.bytes[_LEADER] > 0)
        by_leader = served.bytes[_LEADER]
        threes[0].start_broker(_FOLLOWER)
        both.a.until_led([topic], _LEADER, _LEADER, _FOLLOWER)
        before = served.bytes[_FOLLOWER]

        def is_served_by_follower() -> bool:
            write_records(both.a, topic, 10)
            return served.bytes[_FOLLOWER] > before

        until(is_served_by_follower)

    flow = flow_of(both, topic, STRICT, rack=RACKS[_FOLLOWER - 1], max_partition_fetch_bytes=4000)
    (outcome,) = lease_with([flow], both.a, act, bytes_per_second=200_000)
    assert reported(outcome) == ([], [])
    assert is_copied(both, topic)
    assert by_leader > 0


def test_leaders_and_replicas_move_while_a_topic_with_holes_is_read_from_followers(
    both: Pair, topic: str, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heliograph.copy.reader, "_AVOID_FOLLOWERS_FOR", 0.5)
    monkeypatch.setattr(heliograph.copy.reader, "_FOLLOWER_FOR", 1.0)
    create_with_holes(both.a, topic)
    _move(both, topic, [1, 2])

    def act() -> None:
        for replicas in ([2, 3], [3, 2], [1, 2], [1, 3]):
            _move(both, topic, replicas)
            write_records(both.a, topic, 5)

    flow = flow_of(both, topic, STRICT, rack=RACKS[_FOLLOWER - 1], max_partition_fetch_bytes=4000)
    (outcome,) = lease_with([flow], both.a, act, bytes_per_second=100_000)
    assert reported(outcome) == ([], [])
    assert is_copied(both, topic)
    assert served.bytes[_FOLLOWER] > 0
