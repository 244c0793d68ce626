"""Appending raw batches: one Produce request with one batch for each of several partitions.

Encoded by hand in pieces, so that fetched bytes are sent without a copy. Versions 3 to 8 have one layout, and every
broker since 0.11 supports one of them; 8 adds the error messages of single records.
"""

import asyncio
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from kafka.protocol.producer import ProduceResponse

from heliograph.wire.connection import Buffer, Connection

_PRODUCE = 0
_ALL_IN_SYNC_REPLICAS = -1


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
    batches: Sequence[tuple[str, int, Sequence[Buffer]]],
    timeout: float,
    transactional_id: str | None = None,
) -> asyncio.Future[list[Appended]]:
    """Sends a batch (in pieces) to each of several partitions, with acks=all."""
    topics: dict[str, list[tuple[int, Sequence[Buffer]]]] = {}
    for topic, partition, pieces in batches:
        topics.setdefault(topic, []).append((partition, pieces))
    transaction = struct.pack(">h", -1) if transactional_id is None else _text(transactional_id)
    parts: list[Buffer] = [transaction, struct.pack(">hii", _ALL_IN_SYNC_REPLICAS, int(timeout * 1000), len(topics))]
    for topic, partitions in topics.items():
        parts += (_text(topic), struct.pack(">i", len(partitions)))
        for partition, pieces in partitions:
            parts.append(struct.pack(">ii", partition, sum(map(len, pieces))))
            parts.extend(pieces)
    version = connection.version(_PRODUCE, newest=8, oldest=3)

    def decode(frame: memoryview) -> list[Appended]:
        response = ProduceResponse.decode(frame, version=version)
        return [
            Appended(
                topic.name,
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


def _text(text: str) -> bytes:
    name = text.encode()
    return struct.pack(f">h{len(name)}s", len(name), name)
