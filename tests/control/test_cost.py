"""What keeping things in sync costs in requests: it must not grow with the number of topics and groups."""

import asyncio
from dataclasses import replace

from copying.lease import only, prepare
from heliograph.model.flow import Groups
from heliograph.model.names import NameFilter
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.topic_requests import NewTopic, create_topics
from logs import Pair


def _cost(pair: Pair, name: str, topics: int, groups: int) -> tuple[int, int, int]:
    """Requests of a first round, of one in which nothing has changed, and of one with one change."""
    flow = replace(
        only(pair.flow(), name), groups=Groups(NameFilter((f"{name}.*",)), 600.0, 60.0, 60.0), replication_factor=1
    )

    async def create() -> None:
        client = ClusterClient(flow.source)
        await client.connect()
        outcome = await create_topics(client, [NewTopic(f"{name}-{number}", 1, 1) for number in range(topics)])
        assert set(outcome.values()) == {None}
        client.close()

    asyncio.run(create())
    for number in range(groups):
        pair.a.commit(f"{name}-g{number}", f"{name}-{number % topics}", 0)

    async def rounds() -> tuple[int, int, int]:
        await prepare(flow)
        syncers = FlowSyncers(flow)
        await syncers.prepare()
        await syncers.checkpoints.refresh_groups()
        assert len(syncers.checkpoints.groups) == groups

        async def cost() -> int:
            await asyncio.sleep(0.5)  # a broker shows what was changed a moment later
            before = syncers.requests
            await syncers.run_once()
            return syncers.requests - before

        first = await cost()
        quiet = first
        while (again := await cost()) < quiet:
            quiet = again
        await asyncio.to_thread(pair.a.configure, f"{name}-0", retention_ms="123456789")
        changed = await cost()
        syncers.close()
        return first, again, changed

    return asyncio.run(rounds())


def test_a_round_costs_the_same_for_few_and_for_many(pair: Pair, topic: str) -> None:
    few, many = _cost(pair, f"{topic}-few", 3, 2), _cost(pair, f"{topic}-many", 150, 40)
    assert few[1] == many[1] <= 25
    assert few[2] == many[2] == many[1] + 1  # one request for all changes
