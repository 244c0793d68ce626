"""Start and end offsets of partitions, and deleting records from the start."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from kafka.protocol.admin import DeleteRecordsRequest
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from heliograph.model.partitions import TopicPartition
from heliograph.wire import list_offsets_codec as codec
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import BrokerError, WireError
from heliograph.wire.metadata import Topic

EARLIEST = -2
LATEST = -1
# A broker that hangs must not hold up the partitions of the others for a whole request timeout.
_ANSWER_TIMEOUT = 5.0


async def list_offsets(
    client: ClusterClient,
    topics: Mapping[str, Topic],
    partitions: Iterable[TopicPartition],
    which: int,
    committed: bool,
) -> dict[TopicPartition, int | WireError]:
    """First (EARLIEST) or next (LATEST) offset of each partition, from all leaders at once.

    With `committed` the end is the last stable offset, else the high watermark. Errors are returned per partition: a
    new leader answers OFFSET_NOT_AVAILABLE until its high watermark is up to date.
    """
    leaders, unled = by_leader(topics, partitions)
    offsets: dict[TopicPartition, int | WireError] = {place: WireError("no leader") for place in unled}

    async def ask(leader: int, wanted: dict[str, list[int]]) -> None:
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT):
                connection = await client.connection(leader)
                version = connection.version(codec.LIST_OFFSETS, codec.NEWEST, codec.OLDEST)
                request = codec.encode(wanted, which, committed, version)
                answer: dict[TopicPartition, int | WireError] = await connection.send_parts(
                    codec.LIST_OFFSETS, version, [request], lambda frame: codec.decode(frame, version)
                )
        except (TimeoutError, WireError) as error:
            failure = error if isinstance(error, WireError) else WireError(f"broker {leader} does not answer")
            offsets.update({(topic, partition): failure for topic, parts in wanted.items() for partition in parts})
            return
        offsets.update(answer)
        if len(answer) < sum(map(len, wanted.values())):
            left_out = {(topic, partition) for topic, parts in wanted.items() for partition in parts} - answer.keys()
            offsets.update(dict.fromkeys(left_out, WireError(f"broker {leader} leaves partitions out")))

    await asyncio.gather(*(ask(leader, wanted) for leader, wanted in leaders.items()))
    return offsets


async def log_ends(
    client: ClusterClient, topics: Mapping[str, Topic], partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int | WireError]:
    """Log end offsets of the leaders: beyond the high watermark, with what is not on all in-sync replicas yet.

    OffsetForLeaderEpoch gives it as the end of the leader's own epoch. Left out: partitions of brokers before 2.1, and
    topics with the old message formats, which have no epochs.
    """
    leaders, _unled = by_leader(topics, partitions)
    ends: dict[TopicPartition, int | WireError] = {}

    async def ask(leader: int, wanted: dict[str, list[int]]) -> None:
        places = [(topic, partition) for topic, parts in wanted.items() for partition in parts]
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT):
                connection = await client.connection(leader)
                if not connection.knows(OffsetForLeaderEpochRequest.API_KEY, version=2):
                    return
                answer = await connection.request(_epoch_request(topics, wanted), newest=4, oldest=2)
        except (TimeoutError, WireError) as error:
            failure = error if isinstance(error, WireError) else WireError(f"broker {leader} does not answer")
            ends.update(dict.fromkeys(places, failure))
            return
        for topic in answer.topics:
            for part in topic.partitions:
                place = topic.topic, part.partition
                if part.error_code == 0 and part.leader_epoch == topics[topic.topic].epochs[part.partition]:
                    ends[place] = int(part.end_offset)
                elif part.error_code and not (refused := BrokerError(part.error_code)).forbidden:
                    ends[place] = refused

    await asyncio.gather(*(ask(leader, wanted) for leader, wanted in leaders.items()))
    return ends


def by_leader(
    topics: Mapping[str, Topic], partitions: Iterable[TopicPartition]
) -> tuple[dict[int, dict[str, list[int]]], list[TopicPartition]]:
    """Partitions by leader and topic; and those that have no leader now."""
    by_broker: dict[int, dict[str, list[int]]] = {}
    unled: list[TopicPartition] = []
    for topic, partition in partitions:
        leader = topics[topic].leaders.get(partition, -1) if topic in topics else -1
        if leader < 0:
            unled.append((topic, partition))
        else:
            by_broker.setdefault(leader, {}).setdefault(topic, []).append(partition)
    return by_broker, unled


async def one_offset(client: ClusterClient, topic: Topic, partition: int, which: int, committed: bool) -> int:
    """`list_offsets` for one partition; raises its error."""
    place = (topic.name, partition)
    offset = (await list_offsets(client, {topic.name: topic}, [place], which, committed))[place]
    if isinstance(offset, WireError):
        raise offset
    return offset


async def delete_before(
    client: ClusterClient, leaders: Mapping[TopicPartition, int], offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, WireError | None]:
    """Deletes the records before these offsets. A broker refuses it (POLICY_VIOLATION) for compacted topics."""
    by_leader: dict[int, dict[str, list[Any]]] = {}
    topic_row = DeleteRecordsRequest.DeleteRecordsTopic
    for (topic, partition), offset in offsets.items():
        by_leader.setdefault(leaders[topic, partition], {}).setdefault(topic, []).append(
            topic_row.DeleteRecordsPartition(partition_index=partition, offset=offset)
        )
    outcome: dict[TopicPartition, WireError | None] = {}
    timeout = int(client.cluster.request_timeout * 1000)

    async def ask(leader: int, wanted: dict[str, list[Any]]) -> None:
        try:
            request = DeleteRecordsRequest(
                topics=[topic_row(name=topic, partitions=parts) for topic, parts in wanted.items()], timeout_ms=timeout
            )
            answer = await (await client.connection(leader)).request(request, newest=2)
        except WireError as error:
            outcome.update({(topic, part.partition_index): error for topic, parts in wanted.items() for part in parts})
            return
        for topic in answer.topics:
            for part in topic.partitions:
                refused = BrokerError(part.error_code) if part.error_code else None
                outcome[topic.name, part.partition_index] = refused

    await asyncio.gather(*(ask(leader, wanted) for leader, wanted in by_leader.items()))
    return outcome


def _epoch_request(topics: Mapping[str, Topic], wanted: dict[str, list[int]]) -> OffsetForLeaderEpochRequest:
    topic_row = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    return OffsetForLeaderEpochRequest(
        replica_id=-2,  # a debugging consumer, which gets offsets beyond the high watermark
        topics=[
            topic_row(
                topic=topic,
                partitions=[
                    topic_row.OffsetForLeaderPartition(partition=part, current_leader_epoch=epoch, leader_epoch=epoch)
                    for part in parts
                    if (epoch := topics[topic].epochs.get(part, -1)) >= 0
                ],
            )
            for topic, parts in wanted.items()
        ],
    )
