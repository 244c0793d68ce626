"""Leaders that move, brokers that restart, partitions that are added."""

import itertools
import threading
from typing import Any

from kafka import KafkaAdminClient, TopicPartition

from copying.lease import copy
from faults.topics import (
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
from logs import PATIENCE, Pair


def test_a_topic_with_holes_is_copied_while_source_leaders_move(both: Pair, topic: str) -> None:
    create_with_holes(both.a, topic)
    both.a.create(f"{topic}-other")
    admin: Any = KafkaAdminClient(bootstrap_servers=both.a.bootstrap)

    def act() -> None:
        for order in ([2, 3], [3, 1], [1, 2]):  # the leader has no replica any more
            admin.alter_partition_reassignments({TopicPartition(topic, 0): order})
            until_equal(admin.list_partition_reassignments, {})
            admin.elect_leaders(0, {topic: [0]})
            both.a.until_led([topic], order[0], *sorted(order))
            write_records(both.a, topic, 5)
        write_records(both.a, f"{topic}-other", 5)

    flow = flow_of(both, topic, STRICT, max_partition_fetch_bytes=4000)
    (outcome,) = lease_with([flow], both.a, act, bytes_per_second=100_000)
    admin.close()
    assert reported(outcome) == ([], [])
    write_records(both.a, topic, 5)
    assert reported(copy(flow)) == ([], [])  # which finds its position by the ledger
    assert is_copied(both, topic)
    assert is_copied(both, f"{topic}-other")


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
        write_records(both.a, topic, 5, 5)

    (outcome,) = lease_with([flow_of(both, topic, STRICT)], both.a, act)
    assert reported(outcome) == ([], [])
    write_records(both.a, topic, 5)
    assert reported(copy(flow_of(both, topic, STRICT))) == ([], [])
    assert is_copied(both, topic, 0, 1)
    assert both.b.bounds(f"A.{topic}")[1] > 50


def test_added_partitions_are_copied_by_the_next_lease(both: Pair, topic: str) -> None:
    both.a.create(topic, partitions=2)
    write_records(both.a, topic, 10, 10)
    copy(flow_of(both, topic))
    both.a.grow(topic, 4)
    write_records(both.a, topic, 10, 10, 20, 30)
    outcome = copy(flow_of(both, topic, STRICT))
    assert (outcome.records, reported(outcome)) == (70, ([], []))
    assert is_copied(both, topic, 0, 1, 2, 3)
