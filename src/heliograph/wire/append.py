"""Appending raw batches: one Produce request with one batch for each of several partitions.

Encoded by hand in pieces, so that fetched bytes are sent from where they lie. Versions 3 to 8 share one layout and
every broker since 0.11 takes one of them; 8 brings the message of a refused record.
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
    """A broker's answer for one partition."""

    topic: str
    partition: int
    error: int
    base_offset: int
    message: str | None
    bad: tuple[tuple[int, str], ...] = ()  # places in the batch of the records that are to blame, and why
    throttled: float = 0.0  # seconds that the broker tells us to stay away


def takes_zstd(connection: Connection) -> bool:
    """Brokers before 2.1 answer UNSUPPORTED_COMPRESSION_TYPE."""
    return connection.version(_PRODUCE, newest=8, oldest=3) >= 7


def append(
    connection: Connection,
    batches: Sequence[tuple[str, int, Sequence[Buffer]]],
    timeout: float,
    transactional_id: str | None = None,
) -> asyncio.Future[list[Appended]]:
    """Send one batch each (given in pieces) to several partitions, acknowledged by all in-sync replicas."""
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
                one.index,
                one.error_code,
                one.base_offset,
                getattr(one, "error_message", None),
                tuple((bad.batch_index, bad.batch_index_error_message or "") for bad in one.record_errors or ())
                if one.error_code and version >= 8
                else (),
                response.throttle_time_ms / 1000,
            )
            for topic in response.responses
            for one in topic.partition_responses
        ]

    return connection.send_parts(_PRODUCE, version, parts, decode)


def _text(text: str) -> bytes:
    name = text.encode()
    return struct.pack(f">h{len(name)}s", len(name), name)
