"""Measurements as plain values, which need no cluster any more."""

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True)
class Source:
    """A workload as written: the records that a read-committed consumer sees, and those it does not see."""

    workload: int
    name: str
    about: str
    partitions: int
    records: int
    batches: int
    size: int
    aborted: int
    holes: int
    seconds_to_write: float


@dataclass(frozen=True)
class Copy:
    """One run of one tool on one workload. Everything is from the first record in the mirror to the last.

    `records` and `size` are what was copied in that time, `late_rate` is records per second in its second half, CPU is
    in core-seconds. `steal` and `others` are shares of all cores that went to other guests of the hypervisor and to
    processes that have nothing to do with the benchmark. `peak_memory` is for the whole run. `surplus` is how many more
    records the mirror had than the source. A run that failed has a `failure` and no numbers.
    """

    workload: int
    tool: str
    round: int
    records: int = 0
    size: int = 0
    seconds: float = 0.0
    late_rate: float = 0.0
    mirror_cpu: float = 0.0
    broker_cpu: float = 0.0
    peak_memory: int = 0
    start_seconds: float = 0.0
    steal: float = 0.0
    others: float = 0.0
    surplus: int = 0
    failure: str | None = None

    @property
    def rate(self) -> float:
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def bytes_rate(self) -> float:
        return self.size / self.seconds if self.seconds else 0.0

    @property
    def mirror_cpu_per_million(self) -> float:
        return self.mirror_cpu / self.records * 1e6 if self.records else 0.0

    @property
    def mirror_cpu_per_gigabyte(self) -> float:
        return self.mirror_cpu / self.size * 1e9 if self.size else 0.0

    @property
    def broker_cpu_per_million(self) -> float:
        return self.broker_cpu / self.records * 1e6 if self.records else 0.0


class Bound(StrEnum):
    """What no tool can beat, or hardly: the bytes alone, and a producer without any reading."""

    RELAY = "relay"
    PRODUCE_LARGE = "produce-large"
    PRODUCE = "produce"


BOUND_TITLES = {
    Bound.RELAY: "relay of the bytes, without Kafka",
    Bound.PRODUCE_LARGE: "produce only, batches of 900 KB",
    Bound.PRODUCE: "produce only, batches as in the source",
}


@dataclass(frozen=True)
class Limit:
    """Records per second, and core-seconds per million records of the relay or the producer."""

    workload: int
    round: int
    bound: Bound
    rate: float
    cpu_per_million: float


@dataclass(frozen=True)
class Latency:
    """Milliseconds from a record's sending to its arrival at a reader of the mirror."""

    tool: str
    rate: int
    round: int
    records: int = 0
    p50: float = 0.0
    p99: float = 0.0
    worst: float = 0.0
    steal: float = 0.0
    failure: str | None = None


@dataclass(frozen=True)
class Profile:
    """Where the time of all cores went while a tool copied a workload, in a round of its own.

    Numbers of samples: in all, by owner, by owner and kind, and of the functions in which an owner was most often; see
    `time_kinds` for the names. `rate` is records per second of that round. A round that failed has a `failure` only.
    """

    workload: int
    tool: str
    rate: float = 0.0
    seconds: float = 0.0
    samples: int = 0
    owners: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, dict[str, int]] = field(default_factory=dict)
    functions: dict[str, dict[str, int]] = field(default_factory=dict)
    failure: str | None = None


@dataclass
class Results:
    environment: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)  # of tools
    sources: list[Source] = field(default_factory=list)
    warm_up: list[Copy] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)  # workloads that could not be measured to their end
    left_out: list[str] = field(default_factory=list)  # tools that cannot run on this machine, and why
    latency_seconds: float = 0.0
    seconds: float = 0.0
    steal: float = 0.0

    def failures(self) -> list[str]:
        """One line for every failure."""
        copies = [
            f"workload {copy.workload}, {self.titles[copy.tool]}, round {copy.round}: {copy.failure}"
            for copy in (*self.warm_up, *self.copies)
            if copy.failure
        ]
        latencies = [
            f"latency at {latency.rate:,}/s, {self.titles[latency.tool]}, round {latency.round}: {latency.failure}"
            for latency in self.latencies
            if latency.failure
        ]
        profiles = [
            f"profile of workload {profile.workload}, {self.titles[profile.tool]}: {profile.failure}"
            for profile in self.profiles
            if profile.failure
        ]
        return [*self.troubles, *copies, *latencies, *profiles]

    def runs(self, workload: int, tool: str) -> list[Copy]:
        return [copy for copy in self.copies if (copy.workload, copy.tool) == (workload, tool)]

    def median(self, workload: int, tool: str, value: Callable[[Copy], float]) -> float | None:
        """Over the rounds that did not fail; None if there is none."""
        return median(value(copy) for copy in self.runs(workload, tool) if not copy.failure)

    def limit(self, workload: int, bound: Bound) -> float | None:
        """Records per second."""
        return median(limit.rate for limit in self.limits if (limit.workload, limit.bound) == (workload, bound))


def median(values: Iterable[float]) -> float | None:
    known = list(values)
    return statistics.median(known) if known else None
