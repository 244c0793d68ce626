"""The topics of a run, and the records that are written to them. Every record is numbered, so each is different."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Workload:
    """One topic. `aborts_every`: it is written in transactions, of which each n-th is aborted; 0 for none."""

    topic: str
    partitions: int
    per_second: float
    compression: str | None = None
    aborts_every: int = 0
    keys: int = 0  # so many different ones; 0: none has a key
    is_compacted: bool = False
    has_groups: bool = False

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        if not self.is_compacted:
            return ()
        return (
            ("cleanup.policy", "compact"),
            ("segment.ms", "3000"),
            ("min.cleanable.dirty.ratio", "0.01"),
            ("max.compaction.lag.ms", "3000"),
        )


WORKLOADS = (
    Workload("plain", 3, 60, keys=1000, has_groups=True),
    Workload("gzip", 1, 20, "gzip", keys=50),
    Workload("snappy", 1, 20, "snappy"),
    Workload("lz4", 1, 20, "lz4", keys=50),
    Workload("zstd", 1, 20, "zstd"),
    Workload("transactions", 2, 40, aborts_every=4, keys=1000, has_groups=True),
    Workload("compacted", 2, 40, keys=40, is_compacted=True),
)


@dataclass(frozen=True)
class Numbered:
    """One record to be written."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def numbered(workload: Workload, partition: int, number: int) -> Numbered:
    """The same for the same arguments, at every run."""
    rng = random.Random(f"{workload.topic}/{partition}/{number}")
    key = b"key-%d" % rng.randrange(workload.keys) if workload.keys else None
    text = f"{workload.topic}/{partition}/{number}/"
    value: bytes | None = text.encode() + rng.randbytes(rng.randrange(20, 300)).hex().encode()
    if workload.is_compacted and rng.random() < 0.05:
        value = None  # a tombstone
    headers = (("number", b"%d" % number), *((("empty", b""),) if number % 3 == 0 else ()))
    return Numbered(key, value, headers)


def digest(timestamp: int, key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Stands for all that a consumer sees of a record but its offset."""
    return int.from_bytes(
        hashlib.blake2b(repr((timestamp, key, value, list(headers))).encode(), digest_size=8).digest(), "big"
    )
