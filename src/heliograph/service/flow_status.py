"""The status of a running flow: plain values for the command line and the REST API.

It is also written to the flow's signals topic every few seconds, so that it can be read without access to the process.
"""

import dataclasses
import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from heliograph.copy.work import ALIGNING, Progress
from heliograph.model.internal_topics import STATUS, signals_topic
from heliograph.model.partitions import MirrorPartition
from heliograph.model.problems import Notice, Refusal
from heliograph.service.other_runs import OtherRun
from heliograph.service.partition_stats import PartitionStats
from heliograph.service.stalled import Stalled
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets
from heliograph.wire.records import read

STARTING = "starting"
_WINDOW = 5.0


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """Every field has a default, for statuses of versions that do not write it."""

    name: str = ""
    mirrors: int = 0
    partitions: int = 0
    leases: int = 0
    records: int = 0
    size: int = 0
    records_per_second: float = 0.0
    bytes_per_second: float = 0.0
    lag: int | None = None  # records that can be read on the source and are not copied yet; None until all are known
    refusals: tuple[Refusal, ...] = ()
    failed_topics: dict[str, str] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)  # number of partitions by state, see `state_of`
    events: dict[str, int] = field(default_factory=dict)  # number of notices by kind
    records_of_events: dict[str, int] = field(default_factory=dict)  # and of the records that they are about
    notices: tuple[Notice, ...] = ()  # the last ones
    run_id: str = ""
    host: str = ""  # where it runs
    epoch: int = 0  # of the assignment by which this member drives it; 0 without membership
    other_runs: tuple[OtherRun, ...] = ()  # processes that run the same flow, which only one should
    stalled: tuple[Stalled, ...] = ()  # partitions with an open transaction that keeps them from being read on

    @property
    def stopped(self) -> int:
        """Partitions and topics that are not copied until somebody acts."""
        return sum(refusal.final for refusal in self.refusals) + len(self.failed_topics)


@dataclass(slots=True)
class MirrorStatus:
    """One topic and its mirror. `lag` is None until it is known for all partitions; `seconds_behind` is the age that
    the oldest record may have that is not copied. Rates are over the last minute."""

    topic: str
    mirror: str
    partitions: int = 0
    lag: int | None = 0
    states: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    seconds_behind: float = 0.0
    records: int = 0
    records_per_second: float = 0.0
    bytes_per_second: float = 0.0

    def add(self, state: str, progress: Progress | None, error: str, stats: PartitionStats | None) -> None:
        self.partitions += 1
        self.states[state] = self.states.get(state, 0) + 1
        if progress is None:
            self.lag = None
        elif self.lag is not None:
            self.lag += max(0, progress.source_end - progress.position.source)
        if error:
            self.errors.append(error)
        if stats is not None:
            self.seconds_behind = max(self.seconds_behind, stats.seconds_behind())
            self.records += stats.records
            self.records_per_second += stats.records_lately.per_second()
            self.bytes_per_second += stats.size_lately.per_second()


class Rate:
    """Totals over the last seconds, as a rate per second."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int, int]] = deque()

    def note(self, records: int, size: int) -> None:
        now = time.monotonic()
        self._samples.append((now, records, size))
        while self._samples[0][0] < now - _WINDOW:
            self._samples.popleft()

    def per_second(self) -> tuple[float, float]:
        if len(self._samples) < 2:
            return 0.0, 0.0
        (then, records, size), (_now, more_records, more_bytes) = self._samples[0], self._samples[-1]
        seconds = max(time.monotonic() - then, 0.1)
        return (more_records - records) / seconds, (more_bytes - size) / seconds


def state_of(progress: Progress | None, refusal: Refusal | None) -> str:
    """One word for what a partition does."""
    if refusal is not None:
        return "stopped" if refusal.final else ALIGNING if refusal.reason == ALIGNING else "waiting"
    if progress is None:
        return STARTING
    return "caught-up" if progress.position.source >= progress.source_end else "copying"


def to_json(status: FlowStatus) -> dict[str, Any]:
    return dataclasses.asdict(status)


def from_json(fields: Mapping[str, Any]) -> FlowStatus:
    """Reads a status of any version: unknown fields are ignored, missing ones have their defaults."""
    entries = {name: tuple(_entry(kind, entry) for entry in fields.get(name) or ()) for name, kind in _ENTRIES.items()}
    return FlowStatus(**(_known_fields(FlowStatus, fields) | entries))


_ENTRIES: dict[str, Any] = {"refusals": Refusal, "notices": Notice, "stalled": Stalled, "other_runs": OtherRun}
_MISSING = {"str": "", "int": -1, "float": 0.0}


def _entry(kind: Any, fields: Mapping[str, Any]) -> Any:
    known = _known_fields(kind, fields)
    for field_of_kind in dataclasses.fields(kind):
        name, type_name = field_of_kind.name, str(getattr(field_of_kind.type, "__name__", field_of_kind.type))
        if type_name == MirrorPartition.__name__:
            known[name] = _entry(MirrorPartition, known.get(name) or {})
        elif name not in known and field_of_kind.default is dataclasses.MISSING:
            known[name] = _MISSING[type_name]
    return kind(**known)


def _known_fields(kind: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    names = {field_of_kind.name for field_of_kind in dataclasses.fields(kind)}
    return {name: value for name, value in fields.items() if name in names}


# Raised when a field changes its meaning, so that later versions can read what this one wrote. The first versions of
# Heliograph wrote none.
_VERSION = 1


def encode(status: FlowStatus) -> bytes:
    """As it is written to the signals topic."""
    return json.dumps({"version": _VERSION, **to_json(status)}, separators=(",", ":")).encode()


def decode(value: bytes) -> FlowStatus | None:
    """None if it is not a status."""
    try:
        return from_json(json.loads(value))
    except (ValueError, TypeError, AttributeError):
        return None


@dataclass(frozen=True, slots=True)
class Seen:
    """The last status that a flow has written, and its age in seconds."""

    age: float
    status: FlowStatus


async def last_status(target: ClusterClient, source_alias: str) -> Seen | None:
    """None if the flow has not run for an hour, or never, or if the last record is not a status."""
    name = signals_topic(source_alias)
    topic = (await target.metadata([name])).topics[name]
    if topic.error or STATUS not in topic.leaders:
        return None
    partition = (name, STATUS)
    first, end = [
        (await list_offsets(target, {name: topic}, [partition], which, False))[partition]
        for which in (EARLIEST, LATEST)
    ]
    if isinstance(first, Exception):
        raise first
    if isinstance(end, Exception):
        raise end
    async for record in read(target, topic, STATUS, max(first, end - 1), end):
        if record.value is not None and (status := decode(record.value)) is not None:
            return Seen(time.time() - record.timestamp / 1000, status)
    return None
