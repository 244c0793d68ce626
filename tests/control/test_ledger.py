"""The ledger over time: packed and pruned it gives the same answers, whoever packs, whatever happens to its topic."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

import heliograph.control.packing
import heliograph.copy.ledger
import heliograph.model.pages
import heliograph.wire.records
from copying.lease import copy, only
from heliograph.control.checkpoints import Checkpoints
from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.control.packing import Packer
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow, Groups, Reading
from heliograph.model.internal_topics import intervals_topic
from heliograph.model.intervals import Interval
from heliograph.model.ledger_records import INDEX, JOURNAL, PAGES, JournalEntry, NewerFormat, Start
from heliograph.model.names import NameFilter
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.cluster import ClusterClient, id_text
from heliograph.wire.records import own_topic, read_all, write
from logs import Pair, on, some_records

PLACE = ("orders", 0)


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heliograph.model.pages, "PAGE", 3)


def _flow(pair: Pair, topic: str) -> Flow:
    """With an entry in the ledger for nearly every transaction, and a ledger of its own."""
    groups = Groups(NameFilter((f"{topic}-g.*",)), 600.0, 60.0, 60.0, 1)
    source = replace(pair.a.cluster, alias=topic)
    return replace(
        only(pair.flow(), topic), source=source, reading=Reading(max_partition_fetch_bytes=200), groups=groups
    )


@asynccontextmanager
async def _clients(flow: Flow) -> AsyncIterator[tuple[ClusterClient, ClusterClient]]:
    source, target = ClusterClient(flow.source), ClusterClient(flow.target)
    try:
        await ensure_internal_topics(flow, source, target)
        yield source, target
    finally:
        source.close()
        target.close()


def _with_clients(flow: Flow, do: Callable[[ClusterClient, ClusterClient], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with _clients(flow) as (source, target):
            return await do(source, target)

    return asyncio.run(main())


def _pack(flow: Flow, prune: bool = False) -> int:
    async def do(source: ClusterClient, target: ClusterClient) -> int:
        packer = Packer(flow, source, target, Ledger(target, flow.source.alias))
        return await (packer.prune() if prune else packer.pack())

    return int(_with_clients(flow, do))


def _read(flow: Flow, do: Callable[[Ledger], Awaitable[Any]]) -> Any:
    async def main(_source: ClusterClient, target: ClusterClient) -> Any:
        ledger = Ledger(target, flow.source.alias)
        await ledger.catch_up()
        return await do(ledger)

    return _with_clients(flow, main)


def _id(log: Any, topic: str) -> str:
    async def main(client: ClusterClient) -> str:
        return id_text((await client.metadata([topic])).topics[topic].id)

    return str(on(log, main))


async def _put(ledger: Ledger, target: int, source: int, count: int = 1) -> None:
    await ledger.append([JournalEntry(PLACE, "m", (Interval(target, source, count, "s"),))])


async def _all(ledger: Ledger) -> list[Interval]:
    return list(await ledger.ask(PLACE, "m", lambda intervals: list(intervals)))


def _rows(numbers: Iterator[int] | range) -> list[Interval]:
    """One record and then a marker, again and again."""
    return [Interval(number, 2 * number, 1, "s") for number in numbers]


# --- with a mirror ------------------------------------------------------------------------------------------------


def test_a_packed_ledger_gives_the_same_answers_and_is_pruned(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    for number in range(12):
        pair.a.transaction(topic, 3, commit=number % 4 != 3)
    flow, place, mirror = _flow(pair, topic), (topic, 0), f"{topic}.{topic}"
    copy(flow)
    source_id, mirror_id = _id(pair.a, topic), _id(pair.b, mirror)
    end = pair.b.bounds(mirror)[1]

    async def answers(ledger: Ledger) -> list[int | None]:
        return [
            await ledger.ask(place, mirror_id, lambda some, at=source: some.target_of(at, source_id, end))  # type: ignore[misc]
            for source in range(24, 50)
        ]

    async def known(ledger: Ledger) -> int:
        return len(ledger.of(place, mirror_id))

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
    flow, mirror = _flow(pair, topic), f"{topic}.{topic}"
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
    flow = _flow(pair, topic)
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
    flow, place, mirror = _flow(pair, topic), (topic, 0), f"{topic}.{topic}"
    copy(flow)
    _pack(flow)
    mirror_id = _id(pair.b, mirror)

    async def do(_source: ClusterClient, target: ClusterClient) -> None:
        ledger = Ledger(target, topic)
        await ledger.catch_up()
        whole = await ledger.ask(place, mirror_id, lambda intervals: list(intervals))
        for position in (0, 20, 60, None):
            handed = Ledger(target, topic, ledger.hand_over({place: position}))
            near = 60 if position is None else position
            intervals = handed.of(place, mirror_id)
            assert intervals.covering(near) == ledger.of(place, mirror_id).covering(near)
            assert await handed.ask(place, mirror_id, lambda intervals: list(intervals)) == whole
            await handed.catch_up()
            assert await handed.ask(place, mirror_id, lambda intervals: list(intervals)) == whole

    _with_clients(flow, do)


def test_a_lease_reads_for_itself_what_it_was_not_handed_also_when_nothing_is_packed(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heliograph.copy.ledger, "_AROUND", 3)

    async def do(_source: ClusterClient, target: ClusterClient) -> None:
        driver, other = Ledger(target, topic), Ledger(target, topic)
        for row in _rows(range(30)):
            await _put(other, row.target, row.source)
        await driver.catch_up()
        handed = driver.hand_over({PLACE: 20})
        lease, later = Ledger(target, topic, handed), Ledger(target, topic, handed)
        assert await _all(lease) == _rows(range(30))
        # What others write about offsets that it was not handed, and what it writes about them itself.
        await _put(other, 5, 11)
        await later.catch_up()
        assert await _all(later) == [*_rows(range(5)), Interval(5, 11, 1, "s"), *_rows(range(6, 30))]
        last = Ledger(target, topic, handed)
        await _put(last, 6, 12)
        await _put(last, 30, 60)
        await last.catch_up()
        reader = Ledger(target, topic)
        await reader.catch_up()
        assert (
            await _all(last)
            == await _all(reader)
            == [*(*_rows(range(5)), Interval(5, 11, 1, "s"), Interval(6, 12, 1, "s"), *_rows(range(7, 31)))]
        )

    _with_clients(_flow(pair, topic), do)


def test_a_question_may_take_more_pages_than_are_kept(pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heliograph.copy.ledger_memory, "_MAX_PAGES", 1)
    pair.a.create(topic)
    for _ in range(20):
        pair.a.transaction(topic, 1)
    for number in range(3):
        pair.a.commit(f"{topic}-g{number}", topic, 12 * number + 1)
    flow = _flow(pair, topic)
    copy(flow)
    _pack(flow)

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        ledger = Ledger(target, topic)
        checkpoints = Checkpoints(flow, source, target, ledger)
        await checkpoints.refresh_groups()
        assert (await checkpoints.run()).missing == []
        found = {place[0][-1]: one.downstream for place, one in checkpoints.latest.items()}
        assert found == {"0": 1, "1": 7, "2": 13}
        mirror_id = (await target.metadata([f"{topic}.{topic}"])).topics[f"{topic}.{topic}"].id
        intervals = await ledger.ask((topic, 0), id_text(mirror_id), lambda intervals: list(intervals))
        assert len(intervals) > 3 * heliograph.model.pages.PAGE
        assert len(ledger._memory.pages) == 1

    _with_clients(flow, do)


# --- who writes at the same time ----------------------------------------------------------------------------------


def test_a_late_decision_does_not_count_and_its_author_knows(pair: Pair, topic: str) -> None:
    """Two copiers begin together; the slower one writes its decision when the faster one has planned on."""

    async def do(_source: ClusterClient, target: ClusterClient) -> None:
        fast, slow = Ledger(target, topic), Ledger(target, topic)
        decision = JournalEntry(PLACE, "m", (Interval(0, 0, 0, "s"),))
        await fast.catch_up()
        await slow.catch_up()
        seen = slow.next_offset
        assert await fast.append([replace(decision, seen=fast.next_offset)]) == [True]
        for row in _rows(range(10)):
            await fast.append([JournalEntry(PLACE, "m", (row,))])
        late = replace(decision, seen=seen)
        assert await slow.append([late]) == [False]
        reader = Ledger(target, topic)
        await reader.catch_up()
        assert await _all(reader) == await _all(slow) == _rows(range(10))
        # Who has read everything decides; its own entries of the same moment do not speak against that.
        cut = JournalEntry(PLACE, "m", (Interval(5, 100, 0, "s"),))
        seen = slow.next_offset
        await slow.append([JournalEntry(PLACE, "m", (Interval(4, 8, 1, "s"),))])
        assert await slow.append([replace(cut, seen=seen)]) == [True]
        await reader.catch_up()
        assert await _all(reader) == [*_rows(range(5)), cut.intervals[0]]

    _with_clients(_flow(pair, topic), do)


def test_who_writes_alone_does_not_read_its_entries_again(pair: Pair, topic: str) -> None:
    async def do(_source: ClusterClient, target: ClusterClient) -> None:
        ledger, other = Ledger(target, topic), Ledger(target, topic)
        await ledger.catch_up()
        seen, fetched = ledger.next_offset, []
        original = heliograph.wire.records.read

        def counting(*args: Any) -> Any:
            fetched.append(args)
            return original(*args)

        with patch("heliograph.copy.ledger.read", counting):
            for row in _rows(range(10)):
                assert await ledger.append([JournalEntry(PLACE, "m", (row,), seen=seen)]) == [True]
            assert fetched == []
            await other.catch_up()
            assert await other.append([JournalEntry(("another", 0), "n", (Interval(0, 0, 1, "s"),))]) == [True]
            fetched.clear()
            row = _rows(range(11))[-1]
            assert await ledger.append([JournalEntry(PLACE, "m", (row,), seen=seen)]) == [True], "of another partition"
            assert fetched
        await other.catch_up()
        assert await _all(other) == await _all(ledger) == _rows(range(11))
        assert ledger.next_offset == other.next_offset

    _with_clients(_flow(pair, topic), do)


def test_packing_with_an_older_state_changes_nothing(pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One packs while another, who has read less, is about to: whatever lands last, all entries are known."""
    monkeypatch.setattr(heliograph.control.packing, "_TRIM_AFTER", 0.0)
    flow = _flow(pair, topic)

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        writer, slow, fast = (Ledger(target, topic) for _ in range(3))
        for row in _rows(range(10)):
            await writer.append([JournalEntry(PLACE, "m", (row,))])
        await slow.catch_up()

        async def nothing() -> Any:
            return await own_topic(target, slow.topic)

        monkeypatch.setattr(slow, "catch_up_locked", nothing)
        for row in _rows(range(10, 20)):
            await writer.append([JournalEntry(PLACE, "m", (row,))])
        assert await Packer(flow, source, target, fast).pack() == 1
        assert await Packer(flow, source, target, slow).pack() == 1
        reader = Ledger(target, topic)
        await reader.catch_up()
        assert await _all(reader) == _rows(range(20))
        # The next round deletes what does not count, and the journal's beginning.
        await writer.append([JournalEntry(PLACE, "m", (row,)) for row in _rows(range(20, 22))])
        packer = Packer(flow, source, target, reader)
        assert await packer.pack() == 1
        assert await packer.pack() == 0
        topic_now = await own_topic(target, reader.topic)
        journal = [record async for record in read_all(target, topic_now, JOURNAL)]
        assert journal == []
        again = Ledger(target, topic)
        await again.catch_up()
        assert await _all(again) == _rows(range(22))
        assert not again.index.beaten
        # A lease that was reading the journal continues with the index.
        await fast.catch_up()
        assert await _all(fast) == _rows(range(22))

    _with_clients(flow, do)


