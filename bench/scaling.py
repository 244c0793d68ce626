"""Cost against bytes, partitions and topics: how it grows, for Heliograph, and against bytes for franz-go as well.

Three parts, each with two fresh clusters: `bytes` (records of 10 bytes to 1 MB), `partitions` (1 to 10 000: CPU per
record, and without records), `topics` (1 to 3 000: the start, and CPU without records). `measuring.catch_up` describes
how CPU per record is measured. Writes a report, a plot with a panel for each part, and the raw numbers to
docs/benchmarks. Takes about 14 minutes. `make bench-scaling`; ARGS="--only topics --rounds 1" for less.
"""

import argparse
import asyncio
import datetime
import functools
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import franz_go
import measuring
import scaling_report
from bench import tidy
from clusters import MANY_PARTITIONS_HEAP_MB, Trouble, client_of, create_many, data, started
from logfiles import Survey, surveys
from machine import environment
from measuring import PATIENCE, Patience, Watch
from payloads import random_batches
from processes import Machine
from producing import append_all
from results import Copy
from scaling_report import OURS, Following, Measured
from stage import Run, Stage, ToolFailed, running
from tools import TOOLS, Kind, Tool
from workloads import Pool, Workload, warm_up
from writers import evenly

from heliograph.sandbox import DEFAULT_VERSION
from heliograph.sandbox.processes import Processes
from heliograph.wire.errors import WireError

SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
PARTITIONS = (1, 10, 100, 1_000, 10_000)
TOPICS = (1, 10, 100, 1_000, 3_000)

_REPORTS = Path(__file__).parent.parent / "docs" / "benchmarks"
_TOTAL_BYTES = 200_000_000
_MOST_RECORDS = 2_000_000
_SIZE_PARTITIONS = 6
_BATCH_BYTES = 16_384
_HEADER, _PER_RECORD = 61, 10  # bytes of a batch, and of a record besides its value, at most
_LARGE_LIMIT = ("max.message.bytes", str(2 * 1024 * 1024))
_LARGE = 500_000

_RECORDS = 2_000_000  # over all partitions
_PER_BATCH = 100  # so that 10 000 partitions get the same batches as one
_PER_TOPIC = 100  # partitions
_VALUE = 100

_SETTLE, _IDLE = 5.0, 15.0  # seconds
_WARM_UP = 1_000_000
_PATIENCE = Patience(start=240.0, stall=60.0)
_CREATED_WITHIN = 240.0
# What the controller needs to create ten thousand partitions.
_PATIENT = (("request.timeout.ms", "120000"),)


