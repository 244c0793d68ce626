"""Which partition is copied where, and how far: values that every layer uses."""

import hashlib
from dataclasses import dataclass, field

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, order=True)
class MirrorPartition:
    """One partition to copy: from `topic` on the source to `mirror` on the target, same partition number."""

    topic: str
    mirror: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Position:
    """Everything before source offset `source` has been copied; the mirror ends at `target`.

    `epoch` is the leader epoch of the source's last record before it (-1: unknown), by which a truncated source is
    detected although it was written to since. `mirror_id` is the topic id of the mirror: the position is not valid for
    a recreated one. Positions are compared without both.
    """

    source: int
    target: int
    epoch: int = field(default=-1, compare=False)
    mirror_id: str = field(default="", compare=False)


def producer_id(flow: str, partition: MirrorPartition) -> int:
    """The producer id of one mirror partition: always the same, whoever copies.

    It is in the upper half of the positive numbers, far from the ids that brokers assign by counting. With sequence
    numbers that continue without a gap, a broker appends each batch exactly at its offset or not at all.
    """
    return derived_id(f"{flow}/{partition.topic}/{partition.partition}")


def derived_id(name: str) -> int:
    """A producer id that no broker assigns."""
    return (1 << 62) | (int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 2)
