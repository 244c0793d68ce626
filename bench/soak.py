"""A long run: memory stays flat, and no record is lost, repeated or stuck.

`make soak` mirrors for 30 minutes (MINUTES=5 for less): batches of 16 KB, thin batches and transactions, of which every
fifth is aborted, at a fixed rate, with retention on both sides. It samples the memory (PSS) of Heliograph's processes
every ten seconds. At the end every mirror must hold exactly what was written, and the memory in the last third of the
run must not exceed that in the second by more than a tenth. Otherwise the status is 1.
"""

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from clusters import broker_spec, client_for
from kafka import KafkaProducer

from heliograph.sandbox import Sandbox, SandboxCluster
from heliograph.wire.append import PartitionBatch, append
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.records import Record, encode
from heliograph.wire.topic_requests import NewTopic, create_topics

PARTITIONS = 4
GROWTH = 0.10
_SAMPLE_EVERY = 10.0
_LONG_ENOUGH = 180.0  # before that, memory still grows to its steady level
_RETENTION = (("retention.bytes", str(64 << 20)), ("segment.bytes", str(16 << 20)))
_TOPICS = ("plain", "thin", "transactions")


@dataclass(frozen=True)
class Sample:
    seconds: float
    python: int
    jvm: int
    cpu: float


async def _write(cluster: SandboxCluster, topic: str, per_batch: int, batches_per_second: float, until: float) -> int:
    """Writes batches to all partitions in turn at a fixed rate. Returns the number of records."""
    client = client_for(cluster)
    connection = await client.connection((await client.metadata([topic])).topics[topic].leaders[0])
    written = 0
    began = time.monotonic()
    for number in range(1 << 60):
        due = began + number / batches_per_second
        if due > until:
            break
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        now = int(time.time() * 1000)
        batch = encode([Record(0, now, None, bytes(64 + (number + m) % 26 for m in range(100)))] * per_batch)
        (answer,) = await append(connection, [PartitionBatch(topic, number % PARTITIONS, [batch])], 30.0)
        assert not answer.error, answer
        written += per_batch
    client.close()
    return written


def _write_transactions(cluster: SandboxCluster, topic: str, until: float, counted: list[int]) -> None:
    producer: Any = KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=uuid.uuid4().hex)
    producer.init_transactions()
    number = 0
    while time.monotonic() < until:
        number += 1
        producer.begin_transaction()
        for record in range(40):
            producer.send(topic, b"x" * 100, partition=record % PARTITIONS)
        producer.flush()
        if number % 5:
            producer.commit_transaction()
            counted.append(40)
        else:
            producer.abort_transaction()
        time.sleep(0.2)
    producer.close()


def _sample(process: psutil.Process, began: float) -> Sample:
    python = jvm = 0
    cpu = 0.0
    for member in (process, *process.children(recursive=True)):
        try:
            size = member.memory_full_info().pss
            cpu += sum(member.cpu_times()[:2])
        except psutil.NoSuchProcess:
            continue
        if "java" in member.name():
            jvm += size
        else:
            python += size
    return Sample(time.monotonic() - began, python, jvm, cpu)


async def _counts(cluster: SandboxCluster) -> dict[str, int]:
    client = client_for(cluster)
    mirrors = [f"S.{topic}" for topic in _TOPICS]
    topics = (await client.metadata(mirrors)).topics
    places = [(mirror, partition) for mirror in mirrors for partition in range(PARTITIONS)]
    ends = await list_offsets(client, topics, places, LATEST, False)
    client.close()
    return {
        topic: sum(end for (mirror, _p), end in ends.items() if mirror == f"S.{topic}" and isinstance(end, int))
        for topic in _TOPICS
    }


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def soak(folder: Path, seconds: float) -> bool:
    """Returns whether the run succeeded."""
    with Sandbox(folder) as sandbox:
        spec = broker_spec(heap_mb=512, settings={"log.retention.check.interval.ms": "10000"})
        source, target = sandbox.start({"source": spec, "target": spec})
        asyncio.run(_create(source))
        file = folder / "soak.properties"
        file.write_text(
            f"clusters = S, T\nS.bootstrap.servers = {source.bootstrap}\nT.bootstrap.servers = {target.bootstrap}\n"
            "S->T.enabled = true\nreplication.factor = 1\ntasks.max = 2\n"
        )
        log = folder / "run.log"
        with log.open("wb") as output:
            started = subprocess.Popen(
                [sys.executable, "-m", "heliograph", "run", str(file)], stdout=output, stderr=output
            )
        try:
            samples, written = asyncio.run(_run(source, psutil.Process(started.pid), seconds))
            status = _settle(file, target, written)
        finally:
            started.terminate()
            started.wait(60)
        return _judge(samples, written, asyncio.run(_counts(target)), status, log)


