"""Realistic data for the demo: a shop's orders and payments, written to one cluster until closed."""

import asyncio
import itertools
import json
import random
import time
from collections.abc import Iterator

from heliograph.wire.append import PartitionBatch, append
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError
from heliograph.wire.records import Record, encode
from heliograph.wire.topic_requests import NewTopic, create_topics

TOPICS = {"orders": 6, "payments": 4}
_GZIP = 1
_PER_BATCH = 100
_PAUSE = 0.02


class Shop:
    """Writes to all partitions of its topics, plain and compressed batches in turn."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._closing = False
        self.records = 0

    async def open(self) -> None:
        await self._client.connect()
        outcomes = await create_topics(self._client, [NewTopic(name, count, 1) for name, count in TOPICS.items()])
        for error in outcomes.values():
            if error is not None:
                raise error

    def close(self) -> None:
        """Ends after the current round."""
        self._closing = True

    async def run(self) -> None:
        orders = _orders(self._client.cluster.alias)
        for turn in itertools.count():
            if self._closing:
                return
            codec = _GZIP if turn % 4 == 0 else 0
            await self._write([next(orders) for _ in range(_PER_BATCH)], codec)
            await asyncio.sleep(_PAUSE)

    async def _write(self, records: list[Record], codec: int) -> None:
        """Writes the same batch to every partition."""
        batch = encode(records, codec)
        topics = (await self._client.metadata(TOPICS)).topics
        by_leader: dict[int, list[PartitionBatch]] = {}
        for name, topic in topics.items():
            for partition, leader in topic.leaders.items():
                by_leader.setdefault(leader, []).append(PartitionBatch(name, partition, [batch]))
        for leader, batches in by_leader.items():
            if leader < 0:
                continue
            for answer in await append(await self._client.connection(leader), batches, 10.0):
                # A broker names the leader of a new partition before that leader knows it.
                if answer.error and not BrokerError(answer.error).transient:
                    raise BrokerError(answer.error, answer.message)
                self.records += 0 if answer.error else len(records)


def _orders(region: str) -> Iterator[Record]:
    """A key, a JSON value, some headers; now and then a tombstone."""
    rng = random.Random(region)
    for order in itertools.count(1):
        items = [{"sku": f"s{rng.randrange(900):03}", "count": rng.randint(1, 4)} for _ in range(rng.randint(1, 3))]
        value = {
            "order": order,
            "customer": f"c{rng.randrange(20000):05}",
            "items": items,
            "amount": round(rng.uniform(3, 400), 2),
            "currency": rng.choice(("EUR", "USD", "JPY")),
        }
        body = None if order % 997 == 0 else json.dumps(value).encode()
        headers = (("region", region.encode()), ("trace", None)) if order % 3 == 0 else ()
        yield Record(0, int(time.time() * 1000), f"{region}-{rng.randrange(5000)}".encode(), body, headers)
