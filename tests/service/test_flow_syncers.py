"""The syncers of a flow: which run, and what is taken over when settings change."""

import asyncio
from dataclasses import replace

from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE, Cluster, Flow, Groups, Heartbeats
from heliograph.model.names import NameFilter
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.errors import Unreachable

GROUPS = Groups(NameFilter((".*",)), 60.0, 60.0, 60.0, 1)
FLOW = Flow(Cluster("A", (("a", 9092),)), Cluster("B", (("b", 9092),)), groups=GROUPS)


def test_what_is_known_of_syncers_is_taken_over_but_for_those_that_end() -> None:
    async def fails() -> None:
        raise Unreachable("b:9092 is gone")

    async def main() -> None:
        first = FlowSyncers(FLOW)
        for syncer in (first.checkpoint_syncer, first.group_offsets):
            await first.runner.attempt(syncer, fails)
        first.checkpoint_syncer.untranslated = 3
        second = FlowSyncers(replace(FLOW, refresh_topics_every=7.0))
        second.take_over(first)
        assert second.trouble("group offsets") == first.trouble("group offsets") != ""
        assert second.untranslated == 3
        third = FlowSyncers(replace(FLOW, groups=replace(GROUPS, sync_every=None)))
        third.take_over(second)
        assert third.trouble("group offsets") == ""
        assert third.trouble("checkpoints") != ""
        for syncers in (first, second, third):
            syncers.close()

    asyncio.run(main())


def _names(flow: Flow) -> set[str]:
    async def main() -> set[str]:
        syncers = FlowSyncers(flow)
        try:
            return {measure.name for measure in syncers.jobs()}
        finally:
            syncers.close()

    return asyncio.run(main())


def test_the_parts_of_a_flow_and_its_intervals_decide_which_syncers_run() -> None:
    assert _names(replace(FLOW, parts=frozenset())) == set()
    heartbeats = replace(FLOW, parts=frozenset({HEARTBEAT}))
    assert _names(heartbeats) == {"internal topics", "heartbeats"}
    assert _names(replace(heartbeats, heartbeats=Heartbeats(every=None))) == {"internal topics"}
    groups = replace(FLOW, parts=frozenset({CHECKPOINT}))
    assert _names(groups) == {"internal topics", "groups", "checkpoints", "group offsets"}
    assert _names(replace(groups, groups=replace(GROUPS, sync_every=None))) == {
        "internal topics",
        "groups",
        "checkpoints",
    }
    assert _names(replace(groups, groups=replace(GROUPS, checkpoints_every=None))) == {"internal topics"}
    source = replace(FLOW, parts=frozenset({SOURCE}))
    without_syncs = replace(source, offset_syncs=replace(source.offset_syncs, enabled=False))
    assert _names(source) - _names(without_syncs) == {"offset syncs"}
    assert _names(without_syncs) == {
        "internal topics",
        "topic settings",
        "access rules",
        "offsets for MirrorMaker 2",
        "the ledger",
        "intervals that are past",
    }
