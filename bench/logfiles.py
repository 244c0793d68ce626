"""The contents of a topic, counted from the batch headers in the broker's own files.

Reads no record and asks no broker: it costs little and disturbs nothing. `visible` is what a read-committed consumer
would see, without markers and batches of aborted transactions.
"""

import mmap
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

# baseOffset, batchLength, partitionLeaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp,
# maxTimestamp, producerId, producerEpoch, baseSequence, recordsCount
_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH = 12
_TRANSACTIONAL, _CONTROL = 0x10, 0x20


@dataclass
class Survey:
    """Counts of a topic. `visible`, `batches` and `size` are what a read-committed consumer sees."""

    visible: int = 0
    batches: int = 0
    size: int = 0
    aborted: int = 0
    markers: int = 0
    holes: int = 0

    def add(self, other: "Survey") -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def survey(data: Path, topic: str) -> Survey:
    """All partitions of a topic in a broker's data folder."""
    return surveys(data, [topic])[topic]


def surveys(data: Path, topics: Iterable[str]) -> dict[str, Survey]:
    """All partitions of each of several topics.

    The cleaner may replace a segment while it is being read: then everything is read again.
    """
    while True:
        totals = {topic: Survey() for topic in topics}
        try:
            for folder in data.iterdir():
                topic, _, partition = folder.name.rpartition("-")
                if topic in totals and partition.isdigit():
                    totals[topic].add(_partition(folder))
            return totals
        except FileNotFoundError:
            continue


def _partition(folder: Path) -> Survey:
    total = Survey()
    under_way: dict[int, Survey] = {}  # transactions without a marker so far, by producer
    start, end, records = -1, -1, 0
    for first, following, size, attributes, producer, count, commits in _batches(folder):
        start = first if start < 0 else start
        end = following
        records += count
        if attributes & _CONTROL:
            total.markers += 1
            ended = under_way.pop(producer, Survey())
            total.add(ended if commits else Survey(aborted=ended.visible))
            continue
        into = under_way.setdefault(producer, Survey()) if attributes & _TRANSACTIONAL else total
        into.visible += count
        into.batches += 1
        into.size += size
    total.holes = end - start - records
    return total


def _batches(folder: Path) -> Iterator[tuple[int, int, int, int, int, int, bool]]:
    """First offset, next offset, size, attributes, producer, count of records, and whether it is a commit."""
    for path in sorted(folder.glob("*.log")):
        with path.open("rb") as file:
            if path.stat().st_size > 0:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as segment:
                    yield from _batches_in(segment)


def _batches_in(segment: mmap.mmap) -> Iterator[tuple[int, int, int, int, int, int, bool]]:
    at, end = 0, len(segment)
    while end - at >= _HEADER.size:
        first, length, _, _, _, attributes, last, _, _, producer, _, _, count = _HEADER.unpack_from(segment, at)
        size = _BEFORE_LENGTH + length
        if length <= 0 or end - at < size:  # it is just being written
            return
        commits = bool(attributes & _CONTROL) and _is_commit(segment[at + _HEADER.size : at + size])
        yield first, first + last + 1, size, attributes, producer, count, commits
        at += size


def _is_commit(marker: bytes) -> bool:
    """Whether a control batch is a commit; the key of its only record is a version and a type."""
    at = _after_varint(marker, 0)  # length
    at += 1  # attributes
    for _ in range(3):  # time and offset from the batch's, length of the key
        at = _after_varint(marker, at)
    _version, kind = struct.unpack_from(">hh", marker, at)
    return bool(kind == 1)


def _after_varint(data: bytes, at: int) -> int:
    while data[at] & 0x80:
        at += 1
    return at + 1
