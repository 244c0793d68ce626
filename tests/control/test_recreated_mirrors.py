"""Groups whose mirror was recreated: offsets for the earlier mirror are not used."""

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

import heliograph.control.checkpoints
import heliograph.control.group_sync
from copying.lease import copy, only
from heliograph.control.checkpoints import CheckpointRound, Checkpoints, MirrorCheckpoint
from heliograph.control.group_sync import GroupSync, TargetGroups, Verdict
from heliograph.control.group_translation import TranslatedOffset
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Cluster, Flow, Groups
from heliograph.model.mm2_records import Checkpoint
from heliograph.model.names import NameFilter
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.service.group_report import sync_now
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Committed, commit_offsets, committed_offsets, delete_groups
from heliograph.wire.errors import UNKNOWN_TOPIC_ID, BrokerError
from heliograph.wire.metadata import Topic, id_text
from logs import PATIENCE, Pair, on, some_records, until

ONE, OTHER = uuid.uuid4(), uuid.uuid4()


def _flow(pair: Pair, topic: str) -> Flow:
    """Checkpoints are computed once an hour."""
    groups = Groups(NameFilter((f"{topic}-g.*",)), 3600.0, 3600.0, 0.2, 1)
    return replace(only(pair.flow(), topic), groups=groups)


@contextmanager
def _keeper(flow: Flow) -> Iterator[Callable[[Callable[[FlowSyncers], Awaitable[Any]]], Any]]:
    """One keeper for several steps, between which the clusters change."""
    with asyncio.Runner() as runner:

        async def make() -> FlowSyncers:
            return FlowSyncers(flow)

        syncers = runner.run(make())
        runner.run(syncers.prepare())
        try:
            yield lambda do: runner.run(_awaited(do(syncers)))
        finally:
            syncers.close()


async def _awaited(what: Awaitable[Any]) -> Any:
    return await what


def _on_target(pair: Pair, topic: str, group: str) -> int | None:
    """What the group has for the mirror."""
    found = on(pair.b, lambda client: committed_offsets(client, [group]))[group]
    return found[f"A.{topic}", 0].offset if (f"A.{topic}", 0) in found else None


def _delete(pair: Pair, topic: str, *groups: str) -> None:
    """The mirror, and wait until the broker has deleted what groups have committed for it."""
    pair.b.delete(f"A.{topic}")
    until(lambda: all(_on_target(pair, topic, group) is None for group in groups))


def _checkpoints(pair: Pair, topic: str) -> list[tuple[int, int]]:
    found = [Checkpoint.from_record(*checkpoint) for checkpoint in pair.b.pairs("A.checkpoints.internal")]
    return [(checkpoint.upstream, checkpoint.downstream) for checkpoint in found if checkpoint.topic == f"A.{topic}"]


def _prepare(pair: Pair, topic: str, group: str) -> Flow:
    """A group at 50 of 60 records, all of them copied."""
    pair.a.create(topic)
    pair.a.write(topic, some_records(60))
    flow = _flow(pair, topic)
    copy(flow)
    pair.a.commit(group, topic, 50)
    return flow


def _recreate(pair: Pair, topic: str, group: str, flow: Flow) -> None:
    """The source begins at 30 by now, so that its offset 50 is 20 in the new mirror; which is long enough for 50."""
    pair.a.delete_before(topic, 0, 30)
    _delete(pair, topic, group)
    pair.a.write(topic, some_records(100))
    copy(flow)
    assert pair.b.bounds(f"A.{topic}") == (0, 130)


def test_a_checkpoint_for_an_earlier_mirror_is_not_used(pair: Pair, topic: str) -> None:
    group = f"{topic}-g"
    flow = _prepare(pair, topic, group)
    with _keeper(flow) as keeping:
        keeping(lambda syncers: syncers.translate_once())
        assert _on_target(pair, topic, group) == 50
        _recreate(pair, topic, group, flow)
        keeping(lambda syncers: syncers.group_offsets.run())
        assert _on_target(pair, topic, group) is None
        untouched = keeping(_untouched)
        assert "was deleted and created again" in untouched[group]
        keeping(lambda syncers: syncers.checkpoint_syncer.run())
        keeping(lambda syncers: syncers.group_offsets.run())
    assert _on_target(pair, topic, group) == 20
    assert _checkpoints(pair, topic) == [(50, 50), (50, 20)]


