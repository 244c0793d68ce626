"""What `scaling` has measured: as values, as a report in Markdown, as a plot."""

import dataclasses
import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import loglog
import report
from loglog import Line, Panel
from results import Copy, median
from tables import table

OURS = "heliograph"

_HOW = """\
- Cost is measured in a mirror that runs and has copied everything. It is frozen (SIGSTOP) while more records are
  written, and measured from then on until the last of them is in the mirror. So all records count, and no start does.
- CPU is user and system time of the mirror with all its child processes: for Heliograph driver, lease and Spark's JVM.
  The kernel gives it in steps of 10 ms per process: copies that take less than 0.2 core-seconds are inexact.
- Bytes are those of the source's batches. Values are random; batches hold up to 16 KB, or one record.
- Idle CPU is that with nothing to copy, some seconds after the last record was copied; one measurement, not a median.
- Start is the time from the command to the first record in any mirror: once with mirrors that have to be created, then
  with mirrors that exist, where each topic has a new record to copy.
- While a mirror catches up or starts, the ends of all its partitions are asked for, in at most a fifth of the time.
- Tables show the median of the rounds, and the range in brackets. All topics are deleted before the next row."""


@dataclass(frozen=True)
class Following:
    """Heliograph with a number of partitions or topics: share of a core when idle, seconds of starts."""

    count: int
    idle: float
    start_new: float
    starts: tuple[float, ...] = ()


@dataclass
class Measured:
    """Copies have the size of their records, or the number of partitions, as the number of their workload."""

    environment: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)  # of tools
    command: str = ""
    sizes: list[Copy] = field(default_factory=list)
    partitions: list[Copy] = field(default_factory=list)
    partitions_idle: list[Following] = field(default_factory=list)
    topics: list[Following] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0.0
    steal: float = 0.0


def write(measured: Measured, file: Path) -> list[Path]:
    """Writes report, plot and raw numbers. Returns the files."""
    file.parent.mkdir(parents=True, exist_ok=True)
    picture, raw = file.with_suffix(".svg"), file.with_suffix(".json")
    picture.write_text(loglog.svg(panels(measured), "cost against bytes, partitions and topics"))
    raw.write_text(json.dumps(dataclasses.asdict(measured), indent=1) + "\n")
    file.write_text(text(measured, picture.name))
    return [file, picture, raw]


