"""Positions among records that MM2 has copied, found by comparing records. The test itself copies as MM2 does."""

import asyncio
import random
import time
import uuid
from dataclasses import dataclass, replace

import pytest

import heliograph.control.record_search
from copying.lease import copy, only, prepare
from heliograph.control.checkpoints import CheckpointRound
from heliograph.control.record_search import FoundOffset, Matcher
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow, Groups
from heliograph.model.intervals import Interval
from heliograph.model.ledger_records import JournalEntry
from heliograph.model.mm2_records import OffsetSync
from heliograph.model.names import NameFilter
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Committed, commit_offsets
from heliograph.wire.metadata import id_text
from logs import Pair, Record, Seen, on

# --- the rule -----------------------------------------------------------------------------------------------------


def _look(run: list[int], log: list[int], whole: bool = False) -> FoundOffset | None:
    matcher = Matcher([(content,) for content in run], whole)
    for offset, content in enumerate(log):
        found = matcher.next(offset, (content,), offset == len(log) - 1)
        if found is not None:
            return FoundOffset(found)
    return matcher.best()


def test_a_run_is_found_where_all_of_it_matches() -> None:
    assert _look([5, 6, 7], [*range(20)]) == FoundOffset(5)
    assert _look([5, 6, 7], [5, 6, 9, 5, 6, 7, 8]) == FoundOffset(3)
    assert _look([1, 1, 2], [1, 1, 1, 1, 2, 1]) == FoundOffset(2)


def test_the_first_of_several_matches_counts() -> None:
    assert _look([1] * 5, [0, 0, *[1] * 20]) == FoundOffset(2)


def test_the_last_records_are_those_at_the_end() -> None:
    assert _look([1, 1], [0, 1, 1, 0, 1, 1], whole=True) == FoundOffset(4)
    assert _look([1] * 3, [1] * 10, whole=True) == FoundOffset(7)


def test_many_in_a_row_are_enough_after_a_restart_of_mm2() -> None:
    log = [*range(50), *range(30, 200)]
    assert _look([*range(25, 125)], log) == FoundOffset(25)
    assert _look([*range(45, 145)], log) == FoundOffset(65)


def test_what_compaction_has_left_is_enough_if_it_is_in_order() -> None:
    assert _look([*range(10, 20)], [n for n in range(50) if n % 3]) == FoundOffset(6)
    unsure = _look([*range(10, 20)], [n for n in range(50) if n % 3 == 0])
    assert unsure is not None
    assert (unsure.target, bool(unsure.why)) == (4, True)
    assert _look([*range(10, 20)], [1, 2, 3]) is None


# --- on real brokers ----------------------------------------------------------------------------------------------


@dataclass
class _Copied:
    """A source whose first part was copied by MM2: for each mirror offset the source offset that it has come from."""

    flow: Flow
    origins: list[int]
    source: list[tuple[int, Seen]]


def _copied_by_mm2(pair: Pair, topic: str, *, aborted_too: bool, syncs: bool) -> _Copied:
    """Markers, aborted records, records that are all the same, and some that a restart of MM2 has copied twice."""
    pair.a.create(topic)
    now = int(time.time() * 1000)

    def some(count: int) -> list[Record]:
        return [Record(0, now, b"k", uuid.uuid4().hex.encode(), (("h", b"1"),)) for _ in range(count)]

    pair.a.write(topic, some(60), per_batch=7)
    pair.a.transaction(topic, 20)
    pair.a.transaction(topic, 15, commit=False)
    pair.a.write(topic, [Record(0, now, b"same", b"same")] * 40, per_batch=9)
    pair.a.write(topic, some(50), per_batch=7)
    pair.a.transaction(topic, 5)
    groups = Groups(NameFilter((f"{topic}-g.*",)), 600.0, 60.0, 60.0, 1)
    flow = replace(only(pair.flow(), topic), groups=groups)
    asyncio.run(prepare(flow))
    seen = pair.a.read_with_offsets(topic, committed=not aborted_too)
    seen = [*seen[:55], *seen[40:]]
    copies = [Record(0, record.timestamp, record.key, record.value, record.headers) for _offset, record in seen]
    pair.b.write(f"A.{topic}", copies, per_batch=11)
    end = pair.a.bounds(topic)[1]

    async def take_over(target: ClusterClient) -> None:
        ids = {}
        async with _SourceClient(flow) as source:
            ids["source"] = id_text((await source.metadata([topic])).topics[topic].id)
        ids["mirror"] = id_text((await target.metadata([f"A.{topic}"])).topics[f"A.{topic}"].id)
        begins = Interval(len(copies), end, 0, ids["source"])
        await Ledger(target, "A").append([JournalEntry((topic, 0), ids["mirror"], (begins,))])

    on(pair.b, take_over)
    if syncs:
        pairs = [OffsetSync(topic, 0, seen[at][0], at).to_record() for at in range(70, len(seen), 37)]
        records = [Record(0, now, key, value) for key, value in pairs]
        pair.a.write("mm2-offset-syncs.B.internal", records)
    pair.a.transaction(topic, 5)
    copy(flow)
    return _Copied(flow, [offset for offset, _one in seen], pair.a.read_with_offsets(topic))