@dataclass(frozen=True)
class Load:
    """Topics with as many partitions each, and what is written to them: batches of one kind."""

    workload: Workload
    topics: tuple[str, ...]
    per_batch: int

    @classmethod
    def of_size(cls, size: int, scale: float) -> "Load":
        """Records of a size: as many bytes as for other sizes, but not too many records."""
        records = round(min(_TOTAL_BYTES / size, _MOST_RECORDS) * scale)
        return cls._with(size, size, records, per_batch(size), 1, _SIZE_PARTITIONS)

    @classmethod
    def of_partitions(cls, partitions: int, scale: float) -> "Load":
        """Small records, as many as for other numbers of partitions."""
        topics, each = max(1, partitions // _PER_TOPIC), min(partitions, _PER_TOPIC)
        return cls._with(partitions, _VALUE, round(_RECORDS * scale), _PER_BATCH, topics, each)

    @classmethod
    def of_topics(cls, topics: int) -> "Load":
        """One record per topic each time."""
        return cls._with(topics, _VALUE, topics, 1, topics, 1)

    @classmethod
    def _with(cls, number: int, size: int, records: int, per_batch: int, topics: int, partitions: int) -> "Load":
        configs = (_LARGE_LIMIT,) if size > _LARGE else ()
        pool = Pool(functools.partial(random_batches, size), per_batch, per_batch)
        workload = Workload(number, "scaling", "", records, partitions=partitions, configs=configs, pool=pool)
        names = tuple(f"{workload.topic}-{topic}" for topic in range(topics))
        return cls(workload, names, per_batch)

    @property
    def pattern(self) -> str:
        return self.topics[0] if len(self.topics) == 1 else f"{self.workload.topic}-.*"

    @functools.cached_property
    def batches(self) -> list[bytes]:
        return self.workload.pool.batches(self.per_batch)


def per_batch(size: int) -> int:
    """Records of a size in a batch of at most 16 KB; one, if they are larger."""
    return max(1, (_BATCH_BYTES - _HEADER) // (size + _PER_RECORD))


def steps(ladder: Sequence[int], scale: float) -> list[int]:
    """The numbers of partitions or topics in a run: with a scale below 1, only as many as that part of the most."""
    return [step for step in ladder if step <= max(1.0, max(ladder) * scale)]


@dataclass(frozen=True)
class Plan:
    scale: float
    rounds: int

    @property
    def idle(self) -> tuple[float, float]:
        """Seconds before, and seconds of measuring."""
        return max(1.0, _SETTLE * self.scale), max(1.0, _IDLE * self.scale)


def measure_bytes(stage: Stage, plan: Plan, measured: Measured) -> None:
    warm_up(stage.pair, max(10_000, round(_WARM_UP * plan.scale)))
    for size in SIZES:
        for tool in _tools(measured):
            load = Load.of_size(size, plan.scale)
            with _attempt(stage, measured, f"records of {size:,} bytes, {tool.title}"):
                asyncio.run(_create(stage, load))
                before = asyncio.run(_prime(stage, load))
                with running(stage, tool, tool.key, load.workload, load.pattern) as run:
                    _follow(stage, run, load, before.visible, PATIENCE)
                    _catch_up(stage, run, load, tool, plan.rounds, measured.sizes, before)


def measure_partitions(stage: Stage, plan: Plan, measured: Measured) -> None:
    warm_up(stage.pair, max(10_000, round(_WARM_UP * plan.scale)))
    tool = _patient()
    for count in steps(PARTITIONS, plan.scale):
        load = Load.of_partitions(count, plan.scale)
        with _attempt(stage, measured, f"{count:,} partitions"):
            asyncio.run(_create(stage, load))
            before = asyncio.run(_prime(stage, load))
            with running(stage, tool, tool.key, load.workload, load.pattern, load.topics) as run:
                began = _follow(stage, run, load, before.visible, _PATIENCE)
                idle = _idle(run, plan)
                measured.partitions_idle.append(Following(count, idle, began))
                _catch_up(stage, run, load, tool, plan.rounds, measured.partitions, before)


def measure_topics(stage: Stage, plan: Plan, measured: Measured) -> None:
    tool = _patient()
    for count in steps(TOPICS, plan.scale):
        load = Load.of_topics(count)
        with _attempt(stage, measured, f"{count:,} topics"):
            asyncio.run(_create(stage, load))
            starts: list[float] = []
            have = 0
            for number in range(plan.rounds + 1):
                goal = asyncio.run(_prime(stage, load)).visible
                with running(stage, tool, tool.key, load.workload, load.pattern, load.topics) as run:
                    starts.append(_follow(stage, run, load, goal, _PATIENCE, have))
                    if number == plan.rounds:
                        idle = _idle(run, plan)
                have = goal
            measured.topics.append(Following(count, idle, starts[0], tuple(starts[1:])))


PARTS: dict[str, Callable[[Stage, Plan, Measured], None]] = {
    "bytes": measure_bytes,
    "partitions": measure_partitions,
    "topics": measure_topics,
}


def _tools(measured: Measured) -> list[Tool]:
    return [tool for tool in TOOLS if tool.key in measured.titles]


def _patient() -> Tool:
    (tool,) = (tool for tool in TOOLS if tool.key == OURS)
    return replace(tool, settings=_PATIENT)


@contextmanager
def _attempt(stage: Stage, measured: Measured, what: str) -> Iterator[None]:
    """One row of a table, without topics of the one before. If it fails, the others are measured all the same."""
    _say(what)
    try:
        tidy(stage)
        yield
    except (ToolFailed, Trouble, WireError) as failure:
        measured.failures.append(f"{what}: {failure}")
        _say(f"  FAILED: {failure}")


async def _create(stage: Stage, load: Load) -> None:
    workload = load.workload
    async with client_of(stage.pair.source, _CREATED_WITHIN) as client:
        await create_many(client, load.topics, workload.partitions, workload.configs, _CREATED_WITHIN)


async def _prime(stage: Stage, load: Load) -> Survey:
    """One batch for each partition."""
    return await _write(stage, load, 0)


async def _write(stage: Stage, load: Load, records: int) -> Survey:
    """That many records over all topics, at least one batch for each partition. Returns what the topics hold then."""
    partitions, each = load.workload.partitions, records // len(load.topics)
    async with client_of(stage.pair.source) as client:
        for topic in load.topics:
            await append_all(client, topic, evenly(load.batches, load.per_batch, partitions, each))
    total = Survey()
    for counted in surveys(data(stage.pair.source), load.topics).values():
        total.add(counted)
    return total


def _follow(stage: Stage, run: Run, load: Load, goal: int, patience: Patience, have: int = 0) -> float:
    """Waits until everything is copied. Returns the seconds to the first record."""
    watch = Watch(stage, run, load.workload.partitions, goal, patience, have)
    sights = asyncio.run(watch.until_complete())
    first, last = sights[0].time - watch.began, sights[-1].time - watch.began
    _say(f"  first record after {first:.1f} s, all partitions after {last:.1f} s")
    return first


def _idle(run: Run, plan: Plan) -> float:
    share = measuring.idle(run, *plan.idle)
    _say(f"  idle: {share:.1%} of a core")
    return share


def _catch_up(stage: Stage, run: Run, load: Load, tool: Tool, rounds: int, copies: list[Copy], before: Survey) -> None:
    workload = load.workload

    def write() -> Survey:
        began = time.monotonic()
        after = asyncio.run(_write(stage, load, workload.records))
        _say(f"  written in {time.monotonic() - began:.1f} s, while the mirror was frozen")
        return after

    for number in range(1, rounds + 1):
        copy = Copy(workload.number, tool.key, number)
        copy, before = measuring.catch_up(stage, run, workload.partitions, write, before, copy, _PATIENCE)
        copies.append(copy)
        _say(
            f"  round {number}: {copy.records:,} records, {copy.size / 1e6:,.1f} MB in {copy.seconds:.2f} s, "
            f"{copy.mirror_cpu:.2f} core-seconds: {copy.mirror_cpu_per_gigabyte:,.2f} per GB, "
            f"{copy.mirror_cpu_per_million:,.2f} per million records; others used {copy.others:.0%} of the cores"
        )


def measure(plan: Plan, parts: Sequence[str], command: str) -> Measured:
    """Each part with clusters of its own."""
    began, machine = time.monotonic(), Machine.now()
    measured = Measured(environment(), _titles(), command)
    del measured.environment["MirrorMaker 2"]
    measured.environment["Kafka"] = DEFAULT_VERSION
    measured.environment["brokers"] += f"; for partitions and topics, heap {MANY_PARTITIONS_HEAP_MB} MB"
    if "bytes" in parts:
        _add_franz_go(measured)
    for part in parts:
        _say(f"{part}: starting two clusters")
        with (
            started(many_partitions=part != "bytes") as (sandbox, pair),
            Processes(folder=sandbox.folder / "tools", remove=False) as processes,
        ):
            PARTS[part](Stage.of(pair, processes), plan, measured)
        _say(f"{(time.monotonic() - began) / 60:.1f} minutes so far")
    measured.seconds = time.monotonic() - began
    measured.steal = Machine.now().steal_since(machine)
    return measured


def _titles() -> dict[str, str]:
    return {tool.key: tool.title for tool in TOOLS if tool.key == OURS}


def _add_franz_go(measured: Measured) -> None:
    (tool,) = (tool for tool in TOOLS if tool.kind is Kind.FRANZ_GO)
    try:
        franz_go.program()
    except franz_go.NotBuilt as reason:
        measured.left_out.append(f"franz-go: {reason}")
        _say(f"franz-go is left out: {reason}")
        return
    measured.titles[tool.key] = tool.title
    measured.environment["franz-go"] = franz_go.version()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="times the usual records, seconds, and most partitions and topics"
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often each copy and each start is measured")
    parser.add_argument("--only", choices=PARTS, help="only this part")
    parser.add_argument("--output", type=Path, default=_REPORTS, metavar="DIR", help="instead of docs/benchmarks")
    options = parser.parse_args(arguments)
    if options.rounds < 1 or options.scale <= 0:
        parser.error("at least one round, and a scale above 0")
    parts = [options.only] if options.only else list(PARTS)
    measured = measure(Plan(options.scale, options.rounds), parts, make_command(options))
    _say("\n" + scaling_report.text(measured))
    name = "-".join([datetime.date.today().isoformat(), "scaling", *([options.only] if options.only else [])])
    for path in scaling_report.write(measured, options.output / f"{name}.md"):
        _say(f"written: {os.path.relpath(path)}")
    return 1 if measured.failures else 0


def make_command(options: argparse.Namespace) -> str:
    """What measures the same again; without the folder."""
    words = [] if options.scale == 1.0 else ["--scale", f"{options.scale:g}"]
    words += [] if options.rounds == 3 else ["--rounds", str(options.rounds)]
    words += ["--only", options.only] if options.only else []
    return f'make bench-scaling ARGS="{shlex.join(words)}"' if words else "make bench-scaling"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