async def _create(source: SandboxCluster) -> None:
    client = client_for(source)
    await client.connect()
    await create_topics(client, [NewTopic(topic, PARTITIONS, 1, _RETENTION) for topic in _TOPICS])
    await asyncio.sleep(1.0)
    client.close()


async def _run(source: SandboxCluster, process: psutil.Process, seconds: float) -> tuple[list[Sample], dict[str, int]]:
    began = time.monotonic()
    until = began + seconds
    counted: list[int] = []
    transactions = threading.Thread(target=_write_transactions, args=(source, "transactions", until, counted))
    transactions.start()
    writers = [
        asyncio.create_task(_write(source, "plain", 143, 300.0, until)),
        asyncio.create_task(_write(source, "thin", 1, 300.0, until)),
    ]
    samples = []
    while time.monotonic() < until:
        await asyncio.sleep(min(_SAMPLE_EVERY, max(1.0, seconds / 10)))
        samples.append(_sample(process, began))
        now = samples[-1]
        _say(
            f"{now.seconds:6.0f} s   Python {now.python >> 20:4d} MB   JVM {now.jvm >> 20:4d} MB   CPU {now.cpu:6.1f} s"
        )
    plain, thin = await asyncio.gather(*writers)
    await asyncio.to_thread(transactions.join)
    return samples, {"plain": plain, "thin": thin, "transactions": sum(counted)}


def _settle(file: Path, target: SandboxCluster, written: dict[str, int]) -> dict[str, Any]:
    """Waits until everything has arrived and Heliograph's status says so. Returns that status."""
    deadline = time.monotonic() + 60
    while asyncio.run(_counts(target)) != written and time.monotonic() < deadline:
        time.sleep(0.5)
    while True:
        status = _status(file)
        has_all = (status.get("lag"), status.get("records")) == (0, sum(written.values()))
        if has_all or time.monotonic() > deadline:
            return status
        time.sleep(2.0)  # a status is written every five seconds


def _status(file: Path) -> dict[str, Any]:
    seen = subprocess.run(
        [sys.executable, "-m", "heliograph", "status", str(file), "--json"], capture_output=True, text=True, check=False
    )
    (flow,) = json.loads(seen.stdout)
    return dict(flow)


def _judge(
    samples: list[Sample], written: dict[str, int], copied: dict[str, int], status: dict[str, Any], log: Path
) -> bool:
    third = len(samples) // 3
    middle, last = samples[third : 2 * third] or samples, samples[2 * third :] or samples
    problems = []
    for kind in ("python", "jvm"):
        before = statistics.median(getattr(sample, kind) for sample in middle)
        after = statistics.median(getattr(sample, kind) for sample in last)
        _say(f"{kind}: {before / 2**20:.0f} MB in the second third, {after / 2**20:.0f} MB in the last")
        if after > before * (1 + GROWTH) and samples[-1].seconds >= _LONG_ENOUGH:
            problems.append(f"memory of {kind} has grown by {after / before - 1:.0%}")
    _say(f"written {written}, copied {copied}, CPU {samples[-1].cpu / samples[-1].seconds:.1%} of one core")
    if written != copied:
        problems.append("the mirrors do not hold what was written")
    if status.get("lag") != 0 or status.get("events") or status.get("refusals"):
        problems.append(f"status: {status}")
    if "Traceback" in log.read_text():
        problems.append(f"a stack trace in the log: {log.read_text()[-2000:]}")
    for problem in problems:
        _say(f"NOT WELL: {problem}")
    return not problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    options = parser.parse_args()
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="heliograph-", dir=memory if memory.is_dir() else None))
    try:
        sys.exit(0 if soak(folder, options.minutes * 60) else 1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
