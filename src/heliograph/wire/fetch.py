"""Fetching raw bytes from several partitions of one broker."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol.consumer import FetchRequest

from heliograph.wire.connection import Connection
from heliograph.wire.errors import BrokerError

READ_COMMITTED = 1


@dataclass(frozen=True, slots=True)
class Wanted:
    topic: str
    topic_id: uuid.UUID
    partition: int
    offset: int
    max_bytes: int
    epoch: int = -1  # leader epoch of the record before `offset`, if known


@dataclass(frozen=True, slots=True)
class Fetched:
    """A broker's answer for one partition. `end` is where a read-committed reader ends now, -1 if it did not say.

    `diverged` is the offset up to which the log is still the one that we read from; None as long as it is.
    """

    topic: str
    partition: int
    error: int
    end: int
    log_start: int
    data: bytes
    diverged: int | None = None


async def fetch(
    connection: Connection, wanted: Sequence[Wanted], *, max_bytes: int, min_bytes: int, max_wait: float
) -> list[Fetched]:
    """One Fetch without a session: everything up to the last stable offset, aborted data and markers included.

    Topics are named by id where the broker can (version 13 on): a topic that was deleted and made again under the
    same name then answers with an error instead of other people's records.
    """
    ids = {one.topic: one.topic_id for one in wanted}
    by_id = all(value.int for value in ids.values())
    version = connection.version(FetchRequest.API_KEY, newest=16 if by_id else 12, oldest=4)
    topics: dict[str, list[FetchRequest.FetchTopic.FetchPartition]] = {}
    for one in wanted:
        topics.setdefault(one.topic, []).append(
            FetchRequest.FetchTopic.FetchPartition(
                partition=one.partition,
                current_leader_epoch=-1,
                fetch_offset=one.offset,
                last_fetched_epoch=one.epoch,
                log_start_offset=-1,
                partition_max_bytes=one.max_bytes,
            )
        )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=int(max_wait * 1000),
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=READ_COMMITTED,
        session_id=0,
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(topic=topic, topic_id=ids[topic], partitions=partitions)
            for topic, partitions in topics.items()
        ],
        forgotten_topics_data=[],
        rack_id="",
    )
    answer = await connection.request(request, newest=version, oldest=version)
    if answer.error_code:
        raise BrokerError(answer.error_code)
    names = {topic_id: topic for topic, topic_id in ids.items()}
    return [
        Fetched(
            topic=names[topic.topic_id] if version >= 13 else topic.topic,
            partition=part.partition_index,
            error=part.error_code,
            end=part.last_stable_offset if part.last_stable_offset >= 0 else part.high_watermark,
            log_start=part.log_start_offset,
            data=part.records or b"",
            diverged=_diverged(part),
        )
        for topic in answer.responses
        for part in topic.partitions
    ]


def _diverged(part: Any) -> int | None:
    # Since version 12: a broker compares the epoch that we name with its own history of leaders.
    found = part.diverging_epoch
    return None if found is None or found.end_offset < 0 else int(found.end_offset)
