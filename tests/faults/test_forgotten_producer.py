"""A target that forgets producers at once, as every broker does with those whose last record is older than a day."""

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from kafka import KafkaProducer

from copying.lease import copy, only, prepare, settled
from heliograph.copy.copier import Copier
from heliograph.copy.work import Outcome, Work
from heliograph.model.flow import CONTINUE, FAIL, Flow, Policies, Writing
from heliograph.model.partitions import MirrorPartition, producer_id
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from heliograph.wire.append import PartitionBatch, append
from heliograph.wire.batches import mirror_header, one_batch
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.offsets import log_ends
from heliograph.wire.records import encode
from logs import PATIENCE, Log, Pair, Record, Seen, on, some_records

STRICT = Policies(FAIL, FAIL, FAIL, FAIL)


@pytest.fixture(scope="module")
def forgetful() -> Iterator[SandboxCluster]:
    settings = {
        "producer.id.expiration.ms": "1",
        "producer.id.expiration.check.interval.ms": "50",
        "min.insync.replicas": "1",
        "log.retention.ms": "-1",
    }
    with Sandbox() as sandbox:
        (cluster,) = sandbox.start({"B": ClusterSpec(brokers=3, settings=settings, fast_start=True, heap_mb=192)})
        yield cluster


@pytest.fixture
def both(pair: Pair, forgetful: SandboxCluster) -> Pair:
    return Pair(pair.a, Log(forgetful.bootstrap))


def _flow(both: Pair, topic: str, policies: Policies = STRICT) -> Flow:
    return replace(only(both.flow(), topic), policies=policies, may_raise_limits=False)


def _lease(flow: Flow, act: Callable[[Copier], None]) -> Outcome:
    """When all is copied, `act`; then on until all is copied, or refused."""

    async def main() -> Outcome:
        copier = Copier(Work(flow, f"forgotten-{uuid.uuid4().hex}", PATIENCE, await prepare(flow)))
        lease = asyncio.create_task(copier.run())
        async with asyncio.timeout(PATIENCE):
            while not settled(copier):
                await asyncio.sleep(0.01)
            (before,) = [each.position for each in copier.cursors]
            await asyncio.to_thread(act, copier)
            (cursor,) = copier.cursors
            while not (settled(copier) and cursor.position != before) and cursor.refusal is None:
                await asyncio.sleep(0.01)
        copier.stop()
        return await lease

    return asyncio.run(main())


def test_a_batch_that_is_refused_after_a_pause_leaves_no_hole(both: Pair, topic: str) -> None:
    """The mirror does not take the first of several batches that come together. The others may not take its place."""
    both.a.create(topic)
    both.a.write(topic, some_records(10))
    producer: Any = KafkaProducer(
        bootstrap_servers=both.a.bootstrap, transactional_id=uuid.uuid4().hex, batch_size=1 << 20, linger_ms=1000
    )
    producer.init_transactions()

    def act(_copier: Copier) -> None:
        both.b.configure(f"A.{topic}", max_message_bytes="20000")
        time.sleep(1.5)  # long enough to be forgotten
        producer.begin_transaction()
        for size in (50, 5, 5, 5, 5):
            for number in range(size):
                producer.send(topic, f"{size}-{number}-{uuid.uuid4().hex}".ljust(1000, ".").encode(), partition=0)
            producer.flush()
        producer.commit_transaction()  # and now all of them can be read
        producer.close()

    outcome = _lease(_flow(both, topic), act)
    assert (outcome.refusals, outcome.notices) == ((), ())
    assert both.b.read(f"A.{topic}") == both.a.read(topic)


def test_a_batch_that_is_not_replicated_yet_is_not_sent_again(
    both: Pair, forgetful: SandboxCluster, topic: str
) -> None:
    """A follower hangs, so that the leader says neither yes nor no in time; then it has forgotten us."""
    mirror = f"A.{topic}"
    both.a.create(topic)
    both.b.place(mirror, [1, 3])
    both.b.until_led([mirror], 1, 1, 3)
    both.a.write(topic, some_records(10))
    flow = replace(_flow(both, topic), writing=Writing(request_timeout=0.3))
    ends: set[int] = set()

    async def log_end(client: ClusterClient) -> list[int]:
        topics = (await client.metadata([mirror])).topics
        found = (await log_ends(client, topics, [(mirror, 0)])).get((mirror, 0))
        return [found] if isinstance(found, int) else []  # a broker may be too busy to answer

    def act(copier: Copier) -> None:
        forgetful.pause(3)
        try:
            both.a.write(topic, some_records(10))
            (cursor,) = copier.cursors
            faults, deadline = 0, time.monotonic() + PATIENCE
            while faults < 4 and both.b.bounds(mirror)[1] == 10:  # or the follower leaves the in-sync replicas
                assert time.monotonic() < deadline
                faults = max(faults, cursor.retry.faults)
                ends.update(on(both.b, log_end))
        finally:
            forgetful.resume(3)

    outcome = _lease(flow, act)
    both.b.until_led([mirror], 1, 1, 3)
    assert not any(refusal.final for refusal in outcome.refusals)  # that it waits may be reported
    assert outcome.notices == ()
    assert both.b.read(mirror) == both.a.read(topic)
    assert ends <= {10, 20}


def _land(log: Log, key: MirrorPartition, records: list[Record], number: int) -> None:
    """A batch of ours that lands at the mirror's end, with a number that does not belong there."""
    batch = one_batch(memoryview(encode(records)))
    data = mirror_header(batch, producer_id("A->B", key), number) + bytes(batch.records)
    (_start, end) = log.bounds(key.mirror)

    async def send(client: ClusterClient) -> bool:
        leader = (await client.metadata([key.mirror])).topics[key.mirror].leaders[0]
        (answer,) = await append(await client.connection(leader), [PartitionBatch(key.mirror, 0, [data])], 10.0)
        return bool(answer.error == 0 and answer.base_offset == end)

    deadline = time.monotonic() + PATIENCE
    while not on(log, send):
        assert time.monotonic() < deadline, "the broker has not forgotten the producer"


@pytest.mark.parametrize("what", ["missing", "twice"])
def test_an_own_batch_at_a_wrong_offset_is_reported(both: Pair, topic: str, what: str) -> None:
    key = MirrorPartition(topic, f"A.{topic}", 0)
    records = some_records(140)
    both.a.create(topic)
    both.a.write(topic, records[:100])
    copy(_flow(both, topic))
    both.a.write(topic, records[100:130], per_batch=10)
    first = 110 if what == "missing" else 90
    _land(both.b, key, records[first : first + 10], first)
    wrong = both.b.read(key.mirror)
    for _ in range(2):
        (refusal,) = copy(_flow(both, topic)).refusals
        assert (refusal.reason, refusal.source_offset, refusal.target_offset) == ("out-of-sequence", 100, 110)
        assert f"{10 if what == 'missing' else 0} records are missing" in refusal.text
    assert both.b.read(key.mirror) == wrong
    lenient = _flow(both, topic, replace(STRICT, foreign_writer=CONTINUE))
    outcome = copy(lenient)
    assert outcome.refusals == ()
    assert [(notice.kind, notice.count, notice.source_offset) for notice in outcome.notices] == [
        ("copied-twice", 10, 100)
    ]
    both.a.write(topic, records[130:])
    assert copy(_flow(both, topic)).notices == ()
    originals: list[Seen] = both.a.read(topic)
    assert both.b.read(key.mirror) == wrong + originals[100:]
