"""Which settings matter for throughput: one topic is written, and mirrored once with each of several settings.

This is the procedure of tuning guides for MirrorMaker 2: stop the mirror, write many records of 100 bytes, start the
mirror, and watch the size of batches and the latency of requests until everything is copied. The first copy warms the
brokers up and does not count. Prints a table with a figure for each round: the rate from the first record in the mirror
to the last, and the CPU time of the mirror; and of the last round the size of batches as the broker stored them, and
the metrics `kafka_producer_batch_size_avg` and `kafka_producer_request_latency_avg`. `make bench-tuning`;
ARGS="--records 30000000" for as many as in those guides, ARGS="--mm2" for MirrorMaker 2 as well.
"""

import argparse
import asyncio
import itertools
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass

from clusters import Pair, Trouble, clear, client_of, create, data, started
from logfiles import Survey, survey
from measuring import PATIENCE, Watch
from payloads import PER_BATCH, small_batches
from producing import append_all
from prometheus_client.parser import text_string_to_metric_families
from stage import Mirror, Run, Stage
from tools import MM2_HEAP_MB
from writers import evenly

from heliograph.sandbox.mirrormaker import mirror_maker_command
from heliograph.sandbox.ports import free_ports
from heliograph.sandbox.processes import Processes

TOPIC = "tuning"
TARGET = "T"
MIB = 1024 * 1024

_FACTORS = ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.")
_STORAGE = ("offset.storage.", "status.storage.", "config.storage.")
_COPIED = "heliograph_copied_records_total"
_WATCHED = ("kafka_producer_batch_size_avg", "kafka_producer_request_latency_avg")


@dataclass(frozen=True)
class Variant:
    """`settings` are lines of mm2.properties; `{target}` and `{flow}` stand for the target's alias and the flow."""

    title: str
    settings: tuple[str, ...] = ()
    is_mm2: bool = False


def _batch_size(size: int) -> str:
    return f"{{target}}.producer.batch.size = {size}"


def _tasks(count: int) -> str:
    return f"tasks.max = {count}"


VARIANTS = (
    Variant("defaults"),
    Variant("`batch.size` 16384, MM2's default", (_batch_size(16384),)),
    Variant("`batch.size` 327680, that × 20", (_batch_size(327680),)),
    Variant("`heliograph.join` off", ("{flow}.heliograph.join = off",)),
    Variant("`tasks.max` 3", (_tasks(3),)),
    Variant("`heliograph.buffer.memory` 4 MB", (f"{{flow}}.heliograph.buffer.memory = {4 * MIB}",)),
)
MM2_VARIANTS = (
    Variant("MM2, `batch.size` 16384, its default", (_tasks(3),), is_mm2=True),
    Variant("MM2, `batch.size` 327680", (_tasks(3), _batch_size(327680)), is_mm2=True),
)


@dataclass(frozen=True)
class Measured:
    """`watched` are the metrics, means over the tasks; none for MM2, which has them in JMX."""

    records: int
    seconds: float
    cpu: float
    stored: Survey
    watched: tuple[float, ...]

    @property
    def rate(self) -> str:
        return f"{self.records / self.seconds / 1000:,.0f}" if self.seconds else "too short"

    @property
    def cpu_per_million(self) -> str:
        return f"{self.cpu / self.records * 1e6:.2f}" if self.records else "too short"


def _cells(rounds: Sequence[Measured]) -> list[str]:
    last = rounds[-1]
    batch = f"{last.stored.size / last.stored.batches / 1000:,.1f}"
    watched = [f"{last.watched[0] / 1000:,.1f}", f"{last.watched[1]:.1f}"] if last.watched else ["in JMX", "in JMX"]
    rates = "; ".join(measured.rate for measured in rounds)
    return [rates, batch, *watched, "; ".join(measured.cpu_per_million for measured in rounds)]


HEADS = (
    *("setting", "thousand records/s", "batch in the mirror, KB"),
    *("`kafka_producer_batch_size_avg`, KB", "`kafka_producer_request_latency_avg`, ms", "core-seconds per million"),
)


