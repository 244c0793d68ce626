"""The ledger, packed and pruned, gives the same answers; also where packing crashes or meets another that packs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import heliograph.control.packing
import heliograph.copy.ledger
import heliograph.model.pages
import heliograph.wire.records
from control.ledger import PARTITION, all_intervals, flow_with_gaps, put, some_intervals, with_clients
from copying.lease import copy
from heliograph.control.checkpoints import Checkpoints
from heliograph.control.packing import Packer
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.model.intervals import Interval
from heliograph.model.ledger_records import JOURNAL, JournalEntry
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.metadata import id_text
from heliograph.wire.records import own_topic, read_all
from logs import Pair, on, some_records


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heliograph.model.pages, "PAGE", 3)


def _pack(flow: Flow, prune: bool = False) -> int:
    async def do(source: ClusterClient, target: ClusterClient) -> int:
        packer = Packer(flow, source, target, Ledger(target, flow.source.alias))
        return await (packer.prune() if prune else packer.pack())

    return int(with_clients(flow, do))


def _read(flow: Flow, do: Callable[[Ledger], Awaitable[Any]]) -> Any:
    async def main(_source: ClusterClient, target: ClusterClient) -> Any:
        ledger = Ledger(target, flow.source.alias)
        await ledger.catch_up()
        return await do(ledger)

    return with_clients(flow, main)


def _id(log: Any, topic: str) -> str:
    async def main(client: ClusterClient) -> str:
        return id_text((await client.metadata([topic])).topics[topic].id)

    return str(on(log, main))


def test_a_packed_ledger_gives_the_same_answers_and_is_pruned(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    for number in range(12):
        pair.a.transaction(topic, 3, commit=number % 4 != 3)
    flow, partition, mirror = flow_with_gaps(pair, topic), (topic, 0), f"{topic}.{topic}"
    copy(flow)
    source_id, mirror_id = _id(pair.a, topic), _id(pair.b, mirror)
    end = pair.b.bounds(mirror)[1]

    async def answers(ledger: Ledger) -> list[int | None]:
        return [
            await ledger.ask(partition, mirror_id, lambda some, at=source: some.target_of(at, source_id, end))  # type: ignore[misc]
            for source in range(24, 50)
        ]

    async def known(ledger: Ledger) -> int:
        return len(ledger.of(partition, mirror_id))

    before, many = _read(flow, answers), _read(flow, known)
    assert _pack(flow) == 1
    assert _read(flow, answers) == before
    assert _pack(flow, prune=True) == 0
    pair.a.delete_before(topic, 0, 24)
    assert _pack(flow, prune=True) == 0  # the mirror has them still
    pair.b.delete_before(mirror, 0, 15)
    assert _pack(flow, prune=True) == 1
    assert _read(flow, answers) == before
    assert _read(flow, known) < many
    assert _pack(flow, prune=True) == 0
    pair.a.write(topic, some_records(5))
    outcome = copy(flow)
    assert (outcome.refusals, outcome.notices) == ((), ())
    assert pair.b.read(mirror)[-10:] == pair.a.read(topic)[-10:]


def test_a_mirror_that_is_gone_keeps_one_page(pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.a.create(topic)
    for _ in range(5):
        pair.a.transaction(topic, 3)
    flow, mirror = flow_with_gaps(pair, topic), f"{topic}.{topic}"
    copy(flow)
    first = _id(pair.b, mirror)
    pair.b.delete(mirror)
    assert _pack(flow, prune=True) == 0
    copy(flow)
    second = _id(pair.b, mirror)

    async def mirrors(ledger: Ledger) -> dict[str, int]:
        return {mirror_id: len(known) for mirror_id, known in ledger.all_of((topic, 0)).items()}

    assert _read(flow, mirrors).keys() == {first, second}
    assert _pack(flow) == 2
    assert _pack(flow, prune=True) == 1
    assert _read(flow, mirrors).keys() == {second}
    pair.a.delete(topic)
    pair.b.delete(mirror)
    assert _pack(flow, prune=True) == 0  # it may be back in a moment
    monkeypatch.setattr(heliograph.control.packing, "_GONE_AFTER", -60_000)
    assert _pack(flow, prune=True) == 1
    assert 0 < _read(flow, mirrors)[second] <= 3


def test_a_page_is_read_once_when_a_group_needs_it(pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.a.create(topic)
    for _ in range(10):
        pair.a.transaction(topic, 3)
    flow = flow_with_gaps(pair, topic)
    copy(flow)
    _pack(flow)
    mirror_id = _id(pair.b, f"{topic}.{topic}")

    async def inside(ledger: Ledger) -> list[tuple[int, int]]:
        """Source and mirror offset of an interval amid each page."""
        rows = await ledger.ask((topic, 0), mirror_id, lambda intervals: list(intervals))
        stored = [page for page in ledger.of((topic, 0), mirror_id).pages if page.location >= 0]
        return [(rows[3 * number + 1].source, rows[3 * number + 1].target) for number in range(len(stored))]

    first, second, *_others = _read(flow, inside)
    loaded: list[int] = []
    load = Ledger._load_page

    async def counted(ledger: Ledger, partition: Any, mirror_id: str, page: Any) -> None:
        loaded.append(page.location)
        await load(ledger, partition, mirror_id, page)

    monkeypatch.setattr(Ledger, "_load_page", counted)

    async def check(syncers: FlowSyncers) -> None:
        end = (39, 30)
        rounds = ((end, 0), (first, 1), (first, 1), (end, 1), (second, 2), (first, 2), (end, 2))
        for (position, expected), reads in rounds:
            await asyncio.to_thread(pair.a.commit, f"{topic}-g", topic, position)
            await syncers.translate_once()
            latest = syncers.checkpoints.latest[f"{topic}-g", f"{topic}.{topic}", 0]
            assert (latest.upstream, latest.downstream) == (position, expected)
            assert len(loaded) == reads, position

    async def main() -> None:
        syncers = FlowSyncers(flow)
        try:
            await syncers.prepare()
            await check(syncers)
        finally:
            syncers.close()

    asyncio.run(main())


def test_a_lease_gets_an_excerpt_of_a_long_history_and_resumes(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heliograph.copy.ledger, "_AROUND", 3)
    pair.a.create(topic)
    for _ in range(30):
        pair.a.transaction(topic, 2)
    flow, partition, mirror = flow_with_gaps(pair, topic), (topic, 0), f"{topic}.{topic}"
    copy(flow)
    _pack(flow)
    mirror_id = _id(pair.b, mirror)

    async def do(_source: ClusterClient, target: ClusterClient) -> None:
        ledger = Ledger(target, topic)
        await ledger.catch_up()
        whole = await ledger.ask(partition, mirror_id, lambda intervals: list(intervals))
        for position in (0, 20, 60, None):
            handed = Ledger(target, topic, ledger.hand_over({partition: position}))
            near = 60 if position is None else position
            intervals = handed.of(partition, mirror_id)
            assert intervals.covering(near) == ledger.of(partition, mirror_id).covering(near)
            assert await handed.ask(partition, mirror_id, lambda intervals: list(intervals)) == whole
            await handed.catch_up()
            assert await handed.ask(partition, mirror_id, lambda intervals: list(intervals)) == whole

    with_clients(flow, do)


def test_a_lease_reads_for_itself_what_it_was_not_handed_also_when_nothing_is_packed(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heliograph.copy.ledger, "_AROUND", 3)

    async def do(_source: ClusterClient, target: ClusterClient) -> None:
        driver, other = Ledger(target, topic), Ledger(target, topic)
        for row in some_intervals(range(30)):
            await put(other, row.target, row.source)
        await driver.catch_up()
        handed = driver.hand_over({PARTITION: 20})
        lease, later = Ledger(target, topic, handed), Ledger(target, topic, handed)
        assert await all_intervals(lease) == some_intervals(range(30))
        # What others write about offsets that it was not handed, and what it writes about them itself.
        await put(other, 5, 11)
        await later.catch_up()
        assert await all_intervals(later) == [
            *some_intervals(range(5)),
            Interval(5, 11, 1, "s"),
            *some_intervals(range(6, 30)),
        ]
        last = Ledger(target, topic, handed)
        await put(last, 6, 12)
        await put(last, 30, 60)
        await last.catch_up()
        reader = Ledger(target, topic)
        await reader.catch_up()
        assert (
            await all_intervals(last)
            == await all_intervals(reader)
            == [
                *(
                    *some_intervals(range(5)),
                    Interval(5, 11, 1, "s"),
                    Interval(6, 12, 1, "s"),
                    *some_intervals(range(7, 31)),
                )
            ]
        )

    with_clients(flow_with_gaps(pair, topic), do)


def test_a_question_may_take_more_pages_than_are_kept(pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heliograph.copy.ledger_memory, "_MAX_PAGES", 1)
    pair.a.create(topic)
    for _ in range(20):
        pair.a.transaction(topic, 1)
    for number in range(3):
        pair.a.commit(f"{topic}-g{number}", topic, 12 * number + 1)
    flow = flow_with_gaps(pair, topic)
    copy(flow)
    _pack(flow)

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        ledger = Ledger(target, topic)
        checkpoints = Checkpoints(flow, source, target, ledger)
        await checkpoints.refresh_groups()
        assert (await checkpoints.run()).missing == []
        found = {key[0][-1]: checkpoint.downstream for key, checkpoint in checkpoints.latest.items()}
        assert found == {"0": 1, "1": 7, "2": 13}
        mirror_id = (await target.metadata([f"{topic}.{topic}"])).topics[f"{topic}.{topic}"].id
        intervals = await ledger.ask((topic, 0), id_text(mirror_id), lambda intervals: list(intervals))
        assert len(intervals) > 3 * heliograph.model.pages.PAGE
        assert len(ledger._memory.pages) == 1

    with_clients(flow, do)


# --- packing that crashes, or meets another ----------------------------------------------------------------------


def test_packing_with_an_older_state_changes_nothing(pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One packs while another, who has read less, is about to: whatever lands last, all entries are known."""
    monkeypatch.setattr(heliograph.control.packing, "_TRIM_AFTER", 0.0)
    flow = flow_with_gaps(pair, topic)

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        writer, slow, fast = (Ledger(target, topic) for _ in range(3))
        for row in some_intervals(range(10)):
            await writer.append([JournalEntry(PARTITION, "m", (row,))])
        await slow.catch_up()

        async def nothing() -> Any:
            return await own_topic(target, slow.topic)

        monkeypatch.setattr(slow, "catch_up_locked", nothing)
        for row in some_intervals(range(10, 20)):
            await writer.append([JournalEntry(PARTITION, "m", (row,))])
        assert await Packer(flow, source, target, fast).pack() == 1
        assert await Packer(flow, source, target, slow).pack() == 1
        reader = Ledger(target, topic)
        await reader.catch_up()
        assert await all_intervals(reader) == some_intervals(range(20))
        # The next round deletes what does not count, and the journal's beginning.
        await writer.append([JournalEntry(PARTITION, "m", (row,)) for row in some_intervals(range(20, 22))])
        packer = Packer(flow, source, target, reader)
        assert await packer.pack() == 1
        assert await packer.pack() == 0
        topic_now = await own_topic(target, reader.topic)
        journal = [record async for record in read_all(target, topic_now, JOURNAL)]
        assert journal == []
        again = Ledger(target, topic)
        await again.catch_up()
        assert await all_intervals(again) == some_intervals(range(22))
        assert not again.index.beaten
        # A lease that was reading the journal continues with the index.
        await fast.catch_up()
        assert await all_intervals(fast) == some_intervals(range(22))

    with_clients(flow, do)


def test_a_crash_while_packing_leaves_the_old_form_or_the_new(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packing ends before each of its writes in turn; the ledger says the same after every one."""
    flow = flow_with_gaps(pair, topic)
    writes: list[int] = []

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        writer = Ledger(target, topic)
        whole: list[Interval] = []
        for allowed in range(8):
            new = some_intervals(range(len(whole), len(whole) + 7))
            whole += new
            for row in new:
                await writer.append([JournalEntry(PARTITION, "m", (row,))])
            writes.clear()
            for name in ("append_records", "write_records"):
                real = getattr(heliograph.wire.records, name)

                async def limited(*args: Any, _real: Any = real, _allowed: int = allowed) -> Any:
                    if len(writes) >= _allowed:
                        raise ConnectionError("crashed")
                    writes.append(1)
                    return await _real(*args)

                monkeypatch.setattr(heliograph.control.packing, name, limited)
            packer = Packer(flow, source, target, Ledger(target, topic))
            try:
                await packer.pack()
            except ConnectionError:
                assert allowed < 7
            reader = Ledger(target, topic)
            await reader.catch_up()
            assert await all_intervals(reader) == whole, allowed

    with_clients(flow, do)
