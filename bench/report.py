"""The report as Markdown, with the raw numbers as JSON and a plot as SVG."""

import dataclasses
import datetime
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import plot
import time_report
from results import BOUND_TITLES, Bound, Copy, Latency, Results, Source, median
from tables import table

_OURS = "heliograph"
_PEERS = ("franz-go", "mm2-tuned")  # the fastest of their kind
_LIMIT_NAMES = {
    Bound.RELAY: "relay's rate",
    Bound.PRODUCE_LARGE: "rate of producing only, in batches of 900 KB",
    Bound.PRODUCE: "rate of producing only, in batches as in the source",
}

_HOW = """\
- Every tool mirrors the same topic between the same two clusters, one after the other, each round in another order.
  Everything a tool has written is deleted, and its files are gone, before the next one starts.
- Numbers are from the first record in the mirror to the last: they exclude the start and include a JVM's warm-up.
  "Second half" is the rate of the second half of the records, when the warm-up is over.
- A copy is complete when the mirror holds as many records as a read-committed consumer of the source would see, counted
  from batch headers. MB/s are bytes of the source's batches.
- CPU is user and system time, in core-seconds per million records: of the mirror with all its child processes, and of
  both brokers together. Memory is the highest sum of PSS (shared pages count once) over the mirror's processes, sampled
  every second.
- Tables show the median of the rounds, and the range in brackets.
- The relay is a Python program that reads as many bytes as the topic has from one local socket and writes them to
  another: what copying costs on this machine without Kafka. "Produce only" appends batches from memory.
- franz-go is a copier of our own on that client (Go): idempotent, acks=all, batches of up to 900 KB, the source's
  compression. It keeps no positions and creates no mirrors: they exist before it starts. When its first record is in
  the mirror, it may already have read a Fetch response or two of 24 MB, which favours it on small topics.
- MirrorMaker 2 "tuned" and "exactly once" write with the source's compression; "defaults" writes uncompressed. On the
  transactional source all of them read committed records only: as shipped, MirrorMaker 2 copies aborted records too.
- With TLS, brokers have a certificate and tools verify it; no tool has a certificate of its own, and there are no ACLs.
  The limits, and the benchmark's own clients, are without TLS.
- In every run, MirrorMaker 2's settings are checked against the settings that its clients log."""

_WARM_UP = "- A first round of all tools on the first workload, and on that with TLS: only in the JSON, as `warm_up`."
_DISCARDED = """\
- The records of the brokers' warm-up.
- The records before the first sample of a mirror that had any, and the first seconds of each latency run."""

_OVERVIEW = """\
Records per second and core-seconds of the mirror per million records; then Heliograph's records per second with its
defaults, divided by those of its fastest peers and by the rate at which a plain relay moves the same bytes; medians."""

_RATIOS = """\
How many times more records per second Heliograph copies with its defaults, and how many times more CPU per record the
other tool uses; medians."""


