"""Fetching raw bytes from several partitions of one broker: once, or continuously in a fetch session.

In a session the broker remembers the partitions: a request has only those that changed, an answer only those with data.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka.protocol.consumer import FetchRequest

from heliograph.model.partitions import TopicPartition
from heliograph.wire.connection import Connection
from heliograph.wire.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    BrokerError,
)
from heliograph.wire.fetch_response import FetchAnswer, Fetched, decode

READ_UNCOMMITTED, READ_COMMITTED = 0, 1

_NO_SESSION = (0, -1)
_NEW_SESSION = (0, 0)
_LAST_EPOCH = (1 << 31) - 1
_SESSION_LOST = frozenset({FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR})


@dataclass(frozen=True, slots=True)
class FetchPartition:
    topic: str
    topic_id: uuid.UUID
    partition: int
    offset: int
    max_bytes: int
    epoch: int = -1  # leader epoch of the record before `offset`, if known

    @property
    def place(self) -> TopicPartition:
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class Limits:
    """fetch.max.bytes, fetch.min.bytes and fetch.max.wait (in seconds) of one request."""

    max_bytes: int
    min_bytes: int = 1
    max_wait: float = 0.5


class FetchSession:
    """Fetches from one broker over one connection, one request at a time.

    Brokers before 1.1, and those whose session cache is full, get a full fetch request each time.
    """

    def __init__(self, connection: Connection, isolation: int = READ_COMMITTED, rack: str = "") -> None:
        self._connection = connection
        self._isolation = isolation
        self._rack = rack
        self._wanted: dict[TopicPartition, FetchPartition] = {}
        self._names: dict[uuid.UUID, str] = {}
        self._by_id = True
        self._session = _NEW_SESSION
        self.throttled = 0.0  # throttle time of the last answer, in seconds

    def __contains__(self, place: TopicPartition) -> bool:
        return place in self._wanted

    async def fetch(
        self, changed: Iterable[FetchPartition], dropped: Iterable[TopicPartition], limits: Limits
    ) -> list[Fetched]:
        """Returns data of the partitions in the session. Those without data may be left out."""
        gone = [self._wanted.pop(place) for place in dropped if place in self._wanted]
        updates = list(changed)
        for update in updates:
            before = self._wanted.pop(update.place, update)
            if before.topic_id != update.topic_id:
                gone.append(before)  # recreated: for the broker it is another topic
            self._wanted[update.place] = update  # at the end, so that each partition comes to the front in turn
            self._names[update.topic_id] = update.topic
        if self._session[0] == 0:
            updates, gone = list(self._wanted.values()), []
        # A cluster has ids for all topics or for none; a request without topics does not show which.
        self._by_id &= _have_ids(updates)
        answer = await _request(
            self._connection,
            updates,
            gone,
            self._session,
            limits,
            self._isolation,
            self._by_id,
            self._names,
            self._rack,
        )
        self.throttled = answer.throttled
        if answer.error in _SESSION_LOST:
            self._session = _NEW_SESSION
            return []
        if answer.error:
            raise BrokerError(answer.error)
        self._advance(answer.session)
        return answer.partitions

    def _advance(self, session: int) -> None:
        number, epoch = self._session
        if session == 0:
            self._session = _NEW_SESSION
        elif session == number and epoch < _LAST_EPOCH:
            self._session = (number, epoch + 1)
        else:
            self._session = (session, 1)


async def fetch(
    connection: Connection, wanted: Sequence[FetchPartition], limits: Limits, isolation: int = READ_COMMITTED
) -> list[Fetched]:
    """One fetch without a session: everything up to the end for this isolation level, aborted records and markers
    included."""
    names = {partition.topic_id: partition.topic for partition in wanted}
    answer = await _request(connection, wanted, (), _NO_SESSION, limits, isolation, _have_ids(wanted), names)
    if answer.error:
        raise BrokerError(answer.error)
    return answer.partitions


def _have_ids(wanted: Iterable[FetchPartition]) -> bool:
    return all(partition.topic_id.int for partition in wanted)


async def _request(
    connection: Connection,
    wanted: Sequence[FetchPartition],
    gone: Sequence[FetchPartition],
    session: tuple[int, int],
    limits: Limits,
    isolation: int,
    by_id: bool,
    names: Mapping[uuid.UUID, str],
    rack: str = "",
) -> FetchAnswer:
    """Topics are named by id where the broker supports it (version 13 on): a recreated topic then answers with an error
    instead of the records of the new topic.
    """
    version = connection.version(FetchRequest.API_KEY, newest=16 if by_id else 12, oldest=4)
    topics: dict[tuple[str, uuid.UUID], list[FetchRequest.FetchTopic.FetchPartition]] = {}
    for partition in wanted:
        topics.setdefault((partition.topic, partition.topic_id), []).append(
            FetchRequest.FetchTopic.FetchPartition(
                partition=partition.partition,
                current_leader_epoch=-1,
                fetch_offset=partition.offset,
                last_fetched_epoch=partition.epoch,
                log_start_offset=-1,
                partition_max_bytes=partition.max_bytes,
            )
        )
    forgotten: dict[tuple[str, uuid.UUID], list[int]] = {}
    for partition in gone:
        forgotten.setdefault((partition.topic, partition.topic_id), []).append(partition.partition)
    number, epoch = session if version >= 7 else _NO_SESSION
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=int(limits.max_wait * 1000),
        min_bytes=limits.min_bytes,
        max_bytes=limits.max_bytes,
        isolation_level=isolation,
        session_id=number,
        session_epoch=epoch,
        topics=[
            FetchRequest.FetchTopic(topic=topic, topic_id=topic_id, partitions=partitions)
            for (topic, topic_id), partitions in topics.items()
        ],
        forgotten_topics_data=[
            FetchRequest.ForgottenTopic(topic=topic, topic_id=topic_id, partitions=partitions)
            for (topic, topic_id), partitions in forgotten.items()
        ],
        rack_id=rack,
    )
    answer: FetchAnswer = await connection.request(
        request, version, version, lambda frame: decode(frame, version, names)
    )
    return answer
