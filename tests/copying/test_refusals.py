"""What the copier must not copy stops that partition with a refusal, at the right offset, and no other."""

import asyncio
from typing import Any

import pytest

from copying.lease import copy, only
from heliograph.copy.work import Outcome
from heliograph.model.problems import Refusal
from heliograph.wire.append import PartitionBatch, append
from heliograph.wire.batches import mirror_header, sequence, split
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import encode
from logs import Log, Pair, some_records


def _only_refusal(outcome: Outcome) -> Refusal:
    (refusal,) = outcome.refusals
    return refusal


def test_a_foreign_writer_is_detected_while_copying(pair: Pair, topic: str) -> None:
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
    assert (refusal.reason, refusal.target_offset) == ("foreign-writer", 201)


def _write_both(pair: Pair, topic: str) -> None:
    pair.b.write(f"A.{topic}", some_records(1))
    pair.a.write(topic, some_records(100))


def test_a_foreign_writer_is_detected_at_the_next_start(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    flow = only(pair.flow(), topic)
    pair.a.write(topic, some_records(100))
    copy(flow)
    pair.b.write(f"A.{topic}", some_records(1))
    pair.a.write(topic, some_records(10))
    refusal = _only_refusal(copy(flow))
    assert (refusal.reason, refusal.target_offset) == ("foreign-writer", 101)
    assert pair.b.bounds(f"A.{topic}") == (0, 101)


def test_a_mirror_of_unknown_origin_is_not_changed(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.b.create(f"A.{topic}")
    pair.a.write(topic, some_records(10))
    pair.b.write(f"A.{topic}", some_records(3))
    assert _only_refusal(copy(only(pair.flow(), topic))).reason == "unknown-origin"
    assert pair.b.bounds(f"A.{topic}") == (0, 3)


def test_a_recreated_source_topic_is_not_copied_as_the_old_one(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    flow = only(pair.flow(), topic)
    pair.a.write(topic, some_records(10))
    copy(flow)
    pair.a.delete(topic)
    pair.a.create(topic)
    pair.a.write(topic, some_records(50))
    assert _only_refusal(copy(flow)).reason == "recreated-topic"
    assert pair.b.bounds(f"A.{topic}") == (0, 10)


def test_a_topic_that_is_recreated_while_it_is_copied_is_detected(pair: Pair, topic: str) -> None:
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
        connection = await client.connection(leader)
        for number in range(6):
            head = mirror_header(batch, (1 << 62) + 1, sequence(wrap + number * 20))
            (answer,) = await append(connection, [PartitionBatch(topic, 0, [head, batch.records])], 10.0)
            assert (answer.error, answer.base_offset) == (0, number * 20)
        client.close()

    asyncio.run(main())
