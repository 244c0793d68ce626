"""What a lease is told and what it answers: small picklable values that travel between driver and executors."""

import hashlib
from dataclasses import dataclass, field

from heliograph.copy.counts import Counts
from heliograph.copy.ledger import Handed
from heliograph.model.flow import Flow


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

    `epoch` is the leader epoch of the source's last record before it (-1: unknown), by which a source that was cut back
    and written anew gives itself away. `mirror_id` is the topic id of the mirror that it was found in: it says nothing
    about another of the same name. Neither says anything about the place.
    """

    source: int
    target: int
    epoch: int = field(default=-1, compare=False)
    mirror_id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Work:
    """A lease: copy these partitions for some seconds.

    `positions` are where earlier leases of this run left off, to save checking what is known; they are never believed
    against the target's log. `ledger` is what the driver knew of intervals; the copier reads on from there. Likewise
    it heeds commands from `commands_from` on, so that nothing said between planning and start is missed.
    """

    flow: Flow
    lease: str
    seconds: float
    partitions: tuple[MirrorPartition, ...]
    positions: dict[MirrorPartition, Position] = field(default_factory=dict)
    ledger: Handed | None = None
    commands_from: int = 0
    bytes_per_second: float = 0.0  # this lease's share of the flow's limit; 0: no limit
    number: int = 0  # among the leases of the flow that run at the same time
    log_levels: dict[str, int] = field(default_factory=dict)  # by logger


ALIGNING = "aligning"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a partition is not being copied any further, in words for the operator."""

    partition: MirrorPartition
    reason: str  # a short stable word: foreign-writer, hole, transaction, ...
    source_offset: int
    target_offset: int
    text: str
    final: bool = True  # False: it is being tried again all the time, and may well go on by itself

    def __str__(self) -> str:
        verb = "stopped" if self.final else "is waiting"
        return (
            f"{self.partition} (mirror {self.partition.mirror}-{self.partition.partition}) {verb} at source offset "
            f"{self.source_offset}, mirror offset {self.target_offset}: {self.text}"
        )


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that went wrong with a partition, which goes on all the same, because a policy says so or it healed."""

    partition: MirrorPartition
    kind: str  # a short stable word: data-loss, recreated-topic, ...
    count: int  # of records that it is about; 0 where there is no such number
    source_offset: int
    target_offset: int
    text: str

    def __str__(self) -> str:
        return (
            f"{self.partition} (mirror {self.partition.mirror}-{self.partition.partition}) at source offset "
            f"{self.source_offset}, mirror offset {self.target_offset}: {self.text}"
        )


@dataclass(slots=True)
class Copied:
    """What a lease has copied of one partition so far; of the last batch, the newest record's time and when it landed,
    in milliseconds since 1970, -1 if unknown. A partition that leaves the lease and comes back begins another stay."""

    records: int = 0
    size: int = 0
    newest: int = -1
    landed: int = -1
    stay: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a partition stands: its position, and where a read-committed reader of the source ends (-1: unknown).

    `source_start` is where the source begins: what retention has left. `high_watermark` is beyond `source_end` while a
    transaction is open there.
    """

    position: Position
    source_end: int
    copied: Copied = field(default_factory=Copied)
    source_start: int = 0
    high_watermark: int = -1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a lease did."""

    lease: str
    ended: str  # "deadline" or "stopped"
    counts: Counts
    progress: dict[MirrorPartition, Progress]
    refusals: tuple[Refusal, ...]
    notices: tuple[Notice, ...] = ()
    attempt: int = 0  # Spark's

    @property
    def records(self) -> int:
        return self.counts.records


def producer_id(flow: str, partition: MirrorPartition) -> int:
    """The producer id of one mirror partition: always the same, whoever copies.

    Lies in the upper half of the positive numbers, far from the ids that brokers hand out by counting. With sequence
    numbers that run on without a break, a broker takes each batch exactly at its place or not at all.
    """
    return derived_id(f"{flow}/{partition.topic}/{partition.partition}")


def derived_id(name: str) -> int:
    """A producer id that no broker hands out."""
    return (1 << 62) | (int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 2)
