"""Transactions that are open on partitions, and their producers."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka.protocol.admin import DescribeProducersRequest

from heliograph.model.partitions import TopicPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.metadata import Topic
from heliograph.wire.offsets import by_leader

_ANSWER_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """`start` is the offset of its first record, `last_time` the timestamp of its last one in milliseconds."""

    producer_id: int
    start: int
    last_time: int


async def open_transactions(
    client: ClusterClient, topics: Mapping[str, Topic], partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, list[OpenTransaction]]:
    """By start offset. Needs Read on the topics; partitions of brokers before 2.8 are left out."""
    leaders, _unled = by_leader(topics, partitions)
    transactions: dict[TopicPartition, list[OpenTransaction]] = {}
    topic_of = DescribeProducersRequest.TopicRequest

    async def ask(leader: int, wanted: dict[str, list[int]]) -> None:
        request = DescribeProducersRequest(
            topics=[topic_of(name=name, partition_indexes=parts) for name, parts in wanted.items()]
        )
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT):
                answer = await (await client.connection(leader)).request(request, newest=0)
        except (TimeoutError, WireError):
            return
        for topic in answer.topics:
            for part in topic.partitions:
                if part.error_code:
                    continue
                transactions[topic.name, part.partition_index] = sorted(
                    (
                        OpenTransaction(
                            producer.producer_id, producer.current_txn_start_offset, producer.last_timestamp
                        )
                        for producer in part.active_producers
                        if producer.current_txn_start_offset >= 0
                    ),
                    key=lambda transaction: transaction.start,
                )

    await asyncio.gather(*(ask(leader, wanted) for leader, wanted in leaders.items()))
    return transactions
