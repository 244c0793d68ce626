"""Tailing a partition whose read position may be gone."""

import asyncio

import pytest

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.following import Follower
from logs import PATIENCE, Log, Pair, some_records


def _read(log: Log, topic: str, position: int, count: int) -> tuple[list[int], list[str]]:
    """The offsets of `count` records, and the losses that were reported."""

    async def main() -> tuple[list[int], list[str]]:
        client = ClusterClient(log.cluster)
        await client.connect()
        losses: list[str] = []
        offsets: list[int] = []
        async with asyncio.timeout(PATIENCE):
            async for records in Follower(client, topic, 0, position, losses.append).records():
                offsets.extend(record.offset for record in records)
                if len(offsets) >= count:
                    break
        client.close()
        return offsets, losses

    return asyncio.run(main())


@pytest.mark.parametrize(("position", "first"), [(2, 5), (5, 5), (7, 7), (100, 5)])
def test_it_reads_from_the_beginning_if_its_position_is_gone(pair: Pair, topic: str, position: int, first: int) -> None:
    pair.b.create(topic)
    pair.b.write(topic, some_records(10))
    pair.b.delete_before(topic, 0, 5)
    offsets, losses = _read(pair.b, topic, position, 10 - first)
    assert offsets == list(range(first, 10))
    assert len(losses) == (position not in range(5, 11))
    if losses:
        assert topic in losses[0]
        assert f"up to {position}" in losses[0]


def test_it_reads_a_recreated_topic_from_the_beginning(pair: Pair, topic: str) -> None:
    pair.b.create(topic)
    pair.b.write(topic, some_records(3))

    async def main() -> tuple[list[int], list[str]]:
        client = ClusterClient(pair.b.cluster)
        await client.connect()
        losses: list[str] = []
        offsets: list[int] = []
        follower = Follower(client, topic, 0, 0, losses.append)

        async def read(count: int) -> None:
            async for records in follower.records():
                offsets.extend(record.offset for record in records)
                if len(offsets) >= count:
                    return

        async with asyncio.timeout(PATIENCE):
            await read(3)
            await asyncio.to_thread(pair.b.recreate, topic, 5)  # longer than what was read of the other
            await read(8)
        client.close()
        return offsets, losses

    offsets, losses = asyncio.run(main())
    assert offsets == [0, 1, 2, 0, 1, 2, 3, 4]
    assert len(losses) == 1
    assert "created again" in losses[0]
