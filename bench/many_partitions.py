"""Ten thousand partitions, nearly all idle, between two clusters: what that costs Heliograph.

Prints the time from the start of the command to the first record in a mirror (with new and with existing mirrors), and
the cost while a few partitions are written to: CPU, memory, and the latency of a record. `make bench-partitions`;
ARGS="--partitions 1000" for a smaller run, ARGS="--partitions 50000 --brokers 4" for a larger one;
ARGS="--partitions 100 --starts 5 --seconds 0" measures the start alone.
"""

import argparse
import asyncio
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from clusters import MANY_PARTITIONS, MANY_PARTITIONS_HEAP_MB, broker_spec, client_for, create_many
from processes import Tree

from heliograph.sandbox import Sandbox, SandboxCluster
from heliograph.wire.append import PartitionBatch, append
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.records import Record, encode

PER_TOPIC = 100
_PATIENCE = 120.0
# For each of several brokers.
_SMALLER_HEAP_MB = 1280
_SMALLER_INDEXES = {"log.index.size.max.bytes": "4096"}


async def _create(cluster: SandboxCluster, topics: int) -> None:
    client = client_for(cluster, _PATIENCE)
    await client.connect()
    await create_many(client, [f"many-{number}" for number in range(topics)], PER_TOPIC, timeout=_PATIENCE)
    client.close()


class Probe:
    """Writes a record to a source partition and waits for it in the mirror."""

    def __init__(self, source: SandboxCluster, target: SandboxCluster) -> None:
        self._source, self._target = client_for(source, _PATIENCE), client_for(target, _PATIENCE)

    async def end(self, mirror: str, partition: int) -> int:
        topics = (await self._target.metadata([mirror])).topics
        if topics[mirror].error or partition not in topics[mirror].leaders:
            return 0
        offsets = await list_offsets(self._target, topics, [(mirror, partition)], LATEST, False)
        offset = offsets[mirror, partition]
        return offset if isinstance(offset, int) else 0

    async def write(self, topic: str, partition: int) -> None:
        batch = encode([Record(0, int(time.time() * 1000), None, b"x" * 100)])
        while True:  # a broker names the leader of a new partition before that leader knows
            known = (await self._source.metadata([topic])).topics[topic]
            if partition in known.leaders:
                connection = await self._source.connection(known.leaders[partition])
                (answer,) = await append(connection, [PartitionBatch(topic, partition, [batch])], 30.0)
                if not answer.error:
                    return
            await asyncio.sleep(0.05)

    async def arrival(self, topic: str, partition: int, patience: float) -> float:
        """Returns the seconds from the write to its arrival."""
        before = await self.end(f"S.{topic}", partition)
        began = time.monotonic()
        await self.write(topic, partition)
        while await self.end(f"S.{topic}", partition) <= before:
            if time.monotonic() - began > patience:
                raise TimeoutError(f"{topic}-{partition} did not arrive within {patience} s")
            await asyncio.sleep(0.002)
        return time.monotonic() - began

    def close(self) -> None:
        self._source.close()
        self._target.close()


def _python_memory(process: psutil.Process) -> dict[str, int]:
    memory: dict[str, int] = {}
    for member in (process, *process.children(recursive=True)):
        kind = "Spark's JVM" if "java" in member.name() else "Python"
        memory[kind] = memory.get(kind, 0) + member.memory_full_info().pss
    return memory


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