def text(measured: Measured, plot_file: str | None = None) -> str:
    """The whole report. The plot is shown if a file is named."""
    parts = [
        f"# Cost against bytes, partitions and topics, {datetime.date.today().isoformat()}",
        report.environment(measured.environment, measured.seconds, measured.steal),
        f"## Reproduce\n\n`{measured.command}`",
        f"![cost against bytes, partitions and topics]({plot_file})" if plot_file else "",
        report.failure_list([*measured.failures, *(f"left out: {line}" for line in measured.left_out)]),
        _sizes(measured),
        _partitions(measured),
        _topics(measured),
        f"## How it is measured\n\n{_HOW}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def panels(measured: Measured) -> list[Panel]:
    """One for each part that was measured."""
    drawn = []
    if measured.sizes:
        lines = [line for key, title in measured.titles.items() for line in _size_lines(measured, key, title)]
        drawn.append(Panel("Bytes", "size of a record", "core-seconds of the mirror", tuple(lines), "B"))
    if measured.partitions or measured.partitions_idle:
        costs = _medians(measured.partitions, lambda copy: copy.mirror_cpu_per_million)
        idle = _idle_line(measured.partitions_idle)
        cost = Line("heliograph", "core-seconds per million records of 100 bytes", costs)
        drawn.append(Panel("Partitions", "partitions", "core-seconds; % of a core", (cost, idle)))
    if measured.topics:
        lines = [
            Line("heliograph", "seconds to the first record, mirrors exist", _starts(measured.topics)),
            Line("heliograph", "seconds to the first record, new mirrors", _new_starts(measured.topics), dashed=True),
            _idle_line(measured.topics),
        ]
        drawn.append(Panel("Topics", "topics of one partition", "seconds; % of a core", tuple(lines)))
    return drawn


def _size_lines(measured: Measured, key: str, title: str) -> list[Line]:
    copies = [copy for copy in measured.sizes if copy.tool == key]
    per_gigabyte = _medians(copies, lambda copy: copy.mirror_cpu_per_gigabyte)
    per_million = _medians(copies, lambda copy: copy.mirror_cpu_per_million)
    return [
        Line(key, f"{title}: per GB", per_gigabyte),
        Line(key, f"{title}: per million records", per_million, dashed=True),
    ]


def _idle_line(followings: Sequence[Following]) -> Line:
    return Line("idle", "idle, % of a core", tuple((each.count, each.idle * 100) for each in followings))


def _new_starts(followings: Sequence[Following]) -> tuple[tuple[float, float], ...]:
    return tuple((each.count, each.start_new) for each in followings)


def _starts(followings: Sequence[Following]) -> tuple[tuple[float, float], ...]:
    return tuple((each.count, median(each.starts) or 0.0) for each in followings)


def _medians(copies: Sequence[Copy], value: Callable[[Copy], float]) -> tuple[tuple[float, float], ...]:
    """By the number of the workload."""
    good = [copy for copy in copies if not copy.failure]
    numbers = dict.fromkeys(copy.workload for copy in good)
    return tuple((at, median(value(copy) for copy in good if copy.workload == at) or 0.0) for at in numbers)


def _sizes(measured: Measured) -> str:
    if not measured.sizes:
        return ""
    head = ["size of a record", "", "records", "core-seconds per GB", "core-seconds per million records", "MB/s"]
    rows = []
    for size in dict.fromkeys(copy.workload for copy in measured.sizes):
        for key, title in measured.titles.items():
            copies = [copy for copy in measured.sizes if (copy.workload, copy.tool) == (size, key)]
            if copies:
                rows.append([loglog.short(size, "B"), title, *_cost_cells(copies)])
    return "## Bytes\n\n6 partitions.\n\n" + table(head, rows)


def _cost_cells(copies: Sequence[Copy]) -> list[str]:
    good = [copy for copy in copies if not copy.failure]
    if not good:
        return ["**failed**", "", "", ""]
    return [
        f"{good[0].records:,}",
        report.spread([copy.mirror_cpu_per_gigabyte for copy in good], report.cores),
        report.spread([copy.mirror_cpu_per_million for copy in good], report.cores),
        report.spread([copy.bytes_rate / 1e6 for copy in good], "{:,.0f}".format),
    ]


def _partitions(measured: Measured) -> str:
    if not measured.partitions_idle:
        return ""
    head = ["partitions", "core-seconds per million records", "records/s", "idle, % of a core"]
    rows = []
    for each in measured.partitions_idle:
        good = [copy for copy in measured.partitions if copy.workload == each.count and not copy.failure]
        cost = report.spread([copy.mirror_cpu_per_million for copy in good], report.cores) if good else "**failed**"
        rate = report.spread([copy.rate for copy in good], report.thousands) if good else ""
        rows.append([f"{each.count:,}", cost, rate, _percent(each.idle)])
    records = max((copy.records for copy in measured.partitions), default=0)
    about = f"{records:,} records of 100 bytes in batches of one size, over all partitions; 100 partitions per topic."
    return f"## Partitions\n\n{about}\n\n" + table(head, rows)


def _topics(measured: Measured) -> str:
    if not measured.topics:
        return ""
    head = ["topics", "seconds to the first record, mirrors exist", "new mirrors", "idle, % of a core"]
    rows = [
        [f"{each.count:,}", _seconds(each.starts), f"{each.start_new:.1f}", _percent(each.idle)]
        for each in measured.topics
    ]
    return "## Topics\n\nOne partition each.\n\n" + table(head, rows)


def _seconds(values: Sequence[float]) -> str:
    return report.spread(list(values), "{:.1f}".format) if values else ""


def _percent(share: float) -> str:
    return f"{share * 100:.1f}"
