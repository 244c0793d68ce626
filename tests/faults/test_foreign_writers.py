"""Others who write to a mirror."""

import time

import pytest

from copying.lease import copy
from faults.topics import STRICT, create_with_holes, flow_of, is_copied, lease_with, reported, write_records
from heliograph.wire.records import encode
from logs import Log, Pair, Record, Seen


def _intrude(pair: Pair, topic: str, count: int, ours: int = 0) -> None:
    """Write to the mirror, and then to its source."""
    pair.b.write(f"A.{topic}", [Record(0, 1, b"foreign", b"%d" % number) for number in range(count)])
    write_records(pair.a, topic, ours)


def _ours(log: Log, mirror: str) -> tuple[list[Seen], int]:
    """What the mirror holds beside the records of others, and how many those are."""
    everything = log.read(mirror)
    ours = [record for record in everything if record.key != b"foreign"]
    return ours, len(everything) - len(ours)


def test_every_foreign_write_stops_the_partition_or_is_skipped(both: Pair, topic: str) -> None:
    mirror = f"A.{topic}"
    both.a.create(topic, partitions=2)
    write_records(both.a, topic, 100, 100)
    copy(flow_of(both, topic))
    _intrude(both, topic, 7, ours=50)
    write_records(both.a, topic, 0, 50)
    assert reported(copy(flow_of(both, topic, STRICT))) == ([(0, "foreign-writer", 107, 107)], [])
    assert both.b.bounds(mirror) == (0, 107)
    assert is_copied(both, topic, 1)
    assert reported(copy(flow_of(both, topic))) == ([], [(0, "foreign-writer", 7, 100, 107)])
    write_records(both.a, topic, 50)
    assert reported(copy(flow_of(both, topic))) == ([], [])
    assert _ours(both.b, mirror) == (both.a.read(topic), 7)
    _intrude(both, topic, 300, ours=50)
    assert reported(copy(flow_of(both, topic))) == ([], [(0, "foreign-writer", 300, 200, 507)])
    assert _ours(both.b, mirror) == (both.a.read(topic), 307)


@pytest.mark.parametrize("how", ["now and then", "where there are holes", "all the time"])
def test_foreign_writes_between_batches_in_flight_are_skipped(both: Pair, topic: str, how: str) -> None:
    both.a.create(f"{topic}-other")
    if how == "where there are holes":
        create_with_holes(both.a, topic)
    else:
        both.a.create(topic)
        write_records(both.a, topic, 5000)

    def act() -> None:
        if how == "all the time":
            enough = time.monotonic() + 1.0  # for several seconds on end it would be given up
            while time.monotonic() < enough:
                both.b.append(f"A.{topic}", [encode([Record(0, 1, b"foreign", b"")])] * 20)
        else:
            for _ in range(20):
                _intrude(both, topic, 3)
        for name in (topic, f"{topic}-other"):
            write_records(both.a, name, 10)

    flow = flow_of(both, topic, max_partition_fetch_bytes=20_000)
    (outcome,) = lease_with([flow], both.a, act, bytes_per_second=300_000)
    assert is_copied(both, f"{topic}-other")
    assert outcome.refusals == ()
    ours, foreign = _ours(both.b, f"A.{topic}")
    assert ours == both.a.read(topic)
    assert {notice.kind for notice in outcome.notices} == {"foreign-writer"}
    assert sum(notice.count for notice in outcome.notices) == foreign
    write_records(both.a, topic, 10)
    assert reported(copy(flow)) == ([], [])
    assert _ours(both.b, f"A.{topic}") == (both.a.read(topic), foreign)


@pytest.mark.parametrize("also", ["recreated-topic", "data-loss"])
def test_a_foreign_write_hides_nothing_else(both: Pair, topic: str, also: str) -> None:
    both.a.create(topic)
    write_records(both.a, topic, 100)
    copy(flow_of(both, topic))
    first = both.a.read(topic)
    _intrude(both, topic, 50)
    if also == "recreated-topic":
        both.a.recreate(topic, 200)
    else:
        write_records(both.a, topic, 100)
        both.a.delete_before(topic, 0, 120)
    outcome = copy(flow_of(both, topic))
    assert outcome.refusals == ()
    assert _ours(both.b, f"A.{topic}") == (first + both.a.read(topic), 50)
    lost = 20 if also == "data-loss" else 0
    assert {notice.kind: notice.count for notice in outcome.notices} == {"foreign-writer": 50, also: lost}


@pytest.mark.parametrize("what", ["data-loss", "recreated-topic", "foreign-writer", "foreign-writer before us"])
def test_the_next_lease_does_not_report_the_same_again(both: Pair, topic: str, what: str) -> None:
    """Though nothing has been copied since."""
    both.a.create(topic)
    write_records(both.a, topic, 100)
    flow = flow_of(both, topic)
    copy(flow)
    if what == "foreign-writer before us":  # a batch of ours is the last one, but not where it was meant to be
        (outcome,) = lease_with([flow], both.a, lambda: _intrude(both, topic, 5, ours=10))
    else:
        if what == "data-loss":
            write_records(both.a, topic, 50)
            both.a.delete_before(topic, 0, 150)
        elif what == "recreated-topic":
            both.a.recreate(topic, 0)
        else:
            _intrude(both, topic, 5)
        outcome = copy(flow)
    assert [notice.kind for notice in outcome.notices] == [what.removesuffix(" before us")]
    assert reported(copy(flow)) == ([], [])
