"""The first measurement: how fast Heliograph and MirrorMaker 2 copy the same topic, one after the other.

`make measure` starts two fresh clusters, writes records of 100 bytes in batches of 16 KB, and lets both tools mirror
them with their defaults. Measured is the copying itself: from the first record in the mirror to the last. The clusters
keep their data in memory where there is /dev/shm, so that the disk is not what is measured. CPU is that of the
mirroring processes in that time: Spark's JVM and all workers, or MM2's JVM.
"""

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from heliograph.model.flow import Cluster
from heliograph.sandbox import DEFAULT_VERSION, ClusterSpec, Sandbox, classpath, kafka_jars
from heliograph.sandbox import Cluster as SandboxCluster
from heliograph.wire.append import Appended, append
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.records import Record, encode
from heliograph.wire.topics import NewTopic, create_topics, delete_topics

TOPIC = "bench"
PARTITIONS = 6
_MM2 = "org.apache.kafka.connect.mirror.MirrorMaker"
PER_BATCH = 143  # 100-byte values in a batch of 16 KB, a producer's default batch.size


@dataclass(frozen=True)
class Result:
    tool: str
    records: int
    seconds: float
    cpu: float

    def __str__(self) -> str:
        per_million = self.cpu / self.records * 1e6
        rate = f"{self.records / self.seconds:>12,.0f} records/s"
        return f"{self.tool:<32} {rate}   {per_million:6.2f} core-seconds per million records"


def _client(cluster: SandboxCluster) -> ClusterClient:
    host, _, port = cluster.bootstrap.partition(":")
    return ClusterClient(Cluster("bench", ((host, int(port)),)))


async def _write(cluster: SandboxCluster, topic: str, records: int) -> float:
    """Append as fast as the cluster takes it, from memory; the time that took."""
    client = _client(cluster)
    await client.connect()
    await create_topics(client, [NewTopic(topic, PARTITIONS, 1)])
    await asyncio.sleep(1.0)
    leader = (await client.metadata([topic])).topics[topic].leaders[0]
    connection = await client.to(leader)
    now = int(time.time() * 1000)
    batch = encode([Record(0, now, None, bytes(64 + (n + m) % 26 for m in range(100))) for n in range(PER_BATCH)])
    under_way: list[asyncio.Future[list[Appended]]] = []
    began = time.monotonic()
    for _ in range(records // PER_BATCH // PARTITIONS):
        under_way.append(append(connection, [(topic, p, [batch]) for p in range(PARTITIONS)], 30.0))
        if len(under_way) >= 5:
            await under_way.pop(0)
    await asyncio.gather(*under_way)
    took = time.monotonic() - began
    client.close()
    return took


async def _delete(cluster: SandboxCluster, topic: str) -> None:
    client = _client(cluster)
    await delete_topics(client, [topic])
    client.close()


async def _end(client: ClusterClient, topic: str) -> int:
    topics = (await client.metadata([topic])).topics
    places = [(topic, partition) for partition in topics[topic].leaders]
    ends = await list_offsets(client, topics, places, LATEST, False)
    return sum(end for end in ends.values() if isinstance(end, int))


def _cpu(process: psutil.Process) -> float:
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            times = one.cpu_times()
            total += times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return total


async def _watch(tool: str, process: psutil.Process, target: SandboxCluster, mirror: str, goal: int) -> Result:
    client = _client(target)
    while (start := await _end(client, mirror)) == 0:
        await asyncio.sleep(0.01)
    began, cpu = time.monotonic(), _cpu(process)
    while (end := await _end(client, mirror)) < goal:
        await asyncio.sleep(0.02)
    result = Result(tool, end - start, time.monotonic() - began, _cpu(process) - cpu)
    client.close()
    return result


def _run(tool: str, command: Sequence[str], log: Path, target: SandboxCluster, mirror: str, goal: int) -> Result:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        return asyncio.run(_watch(tool, psutil.Process(process.pid), target, mirror, goal))
    finally:
        process.terminate()
        process.wait(30)


def _properties(alias: str, tasks: int, source: SandboxCluster, target: SandboxCluster) -> str:
    factors = ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.")
    stores = ("offset.storage.", "status.storage.", "config.storage.")
    return "\n".join(
        [
            f"clusters = {alias}, B",
            f"{alias}.bootstrap.servers = {source.bootstrap}",
            f"B.bootstrap.servers = {target.bootstrap}",
            f"{alias}->B.enabled = true",
            f"{alias}->B.topics = {TOPIC}",
            f"B->{alias}.emit.heartbeats.enabled = false",
            f"tasks.max = {tasks}",
            *(f"{name}replication.factor = 1" for name in factors),
            *(f"{name}replication.factor = 1" for name in stores),
        ]
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="heliograph-", dir=memory if memory.is_dir() else None))
    try:
        _measure(folder, options.records, options.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(folder: Path, records: int, rounds: int) -> None:
    jars = classpath(kafka_jars(DEFAULT_VERSION, "connect-mirror"), kafka_jars(DEFAULT_VERSION))
    with Sandbox(folder) as sandbox:
        spec = ClusterSpec(heap_mb=1024, gc="g1")
        source, target = sandbox.start({"source": spec, "target": spec})
        goal = records // PER_BATCH // PARTITIONS * PER_BATCH * PARTITIONS
        for number in range(2):  # a broker's JVM takes some millions of records to get up to speed
            for cluster in (source, target):
                asyncio.run(_write(cluster, f"warm-up-{number}", records // 2))
                asyncio.run(_delete(cluster, f"warm-up-{number}"))
        asyncio.run(_write(source, TOPIC, records))
        for number in range(1, rounds + 1):
            ceiling = asyncio.run(_write(target, f"ceiling-{number}", records))
            asyncio.run(_delete(target, f"ceiling-{number}"))
            _say(f"{'produce only, from memory':<32} {goal / ceiling:>12,.0f} records/s")
            for tool, tasks, command in (
                ("Heliograph, defaults, 1 task", 1, [sys.executable, "-m", "heliograph", "run"]),
                ("MirrorMaker 2, defaults, 2 tasks", 2, ["java", "-cp", jars, _MM2]),
            ):
                alias = f"{tool[0]}{tasks}-{number}"
                file = sandbox.folder / f"{alias}.properties"
                file.write_text(_properties(alias, tasks, source, target))
                log = sandbox.folder / f"{alias}.log"
                _say(str(_run(tool, [*command, str(file)], log, target, f"{alias}.{TOPIC}", goal)))
                asyncio.run(_delete(target, f"{alias}.{TOPIC}"))


main()
