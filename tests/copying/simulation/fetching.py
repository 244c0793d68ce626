"""Fetch requests, once or in sessions, and waiting until there is something to say."""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace as Answer
from typing import TYPE_CHECKING, Any

from copying.simulation.log import Log
from heliograph.wire.errors import (
    FETCH_SESSION_ID_NOT_FOUND,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_TOPIC_ID,
)
from heliograph.wire.fetch_response import FetchAnswer, Fetched

if TYPE_CHECKING:
    from copying.simulation.cluster import SimulatedCluster

Place = tuple[uuid.UUID, int]
_NO_SESSION = -1
_FOLLOWER = 2


@dataclass
class Fetches:
    """The sessions of one connection."""

    loop: asyncio.AbstractEventLoop
    session: int = 0
    names: dict[uuid.UUID, str] = field(default_factory=dict)
    _count: int = 0
    _wanted: dict[Place, Any] = field(default_factory=dict)
    _sent_bounds: dict[Place, tuple[int, int]] = field(
        default_factory=dict
    )  # high watermark and start of the last answer

    def handle(self, cluster: "SimulatedCluster", message: Any, reply: Callable[[Any], None]) -> None:
        asked = {(topic.topic_id, part.partition): part for topic in message.topics for part in topic.partitions}
        self.names.update({topic.topic_id: topic.topic for topic in message.topics})
        full = message.session_epoch in (_NO_SESSION, 0)
        if message.session_epoch == _NO_SESSION:
            wanted = asked
        elif message.session_epoch == 0:
            self._count += 1
            self.session = self._count
            wanted = self._wanted = asked
            self._sent_bounds = {}
        elif message.session_id != self.session:
            reply(FetchAnswer(0.0, FETCH_SESSION_ID_NOT_FOUND, 0, []))
            return
        else:
            for topic in message.forgotten_topics_data:
                for partition in topic.partitions:
                    self._wanted.pop((topic.topic_id, partition), None)
            for place in asked:
                self._wanted.pop(place, None)
            self._wanted.update(asked)
            wanted = self._wanted
        number = 0 if message.session_epoch == _NO_SESSION else self.session
        _Waiting(self, cluster, message, wanted, full, number, reply).look()


@dataclass
class _Waiting:
    fetches: Fetches
    cluster: "SimulatedCluster"
    message: Any
    wanted: dict[Place, Any]
    full: bool
    session: int
    reply: Callable[[Any], None]
    timer: asyncio.TimerHandle | None = None
    is_over: bool = False  # the time to wait
    done: bool = False

    def _end_waiting(self) -> None:
        self.is_over = True
        self.look()

    def look(self) -> None:
        if self.done:
            return
        answers = {place: self._read(place, part) for place, part in self.wanted.items()}
        has_news = any(_has_news(answer) for answer in answers.values())
        wait = self.message.max_wait_ms / 1000
        if not has_news and wait and not self.is_over:
            if self.timer is None:
                self.timer = self.fetches.loop.call_later(wait, self._end_waiting)
            for place in self.wanted:
                log = self._log(place)
                if log is not None:
                    log.watchers.append(self.look)
            return
        self.done = True
        if self.timer is not None:
            self.timer.cancel()
        self.reply(self._answer(answers))

    def _log(self, place: Place) -> Log | None:
        topic = next((topic for topic in self.cluster.topics.values() if topic.id == place[0]), None)
        return topic.partitions[place[1]] if topic is not None else None

    def _read(self, place: Place, part: Any) -> Any:
        log = self._log(place)
        said = Answer(
            partition_index=place[1],
            error_code=0,
            high_watermark=-1,
            last_stable_offset=-1,
            log_start_offset=-1,
            aborted_transactions=None,
            records=b"",
            diverging_epoch=None,
            preferred_read_replica=-1,
        )
        if log is None:
            said.error_code = UNKNOWN_TOPIC_ID
            return said
        said.high_watermark, said.last_stable_offset, said.log_start_offset = log.end, log.stable_end, log.start
        if self.message.rack_id and self.cluster.follower is not None:
            said.preferred_read_replica = _FOLLOWER  # the leader may know no better
            return said
        offset = part.fetch_offset
        if part.last_fetched_epoch >= 0:
            ends = log.end_of(part.last_fetched_epoch)
            if ends is None:
                said.error_code = OFFSET_OUT_OF_RANGE
                return said
            if ends[0] < part.last_fetched_epoch or ends[1] < offset:
                said.diverging_epoch = Answer(epoch=ends[0], end_offset=ends[1])
                return said
        if not log.start <= offset <= log.end:
            said.error_code = OFFSET_OUT_OF_RANGE
            return said
        committed = self.message.isolation_level == 1
        until = log.stable_end if committed else log.end
        batches = log.read(offset, until, part.partition_max_bytes)
        said.records = b"".join(batch.data for batch in batches)
        if committed and batches:
            behind = batches[-1].next_offset
            said.aborted_transactions = [
                Answer(producer_id=producer_id, first_offset=first)
                for producer_id, first, marker in reversed(log.aborted)
                if first < behind and marker >= offset
            ]
        return said

    def _answer(self, answers: dict[Place, Any]) -> Any:
        sent_bounds = self.fetches._sent_bounds if self.session else {}
        fetched = []
        for place, answer in answers.items():
            now = answer.high_watermark, answer.log_start_offset
            if self.full or _has_news(answer) or sent_bounds.get(place) != now:
                sent_bounds[place] = now
                fetched.append(_fetched(self.fetches.names[place[0]], answer))
        return FetchAnswer(0.0, 0, self.session, fetched)


def _has_news(answer: Any) -> bool:
    return bool(answer.error_code or answer.records or answer.diverging_epoch or answer.preferred_read_replica >= 0)


def _fetched(topic: str, answer: Any) -> Fetched:
    return Fetched(
        topic,
        answer.partition_index,
        answer.error_code,
        answer.last_stable_offset if answer.last_stable_offset >= 0 else answer.high_watermark,
        answer.log_start_offset,
        memoryview(answer.records),
        tuple((transaction.producer_id, transaction.first_offset) for transaction in answer.aborted_transactions or ()),
        answer.diverging_epoch.end_offset if answer.diverging_epoch is not None else None,
        answer.high_watermark,
        preferred_replica=answer.preferred_read_replica,
    )
