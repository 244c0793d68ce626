"""Fetching raw bytes from several partitions of one broker: once, or on and on in a session.

In a session the broker remembers what was asked for: a request names only what changed, an answer only what has news.
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
    """A broker's answer for one partition. `end` is where a reader of this isolation ends now, -1 if it did not say;
    `high_watermark` is where one of uncommitted records does.

    `aborted` are (producer id, first offset) of the aborted transactions that overlap with the data. `diverged` is the
    offset up to which the log is still the one that we read from; None as long as it is.
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
    """How much one answer may hold, and how long a broker may wait for how little."""

    max_bytes: int
    min_bytes: int = 1
    max_wait: float = 0.5


class FetchSession:
    """Fetches from one broker over one connection, one request at a time.

    Brokers before 1.1, and those that have no room for another session, are asked for everything each time.
    """

    def __init__(self, connection: Connection, isolation: int = READ_COMMITTED) -> None:
        self._connection = connection
        self._isolation = isolation
        self._wanted: dict[TopicPartition, FetchPartition] = {}
        self._names: dict[uuid.UUID, str] = {}
        self._by_id = True
        self._session = _NEW_SESSION
        self.throttled = 0.0  # seconds that the broker told us, in its last answer, to stay away

    def __contains__(self, place: TopicPartition) -> bool:
        return place in self._wanted

    async def fetch(
        self, changed: Iterable[FetchPartition], dropped: Iterable[TopicPartition], limits: Limits
    ) -> list[Fetched]:
        """What the wanted partitions have. Partitions without news may be left out."""
        gone = [self._wanted.pop(place) for place in dropped if place in self._wanted]
        news = list(changed)
        for one in news:
            before = self._wanted.pop(one.place, one)
            if before.topic_id != one.topic_id:
                gone.append(before)  # deleted and made again: for the broker another topic
            self._wanted[one.place] = one  # at the end of the line, so that each has its turn at the front
            self._names[one.topic_id] = one.topic
        if self._session[0] == 0:
            news, gone = list(self._wanted.values()), []
        # A cluster has ids for all topics or for none; a request that names no topic does not tell which.
        self._by_id &= _have_ids(news)
        answer, version = await _request(
            self._connection, news, gone, self._session, limits, self._isolation, self._by_id
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
    """One Fetch without a session: everything up to where a reader of this isolation ends, aborted data and markers
    included."""
    answer, version = await _request(connection, wanted, (), _NO_SESSION, limits, isolation, _have_ids(wanted))
    if answer.error_code:
        raise BrokerError(answer.error_code)
    return _fetched(answer, version, {one.topic_id: one.topic for one in wanted})


def _have_ids(wanted: Iterable[FetchPartition]) -> bool:
    return all(one.topic_id.int for one in wanted)


async def _request(
    connection: Connection,
    wanted: Sequence[FetchPartition],
    gone: Sequence[FetchPartition],
    session: tuple[int, int],
    limits: Limits,
    isolation: int,
    by_id: bool,
) -> tuple[Any, int]:
    """The answer and its version.

    Topics are named by id where the broker can (version 13 on): a topic that was deleted and made again under the same
    name then answers with an error instead of other people's records.
    """
    version = connection.version(FetchRequest.API_KEY, newest=16 if by_id else 12, oldest=4)
    topics: dict[tuple[str, uuid.UUID], list[FetchRequest.FetchTopic.FetchPartition]] = {}
    for one in wanted:
        topics.setdefault((one.topic, one.topic_id), []).append(
            FetchRequest.FetchTopic.FetchPartition(
                partition=one.partition,
                current_leader_epoch=-1,
                fetch_offset=one.offset,
                last_fetched_epoch=one.epoch,
                log_start_offset=-1,
                partition_max_bytes=one.max_bytes,
            )
        )
    forgotten: dict[tuple[str, uuid.UUID], list[int]] = {}
    for one in gone:
        forgotten.setdefault((one.topic, one.topic_id), []).append(one.partition)
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
            aborted=tuple((one.producer_id, one.first_offset) for one in part.aborted_transactions or ()),
            diverged=_diverged(part),
            high_watermark=part.high_watermark,
        )
        for topic in answer.responses
        for part in topic.partitions
    ]


def _diverged(part: Any) -> int | None:
    # Since version 12: a broker compares the epoch that we name with its own history of leaders.
    found = part.diverging_epoch
    return None if found is None or found.end_offset < 0 else int(found.end_offset)
