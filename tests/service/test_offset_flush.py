"""How often offsets are written for MirrorMaker 2: its `offset.flush.interval.ms`."""

import asyncio
from dataclasses import replace

import pytest

from fake_clock import FakeClock
from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.service.source_syncers import OffsetSyncSyncer
from service.fakes import FLOW


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
