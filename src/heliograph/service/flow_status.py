"""What can be seen of a running deployment: plain values, read by the command line and, later, the API.

A flow's status is also written to its signals topic every few seconds, so that others can look without a port to it.
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

_WINDOW = 5.0


@dataclass(frozen=True, slots=True)
class FlowStatus:
    name: str
    mirrors: int
    partitions: int
    leases: int
    records: int
    size: int
    records_per_second: float
    bytes_per_second: float
    lag: int | None  # records that can be read on the source and are not copied yet; None until all are known
    refusals: tuple[Refusal, ...]
    failed_topics: dict[str, str]
    states: dict[str, int]  # partitions by what they do: starting, aligning, copying, caught-up, waiting, stopped
    events: dict[str, int]  # how often what went wrong and was gone on from, by kind
    records_of_events: dict[str, int]  # and how many records it was about
    notices: tuple[Notice, ...]  # the last ones of them
    run_id: str = ""
    host: str = ""  # where it runs
    other_runs: tuple[OtherRun, ...] = ()  # processes that run the same flow, which only one should
    stalled: tuple[Stalled, ...] = ()  # partitions with an open transaction that keeps them from being read on

    @property
    def stopped(self) -> int:
        """Partitions and topics that are not copied and will not be by themselves."""
        return sum(one.final for one in self.refusals) + len(self.failed_topics)


@dataclass(slots=True)
class MirrorStatus:
    """One topic and its mirror. `lag` is None until it is known for all partitions; `seconds_behind` is how old the
    oldest record may be that is not copied. Rates are over the last minute."""

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
        self._seen: deque[tuple[float, int, int]] = deque()

    def note(self, records: int, size: int) -> None:
        now = time.monotonic()
        self._seen.append((now, records, size))
        while self._seen[0][0] < now - _WINDOW:
            self._seen.popleft()

    def per_second(self) -> tuple[float, float]:
        if len(self._seen) < 2:
            return 0.0, 0.0
        (then, records, size), (_now, more_records, more_bytes) = self._seen[0], self._seen[-1]
        seconds = max(time.monotonic() - then, 0.1)
        return (more_records - records) / seconds, (more_bytes - size) / seconds


def state_of(progress: Progress | None, refusal: Refusal | None) -> str:
    """What one partition does, in a word."""
    if refusal is not None:
        return "stopped" if refusal.final else ALIGNING if refusal.reason == ALIGNING else "waiting"
    if progress is None:
        return "starting"
    return "caught-up" if progress.position.source >= progress.source_end else "copying"


def to_json(status: FlowStatus) -> dict[str, Any]:
    return dataclasses.asdict(status)


def from_json(fields: Mapping[str, Any]) -> FlowStatus:
    # What a newer version says besides is left out.
    known = {one.name: fields[one.name] for one in dataclasses.fields(FlowStatus) if one.name in fields}
    known["other_runs"] = tuple(OtherRun(**one) for one in known.get("other_runs", ()))
    for name, kind in (("refusals", Refusal), ("notices", Notice), ("stalled", Stalled)):
        some = known.get(name, ())
        known[name] = tuple(kind(**{**one, "partition": MirrorPartition(**one["partition"])}) for one in some)
    return FlowStatus(**known)


@dataclass(frozen=True, slots=True)
class Seen:
    """A flow's last word about itself. `age` is in seconds."""

    age: float
    status: FlowStatus


async def last_status(target: ClusterClient, source_alias: str) -> Seen | None:
    """None if the flow has not run for an hour, or never."""
    name = signals_topic(source_alias)
    topic = (await target.metadata([name])).topics[name]
    if topic.error or STATUS not in topic.leaders:
        return None
    place = (name, STATUS)
    first, end = [
        (await list_offsets(target, {name: topic}, [place], which, False))[place] for which in (EARLIEST, LATEST)
    ]
    if isinstance(first, Exception) or isinstance(end, Exception):
        raise next(one for one in (first, end) if isinstance(one, Exception))
    async for record in read(target, topic, STATUS, max(first, end - 1), end):
        if record.value is not None:
            return Seen(time.time() - record.timestamp / 1000, from_json(json.loads(record.value)))
    return None
