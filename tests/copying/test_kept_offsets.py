"""Mirrors that keep the source's offsets: every record has the same one on both clusters, gaps included."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from copying.lease import copy, cut_off, only, prepare
from heliograph.copy import gap_filler
from heliograph.copy.copier import Copier
from heliograph.copy.ledger import Ledger
from heliograph.copy.work import Outcome, Work
from heliograph.model.flow import Flow, KeptOffsets
from heliograph.model.intervals import Interval
from heliograph.model.ledger_records import JournalEntry
from heliograph.model.names import NameFilter
from heliograph.model.partitions import TopicPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.transactions import MarkersNotAllowed, write_markers
from logs import Pair, Seen, some_records

KEPT = KeptOffsets(NameFilter((".*",)))


def kept(pair: Pair, topic: str, kept_offsets: KeptOffsets = KEPT) -> Flow:
    return replace(only(pair.flow(), topic), kept_offsets=kept_offsets)


def _records(seen: list[tuple[int, Seen]]) -> list[tuple[int, Seen]]:
    return [(offset, replace(record, timestamp_type=0)) for offset, record in seen]


def same(pair: Pair, topic: str, partition: int = 0) -> None:
    """What readers of committed records see, offsets included; and where the logs begin and end."""
    source, mirror = pair.a.read_with_offsets(topic, partition), pair.b.read_with_offsets(f"A.{topic}", partition)
    assert _records(source) == _records(mirror)
    assert pair.a.bounds(topic, partition) == pair.b.bounds(f"A.{topic}", partition)


def well(outcome: Outcome) -> bool:
    return (outcome.refusals, outcome.notices) == ((), ())


def test_a_mirror_has_the_sources_offsets_from_the_beginning(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(300))
    pair.a.delete_before(topic, 0, 123)
    flow = kept(pair, topic)
    assert well(copy(flow))
    same(pair, topic)
    pair.a.write(topic, some_records(50))
    assert well(copy(flow))
    same(pair, topic)


@pytest.fixture(params=["markers", "transactions"])
def filled_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the target lets us write markers by themselves. A broker that refuses it to us would have to know us from
    its own kind, which takes authentication."""
    if request.param == "transactions":

        async def refused(*_arguments: object) -> None:
            raise MarkersNotAllowed("CLUSTER_AUTHORIZATION_FAILED")

        monkeypatch.setattr(gap_filler, "write_markers", refused)
    return str(request.param)


@pytest.mark.usefixtures("filled_by")
def test_the_gaps_of_transactions_are_preserved(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))
    pair.a.transaction(topic, 7, commit=True)
    pair.a.transaction(topic, 12, commit=False, per_batch=5)
    pair.a.transaction(topic, 1, commit=False)
    pair.a.write(topic, some_records(5))
    pair.a.transaction(topic, 3, commit=True)
    flow = kept(pair, topic)
    assert well(copy(flow))
    same(pair, topic)
    uncommitted = pair.a.read_with_offsets(topic, committed=False)
    assert _records(uncommitted) == _records(pair.b.read_with_offsets(f"A.{topic}", committed=False))
    pair.a.write(topic, some_records(5))
    assert well(copy(flow))
    same(pair, topic)


def test_the_holes_of_compaction_are_preserved(pair: Pair, topic: str) -> None:
    pair.a.create_compacted(topic, lambda n: b"%d" % (n % 7 if n % 3 else n))
    assert well(copy(kept(pair, topic)))
    same(pair, topic)


def test_the_start_of_a_compacted_mirror_is_a_gap_or_offsets_are_translated(pair: Pair, topic: str) -> None:
    """Nothing can be cut off such a topic, so it is never filled with what would have to be."""
    pair.a.create_compacted(topic, lambda n: b"same" if n < 250 else b"%d" % n)
    never = "9223372036854775807"  # or it would be compacted again, while it is copied
    pair.a.configure(topic, cleanup_policy="compact", min_compaction_lag_ms=never, max_compaction_lag_ms=never)
    assert pair.a.read_with_offsets(topic)[0][0] > 200
    assert well(copy(kept(pair, topic)))
    same(pair, topic)
    pair.b.delete(f"A.{topic}")
    outcome = copy(kept(pair, topic, replace(KEPT, most_gap=100)))
    assert {notice.kind for notice in outcome.notices} == {"mirror-recreated", "offsets-not-kept"}
    assert pair.a.read(topic) == pair.b.read(f"A.{topic}")


