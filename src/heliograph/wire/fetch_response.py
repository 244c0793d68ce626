"""Decodes Fetch responses, versions 4 to 16, by hand: the records stay where they were received."""

import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from heliograph.wire.frame_reader import INT, LONG, SHORT, FrameReader

_FLEXIBLE = 12  # from this version on lengths are varints, and there are tagged fields
_BY_ID = 13  # from this version on topics have their ids instead of names
_PARTITION = struct.Struct(">ihqq")  # index, error, high watermark, last stable offset
_ABORTED = struct.Struct(">qq")
_DIVERGING_EPOCH = 0  # the tag of this field


@dataclass(frozen=True, slots=True)
class Fetched:
    """The answer for one partition. `end` is the end for this isolation level (last stable offset or high watermark),
    -1 if the broker did not return it.

    `aborted` are (producer id, first offset) of the aborted transactions that overlap with the data. `diverged` is the
    offset up to which the log is still the one that was read before; None if it did not diverge. `data` is this
    partition's part, a view that keeps the whole response of `response_size` bytes in memory. `preferred_replica` is
    the broker that the leader wants us to fetch from instead (KIP-392), -1 if none.
    """

    topic: str
    partition: int
    error: int
    end: int
    log_start: int
    data: memoryview
    aborted: tuple[tuple[int, int], ...] = ()
    diverged: int | None = None
    high_watermark: int = -1
    response_size: int = 0
    preferred_replica: int = -1


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    throttled: float  # seconds
    error: int
    session: int
    partitions: list[Fetched]


def decode(frame: memoryview, version: int, names: Mapping[uuid.UUID, str]) -> FetchAnswer:
    """The frame after its correlation id."""
    reader = FrameReader(frame, version >= _FLEXIBLE)
    reader.tags()  # of the header
    throttled = reader.number(INT) / 1000
    error, session = (reader.number(SHORT), reader.number(INT)) if version >= 7 else (0, 0)
    partitions = []
    for _ in range(reader.length(INT)):
        topic = names[reader.topic_id()] if version >= _BY_ID else reader.text()
        partitions += [_partition(reader, version, topic) for _ in range(reader.length(INT))]
        reader.tags()
    reader.tags()
    return FetchAnswer(throttled, error, session, partitions)


def _partition(reader: FrameReader, version: int, topic: str) -> Fetched:
    index, error, high_watermark, stable = reader.fields(_PARTITION)
    log_start = reader.number(LONG) if version >= 5 else -1
    aborted = []
    for _ in range(reader.length(INT)):
        producer_id, first_offset = reader.fields(_ABORTED)
        aborted.append((producer_id, first_offset))
        reader.tags()
    preferred_replica = reader.number(INT) if version >= 11 else -1
    data = reader.view(reader.length(INT))
    diverged = None
    if (field := reader.tags().get(_DIVERGING_EPOCH)) is not None:
        # Since version 12 a broker compares last_fetched_epoch with its own leader epochs.
        end_offset = LONG.unpack_from(field, 4)[0]
        diverged = None if end_offset < 0 else end_offset
    end = stable if stable >= 0 else high_watermark
    size = len(reader.frame)
    bounds = diverged, high_watermark, size
    return Fetched(topic, index, error, end, log_start, data, tuple(aborted), *bounds, preferred_replica)
