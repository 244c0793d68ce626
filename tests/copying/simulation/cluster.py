"""A Kafka cluster of one broker in memory, or with a follower: answers the requests that copiers and packers send."""

import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace as Answer
from typing import Any

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.producer import ProduceRequest

from copying.simulation.fetching import Fetches
from copying.simulation.log import Log
from heliograph.wire.connection import read_uvarint
from heliograph.wire.errors import UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION

NODE, FOLLOWER = 1, 2
_EARLIEST = -2
Reply = Callable[[Any], None]


@dataclass
class Topic:
    id: uuid.UUID
    partitions: list[Log]


@dataclass
class Appending:
    """What a Produce request says of one partition; it names the topic, or has its id."""

    topic: str
    partition: int
    data: bytes
    topic_id: uuid.UUID | None = None


@dataclass
class SimulatedCluster:
    name: str
    topics: dict[str, Topic] = field(default_factory=dict)
    refusals: dict[str, list[int]] = field(default_factory=dict)  # by topic: error codes for the next appends
    follower: "SimulatedCluster | None" = None  # named to clients with a rack, whatever it has
    appends_by_id: bool = True  # else its brokers are from before 4.1
    names: dict[uuid.UUID, str] = field(default_factory=dict)  # of all topics, deleted ones included
    _ids: int = 0

    def create(self, name: str, partitions: int = 1) -> Topic:
        """Or create again, with another id."""
        self._ids += 1
        gone = self.topics.get(name)
        self.topics[name] = Topic(uuid.UUID(int=(hash_of(self.name) << 32) + self._ids), [])
        self.topics[name].partitions = [Log() for _ in range(partitions)]
        self.names[self.topics[name].id] = name
        for log in gone.partitions if gone is not None else ():
            log.changed()
        return self.topics[name]

    def log(self, name: str, partition: int = 0) -> Log | None:
        topic = self.topics.get(name)
        return topic.partitions[partition] if topic is not None and partition < len(topic.partitions) else None

    # --- requests -------------------------------------------------------------------------------------------------

    def handle(self, message: Any, fetches: Fetches, reply: Reply) -> None:
        if isinstance(message, list):
            answers = [(request, *self._append(request)) for request in message]
            reply(_appended_by_id(answers) if message[0].topic_id is not None else _appended(answers))
            return
        kind = type(message).__name__.removesuffix("Request")
        if kind == "Fetch":
            fetches.handle(self, message, reply)
        else:
            reply(getattr(self, f"_answer_{kind}")(message))

    def _append(self, request: Appending) -> tuple[int, int]:
        log = self.log(request.topic, request.partition)
        if log is None:
            return UNKNOWN_TOPIC_OR_PARTITION, -1
        if request.topic_id not in (None, self.topics[request.topic].id):
            return UNKNOWN_TOPIC_ID, -1
        if self.refusals.get(request.topic):
            return self.refusals[request.topic].pop(0), -1
        return log.append(request.data)

    def _answer_Metadata(self, message: Any) -> Any:
        names = list(self.topics) if message.topics is None else [each.name for each in message.topics]
        brokers = [Answer(node_id=NODE, host=self.name, port=9092)]
        if self.follower is not None:
            brokers.append(Answer(node_id=FOLLOWER, host=self.follower.name, port=9092))
        return Answer(
            brokers=brokers,
            controller_id=NODE,
            cluster_id=self.name,
            topics=[self._described(name) for name in names],
        )

    def _described(self, name: str) -> Any:
        known = self.topics.get(name)
        return Answer(
            name=name,
            topic_id=known.id if known is not None else None,
            is_internal=False,
            error_code=0 if known is not None else UNKNOWN_TOPIC_OR_PARTITION,
            partitions=[
                Answer(partition_index=partition, leader_id=NODE, leader_epoch=log.epoch)
                for partition, log in enumerate(known.partitions if known is not None else ())
            ],
        )

    def _answer_ListOffsets(self, message: Any) -> bytes:
        topic_row = ListOffsetsResponse.ListOffsetsTopicResponse

        def answer(log: Log | None, asked: Any) -> Any:
            error, offset = (UNKNOWN_TOPIC_OR_PARTITION, -1) if log is None else (0, log.start)
            if log is not None and asked.timestamp != _EARLIEST:
                offset = log.stable_end if message.isolation_level else log.end
            return topic_row.ListOffsetsPartitionResponse(
                partition_index=asked.partition_index, error_code=error, timestamp=-1, offset=offset, leader_epoch=-1
            )

        topics = [
            topic_row(
                name=topic.name,
                partitions=[answer(self.log(topic.name, asked.partition_index), asked) for asked in topic.partitions],
            )
            for topic in message.topics
        ]
        return bytes(ListOffsetsResponse(throttle_time_ms=0, topics=topics).encode(version=message.version))

    def _answer_OffsetForLeaderEpoch(self, message: Any) -> Any:
        def end(log: Log | None, epoch: int) -> dict[str, int]:
            if log is None:
                return {"error_code": UNKNOWN_TOPIC_OR_PARTITION, "leader_epoch": -1, "end_offset": -1}
            found = log.end_of(epoch) or (-1, -1)
            return {"error_code": 0, "leader_epoch": found[0], "end_offset": found[1]}

        return Answer(
            topics=[
                Answer(
                    topic=topic.topic,
                    partitions=[
                        Answer(
                            partition=part.partition, **end(self.log(topic.topic, part.partition), part.leader_epoch)
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )

    def _answer_DeleteRecords(self, message: Any) -> Any:
        def delete(log: Log | None, offset: int) -> int:
            if log is None:
                return UNKNOWN_TOPIC_OR_PARTITION
            return log.delete_before(log.end if offset == -1 else offset)

        return Answer(
            topics=[
                Answer(
                    name=topic.name,
                    partitions=[
                        Answer(
                            partition_index=part.partition_index,
                            error_code=delete(self.log(topic.name, part.partition_index), part.offset),
                        )
                        for part in topic.partitions
                    ],
                )
                for topic in message.topics
            ]
        )

    def _answer_DescribeConfigs(self, message: Any) -> Any:
        def configs(name: str) -> list[Any]:
            log = self.log(name)
            values = {"max.message.bytes": log.largest if log is not None else 0, "segment.bytes": 1 << 30}
            return [
                Answer(name=key, value=str(value), config_source=1, read_only=False, is_sensitive=False)
                for key, value in values.items()
            ]

        return Answer(
            results=[
                Answer(
                    resource_name=request.resource_name,
                    error_code=0,
                    error_message=None,
                    configs=configs(request.resource_name),
                )
                for request in message.resources
            ]
        )

    def _answer_IncrementalAlterConfigs(self, message: Any) -> Any:
        for request in message.resources:
            log = self.log(request.resource_name)
            for config in request.configs:
                if log is not None and config.name == "max.message.bytes":
                    log.largest = int(config.value)
        return Answer(
            responses=[
                Answer(resource_name=request.resource_name, error_code=0, error_message=None)
                for request in message.resources
            ]
        )


def hash_of(name: str) -> int:
    return int.from_bytes(name.encode()[:4], "big")


def parse(api_key: int, version: int, body: bytes, names: Mapping[uuid.UUID, str]) -> Any:
    """A request that the product has encoded by hand; its answer is bytes as well."""
    if api_key == ListOffsetsRequest.API_KEY:
        return ListOffsetsRequest.decode(body, version=version)
    assert api_key == ProduceRequest.API_KEY
    return _parse_append(version, body, names)


def _parse_append(version: int, body: bytes, names: Mapping[uuid.UUID, str]) -> list[Appending]:
    """A Produce request of versions 3 to 8, or of version 13."""
    return _parse_by_id(body, names) if version == 13 else _parse_by_name(body)


def _parse_by_id(body: bytes, names: Mapping[uuid.UUID, str]) -> list[Appending]:
    found = []
    assert body[:2] == b"\0\0", "tagged fields, or a transactional id"
    topics, at = read_uvarint(memoryview(body), 8)
    for _ in range(topics - 1):
        topic_id = uuid.UUID(bytes=body[at : at + 16])
        partitions, at = read_uvarint(memoryview(body), at + 16)
        for _ in range(partitions - 1):
            (partition,) = struct.unpack_from(">i", body, at)
            size, at = read_uvarint(memoryview(body), at + 4)
            found.append(Appending(names[topic_id], partition, body[at : at + size - 1], topic_id))
            at += size  # with the byte for no tagged fields
        at += 1
    assert at + 1 == len(body)
    return found


def _parse_by_name(body: bytes) -> list[Appending]:
    found = []
    (transaction,) = struct.unpack_from(">h", body, 0)
    at = 2 + max(0, transaction) + 6
    (topics,) = struct.unpack_from(">i", body, at)
    at += 4
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", body, at)
        name = body[at + 2 : at + 2 + length].decode()
        (partitions,) = struct.unpack_from(">i", body, at + 2 + length)
        at += 6 + length
        for _ in range(partitions):
            partition, size = struct.unpack_from(">ii", body, at)
            found.append(Appending(name, partition, body[at + 8 : at + 8 + size]))
            at += 8 + size
    return found


def _appended(answers: Sequence[tuple[Appending, int, int]]) -> bytes:
    """A Produce response of version 8."""
    parts = [struct.pack(">i", len(answers))]
    for answer, error, base_offset in answers:
        name = answer.topic.encode()
        parts.append(struct.pack(f">h{len(name)}si", len(name), name, 1))
        parts.append(struct.pack(">ihqqqih", answer.partition, error, base_offset, -1, 0, 0, -1))
    return b"".join(parts) + struct.pack(">i", 0)


def _appended_by_id(answers: Sequence[tuple[Appending, int, int]]) -> bytes:
    """A Produce response of version 13."""
    assert len(answers) < 127
    parts = [b"\0", struct.pack("B", len(answers) + 1)]
    for answer, error, base_offset in answers:
        assert answer.topic_id is not None
        parts += (answer.topic_id.bytes, b"\2")
        parts.append(struct.pack(">ihqqqBBBB", answer.partition, error, base_offset, -1, 0, 1, 0, 0, 0))
    return b"".join(parts) + struct.pack(">iB", 0, 0)