async def _untouched(syncers: FlowSyncers) -> dict[str, str]:
    return syncers.synced_groups.untouched


def test_running_syncers_follow_a_recreated_mirror_at_once(pair: Pair, topic: str) -> None:
    group = f"{topic}-g"
    flow = _prepare(pair, topic, group)
    with _keeper(flow) as keeping:

        async def main(syncers: FlowSyncers) -> None:
            running = asyncio.create_task(syncers.run())
            try:
                await asyncio.to_thread(until, lambda: _on_target(pair, topic, group) == 50)
                # The keeper sees the mirror when it is filled: its loop stands still until then.
                work = threading.Thread(target=_recreate, args=(pair, topic, group, flow))
                work.start()
                work.join()
                seen: set[int | None] = set()
                while 20 not in seen:
                    seen.add(await asyncio.to_thread(_on_target, pair, topic, group))
                    assert all(offset is None or offset <= 20 for offset in seen), seen
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

        keeping(lambda syncers: _within_patience(main(syncers)))
    assert _checkpoints(pair, topic)[-1] == (50, 20)


async def _within_patience(what: Awaitable[None]) -> None:
    async with asyncio.timeout(PATIENCE):
        await what


def test_checkpoints_from_before_the_start_are_used_only_if_they_are_computed_again(pair: Pair, topic: str) -> None:
    """By us or by MM2: nobody knows for which mirror it was."""
    group, gone = f"{topic}-g", f"{topic}-g-gone"
    flow = _prepare(pair, topic, group)
    pair.a.commit(gone, topic, 40)
    assert set(asyncio.run(sync_now(flow)).written) == {group, gone}
    _recreate(pair, topic, group, flow)
    until(lambda: _on_target(pair, topic, gone) is None)
    on(pair.a, lambda client: delete_groups(client, [gone]))
    assert asyncio.run(sync_now(flow)).written == [group]
    assert _on_target(pair, topic, group) == 20
    assert _on_target(pair, topic, gone) is None


def test_offsets_are_committed_only_for_the_mirror_they_were_computed_for(pair: Pair, topic: str) -> None:
    """Not for one of the same name that has taken its place since."""
    group, mirror = f"{topic}-g", f"A.{topic}"
    flow = _prepare(pair, topic, group)
    before = on(pair.b, lambda client: client.metadata([mirror])).topics[mirror].id
    _recreate(pair, topic, group, flow)
    wanted, ids = {group: {(mirror, 0): Committed(50)}}, {mirror: before}
    error = on(pair.b, lambda client: commit_offsets(client, wanted, ids))[group]
    assert isinstance(error, BrokerError)
    assert error.code == UNKNOWN_TOPIC_ID
    assert _on_target(pair, topic, group) is None
    now = on(pair.b, lambda client: client.metadata([mirror])).topics[mirror].id
    assert on(pair.b, lambda client: commit_offsets(client, wanted, {mirror: now})) == {group: None}
    assert _on_target(pair, topic, group) == 50


