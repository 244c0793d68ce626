"""Appending raw batches: one Produce request with one batch for each of several partitions.

Encoded by hand in pieces, so that fetched bytes are sent without a copy. Versions 3 to 8 have one layout, and every
broker since 0.11 supports one of them; 8 adds the error messages of single records. Version 13 (brokers since 4.1)
names topics by id: a request that was sent before a topic was deleted and created again does not reach the new one.
"""

import asyncio
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kafka.protocol.producer import ProduceResponse

from heliograph.wire.connection import Buffer, Connection, tags_end
from heliograph.wire.metadata import id_text

_PRODUCE = 0
_BY_ID = 13
_NO_TAGS = b"\0"
_ALL_IN_SYNC_REPLICAS = -1


class PartitionBatch(NamedTuple):
    """A batch, in pieces, for one partition. With `topic_id` it is appended to the topic of that id or not at all, if
    the broker supports that."""

    topic: str
    partition: int
    pieces: Sequence[Buffer]
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class Appended:
    """The answer for one partition."""

    topic: str
    partition: int
    error: int
    base_offset: int
    message: str | None
    bad: tuple[tuple[int, str], ...] = ()  # indexes of the records that were refused, and why
    throttled: float = 0.0  # throttle time, in seconds


def takes_zstd(connection: Connection) -> bool:
    """Brokers before 2.1 answer UNSUPPORTED_COMPRESSION_TYPE."""
    return connection.version(_PRODUCE, newest=8, oldest=3) >= 7


def append(
    connection: Connection,
    batches: Sequence[PartitionBatch],
    timeout: float,
    transactional_id: str | None = None,
) -> asyncio.Future[list[Appended]]:
    """Sends a batch to each of several partitions, with acks=all."""
    # In a transaction, versions after 11 would also add the partition to it.
    by_id = transactional_id is None and all(batch.topic_id for batch in batches) and connection.knows(_PRODUCE, _BY_ID)
    names = {batch.topic_id: batch.topic for batch in batches}
    if by_id:
        version, parts = _BY_ID, _parts_by_id(batches, timeout)
    else:
        version = connection.version(_PRODUCE, newest=8, oldest=3)
        parts = _parts_by_name(batches, timeout, transactional_id)

    def decode(frame: memoryview) -> list[Appended]:
        response = ProduceResponse.decode(frame[tags_end(frame) :] if by_id else frame, version=version)
        return [
            Appended(
                names[id_text(topic.topic_id)] if by_id else topic.name,
                part.index,
                part.error_code,
                part.base_offset,
                getattr(part, "error_message", None),
                tuple((bad.batch_index, bad.batch_index_error_message or "") for bad in part.record_errors or ())
                if part.error_code and version >= 8
                else (),
                response.throttle_time_ms / 1000,
            )
            for topic in response.responses
            for part in topic.partition_responses
        ]

    return connection.send_parts(_PRODUCE, version, parts, decode)


def _parts_by_name(batches: Sequence[PartitionBatch], timeout: float, transactional_id: str | None) -> list[Buffer]:
    """Versions 3 to 8."""
    topics = _grouped(batches, lambda batch: batch.topic)
    transaction = struct.pack(">h", -1) if transactional_id is None else _text(transactional_id)
    parts: list[Buffer] = [transaction, _acks(timeout), struct.pack(">i", len(topics))]
    for topic, of_topic in topics.items():
        parts += (_text(topic), struct.pack(">i", len(of_topic)))
        for batch in of_topic:
            parts.append(struct.pack(">ii", batch.partition, sum(map(len, batch.pieces))))
            parts.extend(batch.pieces)
    return parts


def _parts_by_id(batches: Sequence[PartitionBatch], timeout: float) -> list[Buffer]:
    """Version 13, without a transactional id: lengths are varints of one more, as 0 is null."""
    topics = _grouped(batches, lambda batch: batch.topic_id)
    parts: list[Buffer] = [_NO_TAGS, _uvarint(0), _acks(timeout), _uvarint(len(topics) + 1)]
    for topic_id, of_topic in topics.items():
        parts += (bytes.fromhex(topic_id), _uvarint(len(of_topic) + 1))
        for batch in of_topic:
            parts.append(struct.pack(">i", batch.partition) + _uvarint(sum(map(len, batch.pieces)) + 1))
            parts += (*batch.pieces, _NO_TAGS)
        parts.append(_NO_TAGS)
    return [*parts, _NO_TAGS]


def _grouped(
    batches: Sequence[PartitionBatch], key: Callable[[PartitionBatch], str]
) -> dict[str, list[PartitionBatch]]:
    groups: dict[str, list[PartitionBatch]] = {}
    for batch in batches:
        groups.setdefault(key(batch), []).append(batch)
    return groups


def _acks(timeout: float) -> bytes:
    return struct.pack(">hi", _ALL_IN_SYNC_REPLICAS, int(timeout * 1000))


def _uvarint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _text(text: str) -> bytes:
    name = text.encode()
    return struct.pack(f">h{len(name)}s", len(name), name)
