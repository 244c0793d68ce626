"""How often offsets are written for MirrorMaker 2: its `offset.flush.interval.ms`."""

import asyncio
import uuid
from collections.abc import Collection
from dataclasses import replace
from typing import cast

import pytest

from fake_clock import FakeClock
from heliograph.control.offset_syncs import SyncWriter
from heliograph.model.partitions import MirrorPartition, Position, TopicPartition
from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.service.source_syncers import OffsetSyncSyncer
from heliograph.wire.errors import WireError
from heliograph.wire.metadata import Metadata, Topic
from service.fakes import FLOW, FakeClients, partitions

_ID = uuid.uuid4()


@pytest.mark.parametrize(("flush_every", "offset_syncs_every"), [(60.0, 5.0), (2.0, 2.0)])
def test_both_syncers_run_at_least_that_often(flush_every: float, offset_syncs_every: float) -> None:
    syncers = FlowSyncers(replace(FLOW, flush_offsets_every=flush_every))
    assert syncers.mm2_offsets.interval == flush_every
    assert syncers.offset_syncs.interval == offset_syncs_every


def test_offset_syncs_that_were_held_back_are_written_when_the_interval_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock(monkeypatch, "heliograph.service.source_syncers")
    flushed: list[bool] = []

    class Recording(OffsetSyncSyncer):
        async def _write(self, flush: bool) -> None:
            flushed.append(flush)
            await super()._write(flush)

    flow = replace(FLOW, flush_offsets_every=20.0)
    syncer = Recording(flow, FlowClients(flow), dict)
    for seconds in (5.0, 14.0, 2.0, 19.0, 1.0):
        clock.now += seconds
        asyncio.run(syncer.run())
    assert flushed == [False, False, True, False, True]


class _Target:
    """Where the mirror A.t is."""

    async def metadata(self, topics: Collection[str]) -> Metadata:
        return Metadata(topics={name: Topic(name, _ID, False, {0: 1, 1: 1}) for name in topics})


class _Writer:
    """Knows the last record of all partitions but `unknown`."""

    def __init__(self) -> None:
        self.unknown: set[MirrorPartition] = set()

    async def run(self, positions: Collection[MirrorPartition], *_: object, flush: bool) -> set[MirrorPartition]:
        return set(positions) - self.unknown

    def forget(self, but: object) -> None:
        pass


def test_a_flush_asks_only_for_what_moved_or_could_not_be_written_before(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[int]] = []
    ends: dict[TopicPartition, int | WireError] = {("A.t", 0): 5, ("A.t", 1): 5}

    async def list_offsets(_client: object, _topics: object, places: Collection[TopicPartition], *_: object) -> object:
        asked.append({partition for _topic, partition in places})
        return dict(ends)

    monkeypatch.setattr("heliograph.service.source_syncers.list_offsets", list_offsets)
    first, second = partitions(0, 1)
    positions = {partition: Position(5, 5, mirror_id=_ID.hex) for partition in (first, second)}
    clients, writer = FakeClients(), _Writer()
    clients.target = _Target()  # type: ignore[assignment]
    syncer = OffsetSyncSyncer(FLOW, cast(FlowClients, clients), lambda: positions)
    syncer._writer = cast(SyncWriter, writer)

    async def main() -> None:
        await syncer.run()
        await syncer.run()
        assert asked == [{0, 1}], "nothing has moved"
        ends["A.t", 1] = WireError("no leader")
        await syncer.flush()
        ends["A.t", 1] = 5
        writer.unknown = {second}
        await syncer.flush()
        writer.unknown = set()
        await syncer.flush()
        await syncer.flush()
        assert asked[1:] == [{0, 1}, {1}, {1}], "until everything is written"
        positions[first] = Position(6, 6, mirror_id=_ID.hex)
        await syncer.run()
        await syncer.flush()
        assert asked[4:] == [{0}, {0}], "not there yet"
        ends["A.t", 0] = 6
        await syncer.flush()
        positions[second] = Position(5, 5, mirror_id=_ID.hex)
        await syncer.flush()
        await syncer.flush()
        assert asked[6:] == [{0}, {1}], "reported again: perhaps of a mirror that was created again"

    asyncio.run(main())
