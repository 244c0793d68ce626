"""A ledger with a long history: 60 million gaps in ten partitions, like a week of exactly-once Kafka Streams.

Prints the cost: the time from the start of the command to the first copied record and the driver's memory, each
compared with an empty ledger; bytes on disk per gap; the time to translate an offset anywhere in the history; the size
of the work that Spark sends to a lease of a thousand partitions. `make bench-ledger`; ARGS="--gaps 100000" for less.
"""

import argparse
import asyncio
import pickle
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import add
from pathlib import Path

import numpy as np
import psutil
from clusters import client_for, data

from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.control.packing import Packer
from heliograph.control.topic_sync import sync_topics
from heliograph.copy.ledger import Ledger
from heliograph.copy.ledger_state import LedgerState
from heliograph.copy.start_filler import _batch
from heliograph.copy.work import Work
from heliograph.model.columns import Columns
from heliograph.model.flow import Flow
from heliograph.model.intervals import Intervals
from heliograph.model.names import NameFilter
from heliograph.model.pages import PAGE, Page, page_of
from heliograph.model.partitions import MirrorPartition
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from heliograph.wire.append import PartitionBatch, append
from heliograph.wire.batches import mirror_header
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.metadata import Topic, id_text
from heliograph.wire.offsets import LATEST, delete_before, list_offsets
from heliograph.wire.recode import ZSTD
from heliograph.wire.records import Record, encode
from heliograph.wire.topic_requests import NewTopic, create_topics

_PARTITIONS = 10
_PATIENCE = 120.0
_FILL = 100_000
_LONG, _EMPTY = "S", "E"  # aliases of the source: each has its own ledger
_LOOK_UPS = 300


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class History:
    """The pages of one mirror partition, and the offsets at which both logs then end."""

    pages: list[Page]
    target: int
    source: int


def _history(gaps: int, source_id: str, rng: random.Random) -> History:
    """Transactions of one to three records, each with its marker, now and then an aborted one."""
    pages: list[Page] = []
    target = source = 0
    for at in range(0, gaps, PAGE):
        size = min(PAGE, gaps - at)
        counts = rng.choices((1, 2, 3), k=size)
        steps = list(map(add, counts, rng.choices((1, 2), (9, 1), k=size)))
        targets = list(accumulate(counts, initial=target))
        sources = list(accumulate(steps, initial=source))
        target, source = targets.pop(), sources.pop()
        columns = Columns(np.array(targets), np.array(sources), np.array(counts), np.zeros(size, np.int64), source_id)
        pages.append(page_of(columns))
    return History(pages, target, source)


async def _led(client: ClusterClient, topic: str) -> Topic:
    """The topic, when all of its partitions have a leader."""
    while True:
        known = (await client.metadata([topic])).topics[topic]
        if len(known.leaders) == _PARTITIONS and min(known.leaders.values()) >= 0:
            return known
        await asyncio.sleep(0.05)


async def _fill(client: ClusterClient, topic: str, ends: dict[int, int]) -> None:
    """Makes partitions begin and end at these offsets."""
    known = await _led(client, topic)

    async def write_partition(partition: int, end: int) -> None:
        connection, at = await client.connection(known.leaders[partition]), 0
        while at < end:
            batch = _batch(min(_FILL, end - at), ZSTD)
            pieces = mirror_header(batch, -1, -1), batch.records
            (answer,) = await append(connection, [PartitionBatch(topic, partition, pieces)], 60.0)
            assert not answer.error, answer
            at += batch.count

    await asyncio.gather(*(write_partition(partition, end) for partition, end in ends.items()))
    places = {(topic, partition): end for partition, end in ends.items()}
    leaders = {place: known.leaders[place[1]] for place in places}
    assert not any((await delete_before(client, leaders, places)).values())