def text(results: Results, plot_file: str | None = None) -> str:
    """The whole report. The plot is shown if a file is named."""
    parts = [
        f"# Benchmark of {datetime.date.today().isoformat()}",
        environment(results.environment, results.seconds, results.steal),
        "## Reproduce\n\n`make bench`, or `.venv/bin/python bench/bench.py --help` for parts of it.",
        f"![records per second]({plot_file})" if plot_file else "",
        _failures(results),
        _overview(results),
        *(_workload(results, source) for source in results.sources),
        _ratios(results),
        _latency(results),
        time_report.text(results),
        f"## How it is measured\n\n{_HOW}",
        _left_out(results),
        _all_runs(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def write(results: Results, file: Path) -> list[Path]:
    """Writes report, plot and raw numbers. Returns the files."""
    file.parent.mkdir(parents=True, exist_ok=True)
    picture, raw = file.with_suffix(".svg"), file.with_suffix(".json")
    picture.write_text(plot.svg(results))
    raw.write_text(json.dumps(dataclasses.asdict(results), indent=1) + "\n")
    file.write_text(text(results, picture.name))
    return [file, picture, raw]


def environment(known: Mapping[str, str], seconds: float, steal: float) -> str:
    rows = [[name, value] for name, value in known.items()]
    rows.append(["took", f"{seconds / 60:.1f} minutes; {steal:.1%} of the cores went to other guests"])
    return "## Environment\n\n" + table(["", ""], rows)


def _failures(results: Results) -> str:
    return failure_list(results.failures())


def failure_list(failures: Sequence[str]) -> str:
    if not failures:
        return ""
    return "\n".join(["## Failures", "", *(f"- {_cell(failure)}" for failure in failures)])


def _overview(results: Results) -> str:
    """One row per workload: all tools, and what Heliograph reaches of the fastest and of the machine."""
    peers = [key for key in _PEERS if key in results.titles and _OURS in results.titles]
    head = ["", *results.titles.values(), *(f"Heliograph / {results.titles[key]}" for key in peers)]
    if results.limits:
        head.append("Heliograph / relay")
    rows = []
    for source in results.sources:
        ours = results.median(source.workload, _OURS, lambda copy: copy.rate)
        row = [f"{source.workload}. {source.name}", *(_pair(results, source.workload, key) for key in results.titles)]
        row += [_part(ours, results.median(source.workload, key, lambda copy: copy.rate), "{:.2f}") for key in peers]
        if results.limits:
            row.append(_part(ours, results.limit(source.workload, Bound.RELAY), "{:.0%}"))
        rows.append(row)
    return "\n\n".join(["## Overview", _OVERVIEW, table(head, rows)]) if rows else ""


def _pair(results: Results, workload: int, tool: str) -> str:
    if not results.runs(workload, tool):
        return ""
    rate = results.median(workload, tool, lambda copy: copy.rate)
    if rate is None:
        return "**failed**"
    cpu = results.median(workload, tool, lambda copy: copy.mirror_cpu_per_million)
    return f"{thousands(rate)}, {cores(cpu or 0.0)}"


def _part(ours: float | None, other: float | None, form: str) -> str:
    return form.format(ours / other) if ours and other else ""


def _left_out(results: Results) -> str:
    tools = [f"- {_cell(reason)}" for reason in results.left_out]
    return "\n".join(["## What was left out", "", *tools, *([_WARM_UP] if results.warm_up else []), _DISCARDED])


def _workload(results: Results, source: Source) -> str:
    aside = [
        f"{source.holes:,} records removed by compaction" if source.holes else "",
        f"{source.aborted:,} aborted" if source.aborted else "",
    ]
    facts = ", ".join(
        [f"{source.records:,} records in {source.batches:,} batches, {source.size / 1e6:,.0f} MB", *filter(None, aside)]
    )
    head = ["", "records/s", "second half", "MB/s", "CPU of the mirror", "CPU of the brokers", "memory, MB"]
    rows = [[title, *_cells(results.runs(source.workload, key))] for key, title in results.titles.items()]
    rows = [row for row in rows if len(row) > 1]
    rows += [row for bound in Bound if (row := _limit_row(results, source, bound))]
    parts = [
        f"## {source.workload}. {source.name[:1].upper()}{source.name[1:]}",
        f"{source.about}: {facts}.",
        table(head, rows),
    ]
    if shares := _shares(results, source.workload):
        parts.append(shares)
    return "\n\n".join(parts)


def _limit_row(results: Results, source: Source, bound: Bound) -> list[str]:
    limits = [limit for limit in results.limits if (limit.workload, limit.bound) == (source.workload, bound)]
    if not limits:
        return []
    megabytes = ""
    if bound is not Bound.PRODUCE_LARGE:  # its batches have another size than the source's
        megabytes = f"{(median(limit.rate for limit in limits) or 0.0) * source.size / source.records / 1e6:,.1f}"
    rate, cpu = [limit.rate for limit in limits], [limit.cpu_per_million for limit in limits]
    return [f"*{BOUND_TITLES[bound]}*", spread(rate, thousands), "", megabytes, spread(cpu, cores), "", ""]


def _shares(results: Results, workload: int) -> str:
    """Heliograph's rate relative to its peers and to the limits, in a sentence."""
    ours = results.median(workload, _OURS, lambda copy: copy.rate)
    if not ours:
        return ""
    peers = {key: results.median(workload, key, lambda copy: copy.rate) for key in _PEERS}
    shares = [f"{ours / rate:.2f} times the rate of {results.titles[key]}" for key, rate in peers.items() if rate]
    limits = {bound: results.limit(workload, bound) for bound in Bound}
    shares += [f"{ours / rate:.0%} of the {_LIMIT_NAMES[bound]}" for bound, rate in limits.items() if rate]
    return f"Heliograph reaches {'; '.join(shares)}." if shares else ""


def _cells(runs: list[Copy]) -> Iterator[str]:
    """The cells of one tool's row; none if it did not run."""
    good = [run for run in runs if not run.failure]
    bad = [run for run in runs if run.failure]
    if not runs:
        return
    if not good:
        yield f"**failed**: {_cell(bad[0].failure or '')}"
        yield from [""] * 5
        return
    note = f" **{len(bad)} of {len(runs)} rounds failed**" if bad else ""
    yield spread([run.rate for run in good], thousands) + note
    yield _middle(good, lambda run: run.late_rate, thousands)
    yield _middle(good, lambda run: run.bytes_rate / 1e6, "{:,.1f}".format)
    yield spread([run.mirror_cpu_per_million for run in good], cores)
    yield spread([run.broker_cpu_per_million for run in good], cores)
    yield _middle(good, lambda run: run.peak_memory / 2**20, "{:,.0f}".format)


def _ratios(results: Results) -> str:
    others = [key for key in results.titles if not key.startswith(_OURS)]
    if _OURS not in results.titles or not others:
        return ""
    rows = [
        [f"{source.workload}. {source.name}", *(_ratio(results, source.workload, key) for key in others)]
        for source in results.sources
    ]
    head = ["", *(results.titles[key] for key in others)]
    return "\n\n".join(["## Heliograph to the others", _RATIOS, table(head, rows)])


def _ratio(results: Results, workload: int, other: str) -> str:
    def both(value: Callable[[Copy], float]) -> tuple[float | None, float | None]:
        return results.median(workload, _OURS, value), results.median(workload, other, value)

    rate, other_rate = both(lambda copy: copy.rate)
    cpu, other_cpu = both(lambda copy: copy.mirror_cpu_per_million)
    if not rate or not other_rate:
        return "n/a"
    faster = f"{rate / other_rate:.1f} × records/s"
    return f"{faster}, {other_cpu / cpu:.1f} × CPU" if cpu and other_cpu else faster


def _latency(results: Results) -> str:
    if not results.latencies:
        return ""
    rows = []
    for rate, key in product(dict.fromkeys(latency.rate for latency in results.latencies), results.titles):
        runs = [latency for latency in results.latencies if (latency.rate, latency.tool) == (rate, key)]
        if runs:
            rows.append([f"{rate:,}", results.titles[key], *_latency_cells(runs)])
    intro = (
        f"Records of 100 bytes at a fixed rate over 6 partitions for {results.latency_seconds:g} s, from the "
        "producer's sending to the answer that a reader of the mirror gets, in milliseconds."
    )
    return "\n\n".join(["## Latency", intro, table(["records/s", "", "p50", "p99", "worst"], rows)])


def _latency_cells(runs: list[Latency]) -> list[str]:
    good = [run for run in runs if not run.failure]
    if not good:
        return [f"**failed**: {_cell(runs[0].failure or '')}", "", ""]
    note = f" **{len(runs) - len(good)} of {len(runs)} rounds failed**" if len(good) < len(runs) else ""
    form = "{:,.1f}".format
    return [
        spread([run.p50 for run in good], form) + note,
        spread([run.p99 for run in good], form),
        spread([run.worst for run in good], form),
    ]


def _all_runs(results: Results) -> str:
    head = ["workload", "tool", "round", "records/s", "CPU of the mirror", "stolen", "used by others", ""]
    rows = [
        [str(copy.workload), results.titles[copy.tool], str(copy.round), *_run_cells(copy)] for copy in results.copies
    ]
    return "## All runs\n\n" + table(head, rows) if rows else ""


def _run_cells(copy: Copy) -> list[str]:
    if copy.failure:
        return ["", "", "", "", "failed"]
    surplus = f"{copy.surplus:,} records too many" if copy.surplus else ""
    return [
        thousands(copy.rate),
        cores(copy.mirror_cpu_per_million),
        f"{copy.steal:.1%}",
        f"{copy.others:.1%}",
        surplus,
    ]


def _middle(runs: list[Copy], value: Callable[[Copy], float], form: Callable[[float], str]) -> str:
    return form(median(value(run) for run in runs) or 0.0)


def spread(values: list[float], form: Callable[[float], str]) -> str:
    middle = form(median(values) or 0.0)
    return middle if len(values) == 1 else f"{middle} ({form(min(values))} to {form(max(values))})"


def thousands(number: float) -> str:
    if not number:
        return "too short to tell"
    return f"{number / 1000:,.0f} k" if number >= 10_000 else f"{number:,.0f}"


def cores(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds < 100 else f"{seconds:,.0f}"


def _cell(words: str) -> str:
    return words.replace("|", "/").replace("\n", " ")