class _SourceClient:
    def __init__(self, flow: Flow) -> None:
        self._client = ClusterClient(flow.source)

    async def __aenter__(self) -> ClusterClient:
        await self._client.connect()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        self._client.close()


def _rounds(flow: Flow, count: int = 1) -> tuple[FlowSyncers, list[CheckpointRound]]:
    async def main() -> tuple[FlowSyncers, list[CheckpointRound]]:
        syncers = FlowSyncers(flow)
        try:
            await syncers.prepare()
            await syncers.checkpoints.load()
            await syncers.checkpoints.refresh_groups()
            return syncers, [await syncers.checkpoints.run() for _ in range(count)]
        finally:
            syncers.close()

    return asyncio.run(main())


@pytest.mark.parametrize(("aborted_too", "syncs"), [(True, True), (False, False)])
def test_positions_before_a_take_over_are_found_by_their_records(
    pair: Pair, topic: str, aborted_too: bool, syncs: bool
) -> None:
    copied = _copied_by_mm2(pair, topic, aborted_too=aborted_too, syncs=syncs)
    end = pair.a.bounds(topic)[1]
    groups = {f"{topic}-g{at}": at for at in random.Random(3).sample(range(end + 1), 60)}
    wanted = {group: {(topic, 0): Committed(at)} for group, at in groups.items()}
    on(pair.a, lambda client: commit_offsets(client, wanted))
    syncers, (outcome,) = _rounds(copied.flow)
    assert outcome.missing == []
    assert outcome.early == []
    mirror = dict(pair.b.read_with_offsets(f"A.{topic}"))
    for group, at in groups.items():
        translated = syncers.checkpoints.latest[group, f"A.{topic}", 0].downstream
        original = next(((offset, record) for offset, record in copied.source if offset >= at), None)
        if original is None:
            assert translated == len(mirror)
            continue
        assert mirror[translated].value == original[1].value, (group, translated)
        if translated < len(copied.origins):
            source_offset = copied.origins[translated]
            assert source_offset <= original[0]
            # The same record again and again does not tell which it is: rather one too early. All else does.
            assert source_offset == original[0] or original[1].value == b"same"


def test_a_search_continues_in_the_next_round_and_holds_up_no_other_group(
    pair: Pair, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = _copied_by_mm2(pair, topic, aborted_too=False, syncs=False)
    monkeypatch.setattr(heliograph.control.record_search, "_FETCH", 0)
    monkeypatch.setattr(heliograph.control.record_search._Budget, "spend", _spends_a_little)
    positions = {f"{topic}-g1": 10, f"{topic}-g2": 150, f"{topic}-g3": pair.a.bounds(topic)[1]}
    wanted = {group: {(topic, 0): Committed(at)} for group, at in positions.items()}
    on(pair.a, lambda client: commit_offsets(client, wanted))
    syncers, rounds = _rounds(copied.flow, 12)
    assert [checkpoint.group for checkpoint in rounds[0].emitted][:1] == [f"{topic}-g3"]
    assert "still being searched for" in rounds[0].missing[0].why
    assert rounds[-1].missing == []
    latest = syncers.checkpoints.latest
    origin = {group: copied.origins[latest[group, f"A.{topic}", 0].downstream] for group in list(positions)[:2]}
    assert origin == {group: positions[group] for group in origin}


def _spends_a_little(budget: heliograph.control.record_search._Budget, _record: object) -> bool:
    budget.left -= 4 << 20
    return budget.left > 0
