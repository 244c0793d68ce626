"""A keeper that takes the place of another when settings change."""

import asyncio
from dataclasses import replace

from heliograph.model.flow import Cluster, Flow, Groups
from heliograph.model.names import NameFilter
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.errors import Unreachable


def test_what_is_known_of_jobs_is_taken_over_but_for_those_that_end() -> None:
    groups = Groups(NameFilter((".*",)), 60.0, 60.0, 60.0, 1)
    flow = Flow(Cluster("A", (("a", 9092),)), Cluster("B", (("b", 9092),)), groups=groups)

    async def fails() -> None:
        raise Unreachable("b:9092 is gone")

    async def main() -> None:
        first = FlowSyncers(flow)
        for job in ("checkpoints", "group offsets"):
            await first._try(job, fails)
        first.untranslated = 3
        second = FlowSyncers(replace(flow, refresh_topics_every=7.0))
        second.follow(first)
        assert second.trouble("group offsets") == first.trouble("group offsets") != ""
        assert second.untranslated == 3
        third = FlowSyncers(replace(flow, groups=replace(groups, sync_every=None)))
        third.follow(second)
        assert third.trouble("group offsets") == ""
        assert third.trouble("checkpoints") != ""
        for one in (first, second, third):
            one.close()

    asyncio.run(main())
