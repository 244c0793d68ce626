"""Fetching raw bytes from several partitions of one broker: once, or continuously in a fetch session.

In a session the broker remembers the partitions: a request has only those that changed, an answer only those with data.
"""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol.consumer import FetchRequest

from heliograph.model.partitions import TopicPartition
from heliograph.wire.connection import Connection
from heliograph.wire.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    BrokerError,
)

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
class Fetched:
    """The answer for one partition. `end` is the end for this isolation level (last stable offset or high watermark),
    -1 if the broker did not return it.

    `aborted` are (producer id, first offset) of the aborted transactions that overlap with the data. `diverged` is the
    offset up to which the log is still the one that was read before; None if it did not diverge.
    """

    topic: str
    partition: int
    error: int
    end: int
    log_start: int
    data: bytes
    aborted: tuple[tuple[int, int], ...] = ()
    diverged: int | None = None
    high_watermark: int = -1


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

    def __init__(self, connection: Connection, isolation: int = READ_COMMITTED) -> None:
        self._connection = connection
        self._isolation = isolation
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
        answer, version = await _request(
            self._connection, updates, gone, self._session, limits, self._isolation, self._by_id
        )
        self.throttled = answer.throttle_time_ms / 1000
        if answer.error_code in _SESSION_LOST:
            self._session = _NEW_SESSION
            return []
        if answer.error_code:
            raise BrokerError(answer.error_code)
        self._advance(answer, version)
        return _fetched(answer, version, self._names)

    def _advance(self, answer: Any, version: int) -> None:
        number, epoch = self._session
        if version < 7 or answer.session_id == 0:
            self._session = _NEW_SESSION
        elif answer.session_id == number and epoch < _LAST_EPOCH:
            self._session = (number, epoch + 1)
        else:
            self._session = (answer.session_id, 1)


async def fetch(
    connection: Connection, wanted: Sequence[FetchPartition], limits: Limits, isolation: int = READ_COMMITTED
) -> list[Fetched]:
    """One fetch without a session: everything up to the end for this isolation level, aborted records and markers
    included."""
    answer, version = await _request(connection, wanted, (), _NO_SESSION, limits, isolation, _have_ids(wanted))
    if answer.error_code:
        raise BrokerError(answer.error_code)
    return _fetched(answer, version, {partition.topic_id: partition.topic for partition in wanted})


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
) -> tuple[Any, int]:
    """Returns the answer and its version.

    Topics are named by id where the broker supports it (version 13 on): a recreated topic then answers with an error
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
        rack_id="",
    )
    return await connection.request(request, newest=version, oldest=version), version


def _fetched(answer: Any, version: int, names: dict[uuid.UUID, str]) -> list[Fetched]:
    return [
        Fetched(
            topic=names[topic.topic_id] if version >= 13 else topic.topic,
            partition=part.partition_index,
            error=part.error_code,
            end=part.last_stable_offset if part.last_stable_offset >= 0 else part.high_watermark,
            log_start=part.log_start_offset,
            data=part.records or b"",
            aborted=tuple((txn.producer_id, txn.first_offset) for txn in part.aborted_transactions or ()),
            diverged=_diverged(part),
            high_watermark=part.high_watermark,
        )
        for topic in answer.responses
        for part in topic.partitions
    ]


def _diverged(part: Any) -> int | None:
    # Since version 12 a broker compares last_fetched_epoch with its own leader epochs.
    diverging = part.diverging_epoch
    return None if diverging is None or diverging.end_offset < 0 else int(diverging.end_offset)
