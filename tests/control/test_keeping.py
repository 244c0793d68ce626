"""What a flow keeps in sync besides records, on real brokers."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from kafka import KafkaConsumer

from copying.lease import copy, only
from heliograph.control.internal_topic_setup import MissingTopics
from heliograph.model.flow import HEARTBEAT, Flow, Groups, Heartbeats, OffsetSyncs, TopicSync
from heliograph.model.mm2_records import Checkpoint, Heartbeat, OffsetSync
from heliograph.model.names import NameFilter
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.acl_requests import ALL, ALLOW, DENY, LITERAL, READ, WRITE, Acl, create_acls, topic_acls
from heliograph.wire.consumer_groups import Committed, committed_offsets
from heliograph.wire.topic_requests import describe_configs
from logs import JOINS_SOON, Pair, Seen, on, some_records, until
from waiting import async_until


def _keep(
    flow: Flow, do: Callable[[FlowSyncers], Awaitable[Any]], positions: dict[MirrorPartition, Position] | None = None
) -> Any:
    async def main() -> Any:
        syncers = FlowSyncers(flow, lambda: positions or {})
        try:
            await syncers.prepare()
            return await do(syncers)
        finally:
            syncers.close()

    return asyncio.run(main())


# --- heartbeats and offset syncs ----------------------------------------------------------------------------------


def test_heartbeats_are_written_as_mm2_does(pair: Pair) -> None:
    flow = replace(pair.flow(), parts=frozenset({HEARTBEAT}), heartbeats=Heartbeats(0.2, 3))
    before = len(pair.b.read("heartbeats")) if pair.b.exists("heartbeats") else 0

    def ours() -> list[tuple[Heartbeat, int]]:
        seen = [
            (Heartbeat.from_record(record.key, record.value), record.timestamp)
            for record in pair.b.read("heartbeats")[before:]
            if record.key is not None and record.value is not None
        ]
        return [(beat, timestamp) for beat, timestamp in seen if beat.source == "A"]  # others may beat, too

    async def some_time(syncers: FlowSyncers) -> None:
        running = asyncio.create_task(syncers.run())
        await async_until(lambda: asyncio.to_thread(lambda: len(ours()) >= 6), every=0.2)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    _keep(flow, some_time)
    for beat, timestamp in ours():
        assert (beat.target, beat.timestamp) == ("B", timestamp)
    moments = [timestamp for _beat, timestamp in ours()]
    assert moments[-1] - moments[0] >= 300  # not all at once


@pytest.mark.parametrize("on_target", [False, True])
def test_offset_syncs_pair_the_places_of_one_record(pair: Pair, topic: str, on_target: bool) -> None:
    flow = replace(only(pair.flow(), topic), offset_syncs=OffsetSyncs(on_target=on_target, lag_max=10))
    pair.a.create(topic)
    positions: dict[MirrorPartition, Position] = {}
    log, name = (pair.b, "mm2-offset-syncs.A.internal") if on_target else (pair.a, "mm2-offset-syncs.B.internal")

    def syncs() -> list[OffsetSync]:
        found = [OffsetSync.from_record(key, value) for key, value in log.pairs(name)]
        return [sync for sync in found if sync.topic == topic]

    async def together(syncers: FlowSyncers) -> None:
        counts = []
        for count, commit in ((1, True), (5, True), (3, False), (30, True), (2, True)):
            await asyncio.to_thread(pair.a.transaction, topic, count, commit)
            outcome = await asyncio.to_thread(copy, flow)
            positions.update({partition: at.position for partition, at in outcome.progress.items()})
            await syncers.offset_syncs.run()
            counts.append(len(await asyncio.to_thread(syncs)))
        # The first; one after each marker between; none for what was aborted.
        assert counts == [1, 2, 2, 3, 4]
        await syncers.offset_syncs.run()
        await syncers.finish()
        assert len(await asyncio.to_thread(syncs)) == 4  # nothing moved

    _keep(flow, together, positions)
    source, mirror = dict(pair.a.read_with_offsets(topic)), dict(pair.b.read_with_offsets(f"A.{topic}"))
    for sync in syncs():
        assert _plain(source[sync.upstream]) == _plain(mirror[sync.downstream])
    assert syncs()[-1].downstream == max(mirror)


def _plain(seen: Seen) -> tuple[bytes | None, bytes | None]:
    return seen.key, seen.value


def test_a_pair_is_written_when_the_mirror_has_got_far_enough_and_at_the_end(pair: Pair, topic: str) -> None:
    flow = replace(only(pair.flow(), topic), offset_syncs=OffsetSyncs(lag_max=100))
    pair.a.create(topic)
    positions: dict[MirrorPartition, Position] = {}

    def downstream() -> list[int]:
        found = [OffsetSync.from_record(*record) for record in pair.a.pairs("mm2-offset-syncs.B.internal")]
        return [sync.downstream for sync in found if sync.topic == topic]

    async def main(syncers: FlowSyncers) -> list[list[int]]:
        seen = []
        for count in (10, 50, 60, 5):
            await asyncio.to_thread(pair.a.write, topic, some_records(count))
            outcome = await asyncio.to_thread(copy, flow)
            positions.update({partition: at.position for partition, at in outcome.progress.items()})
            await syncers.offset_syncs.run()
            seen.append(await asyncio.to_thread(downstream))
        await syncers.finish()
        return [*seen, await asyncio.to_thread(downstream)]

    assert _keep(flow, main, positions) == [[9], [9], [9, 119], [9, 119], [9, 119, 124]]


# --- checkpoints and groups ---------------------------------------------------------------------------------------


def _flow_of_groups(pair: Pair, topic: str) -> Flow:
    groups = Groups(NameFilter((f"{topic}-g.*",)), 600.0, 60.0, 60.0, 1)
    return replace(only(pair.flow(), topic), groups=groups)


def test_every_position_of_a_group_translates_to_the_same_record(pair: Pair, topic: str) -> None:
    """Also between records, before the first and at the end; markers and aborted records make the offsets differ."""
    pair.a.create(topic)
    rng = random.Random(5)
    for _ in range(6):
        pair.a.transaction(topic, rng.randint(1, 8), rng.random() < 0.7)
    flow = _flow_of_groups(pair, topic)
    copy(flow)
    end = pair.a.bounds(topic)[1]
    for offset in range(end + 1):
        pair.a.commit(f"{topic}-g{offset}", topic, offset, f"m{offset}")
    _keep(flow, lambda syncers: syncers.translate_once())
    source, mirror = pair.a.read_with_offsets(topic), pair.b.read_with_offsets(f"A.{topic}")
    found = [Checkpoint.from_record(*record) for record in pair.b.pairs("A.checkpoints.internal")]
    found = [checkpoint for checkpoint in found if checkpoint.topic == f"A.{topic}"]
    assert sorted(checkpoint.upstream for checkpoint in found) == list(range(end + 1))
    for checkpoint in found:
        assert (checkpoint.group, checkpoint.partition, checkpoint.metadata) == (
            f"{topic}-g{checkpoint.upstream}",
            0,
            f"m{checkpoint.upstream}",
        )
        rest = [_plain(seen) for offset, seen in source if offset >= checkpoint.upstream]
        assert [_plain(seen) for offset, seen in mirror if offset >= checkpoint.downstream] == rest
    # And they are the groups' offsets on the target now.
    groups = [f"{topic}-g{offset}" for offset in range(end + 1)]
    there = on(pair.b, lambda client: committed_offsets(client, groups))
    for checkpoint in found:
        assert there[checkpoint.group] == {(f"A.{topic}", 0): Committed(checkpoint.downstream, checkpoint.metadata)}


def test_a_group_ahead_of_what_was_copied_gets_the_mirrors_end(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    flow = _flow_of_groups(pair, topic)
    copy(flow)
    pair.a.write(topic, some_records(10))
    pair.a.commit(f"{topic}-g", topic, 15)

    def latest() -> dict[str, Any]:
        return {key: checkpoint for key, checkpoint in _keep(flow, _loaded).items() if key[0] == f"{topic}-g"}

    async def ours(syncers: FlowSyncers) -> None:
        await syncers.translate_once()

    async def _loaded(syncers: FlowSyncers) -> dict[Any, Checkpoint]:
        await syncers.checkpoints.load()
        return syncers.checkpoints.latest

    _keep(flow, ours)
    (first,) = latest().values()
    assert (first.upstream, first.downstream) == (15, 10)
    copy(flow)
    _keep(flow, ours)
    (second,) = latest().values()
    assert (second.upstream, second.downstream) == (15, 15)


def test_groups_in_use_or_ahead_on_the_target_are_left_alone(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(20))
    flow = _flow_of_groups(pair, topic)
    copy(flow)
    mirror = (f"A.{topic}", 0)
    groups = [f"{topic}-g{name}" for name in ("new", "behind", "ahead", "used")]
    for group in groups:
        pair.a.commit(group, topic, 10)
    pair.b.commit(groups[1], f"A.{topic}", 3)
    pair.b.commit(groups[2], f"A.{topic}", 18)
    consumer: Any = KafkaConsumer(
        bootstrap_servers=pair.b.bootstrap,
        group_id=groups[3],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **JOINS_SOON,
    )
    consumer.subscribe([f"A.{topic}"])
    try:
        until(lambda: consumer.poll(timeout_ms=200) or consumer.assignment(), every=0)
        consumer.commit()
        before = on(pair.b, lambda client: committed_offsets(client, groups))

        async def main(syncers: FlowSyncers) -> dict[str, str]:
            await syncers.translate_once()
            return syncers.synced_groups.untouched

        untouched = _keep(flow, main)
        after = on(pair.b, lambda client: committed_offsets(client, groups))
    finally:
        consumer.close()
    assert [after[group][mirror].offset for group in groups[:3]] == [10, 10, 18]
    assert after[groups[3]] == before[groups[3]]
    assert "in use on the target" in untouched[groups[3]]
    assert groups[0] not in untouched


# --- settings and access rules ------------------------------------------------------------------------------------


def test_settings_follow_the_source_topic(pair: Pair, topic: str) -> None:
    pair.a.create(topic, retention_ms="1000000", min_insync_replicas="1", compression_type="gzip")
    flow = only(pair.flow(), topic)
    copy(flow)
    mirror = f"A.{topic}"

    def own() -> dict[str, str | None]:
        found = on(pair.b, lambda client: describe_configs(client, [mirror]))[mirror]
        return {name: setting.value for name, setting in found.items() if setting.own}

    before = own()
    assert before["retention.ms"] == "1000000"
    pair.a.configure(topic, retention_ms="2000000", max_message_bytes="2000000")
    pair.b.configure(mirror, segment_ms="777777777", min_insync_replicas="1")
    _keep(flow, lambda syncers: syncers.topic_configs.run())
    until(lambda: own()["retention.ms"] == "2000000", own)  # a broker shows a change after it has answered
    changed = own()
    assert changed["max.message.bytes"] == "2000000"
    assert "segment.ms" not in changed  # the source has its default, so the mirror has its own
    assert changed["min.insync.replicas"] == "1"  # excluded: not ours to touch
    assert (changed["compression.type"], changed["message.timestamp.type"]) == ("producer", "CreateTime")
    pair.a.configure(topic, max_message_bytes="1000012")
    _keep(flow, lambda syncers: syncers.topic_configs.run())
    assert own()["max.message.bytes"] == "2000000"  # may have been raised for a batch that is there now
    defaults = replace(flow, topic_sync=TopicSync(source_defaults=True))
    _keep(defaults, lambda syncers: syncers.topic_configs.run())
    until(lambda: own().get("segment.ms") == "604800000", own)


def test_access_rules_are_carried_over_but_for_writing(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    flow = only(pair.flow(), topic)
    host = "*"
    rules = [
        Acl(topic, LITERAL, "User:reader", host, READ, ALLOW),
        Acl(topic, LITERAL, "User:writer", host, WRITE, ALLOW),
        Acl(topic, LITERAL, "User:all", host, ALL, ALLOW),
        Acl(topic, LITERAL, "User:nobody", host, ALL, DENY),
        Acl(topic, 4, "User:prefixed", host, READ, ALLOW),
        Acl("elsewhere", LITERAL, "User:reader", host, READ, ALLOW),
    ]
    assert on(pair.a, lambda client: create_acls(client, rules)) == [None] * len(rules)

    wanted = {
        Acl(f"A.{topic}", LITERAL, "User:reader", host, READ, ALLOW),
        Acl(f"A.{topic}", LITERAL, "User:all", host, READ, ALLOW),
        Acl(f"A.{topic}", LITERAL, "User:nobody", host, ALL, DENY),
    }

    def of_mirror() -> set[Acl]:
        return {acl for acl in on(pair.b, topic_acls) if topic in acl.name}

    async def main(syncers: FlowSyncers) -> None:
        await syncers.acls.run()

    for _ in range(2):
        _keep(flow, main)
        until(lambda: of_mirror() == wanted, of_mirror)  # rules reach a broker by its metadata log


# --- internal topics ----------------------------------------------------------------------------------------------


def test_an_internal_topic_that_forgets_is_refused(pair: Pair, topic: str) -> None:
    flow = replace(pair.flow(), source=replace(pair.flow().source, alias="Forgetful"))
    pair.b.create("heliograph-ledger.Forgetful.internal", 3, cleanup_policy="delete")

    async def nothing(_syncers: FlowSyncers) -> None:
        pass

    with pytest.raises(MissingTopics, match=r"cleanup\.policy is delete.*must be compact"):
        _keep(flow, nothing)
    pair.b.configure("heliograph-ledger.Forgetful.internal", cleanup_policy="compact,delete", retention_ms="1000")
    with pytest.raises(MissingTopics, match=r"its records expire: retention\.ms must be -1"):
        _keep(flow, nothing)
