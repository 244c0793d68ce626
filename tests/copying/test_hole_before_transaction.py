"""Compaction can take away the last batch before an open transaction: a broker then returns nothing there, for ever."""

from copying.simulation.batches import Producer
from copying.simulation.clock import BEGINNING
from copying.simulation.world import TOPIC, World
from heliograph.copy.consumer_view import visible_records
from heliograph.wire.cluster import ClusterClient

_NOW = int(BEGINNING * 1000)


def test_what_is_compacted_away_before_an_open_transaction_is_passed_over(world: World) -> None:
    world.log.write([_NOW] * 2, [b"a", b"b"])
    world.log.write([_NOW], [b"c"])
    world.log.write([_NOW], [b"d"], Producer(3, 0, 0, transactional=True))
    world.log.compact(lambda offset: offset < 2, leave_empty=False)
    assert world.log.stable_end == 3

    async def values() -> list[bytes | None]:
        client = ClusterClient(world.flow.source)
        try:
            topic = (await client.metadata([TOPIC])).topics[TOPIC]
            return [record.value async for record in visible_records(client, topic, 0, 0, 3, committed_only=True)]
        finally:
            client.close()

    assert world.loop.run_until_complete(values()) == [b"a", b"b"]
