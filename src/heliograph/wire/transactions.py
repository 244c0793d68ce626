"""One transactional id on a cluster: taken from whoever had it, then used for one transaction after another; and the
markers that end transactions, by themselves.

Requests of the versions that every broker since 0.11 understands, in which a transaction's epoch changes only when the
id is taken anew.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.producer import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    WriteTxnMarkersRequest,
)

from heliograph.model.partitions import TopicPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.coordinators import PAUSE, TRANSACTION, TRIES, coordinators
from heliograph.wire.errors import CLUSTER_AUTHORIZATION_FAILED, COORDINATOR_MOVES, BrokerError, WireError, error_name

_CONCURRENT_TRANSACTIONS = 51
# While the markers of the last transaction are being written a new one has to wait; that takes a few milliseconds.
_MOMENT, _PATIENCE = 0.002, 5.0
_PARTITION_ERRORS_OF_OTHERS = 55  # OPERATION_NOT_ATTEMPTED: another partition of the request is to blame


class MarkersNotAllowed(WireError):
    """Only brokers may write markers here."""


async def write_markers(
    connection: Connection, producer_ids: Sequence[int], counts: Mapping[TopicPartition, int]
) -> None:
    """So many ends of transactions, without any transaction, on partitions that this broker leads; when it returns they
    are on all in-sync replicas. Brokers do that for one another: it needs ClusterAction. They get the producer ids in
    turn, as a broker's answer has one word for each id."""
    if not connection.knows(WriteTxnMarkersRequest.API_KEY):
        raise MarkersNotAllowed("the broker does not offer it")
    marker = WriteTxnMarkersRequest.WritableTxnMarker
    markers = []
    for turn in range(max(counts.values())):
        topics: dict[str, list[int]] = {}
        for (topic, partition), count in counts.items():
            if turn < count:
                topics.setdefault(topic, []).append(partition)
        markers.append(
            marker(
                producer_id=producer_ids[turn % len(producer_ids)],
                producer_epoch=0,
                transaction_result=True,
                coordinator_epoch=0,
                topics=[
                    marker.WritableTxnMarkerTopic(name=topic, partition_indexes=parts)
                    for topic, parts in topics.items()
                ],
            )
        )
    answer = await connection.request(WriteTxnMarkersRequest(markers=markers), newest=1)
    for one in answer.markers:
        for told in one.topics:
            for part in told.partitions:
                if part.error_code == CLUSTER_AUTHORIZATION_FAILED:
                    raise MarkersNotAllowed(error_name(part.error_code))
                if part.error_code:
                    raise BrokerError(part.error_code, f"markers of {told.name}-{part.partition_index}")


class TransactionalId:
    def __init__(self, client: ClusterClient, name: str, timeout: float) -> None:
        self._client = client
        self.name = name
        self._timeout = timeout
        self._node = -1
        self.producer_id = -1
        self.epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self.lock = asyncio.Lock()  # for those who take it, or begin and end a transaction

    @property
    def ours(self) -> bool:
        return self.producer_id >= 0

    def invalidate(self) -> None:
        """What became of the last transaction is not known: the id must be taken anew before it is used."""
        self.producer_id = -1

    async def init_producer(self) -> None:
        """Get a new epoch. An open transaction of whoever had the id is aborted, and when this returns its markers are
        in the logs; nothing more can come of the earlier epoch."""
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=int(self._timeout * 1000),
            producer_id=-1,
            producer_epoch=-1,
        )
        for _ in range(TRIES):
            found = (await coordinators(self._client, [self.name], TRANSACTION))[self.name]
            if isinstance(found, WireError):
                raise found
            self._node = found
            answer = await self._patiently(request)
            if answer.error_code not in COORDINATOR_MOVES:
                break
            await asyncio.sleep(PAUSE)
        self._check(answer)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    async def add(self, places: Iterable[TopicPartition]) -> None:
        """Begin a transaction with these partitions. When it ends, each gets a marker, written to or not."""
        self._check(await self._patiently(self._adding(places)))

    async def end(self, commit: bool) -> None:
        """The markers are in the logs a moment later: whoever must know looks at the logs' ends."""
        self._check(await self._patiently(self._ending(commit)))

    def _adding(self, places: Iterable[TopicPartition]) -> AddPartitionsToTxnRequest:
        topics: dict[str, list[int]] = {}
        for topic, partition in places:
            topics.setdefault(topic, []).append(partition)
        one = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[one(name=topic, partitions=parts) for topic, parts in topics.items()],
        )

    def _ending(self, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )

    async def mark(self, places: Iterable[TopicPartition]) -> None:
        """An empty transaction. Both requests are under way at once: a broker takes those of one connection in turn."""
        adding, ending = self._adding(places), self._ending(commit=True)
        until = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            connection = await self._client.connection(self._node)
            added, ended = await asyncio.gather(
                connection.request(adding, newest=3), connection.request(ending, newest=3)
            )
            if not _is_early(added) or asyncio.get_running_loop().time() > until:
                break
            await asyncio.sleep(_MOMENT)
        self._check(added)
        self._check(ended)

    def sequence(self, place: TopicPartition, count: int) -> int:
        """The number of the first of so many records that are written to a partition next."""
        first = self._sequences.get(place, 0)
        self._sequences[place] = first + count
        return first

    async def _patiently(self, request: Any) -> Any:
        until = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            connection: Connection = await self._client.connection(self._node)
            answer = await connection.request(request, newest=3)
            if not _is_early(answer) or asyncio.get_running_loop().time() > until:
                return answer
            await asyncio.sleep(_MOMENT)

    def _check(self, answer: Any) -> None:
        for code, place in _codes(answer):
            if code:
                raise BrokerError(code, f"transactional id {self.name}{place}")


def _is_early(answer: Any) -> bool:
    return any(code == _CONCURRENT_TRANSACTIONS for code, _place in _codes(answer))


def _codes(answer: Any) -> list[tuple[int, str]]:
    """All error codes of an answer, those of others' faults last."""
    if hasattr(answer, "results_by_topic_v3_and_below"):
        found = [
            (part.partition_error_code, f", {topic.name}-{part.partition_index}")
            for topic in answer.results_by_topic_v3_and_below
            for part in topic.results_by_partition
        ]
        return sorted(found, key=lambda one: one[0] == _PARTITION_ERRORS_OF_OTHERS)
    return [(answer.error_code, "")]
