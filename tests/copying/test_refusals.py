"""What the copier cannot copy as it is stops that partition loudly, at the right offset, and no other."""

import asyncio
import time
from typing import Any

import pytest
from kafka import KafkaProducer

from copying.lease import copy, only
from heliograph.copy.work import Outcome, Refusal
from heliograph.wire.append import append
from heliograph.wire.batches import rewrite, sequence, split
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import encode
from logs import Log, Pair, Record, some_records


def _only_refusal(outcome: Outcome) -> Refusal:
    (refusal,) = outcome.refusals
    return refusal


def _transaction(log: Log, topic: str, name: str, count: int, commit: bool = True) -> None:
    producer: Any = KafkaProducer(bootstrap_servers=log.bootstrap, transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(count):
        producer.send(topic, str(number).encode(), partition=0)
    producer.flush()
    if commit:
        producer.commit_transaction()
    else:
        producer.abort_transaction()
    producer.close()


def test_a_transaction_stops_its_partition_and_no_other(pair: Pair, topic: str) -> None:
    pair.a.create(topic, partitions=2)
    pair.a.write(topic, some_records(200))
    _transaction(pair.a, topic, topic, 5)
    pair.a.write(topic, some_records(40), partition=1)
    outcome = copy(only(pair.flow(), topic))
    refusal = _only_refusal(outcome)
    assert (refusal.partition.partition, refusal.reason) == (0, "transaction")
    assert (refusal.source_offset, refusal.target_offset) == (200, 200)
    assert pair.b.read(f"A.{topic}", 1) == pair.a.read(topic, 1)
    assert pair.b.bounds(f"A.{topic}", 0) == (0, 200)


def test_a_lone_transaction_marker_stops_the_partition(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    _transaction(pair.a, topic, topic, 1, commit=False)
    # An abort is answered before its marker is in the log; until then nothing can be deleted.
    while pair.a.bounds(topic)[1] < 2:
        time.sleep(0.05)
    pair.a.delete_before(topic, 0, 1)
    refusal = _only_refusal(copy(only(pair.flow(), topic)))
    assert refusal.reason == "transaction"
    assert "marker" in refusal.text


def test_a_hole_left_by_compaction_stops_the_partition(pair: Pair, topic: str) -> None:
    pair.a.create(
        topic,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.001",
        max_compaction_lag_ms="100",
        segment_bytes="1048576",
    )
    pair.a.write(topic, [Record(0, int(time.time() * 1000), b"same", str(n).encode()) for n in range(300)])
    deadline = time.monotonic() + 60
    while sum(count for count, _codec in pair.a.boundaries(topic)) >= 250:
        assert time.monotonic() < deadline, "the broker has not compacted the topic"
        pair.a.write(topic, [Record(0, int(time.time() * 1000), b"other", b"roll")])
        time.sleep(1)
    refusal = _only_refusal(copy(only(pair.flow(), topic)))
    assert refusal.reason == "hole"


def test_a_source_that_stamps_on_arrival_is_refused(pair: Pair, topic: str) -> None:
    pair.a.create(topic, message_timestamp_type="LogAppendTime")
    pair.a.write(topic, some_records(10))
    assert _only_refusal(copy(only(pair.flow(), topic))).reason == "log-append-time"


def test_a_batch_that_the_target_refuses_is_named_with_the_brokers_word(pair: Pair, topic: str) -> None:
    pair.a.create(topic, max_message_bytes="3000000")
    pair.b.create(f"A.{topic}", max_message_bytes="50000")
    pair.a.write(topic, some_records(100))
    pair.a.write(topic, [Record(0, 1, b"big", b"x" * 100_000)])
    pair.a.write(topic, some_records(10))
    refusal = _only_refusal(copy(only(pair.flow(), topic)))
    assert (refusal.reason, refusal.source_offset) == ("refused-by-target", 100)
    assert "MESSAGE_TOO_LARGE" in refusal.text
    assert pair.b.bounds(f"A.{topic}") == (0, 100)


def test_a_foreign_writer_on_the_mirror_is_noticed_while_copying(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    flow = only(pair.flow(), topic)
    pair.a.write(topic, some_records(100))
    intruded = False

    def intrude(copier: Any) -> bool:
        nonlocal intruded
        (cursor,) = copier.cursors
        if not intruded and cursor.position is not None and cursor.position.target == 100:
            intruded = True
            asyncio.get_running_loop().run_in_executor(None, _write_both, pair, topic)
        return cursor.refusal is not None

    refusal = _only_refusal(copy(flow, intrude))
    assert (refusal.reason, refusal.target_offset) == ("foreign-writer", 100)


def _write_both(pair: Pair, topic: str) -> None:
    pair.b.write(f"A.{topic}", some_records(1))
    pair.a.write(topic, some_records(100))


def test_a_foreign_writer_on_the_mirror_is_noticed_at_the_next_start(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    flow = only(pair.flow(), topic)
    pair.a.write(topic, some_records(100))
    copy(flow)
    pair.b.write(f"A.{topic}", some_records(1))
    pair.a.write(topic, some_records(10))
    refusal = _only_refusal(copy(flow))
    assert (refusal.reason, refusal.target_offset) == ("source-truncated", 101) or refusal.reason == "foreign-writer"
    assert pair.b.bounds(f"A.{topic}") == (0, 101)


def test_a_mirror_of_unknown_origin_is_left_alone(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.b.create(f"A.{topic}")
    pair.a.write(topic, some_records(10))
    pair.b.write(f"A.{topic}", some_records(3))
    assert _only_refusal(copy(only(pair.flow(), topic))).reason == "unknown-origin"
    assert pair.b.bounds(f"A.{topic}") == (0, 3)


def test_records_lost_to_retention_are_said_and_not_jumped_over(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    flow = only(pair.flow(), topic)
    pair.a.write(topic, some_records(100))
    copy(flow)
    pair.a.write(topic, some_records(100))
    pair.a.delete_before(topic, 0, 150)
    refusal = _only_refusal(copy(flow))
    assert (refusal.reason, refusal.source_offset) == ("data-loss", 100)
    assert "50 records" in refusal.text


def test_a_source_topic_that_was_created_again_is_not_taken_for_the_old_one(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    flow = only(pair.flow(), topic)
    pair.a.write(topic, some_records(10))
    copy(flow)
    pair.a.delete(topic)
    pair.a.create(topic)
    pair.a.write(topic, some_records(50))
    assert _only_refusal(copy(flow)).reason == "recreated-topic"
    assert pair.b.bounds(f"A.{topic}") == (0, 10)


def test_a_topic_that_is_created_again_while_it_is_copied_is_noticed(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    flow = only(pair.flow(), topic)
    pair.a.write(topic, some_records(10))
    done = False

    def recreate(copier: Any) -> bool:
        nonlocal done
        (cursor,) = copier.cursors
        if not done and cursor.position is not None and cursor.position.source == 10:
            done = True
            asyncio.get_running_loop().run_in_executor(None, _recreate, pair.a, topic)
        return cursor.refusal is not None

    assert _only_refusal(copy(flow, recreate)).reason == "recreated-topic"
    assert pair.b.bounds(f"A.{topic}") == (0, 10)


def _recreate(log: Log, topic: str) -> None:
    log.delete(topic)
    log.create(topic)
    log.write(topic, some_records(50))


@pytest.mark.parametrize("wrap", [2**31 - 30, 2**32 - 1])
def test_sequences_wrap_without_a_break(pair: Pair, topic: str, wrap: int) -> None:
    """A broker accepts a batch across the wrap, which no test can reach by copying two billion records."""
    pair.b.create(topic)
    (batch,) = split(encode(some_records(20)))

    async def main() -> None:
        client = ClusterClient(pair.b.cluster)
        leader = (await client.metadata([topic])).topics[topic].leaders[0]
        connection = await client.to(leader)
        for number in range(6):
            head = rewrite(batch, (1 << 62) + 1, sequence(wrap + number * 20))
            (answer,) = await append(connection, [(topic, 0, [head, batch.records])], 10.0)
            assert (answer.error, answer.base_offset) == (0, number * 20)
        client.close()

    asyncio.run(main())
