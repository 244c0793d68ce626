"""The ledger over time: what is past leaves it, and what is far back is read again only when a group asks for it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

import heliograph.control.pruning
import heliograph.copy.ledger
from copying.lease import copy, only
from heliograph.control.pruning import prune
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow, Groups, Reading
from heliograph.model.names import NameFilter
from heliograph.service.keeper import Keeper
from heliograph.wire.cluster import ClusterClient, id_text
from logs import Pair, on, some_records

ALIAS = "L"  # no other tests write to its ledger


def _flow(pair: Pair, topic: str) -> Flow:
    """With an entry in the ledger for nearly every transaction, and a ledger of its own."""
    groups = Groups(NameFilter((f"{topic}-g.*",)), 600.0, 60.0, 60.0, 1)
    source = replace(pair.a.cluster, alias=ALIAS)
    return replace(
        only(pair.flow(), topic), source=source, reading=Reading(max_partition_fetch_bytes=200), groups=groups
    )


def _prune(flow: Flow) -> int:
    async def main() -> int:
        source, target = ClusterClient(flow.source), ClusterClient(flow.target)
        try:
            return await prune(flow, source, target)
        finally:
            source.close()
            target.close()

    return asyncio.run(main())


def _read(pair: Pair, topic: str, do: Callable[[Ledger], Any]) -> Any:
    async def main(client: ClusterClient) -> Any:
        ledger = Ledger(client, ALIAS)
        await ledger.catch_up()
        return do(ledger)

    return on(pair.b, main)


def _id(log: Any, topic: str) -> str:
    async def main(client: ClusterClient) -> str:
        return id_text((await client.metadata([topic])).topics[topic].id)

    return str(on(log, main))


def test_what_both_logs_have_lost_leaves_the_ledger_and_nothing_else_changes(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    for number in range(12):
        pair.a.transaction(topic, 3, commit=number % 4 != 3)
    flow, place, mirror = _flow(pair, topic), (topic, 0), f"{ALIAS}.{topic}"
    copy(flow)
    source_id, mirror_id = _id(pair.a, topic), _id(pair.b, mirror)
    end = pair.b.bounds(mirror)[1]

    def answers(ledger: Ledger) -> list[int | None]:
        return [ledger.of(place, mirror_id).target_of(source, source_id, end) for source in range(24, 50)]

    def known(ledger: Ledger) -> int:
        return len(list(ledger.of(place, mirror_id)))

    assert _prune(flow) == 0
    pair.a.delete_before(topic, 0, 24)
    assert _prune(flow) == 0  # the mirror has them still
    pair.b.delete_before(mirror, 0, 15)
    before, many = _read(pair, topic, answers), _read(pair, topic, known)
    assert _prune(flow) > 2
    assert _read(pair, topic, answers) == before
    assert _read(pair, topic, known) < many
    assert _prune(flow) == 0
    pair.a.write(topic, some_records(5))
    outcome = copy(flow)
    assert (outcome.refusals, outcome.notices) == ((), ())
    assert pair.b.read(mirror)[-10:] == pair.a.read(topic)[-10:]


def test_a_mirror_that_is_gone_leaves_no_more_than_a_trace(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.a.create(topic)
    for _ in range(3):
        pair.a.transaction(topic, 3)
    flow, mirror = _flow(pair, topic), f"{ALIAS}.{topic}"
    copy(flow)
    first = _id(pair.b, mirror)
    pair.b.delete(mirror)
    assert _prune(flow) == 0
    copy(flow)
    second = _id(pair.b, mirror)

    def mirrors(ledger: Ledger) -> dict[str, int]:
        return {one: len(list(known)) for one, known in ledger.all_of((topic, 0)).items()}

    assert _read(pair, topic, mirrors).keys() == {first, second}
    assert _prune(flow) > 0
    assert _read(pair, topic, mirrors).keys() == {second}
    pair.a.delete(topic)
    pair.b.delete(mirror)
    assert _prune(flow) == 0  # it may be back in a moment
    monkeypatch.setattr(heliograph.control.pruning, "_GONE_AFTER", -60_000)
    assert _prune(flow) > 0
    assert _read(pair, topic, mirrors) == {second: 1}


def test_the_ledger_is_read_again_only_when_a_group_is_further_back_than_before(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.a.create(topic)
    for _ in range(10):
        pair.a.transaction(topic, 3)
    flow = _flow(pair, topic)
    copy(flow)
    monkeypatch.setattr(heliograph.copy.ledger, "_KEEP", 2)
    recalled: list[object] = []
    recall = Ledger.recall

    async def counted(ledger: Ledger, partitions: Any) -> None:
        recalled.append(partitions)
        await recall(ledger, partitions)

    monkeypatch.setattr(Ledger, "recall", counted)

    async def rounds(keeper: Keeper) -> None:
        for position, expected, reads in (
            (39, 30, 0),  # at the end
            (9, 7, 1),
            (9, 7, 1),
            (14, 11, 1),
            (39, 30, 1),
            (2, 2, 2),
            (2, 2, 2),
        ):
            await asyncio.to_thread(pair.a.commit, f"{topic}-g", topic, position)
            await keeper.translate_once()
            latest = keeper.checkpoints.latest[f"{topic}-g", f"{ALIAS}.{topic}", 0]
            assert (latest.upstream, latest.downstream) == (position, expected)
            assert len(recalled) == reads, position
            if position == 39:
                assert len(list(keeper._ledger.of((topic, 0), mirror_id))) <= 4

    mirror_id = _id(pair.b, f"{ALIAS}.{topic}")
    _keep(flow, rounds)


def _keep(flow: Flow, do: Callable[[Keeper], Awaitable[None]]) -> None:
    async def main() -> None:
        keeper = Keeper(flow)
        try:
            await keeper.prepare()
            await do(keeper)
        finally:
            keeper.close()

    asyncio.run(main())