class Bench:
    def __init__(self, folder: Path, source: SandboxCluster, target: SandboxCluster, gaps: int) -> None:
        self._folder, self._gaps = folder, gaps // _PARTITIONS
        self._sandboxes = source, target
        self._source, self._target = client_for(source, _PATIENCE), client_for(target, _PATIENCE)

    def close(self) -> None:
        self._source.close()
        self._target.close()

    def _flow(self, alias: str) -> Flow:
        source, target = self._source.cluster, self._target.cluster
        topics = NameFilter((f"eos-{alias}",))
        return Flow(replace(source, alias=alias), replace(target, alias="T"), topics=topics, replication_factor=1)

    async def prepare(self) -> None:
        for alias in (_LONG, _EMPTY):
            outcome = await create_topics(self._source, [NewTopic(f"eos-{alias}", _PARTITIONS, 1)])
            assert not any(outcome.values()), outcome
            await ensure_internal_topics(self._flow(alias), self._source, self._target)
            topics = {f"eos-{alias}": await _led(self._source, f"eos-{alias}")}
            await sync_topics(self._flow(alias), self._source, self._target, topics)
        began, rng = time.monotonic(), random.Random(1)
        topic, mirror = f"eos-{_LONG}", f"{_LONG}.eos-{_LONG}"
        source_id = id_text((await _led(self._source, topic)).id)
        mirror_id = id_text((await _led(self._target, mirror)).id)
        histories = {number: _history(self._gaps, source_id, rng) for number in range(_PARTITIONS)}
        await asyncio.gather(
            _fill(self._source, topic, {number: history.source for number, history in histories.items()}),
            _fill(self._target, mirror, {number: history.target for number, history in histories.items()}),
        )
        flow = self._flow(_LONG)
        ledger = Ledger(self._target, _LONG)
        await ledger.catch_up()
        for number, history in histories.items():
            ledger.states[topic, number] = {mirror_id: LedgerState(Intervals(pages=history.pages), written=-1)}
        await Packer(flow, self._source, self._target, ledger).pack()
        self._ends = {number: history.source for number, history in histories.items()}
        self._ids = source_id, mirror_id
        total = self._gaps * _PARTITIONS
        _say(f"{total} gaps in {_PARTITIONS} partitions written in {time.monotonic() - began:.0f} s")

    def disk(self) -> None:
        folder = data(self._sandboxes[1])
        files = [file for file in folder.rglob("*") if f"heliograph-ledger.{_LONG}." in str(file) and file.is_file()]
        size = sum(file.stat().st_size for file in files if file.suffix == ".log")
        _say(f"on disk: {size / 1e6:.1f} MB, {size / (self._gaps * _PARTITIONS):.2f} bytes for each gap")

    async def starts(self, runs: int) -> None:
        times: dict[str, list[tuple[float, float]]] = {_LONG: [], _EMPTY: []}
        for number in range(runs):
            for alias in (_LONG, _EMPTY) if number % 2 else (_EMPTY, _LONG):
                times[alias].append(await self._start(alias))
        medians = {
            alias: [statistics.median(column) for column in zip(*pairs, strict=True)] for alias, pairs in times.items()
        }
        (seconds, memory), (none, little) = medians[_LONG], medians[_EMPTY]
        _say(
            f"start to first copied record: {seconds:.1f} s, with an empty ledger {none:.1f} s: {seconds - none:+.1f} s"
        )
        _say(f"memory of the driver: {memory:.0f} MB, with an empty ledger {little:.0f} MB: {memory - little:+.0f} MB")

    async def _start(self, alias: str) -> tuple[float, float]:
        """Seconds until the first record is on the mirror, and megabytes of the driver a little later."""
        sandboxes = self._sandboxes
        file, log = self._folder / f"{alias}.properties", self._folder / "run.log"
        file.write_text(
            f"clusters = {alias}, T\n{alias}.bootstrap.servers = {sandboxes[0].bootstrap}\n"
            f"T.bootstrap.servers = {sandboxes[1].bootstrap}\n{alias}->T.enabled = true\n"
            f"{alias}->T.topics = eos-{alias}\nreplication.factor = 1\n"
        )
        topic = f"eos-{alias}"
        mirror = f"{alias}.{topic}"
        have = await self._end(mirror)
        await self._write(topic)
        began = time.monotonic()
        with log.open("wb") as output:
            started = subprocess.Popen(
                [sys.executable, "-m", "heliograph", "run", str(file)], stdout=output, stderr=output
            )
        try:
            while await self._end(mirror) <= have:
                if started.poll() is not None or time.monotonic() - began > 300:
                    raise SystemExit(log.read_text())
                await asyncio.sleep(0.01)
            took = time.monotonic() - began
            await asyncio.sleep(3.0)  # by then the first checkpoints are done
            return took, psutil.Process(started.pid).memory_full_info().uss / 1e6
        finally:
            started.terminate()
            started.wait(60)

    async def _end(self, mirror: str) -> int:
        topics = (await self._target.metadata([mirror])).topics
        offset = (await list_offsets(self._target, topics, [(mirror, 0)], LATEST, False))[mirror, 0]
        assert isinstance(offset, int), offset
        return offset

    async def _write(self, topic: str) -> None:
        leader = (await self._source.metadata([topic])).topics[topic].leaders[0]
        batch = encode([Record(0, int(time.time() * 1000), None, b"x" * 100)])
        (answer,) = await append(await self._source.connection(leader), [PartitionBatch(topic, 0, [batch])], 30.0)
        assert not answer.error, answer

    async def translations(self) -> None:
        ledger, rng = Ledger(self._target, _LONG), random.Random(2)
        began = time.monotonic()
        await ledger.catch_up()
        _say(f"index and journal read in {(time.monotonic() - began) * 1000:.0f} ms")
        took = []
        source_id, mirror_id = self._ids
        for _ in range(_LOOK_UPS):
            number = rng.randrange(_PARTITIONS)
            source = rng.randrange(self._ends[number])
            began = time.monotonic()
            translated = await ledger.ask(
                (f"eos-{_LONG}", number),
                mirror_id,
                lambda intervals, at=source: intervals.target_of(at, source_id, 1 << 60),  # type: ignore[misc]
            )
            took.append((time.monotonic() - began) * 1000)
            assert translated is not None
        middle, worst = statistics.median(took), max(took)
        _say(f"an offset anywhere translated in {middle:.1f} ms (median of {_LOOK_UPS}), {worst:.1f} ms at most")

    async def lease(self) -> None:
        """The size of the work of a lease with a thousand partitions that have some thousand gaps each."""
        ledger = Ledger(self._target, _LONG)
        rng = random.Random(3)
        intervals = _history(PAGE + PAGE // 2, self._ids[0], rng)
        partitions = [MirrorPartition(f"topic-{number}", f"S.topic-{number}", number) for number in range(1000)]
        for key in partitions:
            ledger.states[key.topic, key.partition] = {self._ids[1]: LedgerState(Intervals(pages=intervals.pages))}
        handed = ledger.hand_over({(key.topic, key.partition): intervals.target for key in partitions})
        work = Work(self._flow(_LONG), "lease", 20.0, tuple(partitions), ledger=handed)
        _say(f"the work of a lease of {len(partitions)} partitions: {len(pickle.dumps(work)) / 1e6:.2f} MB")


async def _measure(folder: Path, source: SandboxCluster, target: SandboxCluster, gaps: int, runs: int) -> None:
    with closing(Bench(folder, source, target, gaps)) as bench:
        await bench.prepare()
        bench.disk()
        await bench.lease()
        await bench.translations()
        await bench.starts(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gaps", type=int, default=60_000_000)
    parser.add_argument("--runs", type=int, default=5, help="starts with each ledger; the medians are printed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Sandbox() as sandbox:
        spec = ClusterSpec(settings={"log.retention.ms": "-1"}, fast_start=True)
        source, target = sandbox.start({"S": spec, "T": spec})
        asyncio.run(_measure(Path(folder), source, target, options.gaps, options.runs))


if __name__ == "__main__":
    main()
