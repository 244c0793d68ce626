"""Where partitions begin and end, and making them begin later."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from kafka.protocol.admin import DeleteRecordsRequest
from kafka.protocol.consumer import ListOffsetsRequest

from heliograph.wire.cluster import ClusterClient, Topic
from heliograph.wire.errors import BrokerError, WireError

EARLIEST = -2
LATEST = -1
# One broker that hangs must not hold up the partitions of the others for a whole request timeout.
_ANSWER_WITHIN = 5.0
# Who asks: for a debugger, which need not be a broker, nothing is held back.
_CONSUMER = -1
_DEBUGGER = -2
Partition = tuple[str, int]


async def list_offsets(
    client: ClusterClient,
    topics: Mapping[str, Topic],
    partitions: Iterable[Partition],
    which: int,
    committed: bool,
    *,
    as_consumer: bool = True,
) -> dict[Partition, int | WireError]:
    """First (EARLIEST) or next (LATEST) offset of each partition, asked from all leaders at once.

    With `committed` the end is the last stable offset, else the high watermark; for who is no consumer it is the log
    end offset, with what is not on all in-sync replicas yet. A leader that was just elected answers
    OFFSET_NOT_AVAILABLE until its high watermark is good; that and any other error stand in the answer.
    """
    by_leader: dict[int, dict[str, list[int]]] = {}
    found: dict[Partition, int | WireError] = {}
    for topic, partition in partitions:
        leader = topics[topic].leaders.get(partition, -1) if topic in topics else -1
        if leader < 0:
            found[topic, partition] = WireError("no leader")
        else:
            by_leader.setdefault(leader, {}).setdefault(topic, []).append(partition)

    async def ask(leader: int, wanted: dict[str, list[int]]) -> None:
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                connection = await client.to(leader)
                answer = await connection.request(_request(wanted, which, committed, as_consumer), newest=8, oldest=1)
        except (TimeoutError, WireError) as error:
            said = error if isinstance(error, WireError) else WireError(f"broker {leader} does not answer")
            found.update({(topic, partition): said for topic, parts in wanted.items() for partition in parts})
            return
        for topic in answer.topics:
            for part in topic.partitions:
                found[topic.name, part.partition_index] = _offset(part)

    await asyncio.gather(*(ask(leader, wanted) for leader, wanted in by_leader.items()))
    return found


async def one_offset(client: ClusterClient, topic: Topic, partition: int, which: int, committed: bool) -> int:
    """The same for a single partition; raises what went wrong."""
    place = (topic.name, partition)
    found = (await list_offsets(client, {topic.name: topic}, [place], which, committed))[place]
    if isinstance(found, WireError):
        raise found
    return found


async def delete_before(
    client: ClusterClient, leaders: Mapping[Partition, int], offsets: Mapping[Partition, int]
) -> dict[Partition, WireError | None]:
    """Have partitions begin at these offsets. A broker refuses it (POLICY_VIOLATION) for topics that are compacted."""
    by_leader: dict[int, dict[str, list[Any]]] = {}
    one = DeleteRecordsRequest.DeleteRecordsTopic
    for (topic, partition), offset in offsets.items():
        by_leader.setdefault(leaders[topic, partition], {}).setdefault(topic, []).append(
            one.DeleteRecordsPartition(partition_index=partition, offset=offset)
        )
    outcome: dict[Partition, WireError | None] = {}
    timeout = int(client.cluster.request_timeout * 1000)

    async def ask(leader: int, wanted: dict[str, list[Any]]) -> None:
        try:
            request = DeleteRecordsRequest(
                topics=[one(name=topic, partitions=parts) for topic, parts in wanted.items()], timeout_ms=timeout
            )
            answer = await (await client.to(leader)).request(request, newest=2)
        except WireError as error:
            outcome.update({(topic, part.partition_index): error for topic, parts in wanted.items() for part in parts})
            return
        for topic in answer.topics:
            for part in topic.partitions:
                refused = BrokerError(part.error_code) if part.error_code else None
                outcome[topic.name, part.partition_index] = refused

    await asyncio.gather(*(ask(leader, wanted) for leader, wanted in by_leader.items()))
    return outcome


def _request(wanted: dict[str, list[int]], which: int, committed: bool, as_consumer: bool) -> ListOffsetsRequest:
    one = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=_CONSUMER if as_consumer else _DEBUGGER,
        isolation_level=1 if committed else 0,
        topics=[
            one(
                name=topic,
                partitions=[
                    one.ListOffsetsPartition(partition_index=part, current_leader_epoch=-1, timestamp=which)
                    for part in parts
                ],
            )
            for topic, parts in wanted.items()
        ],
    )


def _offset(part: Any) -> int | WireError:
    return BrokerError(part.error_code) if part.error_code else int(part.offset)
