"""A topic of its own for one fault: written, read and compared at once, while the other topics go on."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from fault_runs.sides import Side
from fault_runs.workload import Workload, digest, numbered
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import TOPIC_ALREADY_EXISTS, WireError
from heliograph.wire.offsets import delete_before
from heliograph.wire.topic_requests import NewTopic, create_topics, delete_topics

PREFIX = "episode-"
_RETRIED_WITHIN = 60.0


class Episode:
    """A topic with one partition. `written` has the digests of its records in order, those of earlier topics of its
    name included."""

    def __init__(self, source: Side, target: Side, name: str, patience: float) -> None:
        self.topic = f"{PREFIX}{name}"
        self.mirror = f"{source.alias}.{self.topic}"
        self.written: list[int] = []
        self.source = source
        self.target = target
        self._patience = patience
        self._workload = Workload(self.topic, 1, 0)
        self._number = 0
        self.create()

    def create(self) -> None:
        async def create(client: ClusterClient) -> bool:
            error = (await create_topics(client, [NewTopic(self.topic, 1, 3)]))[self.topic]
            return error is None or error.code == TOPIC_ALREADY_EXISTS

        _retried(lambda: self.source.run(create), f"{self.topic} cannot be created")

    def write(self, count: int) -> None:
        producer: Any = KafkaProducer(bootstrap_servers=self.source.bootstrap, linger_ms=5, batch_size=2000)
        try:
            for _ in range(count):
                content = numbered(self._workload, 0, self._number)
                self._number += 1
                now = int(time.time() * 1000)
                producer.send(
                    self.topic, content.value, content.key, list(content.headers), partition=0, timestamp_ms=now
                )
                self.written.append(digest(now, content.key, content.value, content.headers))
            producer.flush(timeout=30)
        finally:
            producer.close(timeout=5)

    def delete_source_before(self, offset: int) -> None:
        async def delete(client: ClusterClient) -> bool:
            leader = (await client.metadata([self.topic])).topics[self.topic].leaders[0]
            place = self.topic, 0
            return (await delete_before(client, {place: leader}, {place: offset}))[place] is None

        _retried(lambda: self.source.run(delete), f"records of {self.topic} cannot be deleted")

    def delete_source_slowly(self, first: int, last: int, pause: float) -> None:
        """Deletes one record after the other, up to the last one of these offsets."""
        place = self.topic, 0

        async def delete(client: ClusterClient) -> None:
            leader = (await client.metadata([self.topic])).topics[self.topic].leaders[0]
            for offset in range(first, last + 1):
                await delete_before(client, {place: leader}, {place: offset})
                await asyncio.sleep(pause)

        with contextlib.suppress(WireError, OSError, KeyError):
            self.source.run(delete)

    def is_copied(self, number: int = -1) -> bool:
        """Waits until a record is on the mirror, by default the last one."""
        wanted = self.written[number]
        deadline = time.monotonic() + self._patience
        while wanted not in self.read_mirror()[-1:]:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.5)
        return True

    def read_mirror(self) -> list[int]:
        """All records of the mirror, empty if there is none."""
        if not exists(self.target, self.mirror):
            return []
        try:
            return _read(self.target.bootstrap, self.mirror)
        except Exception:  # any error of the client: the caller asks again
            return []


def exists(side: Side, topic: str) -> bool:
    async def look(client: ClusterClient) -> bool:
        return not (await client.metadata([topic])).topics[topic].error

    try:
        return side.run(look)
    except (WireError, OSError):
        return False


def delete(side: Side, topic: str) -> None:
    """Returns when it is deleted; somebody may have created it again by then."""

    async def topic_id(client: ClusterClient) -> Any:
        found = (await client.metadata([topic])).topics[topic]
        return None if found.error else found.id

    async def ask(client: ClusterClient) -> bool:
        return (await delete_topics(client, [topic]))[topic] is None

    before = side.run(topic_id)
    _retried(lambda: side.run(ask), f"{topic} cannot be deleted")
    _retried(lambda: side.run(topic_id) != before, f"{topic} is still there")


def _read(bootstrap: str, topic: str) -> list[int]:
    place = TopicPartition(topic, 0)
    consumer: Any = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, request_timeout_ms=5000
    )
    try:
        consumer.assign([place])
        end = consumer.end_offsets([place])[place]
        consumer.seek_to_beginning(place)
        found: list[int] = []
        deadline = time.monotonic() + 20
        while consumer.position(place) < end and time.monotonic() < deadline:
            records = consumer.poll(timeout_ms=300).get(place, [])
            found += [digest(each.timestamp, each.key, each.value, each.headers) for each in records]
        return found
    finally:
        consumer.close()


def _retried(do: Callable[[], bool], otherwise: str) -> None:
    """A broker may be about to hand over, or not know the topic yet."""
    deadline = time.monotonic() + _RETRIED_WITHIN
    while True:
        try:
            if do():
                return
        except (WireError, OSError, KeyError):
            pass
        if time.monotonic() > deadline:
            raise RuntimeError(otherwise)
        time.sleep(0.3)