async def _measure(
    folder: Path,
    source: SandboxCluster,
    target: SandboxCluster,
    topics: int,
    starts: int,
    seconds: float,
    settle: float,
) -> None:
    file = folder / "many.properties"
    file.write_text(
        f"clusters = S, T\nS.bootstrap.servers = {source.bootstrap}\nT.bootstrap.servers = {target.bootstrap}\n"
        "S->T.enabled = true\nS->T.topics = many-.*\nreplication.factor = 1\n"
        "request.timeout.ms = 120000\n"
    )
    began = time.monotonic()
    await _create(source, topics)
    _say(f"{topics * PER_TOPIC} source partitions created in {time.monotonic() - began:.1f} s")
    probe = Probe(source, target)
    await probe.write("many-0", 0)
    took = []
    for number in range(starts + 1):
        title = "with existing mirrors" if number else "with new mirrors"
        log = folder / "run.log"
        began = time.monotonic()
        with log.open("wb") as output:
            started = subprocess.Popen(
                [sys.executable, "-m", "heliograph", "run", str(file)], stdout=output, stderr=output
            )
        process = psutil.Process(started.pid)
        try:
            have = await probe.end("S.many-0", 0)
            if have:
                await probe.write("many-0", 0)
            while await probe.end("S.many-0", 0) <= have:
                if started.poll() is not None or time.monotonic() - began > 600:
                    raise SystemExit(log.read_text())
                await asyncio.sleep(0.05)
            took.append(time.monotonic() - began)
            _say(f"start to first copy, {title}: {took[-1]:.2f} s")
            last = await probe.arrival(f"many-{topics - 1}", PER_TOPIC - 1, 300.0)
            _say(f"  a record in the last partition, written afterwards: {last:.2f} s")
            if number == starts and seconds:
                await _steady(probe, process, topics, seconds, settle)
        finally:
            started.terminate()
            started.wait(60)
    if starts > 1:
        _say(f"median of {starts} starts with existing mirrors: {statistics.median(took[1:]):.2f} s")
    probe.close()


async def _steady(probe: Probe, process: psutil.Process, topics: int, seconds: float, settle: float) -> None:
    tree = Tree([process.pid])
    await asyncio.sleep(settle)
    began, cpu = time.monotonic(), tree.cpu()
    await asyncio.sleep(seconds / 2)
    spent = (tree.cpu() - cpu) / (time.monotonic() - began)
    _say(f"idle, {seconds / 2:.0f} s: {spent:.1%} of one core")
    began, cpu = time.monotonic(), tree.cpu()
    took = []
    number = 0
    while time.monotonic() - began < seconds:
        number += 1
        took.append(await probe.arrival(f"many-{number * 7 % topics}", number * 13 % PER_TOPIC, 60.0))
        await asyncio.sleep(0.2)
    spent = (tree.cpu() - cpu) / (time.monotonic() - began)
    memory = ", ".join(f"{kind} {size / 2**20:.0f} MB" for kind, size in _python_memory(process).items())
    _say(f"steady, 5 records per second to changing partitions, {seconds:.0f} s: {spent:.1%} of one core; {memory}")
    middle, worst = statistics.median(took), sorted(took)[int(len(took) * 0.99)]
    _say(f"  to the mirror: p50 {middle * 1000:.0f} ms, p99 {worst * 1000:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--starts", type=int, default=1, help="Starts with existing mirrors.")
    parser.add_argument("--seconds", type=float, default=60.0, help="How long records are written; 0: not at all.")
    parser.add_argument("--settle", type=float, default=25.0, help="Seconds before that: past the first lease.")
    parser.add_argument("--brokers", type=int, default=1, help="Of each cluster; one holds some 12 000 partitions.")
    options = parser.parse_args()
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="heliograph-", dir=memory if memory.is_dir() else None))
    try:
        with Sandbox(folder) as sandbox:
            heap, settings = MANY_PARTITIONS_HEAP_MB, MANY_PARTITIONS
            if options.brokers > 1:
                heap, settings = _SMALLER_HEAP_MB, _SMALLER_INDEXES
            spec = broker_spec(brokers=options.brokers, heap_mb=heap, gc="g1", settings=settings)
            source, target = sandbox.start({"source": spec, "target": spec})
            topics = max(1, options.partitions // PER_TOPIC)
            amounts = topics, options.starts, options.seconds, options.settle
            asyncio.run(_measure(folder, source, target, *amounts))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