def test_a_commit_that_a_recreated_mirror_has_got_is_set_back(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers before 4.1 take names only. What others have committed is not moved back."""
    group, read = f"{topic}-g", f"{topic}-g-read"
    flow, mirror = _prepare(pair, topic, group), f"A.{topic}"

    def mirror_checkpoints(downstream: int) -> list[MirrorCheckpoint]:
        mirror_id = id_text(on(pair.b, lambda client: client.metadata([mirror])).topics[mirror].id)
        return [MirrorCheckpoint(Checkpoint(name, mirror, 0, 50, downstream), mirror_id) for name in (group, read)]

    async def by_name(client: ClusterClient, wanted: Any, _ids: Any) -> Any:
        await asyncio.to_thread(_recreate, pair, topic, group, flow)
        monkeypatch.undo()
        return await commit_offsets(client, wanted)

    earlier = mirror_checkpoints(50)
    with asyncio.Runner() as runner:
        client = ClusterClient(flow.target)
        syncer = GroupSync(client)
        monkeypatch.setattr(heliograph.control.group_sync, "commit_offsets", by_name)
        assert set(runner.run(syncer.run(earlier)).written) == {group, read}
        assert _on_target(pair, topic, group) == 50  # and it should be 20
        pair.b.commit(read, mirror, 70)  # it was read on the target since
        assert runner.run(syncer.run(earlier)).written == []
        assert runner.run(syncer.run(mirror_checkpoints(20))).written == [group]
        assert [_on_target(pair, topic, name) for name in (group, read)] == [20, 70]
        pair.b.commit(group, mirror, 60)
        assert runner.run(syncer.run(mirror_checkpoints(20))).written == []  # that was not ours
        client.close()


def test_the_verdict_depends_on_the_mirror_of_a_checkpoint() -> None:
    partition, topic = ("A.t", 0), Topic("A.t", OTHER, False, {0: 1})
    target = TargetGroups({"g": "Empty"}, {"g": {}}, {partition: 9000}, {"A.t": topic})
    assert target.verdict("g", partition, 5000, id_text(ONE)) is Verdict.OUTDATED
    assert target.verdict("g", partition, 2000, id_text(OTHER)) is Verdict.DUE
    assert target.verdict("g", partition, 2000, "") is Verdict.DUE  # from a broker without ids


def _some_checkpoints(monkeypatch: pytest.MonkeyPatch, *written: Checkpoint) -> Checkpoints:
    """Without brokers; these are in the topic already."""

    async def own_topic(_client: ClusterClient, name: str) -> Topic:
        return Topic(name, ONE, False, {0: 1})

    async def read_kind(*_where: Any) -> AsyncIterator[Checkpoint]:
        for checkpoint in written:
            yield checkpoint

    async def write_records(*_what: Any) -> None:
        return None

    for fake in (own_topic, read_kind, write_records):
        monkeypatch.setattr(heliograph.control.checkpoints, fake.__name__, fake)
    flow = Flow(Cluster("A", (("a", 9092),)), Cluster("B", (("b", 9092),)))
    source, target = ClusterClient(flow.source), ClusterClient(flow.target)
    return Checkpoints(flow, source, target, Ledger(target, "A"))


def test_for_which_mirror_a_checkpoint_was_that_is_read_at_the_start_is_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A group whose offsets on the source cannot be read then is not moved by it."""
    checkpoints = _some_checkpoints(monkeypatch, Checkpoint("g", "A.t", 0, 5000, 5000))
    asyncio.run(checkpoints.load())
    assert list(checkpoints.latest) == [("g", "A.t", 0)]
    assert checkpoints.mirror_checkpoints == {}


def test_a_checkpoint_for_another_mirror_is_always_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all that is known is that it is not too late: the one before would stand for the new mirror."""
    checkpoints = _some_checkpoints(monkeypatch)

    async def take(answer: int, mirror: uuid.UUID, why: str = "") -> int:
        found = TranslatedOffset("g", "t", 0, Committed(5000), answer, 9000, why, id_text(mirror))
        news = checkpoints._news([found], CheckpointRound())
        await checkpoints._write(news, 0)
        return len(news)

    assert asyncio.run(take(5000, ONE)) == 1
    assert asyncio.run(take(2000, ONE, "early")) == 0
    assert asyncio.run(take(2000, OTHER, "early")) == 1
    assert list(checkpoints.mirror_checkpoints.values()) == [
        MirrorCheckpoint(Checkpoint("g", "A.t", 0, 5000, 2000), id_text(OTHER))
    ]


def test_offsets_are_committed_for_the_mirrors_that_were_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[dict[str, uuid.UUID]] = []

    async def look(*_where: Any) -> TargetGroups:
        return TargetGroups({"g": "Empty"}, {"g": {}}, {("A.t", 0): 9000}, {"A.t": Topic("A.t", ONE, False, {0: 1})})

    async def commit(_client: ClusterClient, wanted: Any, ids: dict[str, uuid.UUID]) -> dict[str, None]:
        named.append(ids)
        return dict.fromkeys(wanted)

    monkeypatch.setattr(heliograph.control.group_sync, "look_at_target", look)
    monkeypatch.setattr(heliograph.control.group_sync, "commit_offsets", commit)
    syncer = GroupSync(ClusterClient(Cluster("B", (("b", 9092),))))
    assert asyncio.run(syncer.run([MirrorCheckpoint(Checkpoint("g", "A.t", 0, 50, 50), id_text(ONE))])).written == ["g"]
    assert named == [{"A.t": ONE}]