def test_a_crash_while_packing_leaves_the_old_form_or_the_new(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packing ends before each of its writes in turn; the ledger says the same after every one."""
    flow = _flow(pair, topic)
    writes: list[int] = []

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        writer = Ledger(target, topic)
        whole: list[Interval] = []
        for allowed in range(8):
            new = _rows(range(len(whole), len(whole) + 7))
            whole += new
            for row in new:
                await writer.append([JournalEntry(PLACE, "m", (row,))])
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
            assert await _all(reader) == whole, allowed

    _with_clients(flow, do)


# --- what may happen to its topic ---------------------------------------------------------------------------------


def test_a_recreated_ledger_topic_is_written_again(pair: Pair, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    flow = _flow(pair, topic)
    caplog.set_level(logging.WARNING, "heliograph")

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        ledger, lease = Ledger(target, topic), Ledger(target, topic)
        for row in _rows(range(3)):
            await _put(ledger, row.target, row.source)
        await Packer(flow, source, target, ledger).pack()
        for row in _rows(range(3, 5)):
            await _put(ledger, row.target, row.source)
        await ledger.catch_up()
        await lease.catch_up()
        await asyncio.to_thread(pair.b.delete, ledger.topic)
        await ensure_internal_topics(flow, source, target)
        assert await Packer(flow, source, target, ledger).pack_if_due() == 1
        await ledger.catch_up()
        messages = [record.getMessage() for record in caplog.records if ledger.topic in record.getMessage()]
        happened = f"internal topic {ledger.topic} was deleted and created again"
        assert messages == [f"{happened}; what is known of its intervals is written again"]
        await _put(ledger, 5, 10)
        await lease.catch_up()
        reader = Ledger(target, topic)
        await reader.catch_up()
        assert await _all(reader) == await _all(ledger) == await _all(lease) == _rows(range(6))

    _with_clients(flow, do)


def test_decisions_count_again_in_a_topic_that_is_created_again(pair: Pair, topic: str) -> None:
    flow = _flow(pair, topic)

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        ledger, other = Ledger(target, topic), Ledger(target, topic)
        for row in _rows(range(5)):
            await _put(other, row.target, row.source)
        await ledger.catch_up()
        decision = JournalEntry(PLACE, "m", (Interval(5, 20, 0, "s"),))
        assert await ledger.append([replace(decision, seen=ledger.next_offset)]) == [True]
        await asyncio.to_thread(pair.b.delete, ledger.topic)
        await ensure_internal_topics(flow, source, target)
        await ledger.catch_up()
        decision = JournalEntry(PLACE, "m", (Interval(5, 30, 0, "s"),))
        assert await ledger.append([replace(decision, seen=ledger.next_offset)]) == [True]
        assert ledger.of(PLACE, "m").last() == decision.intervals[0]

    _with_clients(flow, do)


def test_a_lost_page_is_reported_and_the_rest_works(pair: Pair, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    flow = _flow(pair, topic)
    caplog.set_level(logging.ERROR, "heliograph")

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        ledger = Ledger(target, topic)
        for row in _rows(range(12)):
            await _put(ledger, row.target, row.source)
        await Packer(flow, source, target, ledger).pack()
        await asyncio.to_thread(pair.b.delete_before, ledger.topic, PAGES, 2)
        reader = Ledger(target, topic)
        await reader.catch_up()
        assert await reader.ask(PLACE, "m", lambda intervals: intervals.target_of(16, "s", 12)) == 8
        assert await reader.ask(PLACE, "m", lambda intervals: intervals.target_of(2, "s", 12)) is None
        assert await reader.ask(PLACE, "m", lambda intervals: intervals.target_of(16, "s", 12)) == 8
        assert any("has lost the intervals of orders-0" in record.getMessage() for record in caplog.records)

    _with_clients(flow, do)


# --- formats ------------------------------------------------------------------------------------------------------

# As version 0.1.0 has written them: a decision, two chunks with gaps, one of a mirror before it, a tombstone.
_EARLIER = [
    (b'["orders",0,0,7,"m0"]', b'{"source":0,"runs":[7],"source_id":"s","shift":0}'),
    (b'["orders",0,0,0,"m"]', b'{"source":0,"runs":[0],"source_id":"s","shift":0}'),
    (b'["orders",0,0,5,"m"]', b'{"source":0,"runs":[3,1,2],"source_id":"s","shift":0}'),
    (b'["orders",0,9,10,"m"]', b'{"source":90,"runs":[1],"source_id":"s","shift":0}'),
    (b'["orders",0,9,10,"m"]', None),
    (b'["orders",0,5,9,"m"]', b'{"source":8,"runs":[4],"source_id":"s","shift":0}'),
    (b'["kept",1,4,9,"k"]', b'{"source":4,"runs":[1,3,1],"source_id":"s","shift":0,"filler":"heliograph.A->B.0"}'),
]


def test_the_intervals_topic_of_version_0_1_0_is_converted_once(pair: Pair, topic: str) -> None:
    flow = _flow(pair, topic)
    pair.b.create(intervals_topic(topic), cleanup_policy="compact")

    async def check(ledger: Ledger) -> None:
        assert await _all(ledger) == [Interval(0, 0, 3, "s"), Interval(3, 4, 2, "s"), Interval(5, 8, 4, "s")]
        assert ledger.all_of(PLACE).keys() == {"m0", "m"}
        kept = ledger.of(("kept", 1), "k")
        assert list(kept) == [Interval(4, 4, 1, "s"), Interval(8, 8, 1, "s", 3)]
        assert (kept.filler, ledger.knows_gaps) == ("heliograph.A->B.0", True)

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        await write(target, await own_topic(target, intervals_topic(topic)), 0, _EARLIER)
        ledger = Ledger(target, topic)
        await ledger.catch_up()
        await check(ledger)
        assert [ledger.is_converted] == [False]
        assert await Packer(flow, source, target, ledger).pack_if_due() == 3
        assert ledger.is_converted
        again = Ledger(target, topic)
        await again.catch_up()
        assert again.is_converted
        await check(again)
        await _put(again, 9, 20)
        await again.catch_up()
        third = Ledger(target, topic)
        await third.catch_up()
        assert await _all(third) == [*await _all(ledger), Interval(9, 20, 1, "s")]

    _with_clients(flow, do)


def test_a_crash_while_converting_loses_nothing_of_the_journal(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is written, but not that the earlier topic is converted."""
    flow = _flow(pair, topic)
    pair.b.create(intervals_topic(topic), cleanup_policy="compact")

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        await write(target, await own_topic(target, intervals_topic(topic)), 0, _EARLIER)
        ledger = Ledger(target, topic)
        await _put(ledger, 9, 20, 5)
        packer = Packer(flow, source, target, ledger)
        with monkeypatch.context() as crash:
            crash.setattr(Start, "to_record", lambda _start: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await packer.pack()
        for _start in range(2):
            again = Ledger(target, topic)
            await again.catch_up()
            assert (await _all(again))[-2:] == [Interval(5, 8, 4, "s"), Interval(9, 20, 5, "s")]
            await Packer(flow, source, target, again).pack()

    _with_clients(flow, do)


def test_what_version_0_1_0_writes_after_that_is_ignored_and_said(
    pair: Pair, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A process of that version still runs, and its decision comes late."""
    flow = _flow(pair, topic)
    pair.b.create(intervals_topic(topic), cleanup_policy="compact")
    caplog.set_level(logging.WARNING, "heliograph")

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        earlier = await own_topic(target, intervals_topic(topic))
        await write(target, earlier, 0, _EARLIER)
        ledger = Ledger(target, topic)
        await Packer(flow, source, target, ledger).pack()
        await _put(ledger, 9, 20)
        await write(target, earlier, 0, [(b'["orders",0,3,3,"m"]', _EARLIER[1][1])])
        again = Ledger(target, topic)
        await again.catch_up()
        assert await _all(again) == await _all(ledger)
        (said,) = [record.getMessage() for record in caplog.records if earlier.name in record.getMessage()]
        assert said.startswith(f"internal topic {earlier.name} has 1 entries since it was converted")

    _with_clients(flow, do)


def test_a_newer_format_is_refused_with_advice(pair: Pair, topic: str) -> None:
    flow = _flow(pair, topic)

    async def do(_source: ClusterClient, target: ClusterClient) -> None:
        ledger = Ledger(target, topic)
        record = b'["orders",0,"m",0,5,0]', b'{"version":2}\nwhatever'
        await write(target, await own_topic(target, ledger.topic), INDEX, [record])
        with pytest.raises(NewerFormat, match="a newer version has written them"):
            await ledger.catch_up()

    _with_clients(flow, do)
