"""Brokers, topics and leaders, as a Metadata response names them.

Version 12 (brokers since 2.8) is decoded by hand: a driver asks for all topics of both clusters every few seconds.
"""

import struct
import uuid
from dataclasses import dataclass, field
from typing import Any

from heliograph.wire.frame_reader import INT, SHORT, FrameReader

NO_ID = uuid.UUID(int=0)
BY_HAND = 12  # the version that `decode` reads
_PARTITION = struct.Struct(">2xiii")  # error, number, leader, leader epoch
_LONG_VARINT = 128  # from this first byte on, a length has several
_LISTS_OF_BROKERS = 3  # replicas, those in sync, those offline


def id_text(topic_id: uuid.UUID) -> str:
    """A topic id as internal topics hold it; empty where there is none."""
    return topic_id.hex if topic_id.int else ""


def are_different(topic_id: str, other_id: str) -> bool:
    """Whether two ids belong to different topics. An empty id (brokers before 2.8) is never different."""
    return bool(topic_id) and bool(other_id) and topic_id != other_id


@dataclass(frozen=True, slots=True)
class Topic:
    """Metadata of one topic. `id` is all zeros on brokers that have no topic ids (before 2.8)."""

    name: str
    id: uuid.UUID
    internal: bool
    leaders: dict[int, int]  # partition -> broker id; -1 where there is no leader now
    error: int = 0
    epochs: dict[int, int] = field(default_factory=dict)  # partition -> leader epoch; -1 on brokers before 2.1


@dataclass(frozen=True, slots=True)
class Metadata:
    brokers: dict[int, tuple[str, int]] = field(default_factory=dict)
    controller: int = -1
    cluster_id: str = ""
    topics: dict[str, Topic] = field(default_factory=dict)


def from_message(answer: Any) -> Metadata:
    """From kafka-python's response message."""
    return Metadata(
        {broker.node_id: (broker.host, broker.port) for broker in answer.brokers},
        answer.controller_id,
        answer.cluster_id or "",
        {
            topic.name: Topic(
                topic.name,
                topic.topic_id or NO_ID,
                bool(topic.is_internal),
                {part.partition_index: part.leader_id for part in topic.partitions},
                topic.error_code,
                {part.partition_index: part.leader_epoch for part in topic.partitions},
            )
            for topic in answer.topics
            if topic.name is not None
        },
    )


def decode(frame: memoryview) -> Metadata:
    """From the frame after its correlation id."""
    reader = FrameReader(frame, flexible=True)
    reader.tags()
    reader.number(INT)  # throttle time
    brokers = dict(_broker(reader) for _ in range(reader.length(INT)))
    cluster_id, controller = reader.text(), reader.number(INT)
    topics = [_topic(reader) for _ in range(reader.length(INT))]
    reader.tags()
    return Metadata(brokers, controller, cluster_id, {topic.name: topic for topic in topics if topic.name})


def _broker(reader: FrameReader) -> tuple[int, tuple[str, int]]:
    node, host, port = reader.number(INT), reader.text(), reader.number(INT)
    reader.text()  # rack
    reader.tags()
    return node, (host, port)


def _topic(reader: FrameReader) -> Topic:
    error, name, topic_id, is_internal = reader.number(SHORT), reader.text(), reader.topic_id(), reader.view(1)[0]
    rows = _partitions(reader, reader.length(INT))
    reader.number(INT)  # operations that the client may do, not asked for
    reader.tags()
    leaders = {partition: leader for partition, leader, _ in rows}
    return Topic(name, topic_id, bool(is_internal), leaders, error, {partition: epoch for partition, _, epoch in rows})


def _partitions(reader: FrameReader, count: int) -> list[tuple[int, ...]]:
    """Number, leader and leader epoch of each. Most of a response are these rows, so they are read without a call for
    each field."""
    frame, at = reader.frame, reader.at
    rows = []
    for _ in range(count):
        rows.append(_PARTITION.unpack_from(frame, at))
        at += _PARTITION.size
        for _ in range(_LISTS_OF_BROKERS):
            if frame[at] >= _LONG_VARINT:
                raise ValueError("a partition has more than 126 replicas")
            at += (frame[at] or 1) * INT.size - INT.size + 1
        if frame[at]:
            reader.at = at
            reader.tags()
            at = reader.at
        else:
            at += 1
    reader.at = at
    return rows
