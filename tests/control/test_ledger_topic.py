"""The ledger's topic: who writes to it at the same time, what happens to it, and what other versions have written."""

import asyncio
import logging
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

import heliograph.model.pages
import heliograph.wire.records
from control.ledger import PARTITION, all_intervals, flow_with_gaps, put, some_intervals, with_clients
from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.control.packing import Packer
from heliograph.copy.ledger import Ledger
from heliograph.model.internal_topics import intervals_topic
from heliograph.model.intervals import Interval
from heliograph.model.ledger_records import INDEX, PAGES, JournalEntry, NewerFormat, Start
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import own_topic, write
from logs import Pair


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heliograph.model.pages, "PAGE", 3)


# --- who writes at the same time ----------------------------------------------------------------------------------


def test_a_late_decision_does_not_count_and_its_author_knows(pair: Pair, topic: str) -> None:
    """Two copiers begin together; the slower one writes its decision when the faster one has planned on."""

    async def do(_source: ClusterClient, target: ClusterClient) -> None:
        fast, slow = Ledger(target, topic), Ledger(target, topic)
        decision = JournalEntry(PARTITION, "m", (Interval(0, 0, 0, "s"),))
        await fast.catch_up()
        await slow.catch_up()
        seen = slow.next_offset
        assert await fast.append([replace(decision, seen=fast.next_offset)]) == [True]
        for row in some_intervals(range(10)):
            await fast.append([JournalEntry(PARTITION, "m", (row,))])
        late = replace(decision, seen=seen)
        assert await slow.append([late]) == [False]
        reader = Ledger(target, topic)
        await reader.catch_up()
        assert await all_intervals(reader) == await all_intervals(slow) == some_intervals(range(10))
        # Who has read everything decides; its own entries of the same moment do not speak against that.
        cut = JournalEntry(PARTITION, "m", (Interval(5, 100, 0, "s"),))
        seen = slow.next_offset
        await slow.append([JournalEntry(PARTITION, "m", (Interval(4, 8, 1, "s"),))])
        assert await slow.append([replace(cut, seen=seen)]) == [True]
        await reader.catch_up()
        assert await all_intervals(reader) == [*some_intervals(range(5)), cut.intervals[0]]

    with_clients(flow_with_gaps(pair, topic), do)


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
            for row in some_intervals(range(10)):
                assert await ledger.append([JournalEntry(PARTITION, "m", (row,), seen=seen)]) == [True]
            assert fetched == []
            await other.catch_up()
            assert await other.append([JournalEntry(("another", 0), "n", (Interval(0, 0, 1, "s"),))]) == [True]
            fetched.clear()
            row = some_intervals(range(11))[-1]
            assert await ledger.append([JournalEntry(PARTITION, "m", (row,), seen=seen)]) == [True], (
                "of another partition"
            )
            assert fetched
        await other.catch_up()
        assert await all_intervals(other) == await all_intervals(ledger) == some_intervals(range(11))
        assert ledger.next_offset == other.next_offset

    with_clients(flow_with_gaps(pair, topic), do)


# --- what may happen to its topic ---------------------------------------------------------------------------------


