"""A transactional id, used for one transaction after another; and transaction markers without transactions.

Requests have versions that every broker since 0.11 supports, in which the producer epoch changes only with
InitProducerId.
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
from heliograph.wire.errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    COORDINATOR_MOVES,
    TOPIC_AUTHORIZATION_FAILED,
    BrokerError,
    WireError,
    error_name,
    missing_right,
)

_CONCURRENT_TRANSACTIONS = 51
# A transaction has to wait until the markers of the one before are written (CONCURRENT_TRANSACTIONS): milliseconds.
_RETRY_BACKOFF, _RETRY_TIMEOUT = 0.002, 5.0
_OPERATION_NOT_ATTEMPTED = 55  # because of an error of another partition in the request


class MarkersNotAllowed(WireError):
    """We may not write markers: that needs ClusterAction."""


async def write_markers(
    connection: Connection, producer_ids: Sequence[int], counts: Mapping[TopicPartition, int]
) -> None:
    """Writes `counts` commit markers, without transactions, to partitions that this broker leads. When it returns they
    are on all in-sync replicas. WriteTxnMarkers is a request among brokers: it needs ClusterAction. Producer ids are
    used in turn, as an answer has one result for each id."""
    if not connection.knows(WriteTxnMarkersRequest.API_KEY):
        raise MarkersNotAllowed("the broker does not support WriteTxnMarkers")
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
    for result in answer.markers:
        for topic_result in result.topics:
            for part in topic_result.partitions:
                if part.error_code == CLUSTER_AUTHORIZATION_FAILED:
                    raise MarkersNotAllowed(error_name(part.error_code))
                if part.error_code:
                    raise BrokerError(part.error_code, f"markers of {topic_result.name}-{part.partition_index}")


class TransactionalId:
    def __init__(self, client: ClusterClient, name: str, timeout: float) -> None:
        self._client = client
        self.name = name
        self._timeout = timeout
        self._node = -1
        self.producer_id = -1
        self.epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self.lock = asyncio.Lock()  # held during init_producer, and during a transaction

    @property
    def ours(self) -> bool:
        return self.producer_id >= 0

    def invalidate(self) -> None:
        """The outcome of the last transaction is not known: init_producer must come before the next one."""
        self.producer_id = -1

    async def init_producer(self) -> None:
        """Gets a new epoch, which fences earlier users of the id. An open transaction of theirs is aborted; when this
        returns, its markers are in the logs."""
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=int(self._timeout * 1000),
            producer_id=-1,
            producer_epoch=-1,
        )
        for _ in range(TRIES):
            node = (await coordinators(self._client, [self.name], TRANSACTION))[self.name]
            if isinstance(node, WireError):
                raise node
            self._node = node
            answer = await self._request(request)
            if answer.error_code not in COORDINATOR_MOVES:
                break
            await asyncio.sleep(PAUSE)
        self._check(answer)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    async def add(self, places: Iterable[TopicPartition]) -> None:
        """Begins a transaction with these partitions. When it ends, each gets a marker, written to or not."""
        self._check(await self._request(self._adding(places)))

    async def end(self, commit: bool) -> None:
        """Ends the transaction. EndTxn is answered before its markers are in the logs."""
        self._check(await self._request(self._ending(commit)))

    def _adding(self, places: Iterable[TopicPartition]) -> AddPartitionsToTxnRequest:
        topics: dict[str, list[int]] = {}
        for topic, partition in places:
            topics.setdefault(topic, []).append(partition)
        topic_row = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic_row(name=topic, partitions=parts) for topic, parts in topics.items()],
        )

    def _ending(self, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.name, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commit
        )

    async def mark(self, places: Iterable[TopicPartition]) -> None:
        """An empty transaction. Both requests are in flight at once: a broker handles a connection's in order."""
        adding, ending = self._adding(places), self._ending(commit=True)
        deadline = asyncio.get_running_loop().time() + _RETRY_TIMEOUT
        while True:
            connection = await self._client.connection(self._node)
            added, ended = await asyncio.gather(
                connection.request(adding, newest=3), connection.request(ending, newest=3)
            )
            if not _must_wait(added) or asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(_RETRY_BACKOFF)
        self._check(added)
        self._check(ended)

    def sequence(self, place: TopicPartition, count: int) -> int:
        """The sequence number of the first of the next `count` records of a partition."""
        first = self._sequences.get(place, 0)
        self._sequences[place] = first + count
        return first

    async def _request(self, request: Any) -> Any:
        deadline = asyncio.get_running_loop().time() + _RETRY_TIMEOUT
        while True:
            connection: Connection = await self._client.connection(self._node)
            answer = await connection.request(request, newest=3)
            if not _must_wait(answer) or asyncio.get_running_loop().time() > deadline:
                return answer
            await asyncio.sleep(_RETRY_BACKOFF)

    def _check(self, answer: Any) -> None:
        for code, place in _codes(answer):
            if code:
                raise BrokerError(code, self._why(code, place))

    def _why(self, code: int, place: str) -> str:
        resource = f"the topic{place}" if code == TOPIC_AUTHORIZATION_FAILED else f"transactional id {self.name}"
        return missing_right(code, "Write", resource) or f"transactional id {self.name}{place}"


def _must_wait(answer: Any) -> bool:
    return any(code == _CONCURRENT_TRANSACTIONS for code, _place in _codes(answer))


def _codes(answer: Any) -> list[tuple[int, str]]:
    """All error codes of an answer, with the partition; OPERATION_NOT_ATTEMPTED last."""
    if hasattr(answer, "results_by_topic_v3_and_below"):
        codes = [
            (part.partition_error_code, f", {topic.name}-{part.partition_index}")
            for topic in answer.results_by_topic_v3_and_below
            for part in topic.results_by_partition
        ]
        return sorted(codes, key=lambda code: code[0] == _OPERATION_NOT_ATTEMPTED)
    return [(answer.error_code, "")]
