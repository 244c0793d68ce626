"""What an earlier lease has appended and is not on all in-sync replicas yet: no reader sees it, and it is to come."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from kafka import KafkaAdminClient

from copying.lease import only, prepare, settled, until
from heliograph.control.internal_topic_setup import internal_topics
from heliograph.copy.copier import Copier
from heliograph.copy.work import Work
from heliograph.model.flow import Flow, KeptOffsets
from heliograph.model.names import NameFilter
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.offsets import LATEST, list_offsets, log_ends
from heliograph.wire.topic_requests import NewTopic
from logs import PATIENCE, Log, Pair, some_records


@pytest.fixture(scope="module")
def two() -> Iterator[SandboxCluster]:
    """Two brokers, of which the one may be frozen without being taken for dead."""
    settings = {
        "replica.lag.time.max.ms": "600000",
        "broker.session.timeout.ms": "600000",
        "min.insync.replicas": "1",
    }
    with Sandbox() as sandbox:
        (cluster,) = sandbox.start({"T": ClusterSpec(brokers=2, settings=settings, fast_start=True)})
        yield cluster


def _flow(pair: Pair, target: SandboxCluster, topic: str) -> Flow:
    """To a mirror on both brokers, with internal topics on the first alone, so that they never wait for the second."""
    aliased = replace(Log(target.bootstrap).cluster, alias="B")
    flow = replace(only(pair.flow(), topic), target=aliased, kept_offsets=KeptOffsets(NameFilter((".*",))))
    log = Log(target.bootstrap)
    there = log.topics()
    wanted = {each.topic.name: each.topic for each in internal_topics(flow, 1, 2) if not each.on_source}
    wanted["__transaction_state"] = NewTopic("__transaction_state", 4, 1, (("cleanup.policy", "compact"),))
    admin: Any = KafkaAdminClient(bootstrap_servers=target.bootstrap)
    for name, new_topic in wanted.items():
        if name not in there:
            spread: dict[int, list[int]] = {partition: [1] for partition in range(new_topic.partitions)}
            admin.create_topics({name: {"assignments": spread, "configs": dict(new_topic.configs)}})
    admin.close()
    log.place(f"A.{topic}", [1, 2])
    return flow


async def _ends(client: ClusterClient, mirror: str) -> tuple[object, object]:
    """The high watermark, and the end of the leader's log."""
    topics = (await client.metadata([mirror])).topics
    watermark = await list_offsets(client, topics, [(mirror, 0)], LATEST, False)
    return watermark[mirror, 0], (await log_ends(client, topics, [(mirror, 0)]))[mirror, 0]


@pytest.mark.parametrize("what", ["marker", "record"])
def test_a_lease_waits_for_unreplicated_batches_of_an_earlier_one(
    pair: Pair, two: SandboxCluster, topic: str, what: str
) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))
    flow = _flow(pair, two, topic)
    mirror = f"A.{topic}"

    async def main() -> None:
        partitions = await prepare(flow)
        first = Copier(Work(flow, "first", PATIENCE, partitions))
        lease = asyncio.create_task(first.run())
        await until(lambda: settled(first))
        client = ClusterClient(flow.target)
        await client.connect()
        assert await _ends(client, mirror) == (5, 5)
        two.pause(2)
        try:
            if what == "marker":
                await asyncio.to_thread(pair.a.empty_transaction, topic)
            await asyncio.to_thread(pair.a.write, topic, some_records(3))
            expected = 6 if what == "marker" else 8
            async with asyncio.timeout(PATIENCE):
                while await _ends(client, mirror) != (5, expected):
                    await asyncio.sleep(0.02)
            first.stop()
            await lease
            await asyncio.to_thread(pair.a.write, topic, some_records(3))  # thin batches: they would be joined
            second = Copier(Work(flow, "second", PATIENCE, partitions))
            lease = asyncio.create_task(second.run())
            (cursor,) = second.cursors
            async with asyncio.timeout(PATIENCE):
                while cursor.retry.faults < 3 and await _ends(client, mirror) == (5, expected):
                    await asyncio.sleep(0.02)
            assert await _ends(client, mirror) == (5, expected)
            assert cursor.retry.suspicions == 0
            await until(lambda: cursor.retry.waiting is not None)
            assert cursor.retry.waiting is not None
            assert "in-sync replicas" in cursor.retry.waiting.text
        finally:
            two.resume(2)
        await until(lambda: settled(second))
        second.stop()
        outcome = await lease
        client.close()
        assert (outcome.refusals, outcome.notices) == ((), ())

    asyncio.run(main())
    log = Log(two.bootstrap)
    assert pair.a.bounds(topic) == log.bounds(mirror)
    assert [offset for offset, _one in pair.a.read_with_offsets(topic)] == [
        offset for offset, _one in log.read_with_offsets(mirror)
    ]
