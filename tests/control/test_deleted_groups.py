"""Groups that were deleted on the source: not committed again on the target, and deleted there if enabled."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from kafka import KafkaConsumer

from copying.lease import copy, only
from heliograph.control.group_sync import is_only_ours
from heliograph.model.flow import Flow, Groups
from heliograph.model.names import NameFilter
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.consumer_groups import (
    EMPTY,
    Committed,
    GroupListing,
    committed_offsets,
    delete_groups,
    list_groups,
)
from heliograph.wire.coordinators import GROUP, coordinators
from logs import JOINS_SOON, Log, Pair, on, some_records, until


def _flow(pair: Pair, topic: str, deletes: bool = False) -> Flow:
    groups = Groups(NameFilter((f"{topic}-g.*",)), 3600.0, 3600.0, 3600.0, 1, deletes)
    return replace(only(pair.flow(), topic), groups=groups)


def _prepare(pair: Pair, topic: str, groups: list[str]) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(20))
    copy(_flow(pair, topic))
    for group in groups:
        pair.a.commit(group, topic, 10)


def _delete(log: Log, *groups: str) -> None:
    assert on(log, lambda client: delete_groups(client, groups)) == dict.fromkeys(groups)
    until(lambda: not set(groups) & set(on(log, list_groups)))


def _keep(flow: Flow, do: Callable[[FlowSyncers], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        syncers = FlowSyncers(flow)
        try:
            await syncers.prepare()
            return await do(syncers)
        finally:
            syncers.close()

    return asyncio.run(main())


@pytest.mark.parametrize("when", ["groups are refreshed", "checkpoints are computed", "after a restart"])
def test_a_group_that_is_deleted_on_the_source_is_not_committed_again(pair: Pair, topic: str, when: str) -> None:
    gone, stays = groups = [f"{topic}-g-gone", f"{topic}-g-stays"]
    _prepare(pair, topic, groups)
    flow = _flow(pair, topic)

    async def main(syncers: FlowSyncers) -> None:
        await syncers.translate_once()
        listed = await asyncio.to_thread(on, pair.b, list_groups)
        assert [listed[group] for group in groups] == [GroupListing("", EMPTY)] * 2
        await asyncio.to_thread(_delete, pair.a, gone)
        await asyncio.to_thread(_delete, pair.b, gone)
        if when == "groups are refreshed":
            await syncers.translate_once()
        elif when == "checkpoints are computed":
            await syncers.checkpoint_syncer.run()
            await syncers.group_offsets.run()

    _keep(flow, main)
    if when == "after a restart":
        _keep(flow, lambda syncers: syncers.translate_once())
    found = on(pair.b, list_groups)
    assert (gone in found, stays in found) == (False, True)
    # It is a group like any other when it comes back.
    pair.a.commit(gone, topic, 5)
    _keep(flow, lambda syncers: syncers.translate_once())
    assert on(pair.b, lambda client: committed_offsets(client, [gone]))[gone][f"A.{topic}", 0].offset == 5


@pytest.fixture(scope="module")
def two_brokers() -> Iterator[SandboxCluster]:
    with Sandbox() as sandbox:
        settings = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "10"}
        (cluster,) = sandbox.start({"A": ClusterSpec(brokers=2, settings=settings, fast_start=True, heap_mb=192)})
        yield cluster


def test_a_group_whose_coordinator_is_down_is_not_a_deleted_one(
    two_brokers: SandboxCluster, pair: Pair, topic: str
) -> None:
    source = Log(two_brokers.bootstrap)
    both = Pair(source, pair.b)
    groups = [f"{topic}-g-{number}" for number in range(20)]
    source.place(topic, [1])
    source.write(topic, some_records(20))
    flow = _flow(both, topic, deletes=True)
    copy(flow)
    for group in groups:
        source.commit(group, topic, 10)
    found_at = on(source, lambda client: coordinators(client, groups, GROUP))
    down = {group for group, node in found_at.items() if node == 2}
    assert down

    async def main(syncers: FlowSyncers) -> None:
        await syncers.translate_once()
        await asyncio.to_thread(two_brokers.stop_broker, 2)
        listed = await asyncio.to_thread(on, source, list_groups)
        assert not down & set(listed)
        await syncers.translate_once()
        assert set(syncers.checkpoints.groups) >= down
        assert {key[0] for key in syncers.checkpoints.mirror_checkpoints} >= down
        assert not syncers.checkpoints.deleted

    try:
        _keep(flow, main)
    finally:
        two_brokers.start_broker(2)
    assert set(on(pair.b, list_groups)) >= set(groups)


def test_deleted_groups_are_deleted_on_the_target_if_enabled_and_unused(pair: Pair, topic: str) -> None:
    groups = [f"{topic}-g-{name}" for name in ("read", "more", "further", "ours")]
    read, more, further, _ours = groups
    _prepare(pair, topic, groups)
    pair.a.commit(f"{topic}-stays", topic, 1)  # a cluster that lists no group at all is not trusted
    mirror = f"A.{topic}"
    pair.b.create(f"{topic}-b")

    async def change(syncers: FlowSyncers) -> None:
        await syncers.translate_once()
        await asyncio.to_thread(_consume, pair.b, read, mirror)
        await asyncio.to_thread(pair.b.commit, more, f"{topic}-b", 0)
        await asyncio.to_thread(pair.b.commit, further, mirror, 15)
        await asyncio.to_thread(_delete, pair.a, *groups)
        await syncers.translate_once()

    _keep(_flow(pair, topic), change)
    assert set(on(pair.b, list_groups)) >= set(groups)  # nobody asked for it
    # The groups are known from checkpoints of an earlier run.
    _keep(_flow(pair, topic, deletes=True), lambda syncers: syncers.translate_once())
    # A broker still lists a group for a moment after it has deleted it.
    until(lambda: set(groups) & set(on(pair.b, list_groups)) == {read, more, further})


def _consume(log: Log, group: str, topic: str) -> None:
    """Joins the group and leaves it again, and commits its present offset."""
    consumer: Any = KafkaConsumer(
        bootstrap_servers=log.bootstrap, group_id=group, enable_auto_commit=False, **JOINS_SOON
    )
    consumer.subscribe([topic])
    until(lambda: bool(consumer.poll(timeout_ms=200) or consumer.assignment()))
    consumer.close()
    until(lambda: on(log, list_groups)[group].state == EMPTY)


def test_a_group_is_only_ours_if_it_never_had_members_and_has_only_our_offsets() -> None:
    partition, other = ("A.t", 0), ("t", 0)
    simple, synced = GroupListing("", EMPTY), {partition: 10}
    assert is_only_ours(simple, {partition: Committed(10)}, synced)
    assert is_only_ours(simple, {partition: Committed(7)}, synced)  # the last round was before the last checkpoint
    assert not is_only_ours(simple, {partition: Committed(11)}, synced)
    assert not is_only_ours(simple, {partition: Committed(10), other: Committed(1)}, synced)
    assert not is_only_ours(simple, {}, synced)
    assert not is_only_ours(GroupListing("consumer", EMPTY), {partition: Committed(10)}, synced)
    assert not is_only_ours(GroupListing("", "Stable"), {partition: Committed(10)}, synced)
    assert not is_only_ours(GroupListing("", ""), {partition: Committed(10)}, synced)  # a broker that does not tell