def test_records_that_the_source_deletes_are_deleted_from_the_mirror(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(100))
    flow = kept(pair, topic)
    assert well(copy(flow))
    pair.a.delete_before(topic, 0, 40)
    copy(flow, lambda copier: all(cursor.mirror.start == 40 for cursor in copier.cursors))
    same(pair, topic)


def test_lost_records_are_a_gap_at_the_mirrors_start(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(100))
    flow = kept(pair, topic)
    assert well(copy(flow))
    pair.a.write(topic, some_records(100))
    pair.a.delete_before(topic, 0, 150)
    outcome = copy(flow)
    assert [(notice.kind, notice.count) for notice in outcome.notices] == [("data-loss", 50)]
    same(pair, topic)


def test_offsets_are_translated_from_a_gap_on_that_is_too_wide(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    for _ in range(4):
        pair.a.transaction(topic, 1)
    flow = kept(pair, topic, replace(KEPT, most_gap=0))
    outcome = copy(flow)
    (notice,) = outcome.notices
    assert (notice.kind, notice.source_offset) == ("offsets-not-kept", 11)
    source, mirror = pair.a.read_with_offsets(topic), pair.b.read_with_offsets(f"A.{topic}")
    assert [record for _offset, record in _records(source)] == [record for _offset, record in _records(mirror)]
    assert [offset for offset, _one in mirror] == list(range(14))
    pair.a.write(topic, some_records(10))
    again = copy(kept(pair, topic))
    assert [each.kind for each in again.notices] == ["offsets-not-kept"]  # said once in a run
    assert [offset for offset, _one in pair.b.read_with_offsets(f"A.{topic}")] == list(range(24))


def test_gaps_before_one_that_is_too_wide_are_filled(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))
    pair.a.transaction(topic, 5)
    pair.a.transaction(topic, 3, commit=False)
    for _ in range(3):
        pair.a.empty_transaction(topic)
    pair.a.write(topic, some_records(5))
    outcome = copy(kept(pair, topic, replace(KEPT, most_gap=2)))
    assert [(notice.kind, notice.source_offset) for notice in outcome.notices] == [("offsets-not-kept", 15)]
    assert outcome.refusals == ()
    assert pair.a.read(topic) == pair.b.read(f"A.{topic}")
    assert pair.b.bounds(f"A.{topic}")[1] == 20


def test_switching_it_on_or_off_reports_which_offsets_are_preserved(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    off, on_ = only(pair.flow(), topic), kept(pair, topic)
    assert well(copy(off))
    assert well(copy(on_))  # no difference so far
    pair.a.transaction(topic, 5)
    assert well(copy(on_))
    same(pair, topic)
    assert well(copy(off))
    pair.a.transaction(topic, 5)
    pair.a.write(topic, some_records(10))
    assert well(copy(off))
    outcome = copy(on_)
    assert [notice.kind for notice in outcome.notices] == ["offsets-not-kept"]
    assert pair.a.read(topic) == pair.b.read(f"A.{topic}")


def test_an_extra_marker_before_planned_gaps_hides_no_record(pair: Pair, topic: str) -> None:
    """What is planned behind the mirror's end must not be taken for copied."""
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))
    flow = kept(pair, topic)
    assert well(copy(flow))
    for _ in range(3):
        pair.a.transaction(topic, 4)

    async def plan() -> None:
        client = ClusterClient(flow.target)
        ledger = Ledger(client, "A")
        await ledger.catch_up()
        ((mirror_id, known),) = ledger.all_of((topic, 0)).items()
        source_id = next(iter(known)).source_id
        ahead = [Interval(5 + 5 * n, 5 + 5 * n, 4, source_id, n) for n in range(3)]
        await ledger.append([JournalEntry((topic, 0), mirror_id, tuple(ahead), "heliograph.A->B.0")])
        client.close()

    asyncio.run(plan())
    pair.b.empty_transaction(f"A.{topic}")
    outcome = copy(flow)
    assert outcome.refusals == ()
    assert [notice.kind for notice in outcome.notices] == ["offsets-not-kept"]
    assert pair.a.read(topic) == pair.b.read(f"A.{topic}")


