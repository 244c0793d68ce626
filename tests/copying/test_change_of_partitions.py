"""The partitions of a running lease change: those that stay are copied without a pause."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

import heliograph.copy.resume
from copying.lease import only, prepare, settled, until
from heliograph.copy.candidate import Candidate
from heliograph.copy.copier import Copier
from heliograph.copy.cursor import State
from heliograph.copy.signals import Change, change_command
from heliograph.copy.verify import verified
from heliograph.copy.work import Work
from heliograph.model.flow import Reading
from heliograph.model.internal_topics import COMMANDS, signals_topic
from heliograph.model.partitions import MirrorPartition
from heliograph.service.running_lease import RunningLease, lease_changes
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import own_topic, write
from logs import PATIENCE, Pair, some_records


def test_partitions_are_added_and_dropped_while_others_are_copied(pair: Pair, topic: str) -> None:
    stays, goes, comes = (f"{topic}-{name}" for name in ("stays", "goes", "comes"))
    for name in (stays, goes, comes):
        pair.a.create(name)
        pair.a.write(name, some_records(50))
    flow = only(pair.flow(), topic)

    async def main() -> None:
        partitions = {partition.topic: partition for partition in await prepare(flow)}
        earlier = Copier(Work(flow, "earlier", PATIENCE, (partitions[comes],)))  # so the ledger knows it already
        lease = asyncio.create_task(earlier.run())
        await until(lambda: settled(earlier))
        earlier.stop()
        await lease
        client = ClusterClient(flow.target)
        await client.connect()
        signals = await own_topic(client, signals_topic("A"))
        start = await write(client, signals, COMMANDS, [(b"nothing", b"")])
        work = Work(flow, "changing", PATIENCE, (partitions[stays], partitions[goes]), commands_from=start)
        copier = Copier(work)
        lease = asyncio.create_task(copier.run())
        await until(lambda: settled(copier))
        kept = next(cursor for cursor in copier.cursors if cursor.key.topic == stays)
        generation = kept.generation

        async def change(added: str | None, dropped: str | None) -> None:
            some = [(partitions[name],) if name else () for name in (added, dropped)]
            await write(client, signals, COMMANDS, [change_command({"changing": Change(*some)})])

        await change(comes, goes)
        await until(lambda: {cursor.key.topic for cursor in copier.cursors} == {stays, comes})
        for name in (stays, goes, comes):
            await asyncio.to_thread(pair.a.write, name, some_records(50))
        await until(
            lambda: all(cursor.position is not None and cursor.position.source == 100 for cursor in copier.cursors)
        )
        assert await asyncio.to_thread(pair.b.bounds, f"A.{goes}") == (0, 50)
        await change(goes, None)
        await until(lambda: len(copier.cursors) == 3 and settled(copier))
        assert kept.generation == generation  # it has never begun again
        back = next(cursor for cursor in copier.cursors if cursor.key.topic == goes)
        assert (back.copied.records, back.copied.stay) == (50, 1)
        copier.stop()
        outcome = await lease
        client.close()
        assert (outcome.refusals, outcome.notices) == ((), ())

    asyncio.run(main())
    for name in (stays, goes, comes):
        assert pair.a.read(name) == pair.b.read(f"A.{name}")


def test_a_partition_that_is_dropped_while_it_resumes_is_not_copied(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays, goes = (f"{topic}-{name}" for name in ("stays", "goes"))
    for name in (stays, goes):
        pair.a.create(name)
        pair.a.write(name, some_records(50))
    flow = only(pair.flow(), topic)

    async def main() -> None:
        partitions = {partition.topic: partition for partition in await prepare(flow)}
        copier = Copier(Work(flow, "dropping", PATIENCE, tuple(partitions.values())))

        async def drop_meanwhile(found: list[Candidate], *others: Any) -> list[Candidate]:
            passed = await verified(found, *others)
            copier.change(Change((), (partitions[goes],)))
            return passed

        monkeypatch.setattr(heliograph.copy.resume, "verified", drop_meanwhile)
        dropped = next(cursor for cursor in copier.cursors if cursor.key.topic == goes)
        lease = asyncio.create_task(copier.run())
        await until(lambda: dropped not in copier.cursors and settled(copier))
        assert dropped.state is State.DROPPED
        copier.stop()
        await lease

    asyncio.run(main())
    assert pair.b.bounds(f"A.{goes}") == (0, 0)
    assert pair.a.read(stays) == pair.b.read(f"A.{stays}")


@pytest.mark.parametrize("commands", [1, 2], ids=["in-one-command", "in-two"])
def test_a_partition_that_is_dropped_and_added_is_resumed_from_the_logs(pair: Pair, topic: str, commands: int) -> None:
    """Also in the middle of copying: what is in flight lands first."""
    pair.a.create(topic)
    pair.a.write(topic, some_records(20_000), per_batch=500)
    flow = replace(only(pair.flow(), topic), reading=Reading(max_partition_fetch_bytes=50_000))

    async def main() -> None:
        partitions = await prepare(flow)
        copier = Copier(Work(flow, "again", PATIENCE, partitions))
        lease = asyncio.create_task(copier.run())
        for number in range(1, 4):
            await until(lambda: copier.cursors[0].copied.records > 0 or settled(copier))
            before = copier.cursors[0]
            if commands == 1:
                copier.change(Change(partitions, partitions))
            else:
                copier.change(Change((), partitions))
                copier.change(Change(partitions, ()))
            (cursor,) = copier.cursors
            assert (before.state, cursor.copied.stay) == (State.DROPPED, number)
            assert cursor.is_settled == before.is_settled
            await until(lambda: copier.cursors[0].state is State.COPYING)
            assert before.is_settled
        await until(lambda: settled(copier))
        copier.stop()
        outcome = await lease
        assert (outcome.refusals, outcome.notices) == ((), ())

    asyncio.run(main())
    assert pair.a.read(topic) == pair.b.read(f"A.{topic}")


def test_leases_continue_unless_partitions_move_between_them() -> None:
    a, b, c, d, e = (MirrorPartition(name, name, 0) for name in "abcde")
    leases = [RunningLease("0", 0, (a, b)), RunningLease("1", 1, (c,)), RunningLease("2", 2, (d,))]
    assert lease_changes(leases, [(b, a), (c,), (d,)]) == ({}, [])
    assert lease_changes(leases, [(a,), (c, e), (d,)]) == ({"0": Change((), (b,)), "1": Change((e,), ())}, [])
    assert lease_changes(leases, [(a,), (c, b), (d, e)]) == ({"2": Change((e,), ())}, ["0", "1"])
    assert lease_changes(leases, [(a, b), (c,)]) == ({}, ["2"])
    assert lease_changes(leases, [(a,), (c,), (d,), (b, e)]) == ({}, ["0"])  # the fourth does not run yet
