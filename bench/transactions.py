"""A transactional source topic: several producers at once, each with one transaction after the other.

A transaction is about a thousand records in seven batches over all partitions; every tenth is aborted.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from clusters import BROKER, Ends, Trouble
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest
from payloads import PER_BATCH, small_batches, transactional
from producing import produce

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.errors import error_name

_PRODUCERS = 6
_BATCHES = 7
_ABORT_EVERY = 10
_TRANSACTION = 1  # what is coordinated, in FindCoordinator
_BUSY = {14, 15, 16, 51}  # the coordinator is loading, not there yet, or still writes the last transaction's markers
_PATIENCE = 30.0


async def write_transactions(client: ClusterClient, topic: str, partitions: int, records: int) -> float:
    began = time.monotonic()
    numbers = iter(range(max(_ABORT_EVERY, records // (_BATCHES * PER_BATCH))))
    await asyncio.gather(*(_produce(client, f"bench-{n}", topic, partitions, numbers) for n in range(_PRODUCERS)))
    connection = await client.connection(BROKER)
    everything, committed = Ends(connection, [topic], partitions), Ends(connection, [topic], partitions, committed=True)
    while await committed.total() < await everything.total():  # the last markers are under way
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def _produce(client: ClusterClient, name: str, topic: str, partitions: int, numbers: Iterator[int]) -> None:
    connection = await client.dedicated_connection(BROKER)
    try:
        producer = await _Producer.begin(connection, name, topic, partitions)
        for number in numbers:
            await producer.transact(number, commit=number % _ABORT_EVERY != _ABORT_EVERY - 1)
    finally:
        connection.close()


class _Producer:
    def __init__(
        self, connection: Connection, name: str, identity: tuple[int, int], topic: str, partitions: int
    ) -> None:
        self._connection = connection
        self._name = name
        self._id, self._epoch = identity
        self._topic = topic
        self._sequences = [0] * partitions
        self._batches = itertools.cycle(small_batches())

    @classmethod
    async def begin(cls, connection: Connection, name: str, topic: str, partitions: int) -> "_Producer":
        await _patiently(connection, lambda: FindCoordinatorRequest(key=name, key_type=_TRANSACTION), 2)
        got = await _patiently(
            connection, lambda: InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 1
        )
        return cls(connection, name, (got.producer_id, got.producer_epoch), topic, partitions)

    async def transact(self, number: int, commit: bool) -> None:
        count = len(self._sequences)
        places = [(number + turn) % count for turn in range(_BATCHES)]
        await _patiently(self._connection, lambda: self._adding(sorted(set(places))), 3)
        # A request takes one batch for each partition.
        await asyncio.gather(*(self._send(places[at : at + count]) for at in range(0, _BATCHES, count)))
        await _patiently(self._connection, lambda: self._ending(commit), 3)

    async def _send(self, partitions: Sequence[int]) -> None:
        batches = [(partition, self._next(partition)) for partition in partitions]
        await produce(self._connection, self._topic, batches, self._name)

    def _next(self, partition: int) -> bytes:
        sequence = self._sequences[partition]
        self._sequences[partition] += PER_BATCH
        return transactional(next(self._batches), self._id, self._epoch, sequence)

    def _adding(self, partitions: list[int]) -> Any:
        topic_data = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[topic_data(name=self._topic, partitions=partitions)],
        )

    def _ending(self, commit: bool) -> Any:
        return EndTxnRequest(
            transactional_id=self._name, producer_id=self._id, producer_epoch=self._epoch, committed=commit
        )


async def _patiently(connection: Connection, request: Callable[[], Any], newest: int) -> Any:
    """Repeats a request as long as the coordinator is busy."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        answer = await connection.request(request(), newest=newest)
        error = _error(answer)
        if not error:
            return answer
        if error not in _BUSY or time.monotonic() > deadline:
            raise Trouble(f"the transaction coordinator refuses {type(answer).__name__}: {error_name(error)}")
        await asyncio.sleep(0.002)


def _error(answer: Any) -> int:
    if (topics := getattr(answer, "results_by_topic_v3_and_below", None)) is None:
        return int(answer.error_code)
    return max((part.partition_error_code for topic in topics for part in topic.results_by_partition), default=0)
