"""What a lease has done in total: a fixed set of numbers, however many partitions it has."""

from dataclasses import dataclass, field
from typing import Any

SOURCE, TARGET = "source", "target"
AS_IT_IS = "as-it-is"


@dataclass(slots=True)
class Amount:
    batches: int = 0
    records: int = 0
    size: int = 0

    def add(self, other: "Amount") -> None:
        self.batches += other.batches
        self.records += other.records
        self.size += other.size


@dataclass(slots=True)
class Requests:
    """How many were sent, how many of these failed, and how many seconds they took together."""

    count: int = 0
    failed: int = 0
    seconds: float = 0.0

    def note(self, seconds: float, failed: bool = False) -> None:
        self.count += 1
        self.failed += failed
        self.seconds += seconds

    def add(self, other: "Requests") -> None:
        self.count += other.count
        self.failed += other.failed
        self.seconds += other.seconds


@dataclass(slots=True)
class Counts:
    """`appended` is by compression and by whether batches were sent as they were fetched, or why they were re-encoded.
    `throttled` are the seconds in which a broker of the source or of the target has throttled us. `fetched` are bytes
    of records. `retries` is how often a partition had to find its position again."""

    appended: dict[tuple[str, str], Amount] = field(default_factory=dict)
    throttled: dict[str, float] = field(default_factory=lambda: {SOURCE: 0.0, TARGET: 0.0})
    fetched: int = 0
    retries: int = 0
    appends: Requests = field(default_factory=Requests)
    reports: Requests = field(default_factory=Requests)

    @property
    def batches(self) -> int:
        return sum(amount.batches for amount in self.appended.values())

    @property
    def records(self) -> int:
        return sum(amount.records for amount in self.appended.values())

    @property
    def size(self) -> int:
        return sum(amount.size for amount in self.appended.values())

    def append(self, codec: str, reencode_reason: str, records: int, size: int) -> None:
        """Count a batch that has landed."""
        kind = codec, reencode_reason or AS_IT_IS
        amount = self.appended.get(kind)
        if amount is None:
            amount = self.appended[kind] = Amount()
        amount.batches += 1
        amount.records += records
        amount.size += size

    def add(self, other: "Counts") -> None:
        for kind, amount in other.appended.items():
            self.appended.setdefault(kind, Amount()).add(amount)
        for side, seconds in other.throttled.items():
            self.throttled[side] += seconds
        self.fetched += other.fetched
        self.retries += other.retries
        self.appends.add(other.appends)
        self.reports.add(other.reports)

    def copy(self) -> "Counts":
        same = Counts()
        same.add(self)
        return same

    def to_json(self) -> dict[str, Any]:
        return {
            "appended": [
                [*kind, amount.batches, amount.records, amount.size] for kind, amount in self.appended.items()
            ],
            "throttled": {side: round(seconds, 3) for side, seconds in self.throttled.items()},
            "fetched": self.fetched,
            "retries": self.retries,
            "appends": _row(self.appends),
            "reports": _row(self.reports),
        }

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Counts":
        """Of any version: what this one does not know is ignored."""
        counts = cls(
            {(codec, how): Amount(*amount[:3]) for codec, how, *amount in fields.get("appended", ())},
            fetched=fields.get("fetched", 0),
            retries=fields.get("retries", 0),
            appends=Requests(*fields.get("appends", ())[:3]),
            reports=Requests(*fields.get("reports", ())[:3]),
        )
        throttled = fields.get("throttled", {})
        counts.throttled.update({side: throttled[side] for side in counts.throttled.keys() & throttled.keys()})
        return counts


def _row(requests: Requests) -> tuple[int, int, float]:
    return requests.count, requests.failed, round(requests.seconds, 4)


@dataclass(frozen=True, slots=True)
class Recent:
    """A lease as of its last report: `active` records are fetched and not appended yet, `free` bytes of its buffer are
    unused. Since the report before it: the most records in one batch, and the seconds that its write took."""

    active: int = 0
    free: int = 0
    largest_batch: int = 0
    report_took: float = 0.0