def test_a_recreated_ledger_topic_is_written_again(pair: Pair, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    flow = flow_with_gaps(pair, topic)
    caplog.set_level(logging.WARNING, "heliograph")

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        ledger, lease = Ledger(target, topic), Ledger(target, topic)
        for row in some_intervals(range(3)):
            await put(ledger, row.target, row.source)
        await Packer(flow, source, target, ledger).pack()
        for row in some_intervals(range(3, 5)):
            await put(ledger, row.target, row.source)
        await ledger.catch_up()
        await lease.catch_up()
        await asyncio.to_thread(pair.b.delete, ledger.topic)
        await ensure_internal_topics(flow, source, target)
        assert await Packer(flow, source, target, ledger).pack_if_due() == 1
        await ledger.catch_up()
        messages = [record.getMessage() for record in caplog.records if ledger.topic in record.getMessage()]
        happened = f"internal topic {ledger.topic} was deleted and created again"
        assert messages == [f"{happened}; what is known of its intervals is written again"]
        await put(ledger, 5, 10)
        await lease.catch_up()
        reader = Ledger(target, topic)
        await reader.catch_up()
        assert (
            await all_intervals(reader)
            == await all_intervals(ledger)
            == await all_intervals(lease)
            == some_intervals(range(6))
        )

    with_clients(flow, do)


def test_decisions_count_again_in_a_topic_that_is_created_again(pair: Pair, topic: str) -> None:
    flow = flow_with_gaps(pair, topic)

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        ledger, other = Ledger(target, topic), Ledger(target, topic)
        for row in some_intervals(range(5)):
            await put(other, row.target, row.source)
        await ledger.catch_up()
        decision = JournalEntry(PARTITION, "m", (Interval(5, 20, 0, "s"),))
        assert await ledger.append([replace(decision, seen=ledger.next_offset)]) == [True]
        await asyncio.to_thread(pair.b.delete, ledger.topic)
        await ensure_internal_topics(flow, source, target)
        await ledger.catch_up()
        decision = JournalEntry(PARTITION, "m", (Interval(5, 30, 0, "s"),))
        assert await ledger.append([replace(decision, seen=ledger.next_offset)]) == [True]
        assert ledger.of(PARTITION, "m").last() == decision.intervals[0]

    with_clients(flow, do)


def test_a_lost_page_is_reported_and_the_rest_works(pair: Pair, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    flow = flow_with_gaps(pair, topic)
    caplog.set_level(logging.ERROR, "heliograph")

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        ledger = Ledger(target, topic)
        for row in some_intervals(range(12)):
            await put(ledger, row.target, row.source)
        await Packer(flow, source, target, ledger).pack()
        await asyncio.to_thread(pair.b.delete_before, ledger.topic, PAGES, 2)
        reader = Ledger(target, topic)
        await reader.catch_up()
        assert await reader.ask(PARTITION, "m", lambda intervals: intervals.target_of(16, "s", 12)) == 8
        assert await reader.ask(PARTITION, "m", lambda intervals: intervals.target_of(2, "s", 12)) is None
        assert await reader.ask(PARTITION, "m", lambda intervals: intervals.target_of(16, "s", 12)) == 8
        assert any("has lost the intervals of orders-0" in record.getMessage() for record in caplog.records)

    with_clients(flow, do)


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
    flow = flow_with_gaps(pair, topic)
    pair.b.create(intervals_topic(topic), cleanup_policy="compact")

    async def check(ledger: Ledger) -> None:
        assert await all_intervals(ledger) == [Interval(0, 0, 3, "s"), Interval(3, 4, 2, "s"), Interval(5, 8, 4, "s")]
        assert ledger.all_of(PARTITION).keys() == {"m0", "m"}
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
        await put(again, 9, 20)
        await again.catch_up()
        third = Ledger(target, topic)
        await third.catch_up()
        assert await all_intervals(third) == [*await all_intervals(ledger), Interval(9, 20, 1, "s")]

    with_clients(flow, do)


def test_a_crash_while_converting_loses_nothing_of_the_journal(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is written, but not that the earlier topic is converted."""
    flow = flow_with_gaps(pair, topic)
    pair.b.create(intervals_topic(topic), cleanup_policy="compact")

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        await write(target, await own_topic(target, intervals_topic(topic)), 0, _EARLIER)
        ledger = Ledger(target, topic)
        await put(ledger, 9, 20, 5)
        packer = Packer(flow, source, target, ledger)
        with monkeypatch.context() as crash:
            crash.setattr(Start, "to_record", lambda _start: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await packer.pack()
        for _start in range(2):
            again = Ledger(target, topic)
            await again.catch_up()
            assert (await all_intervals(again))[-2:] == [Interval(5, 8, 4, "s"), Interval(9, 20, 5, "s")]
            await Packer(flow, source, target, again).pack()

    with_clients(flow, do)


def test_what_version_0_1_0_writes_after_that_is_ignored_and_said(
    pair: Pair, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A process of that version still runs, and its decision comes late."""
    flow = flow_with_gaps(pair, topic)
    pair.b.create(intervals_topic(topic), cleanup_policy="compact")
    caplog.set_level(logging.WARNING, "heliograph")

    async def do(source: ClusterClient, target: ClusterClient) -> None:
        earlier = await own_topic(target, intervals_topic(topic))
        await write(target, earlier, 0, _EARLIER)
        ledger = Ledger(target, topic)
        await Packer(flow, source, target, ledger).pack()
        await put(ledger, 9, 20)
        await write(target, earlier, 0, [(b'["orders",0,3,3,"m"]', _EARLIER[1][1])])
        again = Ledger(target, topic)
        await again.catch_up()
        assert await all_intervals(again) == await all_intervals(ledger)
        (said,) = [record.getMessage() for record in caplog.records if earlier.name in record.getMessage()]
        assert said.startswith(f"internal topic {earlier.name} has 1 entries since it was converted")

    with_clients(flow, do)


def test_a_newer_format_is_refused_with_advice(pair: Pair, topic: str) -> None:
    flow = flow_with_gaps(pair, topic)

    async def do(_source: ClusterClient, target: ClusterClient) -> None:
        ledger = Ledger(target, topic)
        record = b'["orders",0,"m",0,5,0]', b'{"version":2}\nwhatever'
        await write(target, await own_topic(target, ledger.topic), INDEX, [record])
        with pytest.raises(NewerFormat, match="a newer version has written them"):
            await ledger.catch_up()

    with_clients(flow, do)
