"""Brokers that die and come back, on both sides, while the copier runs: leaders move, nothing is lost or repeated."""

import asyncio
import itertools
import time
from collections.abc import Collection
from dataclasses import replace

import pytest

import heliograph.wire.consumer_groups
from copying.lease import prepare
from faults.topics import Clusters
from heliograph.copy.copier import Copier
from heliograph.copy.work import Outcome, Work
from heliograph.model.flow import Flow
from heliograph.model.internal_topics import ledger_topic, signals_topic
from heliograph.model.names import NameFilter
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.sandbox import SandboxCluster
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Committed, commit_offsets, committed_offsets
from heliograph.wire.coordinators import coordinators
from heliograph.wire.errors import WireError
from logs import PATIENCE, Log, Record, on, some_records

_PARTITIONS = 6


def _flow(source: SandboxCluster, target: SandboxCluster, topic: str) -> Flow:
    return Flow(
        replace(Log(source.bootstrap).cluster, alias="S"),
        replace(Log(target.bootstrap).cluster, alias="T"),
        topics=NameFilter((topic,)),
        replication_factor=3,
    )


def test_a_group_request_follows_its_coordinator(threes: Clusters, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer is out of date: a real broker then says that it does not coordinate the group."""
    log = Log(threes[1].bootstrap)
    log.create(topic, replicas=3)
    log.write(topic, some_records(10))
    asked: list[int | WireError] = []

    async def out_of_date(client: ClusterClient, names: Collection[str], kind: int) -> dict[str, int | WireError]:
        found = await coordinators(client, names, kind)
        if not asked:
            found = {name: node % 3 + 1 if isinstance(node, int) else node for name, node in found.items()}
        asked.extend(found.values())
        return found

    async def main(client: ClusterClient) -> None:
        group, offsets = f"{topic}-g", {(topic, 0): Committed(7)}
        assert await commit_offsets(client, {group: offsets}) == {group: None}
        assert len(asked) >= 2  # or more, while the right one still reads what groups there are
        asked.clear()
        assert await committed_offsets(client, [group]) == {group: offsets}
        assert len(asked) >= 2  # or more, while the right one still reads what groups there are

    monkeypatch.setattr(heliograph.wire.consumer_groups, "coordinators", out_of_date)
    on(log, main)


def test_rolling_kills_on_both_sides_lose_and_repeat_nothing(threes: Clusters, topic: str) -> None:
    source, target = threes
    log, mirror = Log(source.bootstrap), Log(target.bootstrap)
    for side, name in ((log, topic), (mirror, f"S.{topic}")):
        side.create(name, partitions=_PARTITIONS, replicas=3, min_insync_replicas="2")
    written = 4000
    for partition in range(_PARTITIONS):
        log.write(topic, some_records(written), partition, per_batch=10)
    flow = _flow(source, target, topic)

    def roll() -> None:
        """One broker after the other, of both clusters at the same time."""
        for broker in (1, 2, 3):
            time.sleep(1.0)
            for cluster in (target, source):
                cluster.kill(broker)
            time.sleep(2.0)
            for cluster in (target, source):
                cluster.start_broker(broker, wait=False)
            for cluster in (target, source):
                cluster.wait_until_up()

    async def copy_in_short_leases() -> list[Outcome]:
        partitions = await prepare(flow)
        for name in (ledger_topic("S"), signals_topic("S")):
            await asyncio.to_thread(mirror.configure, name, min_insync_replicas="2")
        rolling = asyncio.create_task(asyncio.to_thread(roll))
        deadline = time.monotonic() + PATIENCE
        outcomes: list[Outcome] = []
        positions: dict[MirrorPartition, Position] = {}
        for number in itertools.count():
            assert time.monotonic() < deadline, outcomes[-1].refusals
            is_over = rolling.done()
            copier = Copier(Work(flow, f"roll-{number}", 4.0, partitions, positions))
            outcome = await copier.run()
            outcomes.append(outcome)
            positions.update({partition: at.position for partition, at in outcome.progress.items()})
            if not is_over:
                batch = [some_records(50, start=written + number * 50) for _ in range(_PARTITIONS)]
                for partition, records in enumerate(batch):
                    await asyncio.to_thread(_write_with_retries, log, topic, records, partition)
            elif all(at.position.source >= at.source_end for at in outcome.progress.values()) and not outcome.refusals:
                await rolling
                return outcomes
        raise AssertionError

    outcomes = asyncio.run(copy_in_short_leases())
    assert [refusal for outcome in outcomes for refusal in outcome.refusals if refusal.final] == []
    for partition in range(_PARTITIONS):
        copied = mirror.read(f"S.{topic}", partition)
        assert len(copied) >= written
        assert copied == log.read(topic, partition)


def _write_with_retries(log: Log, topic: str, records: list[Record], partition: int) -> None:
    """A batch may be in the source twice, which does not matter to this test."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            log.write(topic, records, partition, per_batch=10)
            return
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
