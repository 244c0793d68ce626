"""What is compared: Heliograph and MirrorMaker 2, each as an mm2.properties and a command, and MM2 in three variants.

- `mm2` has the defaults, except two tasks, as many as there are cores.
- `mm2-tuned` has what tuning guides advise: batches of 320 KB (the producer's default is 16 KB), a linger, more memory,
  larger fetches and polls. It has one task: on two cores shared with the brokers 1, 2 and 4 tasks copied 259 k, 201 k
  and 154 k records/s (workload 1, 2 million records, a single run of each). What larger polls, `fetch.min.bytes` and
  more requests in flight changed was lost in the noise of that machine; they are left out.
- `mm2-eos` is the same with exactly-once support, which is the guarantee that Heliograph gives. A poll is a transaction
  there, hence larger polls; and two tasks, as 1 and 2 copied 128 k and 155 k records/s (a single run of each, too).

MM2 silently accepts settings that have no effect. Therefore each variant names the settings that its clients must log,
and a run without them is a failure.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workloads import Workload

from heliograph.sandbox.mirrormaker import mirror_maker_command

TARGET = "B"
MM2_HEAP_MB = 1024

# Its clients log their settings at this level.
_LEVELS = {"org.apache.kafka.common.config.AbstractConfig": "info"}
# The garbage collector's settings of Kafka's own start script.
_MM2_FLAGS = (
    "-Xms256m",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
_FACTORS = (
    "",
    "checkpoints.topic.",
    "heartbeats.topic.",
    "offset-syncs.topic.",
    "offset.storage.",
    "status.storage.",
    "config.storage.",
)
_PRODUCER, _CONSUMER, _WORKER = "ProducerConfig", "ConsumerConfig", "DistributedConfig"


@dataclass(frozen=True)
class Said:
    """A setting that one of MM2's clients must name in the log when it starts."""

    config: str
    client: str
    name: str
    value: str


@dataclass(frozen=True)
class Tool:
    """A mirror under test. `producer` and `consumer` are the settings of MM2's clients of records."""

    key: str
    title: str
    tasks: int
    mm2: bool = True
    producer: tuple[tuple[str, str], ...] = ()
    consumer: tuple[tuple[str, str], ...] = ()
    exactly_once: bool = False

    def runs(self, workload: Workload) -> bool:
        return self.mm2 or self.tasks == 1 or workload.two_tasks


_TUNED_PRODUCER = (
    ("batch.size", "327680"),
    ("linger.ms", "100"),
    ("buffer.memory", str(128 * 1024 * 1024)),
    ("max.request.size", str(4 * 1024 * 1024)),
)
_TUNED_CONSUMER = (("max.partition.fetch.bytes", str(4 * 1024 * 1024)), ("max.poll.records", "2000"))
_EXACTLY_ONCE_CONSUMER = (("max.partition.fetch.bytes", str(4 * 1024 * 1024)), ("max.poll.records", "5000"))

TOOLS = (
    Tool("heliograph", "Heliograph, defaults", 1, mm2=False),
    Tool("heliograph-2", "Heliograph, 2 tasks", 2, mm2=False),
    Tool("mm2", "MirrorMaker 2, defaults", 2),
    Tool("mm2-tuned", "MirrorMaker 2, tuned", 1, producer=_TUNED_PRODUCER, consumer=_TUNED_CONSUMER),
    Tool(
        "mm2-eos",
        "MirrorMaker 2, exactly once",
        2,
        producer=_TUNED_PRODUCER,
        consumer=_EXACTLY_ONCE_CONSUMER,
        exactly_once=True,
    ),
)


def properties(tool: Tool, alias: str, workload: Workload, topic: str, source: str, target: str) -> str:
    """The file that both tools read: one flow, from the alias to B."""
    lines = [
        f"clusters = {alias}, {TARGET}",
        f"{alias}.bootstrap.servers = {source}",
        f"{TARGET}.bootstrap.servers = {target}",
        f"{alias}->{TARGET}.enabled = true",
        f"{alias}->{TARGET}.topics = {topic}",
        f"{TARGET}->{alias}.emit.heartbeats.enabled = false",
        f"tasks.max = {tool.tasks}",
        *(f"{name}replication.factor = 1" for name in _FACTORS),
    ]
    if tool.mm2:
        lines += [f"{TARGET}.producer.{name} = {value}" for name, value in _producer(tool, workload)]
        lines += [f"{alias}.consumer.{name} = {value}" for name, value in _consumer(tool, workload)]
    if tool.exactly_once:
        lines += [
            f"{TARGET}.exactly.once.source.support = enabled",
            "dedicated.mode.enable.internal.rest = true",
            "listeners = http://127.0.0.1:0",
        ]
    return "\n".join([*lines, ""])


def command(tool: Tool, file: Path) -> list[str]:
    """The command of a tool; its files are next to its properties."""
    if not tool.mm2:
        return [sys.executable, "-m", "heliograph", "run", str(file)]
    return mirror_maker_command(file, heap_mb=MM2_HEAP_MB, gc="g1", flags=_MM2_FLAGS, levels=_LEVELS)


def without_effect(tool: Tool, workload: Workload, log: str) -> list[str]:
    """The settings that did not reach MM2's clients, according to its log."""
    if not tool.mm2:
        return []
    blocks = list(_blocks(log))
    return [
        f"{expected.name} = {expected.value} of the {expected.config}"
        for expected in _expected_in_log(tool, workload)
        if not any(_says(block, expected) for block in blocks)
    ]


def _expected_in_log(tool: Tool, workload: Workload) -> Iterator[Said]:
    for task in range(min(tool.tasks, workload.partitions)):
        writer, reader = f"MirrorSourceConnector-{task}", f"MirrorSourceConnector-{task}|replication-consumer"
        for name, value in _producer(tool, workload):
            yield Said(_PRODUCER, writer, name, value)
        for name, value in _consumer(tool, workload):
            yield Said(_CONSUMER, reader, name, value)
        if tool.exactly_once:
            yield Said(_PRODUCER, writer, "transactional.id", "*")
            yield Said(_PRODUCER, writer, "enable.idempotence", "true")
    if tool.exactly_once:
        yield Said(_WORKER, "", "exactly.once.source.support", "enabled")


def _producer(tool: Tool, workload: Workload) -> tuple[tuple[str, str], ...]:
    if not tool.producer or workload.compression == "none":
        return tool.producer
    return (*tool.producer, ("compression.type", workload.compression))


def _consumer(tool: Tool, workload: Workload) -> tuple[tuple[str, str], ...]:
    if tool.exactly_once or workload.committed:
        return (*tool.consumer, ("isolation.level", "read_committed"))
    return tool.consumer


def _blocks(log: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each list of settings in a log: kind of client, and its settings."""
    for match in re.finditer(r"(\w+Config) values: ?\n((?:\t.*\n)+)", log):
        pairs = (line.strip().partition(" = ") for line in match[2].splitlines())
        yield match[1], {name: value for name, _, value in pairs}


def _says(block: tuple[str, dict[str, str]], wanted: Said) -> bool:
    config, values = block
    value = values.get(wanted.name, "null")
    fits = value != "null" if wanted.value == "*" else value == wanted.value
    return config == wanted.config and values.get("client.id", "").endswith(wanted.client) and fits
