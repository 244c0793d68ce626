"""What a lease gets and what it returns: small picklable values that travel between driver and executors."""

from dataclasses import dataclass, field

from heliograph.copy.counts import Counts
from heliograph.copy.ledger_state import Handed
from heliograph.model.flow import Flow
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.problems import Notice, Refusal


@dataclass(frozen=True, slots=True)
class Work:
    """A lease: copy these partitions for some seconds.

    `positions` are where earlier leases of this run ended. They save checks, and the target's log overrides them.
    `ledger` is what the driver knew of intervals; the copier reads on from there. Commands are read from offset
    `commands_from` on, so that none between planning and start is missed.
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
    epoch: int = 0  # of the assignment by which the driver drives the flow


ALIGNING = "aligning"


@dataclass(slots=True)
class Copied:
    """What a lease has copied of one partition so far. `newest` and `landed` are of the last batch: its newest record's
    time and when it landed, in milliseconds since 1970, -1 if unknown. A partition that leaves the lease and comes back
    begins another stay."""

    records: int = 0
    size: int = 0
    newest: int = -1
    landed: int = -1
    stay: int = 0

    def add(self, records: int, size: int, newest: int, landed: int) -> None:
        self.records += records
        self.size += size
        self.newest, self.landed = newest, landed


@dataclass(frozen=True, slots=True)
class Progress:
    """The position of a partition, and where a read_committed reader of the source ends (-1: unknown).

    `source_start` is where the source begins, by retention. `high_watermark` is beyond `source_end` while a transaction
    is open there.
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
    counts: Counts
    progress: dict[MirrorPartition, Progress]
    refusals: tuple[Refusal, ...]
    notices: tuple[Notice, ...] = ()
    attempt: int = 0  # Spark's

    @property
    def records(self) -> int:
        return self.counts.records
