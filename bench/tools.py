"""What is compared: Heliograph, MirrorMaker 2 and a copier on franz-go, each as a command.

Heliograph and MirrorMaker 2 read an mm2.properties; MM2 has three variants:

- `mm2` has the defaults, except two tasks, as many as there are cores.
- `mm2-tuned` has what tuning guides advise: batches of 320 KB (the producer's default is 16 KB), a linger, more memory,
  larger fetches and polls. It has one task: on two cores shared with the brokers 1, 2 and 4 tasks copied 259 k, 201 k
  and 154 k records/s (workload 1, 2 million records, a single run of each). What larger polls, `fetch.min.bytes` and
  more requests in flight changed was lost in the noise of that machine; they are left out.
- `mm2-eos` is the same with exactly-once support, which is the guarantee that Heliograph gives. A poll is a transaction
  there, hence larger polls; and two tasks, as 1 and 2 copied 128 k and 155 k records/s (a single run of each, too).

`franz-go` is a copier of our own on the fastest Kafka client of another language, see `franz_go`.

MM2 silently accepts settings that have no effect. Therefore each variant names the settings that its clients must log,
and a run without them is a failure.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

import franz_go
from clusters import starts_fast
from workloads import Workload

from heliograph.sandbox.mirrormaker import mirror_maker_command

TARGET = "B"
MM2_HEAP_MB = 1024

_FRANZ_GO_BATCH = 900_000  # bytes, below the limit of 1 MB that topics have by default

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
class Flow:
    """One direction: aliases of both clusters, the settings with which clients connect to them, and the topic."""

    source: str
    target: str
    source_client: Mapping[str, str]
    target_client: Mapping[str, str]
    topic: str

    @property
    def mirror(self) -> str:
        return f"{self.source}.{self.topic}"


class Kind(Enum):
    """The program that a tool is a variant of."""

    HELIOGRAPH = auto()
    MIRROR_MAKER = auto()
    FRANZ_GO = auto()


@dataclass(frozen=True)
class Tool:
    """A mirror under test. `producer` and `consumer` are the settings of MM2's clients of records. `settings` are other
    lines of the file."""

    key: str
    title: str
    tasks: int
    kind: Kind
    producer: tuple[tuple[str, str], ...] = ()
    consumer: tuple[tuple[str, str], ...] = ()
    exactly_once: bool = False
    settings: tuple[tuple[str, str], ...] = ()

    def runs(self, workload: Workload) -> bool:
        return self.kind is not Kind.HELIOGRAPH or self.tasks == 1 or workload.two_tasks


_TUNED_PRODUCER = (
    ("batch.size", "327680"),
    ("linger.ms", "100"),
    ("buffer.memory", str(128 * 1024 * 1024)),
    ("max.request.size", str(4 * 1024 * 1024)),
)
_TUNED_CONSUMER = (("max.partition.fetch.bytes", str(4 * 1024 * 1024)), ("max.poll.records", "2000"))
_EXACTLY_ONCE_CONSUMER = (("max.partition.fetch.bytes", str(4 * 1024 * 1024)), ("max.poll.records", "5000"))

TOOLS = (
    Tool("heliograph", "Heliograph, defaults", 1, Kind.HELIOGRAPH),
    Tool("heliograph-2", "Heliograph, 2 tasks", 2, Kind.HELIOGRAPH),
    Tool("franz-go", "franz-go", 1, Kind.FRANZ_GO),
    Tool("mm2", "MirrorMaker 2, defaults", 2, Kind.MIRROR_MAKER),
    Tool("mm2-tuned", "MirrorMaker 2, tuned", 1, Kind.MIRROR_MAKER, producer=_TUNED_PRODUCER, consumer=_TUNED_CONSUMER),
    Tool(
        "mm2-eos",
        "MirrorMaker 2, exactly once",
        2,
        Kind.MIRROR_MAKER,
        producer=_TUNED_PRODUCER,
        consumer=_EXACTLY_ONCE_CONSUMER,
        exactly_once=True,
    ),
)


def heliograph_with(number: int, settings: str) -> Tool:
    """A variant of Heliograph with these settings: `name=value name=value`."""
    pairs = tuple((name, value) for name, _, value in (pair.partition("=") for pair in settings.split()))
    return Tool(f"heliograph-with-{number}", f"Heliograph, {settings}", 1, Kind.HELIOGRAPH, settings=pairs)


def properties(tool: Tool, workload: Workload, flows: Sequence[Flow]) -> str:
    """The file that Heliograph and MirrorMaker 2 read: one flow, or the two between a pair of clusters."""
    first = flows[0]
    lines = [
        f"clusters = {first.source}, {first.target}",
        *(f"{first.source}.{name} = {value}" for name, value in first.source_client.items()),
        *(f"{first.target}.{name} = {value}" for name, value in first.target_client.items()),
        f"tasks.max = {tool.tasks}",
        *(f"{name}replication.factor = 1" for name in _FACTORS),
        *(f"{name} = {value}" for name, value in tool.settings),
    ]
    if len(flows) == 1:
        lines.append(f"{first.target}->{first.source}.emit.heartbeats.enabled = false")
    for flow in flows:
        lines += [
            f"{flow.source}->{flow.target}.enabled = true",
            f"{flow.source}->{flow.target}.topics = {flow.topic}",
        ]
        if tool.kind is Kind.MIRROR_MAKER:
            lines += [f"{flow.target}.producer.{name} = {value}" for name, value in _producer(tool, workload)]
            lines += [f"{flow.source}.consumer.{name} = {value}" for name, value in _consumer(tool, workload)]
        if tool.exactly_once:
            lines.append(f"{flow.target}.exactly.once.source.support = enabled")
    if tool.exactly_once:
        lines += ["dedicated.mode.enable.internal.rest = true", "listeners = http://127.0.0.1:0"]
    return "\n".join([*lines, ""])


def command(tool: Tool, workload: Workload, flows: Sequence[Flow], file: Path) -> list[str]:
    """The command of a tool; its files are next to its properties."""
    match tool.kind:
        case Kind.HELIOGRAPH:
            return [sys.executable, "-m", "heliograph", "run", str(file)]
        case Kind.MIRROR_MAKER:
            flags = (*_MM2_FLAGS, "-XX:TieredStopAtLevel=1") if starts_fast() else _MM2_FLAGS
            return mirror_maker_command(file, heap_mb=MM2_HEAP_MB, gc="g1", flags=flags, levels=_LEVELS)
        case Kind.FRANZ_GO:
            copies = [(*_addresses(flow), flow.topic, flow.mirror) for flow in flows]
            batch = workload.max_message_bytes or _FRANZ_GO_BATCH
            authorities = flows[0].source_client.get("ssl.truststore.location")  # of both clusters
            return franz_go.command(copies, workload.compression, workload.committed, batch, authorities)


def _addresses(flow: Flow) -> tuple[str, str]:
    return flow.source_client["bootstrap.servers"], flow.target_client["bootstrap.servers"]


def without_effect(tool: Tool, workload: Workload, log: str) -> list[str]:
    """The settings that did not reach MM2's clients, according to its log."""
    if tool.kind is not Kind.MIRROR_MAKER:
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
        if workload.tls:
            yield Said(_PRODUCER, writer, "security.protocol", "SSL")
            yield Said(_CONSUMER, reader, "security.protocol", "SSL")
        if tool.exactly_once:
            yield Said(_PRODUCER, writer, "transactional.id", "*")
            yield Said(_PRODUCER, writer, "enable.idempotence", "true")
    if tool.exactly_once:
        yield Said(_WORKER, "", "exactly.once.source.support", "enabled")


def _producer(tool: Tool, workload: Workload) -> tuple[tuple[str, str], ...]:
    settings = dict(tool.producer)
    if settings and workload.compression != "none":
        settings["compression.type"] = workload.compression
    if workload.max_message_bytes:
        # Without it a producer rejects records that the topic accepts, whatever else it is tuned for.
        settings.setdefault("max.request.size", str(workload.max_message_bytes))
    return tuple(settings.items())


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
