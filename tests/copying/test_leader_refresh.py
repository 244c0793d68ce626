"""A lease asks regularly who leads its partitions: a leader that is cut off from its cluster does not know it."""

import asyncio
from dataclasses import replace
from typing import cast

import pytest
from kafka.protocol.metadata import MetadataRequest

from heliograph.copy.callbacks import Callbacks
from heliograph.copy.counts import SOURCE, TARGET
from heliograph.copy.cursor import Cursor, ResumePoint
from heliograph.copy.leader_refresh import refresh_leaders
from heliograph.model.connecting import Connecting
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.wire.cluster import ClusterClient
from waiting import PATIENCE, async_until
from wire.scripted_broker import Close, ScriptedBroker, scripted_cluster


class _Restarts:
    def __init__(self) -> None:
        self.reasons: dict[int, str] = {}

    def restart(self, cursor: Cursor, why: str, is_suspicious: bool) -> None:
        assert not is_suspicious
        self.reasons[cursor.key.partition] = why
        cursor.restart(why, is_suspicious)


def _cursor(partition: int, leader: int) -> Cursor:
    cursor = Cursor(MirrorPartition("t", "A.t", partition), 1)
    cursor.source.leader = cursor.mirror.leader = leader
    cursor.start(ResumePoint(Position(0, 0)))
    return cursor


def _asked(brokers: list[ScriptedBroker]) -> int:
    return sum(len(broker.received(MetadataRequest)) for broker in brokers)


@pytest.mark.parametrize(("side", "topic"), [(SOURCE, "t"), (TARGET, "A.t")])
def test_partitions_whose_leader_has_moved_are_restarted(
    monkeypatch: pytest.MonkeyPatch, side: str, topic: str
) -> None:
    monkeypatch.setattr("heliograph.copy.leader_refresh._SHORTEST", 0.01)
    restarts = _Restarts()
    cursors = [_cursor(0, leader=0), _cursor(1, leader=0), _cursor(2, leader=0)]

    async def main() -> None:
        # The first has moved, the second has not, and the third has no leader now.
        async with scripted_cluster(2, {topic: [1, 0, -1]}) as cluster, asyncio.timeout(PATIENCE):
            client = ClusterClient(replace(cluster.as_cluster(), connecting=Connecting(metadata_max_age=0.0)))
            cluster.brokers[0].script(MetadataRequest, Close())  # an error does not end it
            task = asyncio.create_task(refresh_leaders(client, side, lambda: cursors, cast(Callbacks, restarts)))
            await async_until(lambda: restarts.reasons)
            asked = _asked(cluster.brokers)
            await async_until(lambda: _asked(cluster.brokers) > asked + 1)
            task.cancel()
            client.close()

    asyncio.run(main())
    assert restarts.reasons == {0: f"{side}: the leader is broker 1 now, not 0"}


def test_nothing_is_asked_before_the_metadata_is_old() -> None:
    async def main() -> None:
        async with scripted_cluster(1, {"t": [0]}) as cluster:
            client = ClusterClient(replace(cluster.as_cluster(), connecting=Connecting(metadata_max_age=PATIENCE)))
            refreshing = refresh_leaders(client, SOURCE, lambda: [_cursor(0, 0)], cast(Callbacks, _Restarts()))
            task = asyncio.create_task(refreshing)
            done, _ = await asyncio.wait([task], timeout=0.05)
            assert not done
            assert not cluster.brokers[0].requests
            task.cancel()

    asyncio.run(main())
