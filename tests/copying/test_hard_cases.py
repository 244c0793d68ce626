"""Schedules that once went wrong, or could: each found by attacking the copier."""

import asyncio
import dataclasses
import socket
import time
from typing import Any

import pytest

from copying.lease import copy, only, prepare, until
from heliograph.copy.copier import Copier
from heliograph.copy.ledger import Ledger
from heliograph.copy.work import Work
from heliograph.copy.writer import Writer
from heliograph.model.flow import Cluster
from heliograph.model.intervals import Interval
from heliograph.model.ledger_records import JournalEntry
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.fetch import FetchSession
from heliograph.wire.fetch_response import Fetched
from logs import PATIENCE, Pair, Record, some_records


def test_when_the_first_batch_is_refused_no_other_takes_its_offset(pair: Pair, topic: str) -> None:
    """A broker that does not know a producer takes any sequence as its first."""
    pair.a.create(topic)
    pair.b.create(f"A.{topic}", max_message_bytes="50000")
    pair.a.write(topic, [Record(0, 1, b"big", b"x" * 100_000)])
    pair.a.write(topic, some_records(60), per_batch=10)
    (refusal,) = copy(dataclasses.replace(only(pair.flow(), topic), may_raise_limits=False)).refusals
    assert (refusal.reason, refusal.source_offset) == ("too-large", 0)
    assert pair.b.bounds(f"A.{topic}") == (0, 0)


def test_damaged_data_stops_the_partition_after_the_batches_before_it(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(100), per_batch=10)

    whole = FetchSession.fetch

    async def damaging(*arguments: Any) -> list[Fetched]:
        answers = await whole(*arguments)
        return [
            dataclasses.replace(answer, data=_flip(answer.data, 0.55)) if answer.data else answer for answer in answers
        ]

    monkeypatch.setattr(FetchSession, "fetch", damaging)
    (refusal,) = copy(only(pair.flow(), topic)).refusals
    assert (refusal.reason, refusal.source_offset, refusal.target_offset) == ("damaged", 50, 50)
    assert pair.b.bounds(f"A.{topic}") == (0, 50)
    monkeypatch.undo()
    assert copy(only(pair.flow(), topic)).refusals == ()
    assert pair.b.read(f"A.{topic}") == pair.a.read(topic)


def _flip(data: memoryview, where: float) -> memoryview:
    damaged = bytearray(data)
    damaged[int(len(data) * where)] ^= 0x01
    return memoryview(bytes(damaged))


def test_a_copier_that_wakes_up_after_its_deadline_sends_nothing(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(50))
    flow = only(pair.flow(), topic)

    async def main() -> None:
        copier = Copier(Work(flow, "late", 0.3, await prepare(flow)))
        lease = asyncio.create_task(copier.run())
        await asyncio.sleep(0)
        time.sleep(0.5)  # as if the process had been stopped meanwhile
        assert (await lease).records == 0

    asyncio.run(main())
    assert pair.b.bounds(f"A.{topic}") == (0, 0)


def test_a_dead_bootstrap_address_does_not_block_the_others(pair: Pair) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # takes connections and never says a word
        addresses = (("127.0.0.1", int(silent.getsockname()[1])), *pair.a.cluster.bootstrap_servers)

        async def main() -> None:
            client = ClusterClient(Cluster("A", addresses, request_timeout=10 * PATIENCE))
            async with asyncio.timeout(PATIENCE):
                await client.connect()
            client.close()

        asyncio.run(main())


def test_thousands_of_new_mirrors_are_recorded_at_once(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    asyncio.run(prepare(only(pair.flow(), topic)))  # makes the internal topics
    entries = [((f"{topic}-{number % 20}", number), Interval(0, number, 0, "s" * 32)) for number in range(9000)]

    async def main() -> None:
        client = ClusterClient(pair.b.cluster)
        await Ledger(client, "A").append([JournalEntry(place, "m" * 32, (interval,)) for place, interval in entries])
        again = Ledger(client, "A")
        await again.catch_up()
        assert all(list(again.of(place, "m" * 32)) == [interval] for place, interval in entries)
        client.close()

    asyncio.run(main())


def test_a_lease_whose_task_fails_ends_with_its_error(pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.a.create(topic)

    async def broken(*_arguments: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Ledger, "catch_up", broken)
    with pytest.raises(ZeroDivisionError):
        copy(only(pair.flow(), topic))


def test_a_lease_whose_callback_fails_ends_with_its_error(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop calls it with the response to an append, and would only log the error."""
    pair.a.create(topic)
    pair.a.write(topic, some_records(1))

    def broken(*_arguments: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Writer, "_handle", broken)
    with pytest.raises(ZeroDivisionError):
        copy(only(pair.flow(), topic))


def test_a_partition_without_a_leader_is_reported_as_waiting(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    flow = only(pair.flow(), topic)
    copy(flow)
    pair.b.delete(f"A.{topic}")
    pair.a.write(topic, some_records(10))

    async def main() -> None:
        partitions = await prepare(flow)
        pair_gone = tuple(dataclasses.replace(partition, mirror=f"{partition.mirror}-gone") for partition in partitions)
        copier = Copier(Work(flow, "waiting", PATIENCE, pair_gone))
        lease = asyncio.create_task(copier.run())
        await until(lambda: copier.cursors[0].retry.waiting is not None)
        copier.stop()
        (waiting,) = (await lease).refusals
        assert (waiting.reason, waiting.final) == ("waiting", False)
        assert "is waiting" in str(waiting)

    asyncio.run(main())
