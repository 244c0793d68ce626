"""Topics with three brokers on either side, for tests in which something happens to them while they are mirrored."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from copying.lease import only, prepare, settled
from heliograph.copy.copier import Copier
from heliograph.copy.work import Outcome, Work
from heliograph.model.flow import CONTINUE, FAIL, Flow, Policies, Reading
from heliograph.sandbox import SandboxCluster
from logs import PATIENCE, Log, Pair, some_records
from waiting import until

Clusters = tuple[SandboxCluster, SandboxCluster]
Reported = tuple[list[tuple[int, str, int, int]], list[tuple[int, str, int, int, int]]]
RACKS = ("r1", "r2", "r3")  # of brokers 1, 2 and 3
STRICT = Policies(FAIL, FAIL, FAIL, FAIL)
LENIENT = Policies(CONTINUE, CONTINUE, CONTINUE, CONTINUE)


def flow_of(pair: Pair, topic: str, policies: Policies = LENIENT, **reading: Any) -> Flow:
    return replace(only(pair.flow(), topic), replication_factor=3, policies=policies, reading=Reading(**reading))


def reported(outcome: Outcome) -> Reported:
    """Refusals (partition, reason, offsets) and notices (partition, kind, count, offsets)."""
    return (
        sorted((r.partition.partition, r.reason, r.source_offset, r.target_offset) for r in outcome.refusals),
        sorted((n.partition.partition, n.kind, n.count, n.source_offset, n.target_offset) for n in outcome.notices),
    )


def write_records(log: Log, topic: str, *counts: int) -> None:
    """So many records to partition 0, 1, ..."""
    for partition, count in enumerate(counts):
        log.write(topic, some_records(count), partition, per_batch=10)


def is_copied(pair: Pair, topic: str, *partitions: int) -> bool:
    return all(
        pair.b.read(f"A.{topic}", partition) == pair.a.read(topic, partition) for partition in partitions or (0,)
    )


def until_equal(seen: Callable[[], Any], wanted: Any) -> None:
    until(lambda: seen() == wanted, lambda: f"{seen()} is not {wanted}", every=0.05)


def elect_uncleanly(
    cluster: SandboxCluster, log: Log, topics: Sequence[str], leader: int, follower: int, meanwhile: Callable[[], None]
) -> None:
    """What is written `meanwhile` is with the leader alone, which goes down; the follower leads on without it."""
    cluster.stop_broker(follower)
    log.until_led(topics, leader, leader)
    meanwhile()
    cluster.stop_broker(leader)
    cluster.start_broker(follower)
    log.until_led(topics, follower, follower)


def lease_with(flows: Sequence[Flow], log: Log, act: Callable[[], None], **work: Any) -> list[Outcome]:
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


def create_with_holes(log: Log, topic: str) -> None:
    log.create_compacted(topic, lambda n: b"k%d" % (n if n % 5 else n % 50), count=4000)
