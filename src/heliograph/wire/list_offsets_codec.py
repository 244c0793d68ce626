"""ListOffsets requests and responses, versions 1 to 5, by hand: a driver asks for all its mirrors every few seconds.

Every broker since 0.10.1 supports one of these versions. In each, the rows of a topic's partitions have one size: all
are read with one call. Newer versions add nothing for first and next offsets.
"""

import struct
from collections.abc import Mapping, Sequence

from heliograph.model.partitions import TopicPartition
from heliograph.wire.errors import BrokerError, WireError
from heliograph.wire.frame_reader import INT, FrameReader

LIST_OFFSETS = 2  # API key
OLDEST, NEWEST = 1, 5
_WITH_ISOLATION = 2  # from this version on, and with a throttle time in the response
_WITH_EPOCHS = 4
_CONSUMER = -1  # instead of a replica's id
_ANY_EPOCH = -1


def encode(wanted: Mapping[str, Sequence[int]], which: int, committed: bool, version: int) -> bytes:
    """The request without its header; `wanted` are partitions by topic."""
    isolation = struct.pack(">b", int(committed)) if version >= _WITH_ISOLATION else b""
    # All rows are alike but for the partition.
    rest = struct.pack(">iq", _ANY_EPOCH, which) if version >= _WITH_EPOCHS else struct.pack(">q", which)
    parts = [struct.pack(">i", _CONSUMER), isolation, INT.pack(len(wanted))]
    for topic, partitions in wanted.items():
        name = topic.encode()
        parts.append(struct.pack(f">h{len(name)}si", len(name), name, len(partitions)))
        parts += [INT.pack(partition) + rest for partition in partitions]
    return b"".join(parts)


def decode(frame: memoryview, version: int) -> dict[TopicPartition, int | WireError]:
    """The offset of each partition, or the broker's error; from the frame after its correlation id."""
    # Index, error, (timestamp), offset, (leader epoch).
    row = struct.Struct(">ih8xq4x" if version >= _WITH_EPOCHS else ">ih8xq")
    reader = FrameReader(frame, flexible=False)
    if version >= _WITH_ISOLATION:
        reader.number(INT)  # throttle time
    offsets: dict[TopicPartition, int | WireError] = {}
    for _ in range(reader.length(INT)):
        topic = reader.text()
        rows = reader.view(reader.length(INT) * row.size)
        for partition, error, offset in row.iter_unpack(rows):
            offsets[topic, partition] = BrokerError(error) if error else offset
    return offsets