def _file(pair: Pair, variant: Variant, alias: str) -> str:
    names = {"target": TARGET, "flow": f"{alias}->{TARGET}"}
    return "\n".join(
        [
            f"clusters = {alias}, {TARGET}",
            f"{alias}.bootstrap.servers = {pair.source.bootstrap}",
            f"{TARGET}.bootstrap.servers = {pair.target.bootstrap}",
            f"{alias}->{TARGET}.enabled = true",
            f"{alias}->{TARGET}.topics = {TOPIC}",
            f"{TARGET}->{alias}.emit.heartbeats.enabled = false",
            *(f"{name}replication.factor = 1" for name in (*_FACTORS, *(_STORAGE if variant.is_mm2 else ()))),
            *(line.format(**names) for line in variant.settings),
            "",
        ]
    )


def _measure(stage: Stage, variant: Variant, number: int, partitions: int, source: Survey) -> Measured:
    alias, (port,) = f"S{number}", free_ports(1)
    folder = stage.processes.folder
    file = folder / f"{alias}.properties"
    file.write_text(_file(stage.pair, variant, alias))
    if variant.is_mm2:
        command = mirror_maker_command(file, heap_mb=MM2_HEAP_MB, gc="g1")
    else:
        options = ["--no-rest", "--metrics-port", str(port)]
        command = [sys.executable, "-m", "heliograph", "run", str(file), *options]
    mirror = Mirror(stage.pair.target, f"{alias}.{TOPIC}")
    log = file.with_suffix(".log")
    run = Run(stage, alias, stage.processes.start(alias, command, cwd=folder, log=log), log, [mirror])
    try:
        sights = asyncio.run(Watch(stage, run, partitions, source.visible, PATIENCE).until_complete())
        watched = () if variant.is_mm2 else _watched(port, source.visible)
    finally:
        run.stop()
    first, last = sights[0], sights[-1]
    stored = survey(data(stage.pair.target), mirror.topic)
    asyncio.run(clear(stage.pair.target))
    return Measured(
        source.visible - first.end, last.time - first.time, last.mirror_cpu - first.mirror_cpu, stored, watched
    )


def _watched(port: int, records: int) -> tuple[float, ...]:
    """The mean of each metric over the tasks that copied in the last minute, when all has been reported."""
    deadline = time.monotonic() + 30
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        values: dict[str, list[float]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                values.setdefault(sample.name, []).append(sample.value)
        if sum(values[_COPIED]) >= records:
            return tuple(sum(values[name]) / len(values[name]) for name in _WATCHED)
        if time.monotonic() > deadline:
            raise Trouble(f"{_COPIED} is {sum(values[_COPIED])}, the mirror has {records} records")
        time.sleep(0.2)


async def _write(pair: Pair, partitions: int, records: int, per_batch: int) -> None:
    async with client_of(pair.source) as client:
        await create(client, TOPIC, partitions)
        await append_all(client, TOPIC, evenly(small_batches(per_batch), per_batch, partitions, records))


def _say(cells: Sequence[str]) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--partitions", type=int, default=3)
    parser.add_argument("--per-batch", type=int, default=PER_BATCH, help="Records in a batch of the source.")
    parser.add_argument("--mm2", action="store_true", help="MirrorMaker 2 as well.")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", type=int, default=None, metavar="N", help="Only the first N settings of Heliograph.")
    options = parser.parse_args()
    variants = (*VARIANTS[: options.only], *(MM2_VARIANTS if options.mm2 else ()))
    with started() as (sandbox, pair), Processes(folder=sandbox.folder / "tools", remove=False) as processes:
        stage = Stage(pair, processes)
        asyncio.run(_write(pair, options.partitions, options.records, options.per_batch))
        source = survey(data(pair.source), TOPIC)
        mean = source.size / source.batches / 1000
        sys.stdout.write(f"{source.visible:,} records in batches of {mean:.1f} KB, {options.partitions} partitions\n\n")
        number = itertools.count()
        _measure(stage, variants[0], next(number), options.partitions, source)
        measured: dict[Variant, list[Measured]] = {variant: [] for variant in variants}
        for _ in range(options.rounds):
            for variant in variants:
                measured[variant].append(_measure(stage, variant, next(number), options.partitions, source))
        _say(HEADS)
        _say(["---"] * len(HEADS))
        for variant, rounds in measured.items():
            _say([variant.title, *_cells(rounds)])


if __name__ == "__main__":
    main()