def test_offsets_of_a_source_that_starts_too_late_are_translated(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(100))
    pair.a.delete_before(topic, 0, 60)
    outcome = copy(kept(pair, topic, replace(KEPT, most_filler=59)))
    assert [(notice.kind, notice.source_offset) for notice in outcome.notices] == [("offsets-not-kept", 60)]
    assert [offset for offset, _one in pair.b.read_with_offsets(f"A.{topic}")] == list(range(40))


def test_twenty_million_offsets_are_filled_in_spite_of_two_cancelled_leases(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.skip(topic, 20_000_000)
    pair.a.transaction(topic, 5)  # a gap right behind, planned while it is filled
    pair.a.write(topic, some_records(10))
    flow = kept(pair, topic)
    for most in (2_000_000, 8_000_000):
        copy(flow, _filled_more_than(most))
    assert pair.b.bounds(f"A.{topic}")[1] < 20_000_000
    assert well(copy(flow))
    same(pair, topic)


def _filled_more_than(count: int) -> Callable[[Copier], bool]:
    return lambda copier: any(cursor.sending.append_at > count for cursor in copier.cursors)


@pytest.mark.parametrize("foreign", [1, 3])
def test_an_extra_marker_is_detected_and_loses_nothing(pair: Pair, topic: str, foreign: int) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    flow = kept(pair, topic)
    assert well(copy(flow))
    for _ in range(foreign):
        pair.b.empty_transaction(f"A.{topic}")
    pair.a.write(topic, some_records(10))
    outcome = copy(flow)
    assert outcome.refusals == ()
    assert [notice.kind for notice in outcome.notices] == ["offsets-not-kept"]
    assert pair.a.read(topic) == pair.b.read(f"A.{topic}")
    assert pair.b.bounds(f"A.{topic}")[1] == 20 + foreign


@pytest.mark.usefixtures("filled_by")
def test_leases_cancelled_at_random_moments_preserve_offsets(pair: Pair, topic: str) -> None:
    """Between writing and aborting included: whatever a transaction was at, its end leaves the gap that was wanted."""
    pair.a.create(topic)
    for number in range(12):
        pair.a.transaction(topic, 1 + number % 4, commit=number % 3 > 0, per_batch=2)
        pair.a.write(topic, some_records(3))
    flow = kept(pair, topic)
    rng = random.Random(3)

    for _ in range(15):
        cut_off(flow, rng.uniform(0.0, 0.2))
        assert pair.b.bounds(f"A.{topic}")[1] <= pair.a.bounds(topic)[1]
    assert well(copy(flow))
    same(pair, topic)


def test_a_lease_that_ends_waits_for_markers_in_flight(pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the next lease could read the mirror's end before they are in the log."""
    pair.a.create(topic)
    pair.a.write(topic, some_records(5))
    pair.a.empty_transaction(topic)
    under_way: list[object] = []
    answered: list[object] = []

    async def slow(connection: Connection, producer_ids: Sequence[int], counts: Mapping[TopicPartition, int]) -> None:
        under_way.append(counts)
        await asyncio.sleep(0.2)
        await write_markers(connection, producer_ids, counts)
        answered.append(counts)

    monkeypatch.setattr(gap_filler, "write_markers", slow)
    flow = kept(pair, topic)
    copy(flow, lambda _copier: bool(under_way))
    assert answered == under_way
    assert well(copy(flow))
    assert len(answered) == 1
    same(pair, topic)


def test_two_copiers_at_once_preserve_offsets_or_report_that_they_cannot(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    for number in range(10):
        pair.a.transaction(topic, 1 + number % 4, commit=number % 3 > 0, per_batch=2)
    flow = kept(pair, topic)

    async def main() -> list[Outcome]:
        partitions = await prepare(flow)
        copiers = [Copier(Work(flow, f"twin-{number}", 4.0, partitions, number=number)) for number in range(2)]
        return await asyncio.gather(*(copier.run() for copier in copiers))

    outcomes = asyncio.run(main())
    again = copy(flow)
    assert pair.a.read(topic) == pair.b.read(f"A.{topic}")
    if not any(outcome.notices for outcome in (*outcomes, again)):
        same(pair, topic)
