"""The two clusters of a benchmark: real brokers with their data in memory, their topics, and the ends of partitions.

Each cluster is one broker on this machine. Therefore batch headers can be counted in the broker's own files
(`logfiles`), and a topic counts as deleted when its files are gone.
"""

import asyncio
import os
import struct
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka.protocol.admin import IncrementalAlterConfigsRequest

from heliograph.model.flow import Cluster
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from heliograph.sandbox.ports import free_ports
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.errors import BrokerError
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.topic_requests import NewTopic, create_topics, delete_topics

BROKER = 1
FAR = "FAR"
HEAP_MB = 1024

_LIST_OFFSETS = 2
_LIST_OFFSETS_VERSION = 2
_COUNT = struct.Struct(">i")
_NAME_LENGTH = struct.Struct(">h")
_PARTITION_ASKED = struct.Struct(">iq")
_PARTITION_ANSWERED = struct.Struct(">ihqq")
_TOPIC = 2  # resource type of a config
_SET, _DELETE = 0, 1

# Each partition has index files of 10 MB, sparse on most file systems but not in memory.
MANY_PARTITIONS = {"log.index.size.max.bytes": "65536"}
MANY_PARTITIONS_HEAP_MB = 2048

_SETTINGS = {
    # Deleted files must be gone before the next run, not in the middle of it.
    "log.segment.delete.delay.ms": "500",
    "log.initial.task.delay.ms": "1000",
}
# The whole map of keys of a partition has to fit for the log to be compacted in one pass.
_SOURCE_SETTINGS = {"log.cleaner.dedupe.buffer.size": str(128 * 1024 * 1024), "log.cleaner.backoff.ms": "500"}

# Security also means ACLs in a sandbox. Here it means TLS only: other workloads run on the same brokers.
_WITHOUT_ACLS = {"authorizer.class.name": ""}

_PARTITIONS_AT_ONCE = 1000  # in one request to create topics
_TOPICS_AT_ONCE = 200


class Trouble(Exception):
    """The benchmark itself failed, not one of the tools."""


@dataclass(frozen=True)
class Pair:
    """`far_port`: where clients are to find the source's listener FAR, for a proxy in between; None without one."""

    source: SandboxCluster
    target: SandboxCluster
    far_port: int | None = None

    def broker_pids(self) -> list[int]:
        return [*self.source.pids().values(), *self.target.pids().values()]


def starts_fast() -> bool:
    """With FAST_START in the environment JVMs start sooner and are slower: for the short versions in tests."""
    return "FAST_START" in os.environ


def broker_spec(**spec: Any) -> ClusterSpec:
    return ClusterSpec(fast_start=starts_fast(), **spec)


@contextmanager
def started(
    with_far_listener: bool = False, with_tls: bool = False, many_partitions: bool = False
) -> Iterator[tuple[Sandbox, Pair]]:
    """Both clusters for as long as the block lasts, in memory where there is /dev/shm, else on disk."""
    with _temporary_files_in(Path("/dev/shm")):
        sandbox = Sandbox()
    with sandbox:
        flags = (f"-Djava.io.tmpdir={sandbox.folder}",)
        heap = MANY_PARTITIONS_HEAP_MB if many_partitions else HEAP_MB
        settings = _SETTINGS | (MANY_PARTITIONS if many_partitions else {})
        specs = {
            "source": broker_spec(heap_mb=heap, gc="g1", settings=settings | _SOURCE_SETTINGS, jvm_flags=flags),
            "target": broker_spec(heap_mb=heap, gc="g1", settings=settings, jvm_flags=flags),
        }
        if with_tls:
            specs = {alias: _with_tls(spec) for alias, spec in specs.items()}
        far_port = None
        if with_far_listener:
            specs["source"], far_port = _with_far_listener(specs["source"])
        source, target = sandbox.start(specs)
        yield sandbox, Pair(source, target, far_port)


def _with_far_listener(spec: ClusterSpec) -> tuple[ClusterSpec, int]:
    """One more listener, which the broker advertises at another port than its own. Returns that port as well."""
    (far_port,) = free_ports(1)
    return replace(spec, listeners={FAR: "PLAINTEXT"}, advertised_ports={FAR: (far_port,)}), far_port


def _with_tls(spec: ClusterSpec) -> ClusterSpec:
    """A TLS listener beside the plaintext one."""
    return replace(spec, security=("tls",), settings={**spec.settings, **_WITHOUT_ACLS})


@contextmanager
def _temporary_files_in(folder: Path) -> Iterator[None]:
    before = os.environ.get("TMPDIR")
    if folder.is_dir():
        os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("TMPDIR", None)
        else:
            os.environ["TMPDIR"] = before


def data(cluster: SandboxCluster) -> Path:
    """The folder of the broker's partitions."""
    return cluster.folder(BROKER) / "data"


def client_for(cluster: SandboxCluster, timeout: float = 30.0) -> ClusterClient:
    addresses = [address.split(":") for address in cluster.bootstrap.split(",")]
    return ClusterClient(Cluster("bench", tuple((host, int(port)) for host, port in addresses), "bench", timeout))


@asynccontextmanager
async def client_of(cluster: SandboxCluster, timeout: float = 30.0) -> AsyncIterator[ClusterClient]:
    client = client_for(cluster, timeout)
    try:
        await client.connect()
        yield client
    finally:
        client.close()


async def create(
    client: ClusterClient, topic: str, partitions: int, configs: Sequence[tuple[str, str]] = (), timeout: float = 60
) -> None:
    """A new topic, ready to be written to."""
    await create_many(client, [topic], partitions, configs, timeout)


async def create_many(
    client: ClusterClient,
    topics: Sequence[str],
    partitions: int,
    configs: Sequence[tuple[str, str]] = (),
    timeout: float = 60,
) -> None:
    """New topics with as many partitions each, ready to be written to."""
    at_once = min(_TOPICS_AT_ONCE, max(1, _PARTITIONS_AT_ONCE // partitions))
    for start in range(0, len(topics), at_once):
        some = [NewTopic(topic, partitions, 1, tuple(configs)) for topic in topics[start : start + at_once]]
        for topic, error in (await create_topics(client, some)).items():
            if error is not None:
                raise Trouble(f"topic {topic} cannot be created: {error}")
    places = [(topic, partition) for topic in topics for partition in range(partitions)]
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        known = (await client.metadata(topics)).topics
        offsets = await list_offsets(client, known, places, LATEST, False)
        missing = {topic for (topic, _), offset in offsets.items() if not isinstance(offset, int)}
        if not missing:
            return
        await asyncio.sleep(0.05)
    raise Trouble(f"topic {min(missing)} has no leaders {timeout:g} s after it was created")


async def alter(client: ClusterClient, topic: str, changes: Mapping[str, str | None]) -> None:
    """Changes settings of a topic; None resets one to its default."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    settings = [
        resource.AlterableConfig(name=name, config_operation=_DELETE if value is None else _SET, value=value)
        for name, value in changes.items()
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=_TOPIC, resource_name=topic, configs=settings)], validate_only=False
    )
    (answer,) = (await (await client.controller()).request(request)).responses
    if answer.error_code:
        raise BrokerError(answer.error_code, answer.error_message)


async def clear(cluster: SandboxCluster, keep: Collection[str] = (), timeout: float = 120) -> None:
    """Deletes all topics except Kafka's own and those to keep, and waits until their files are gone."""
    async with client_of(cluster) as client:
        names = (await client.metadata(None)).topics
        doomed = [name for name in names if not name.startswith("__") and name not in keep]
        if doomed:
            await delete_topics(client, doomed)
    deadline = time.monotonic() + timeout
    while left := [path for path in data(cluster).iterdir() if path.is_dir() and _doomed(path.name, keep)]:
        if time.monotonic() > deadline:
            raise Trouble(f"{len(left)} partitions are still there {timeout:g} s after they were deleted")
        await asyncio.sleep(0.2)


def _doomed(folder: str, keep: Collection[str]) -> bool:
    topic = folder.rpartition("-")[0]
    return bool(topic) and not folder.startswith("__") and topic not in keep


class Ends:
    """The end offsets of the partitions of topics with as many each, 0 for those that do not exist.

    The request is encoded once and the answer of a topic read with two calls: asking for a thousand partitions fifty
    times a second must not take CPU time from what is measured.
    """

    def __init__(self, connection: Connection, topics: Sequence[str], partitions: int, committed: bool = False) -> None:
        self._connection = connection
        asked = b"".join(_PARTITION_ASKED.pack(partition, LATEST) for partition in range(partitions))
        parts = [struct.pack(">ibi", -1, int(committed), len(topics))]
        for name in (topic.encode() for topic in topics):
            parts += [struct.pack(f">h{len(name)}si", len(name), name, partitions), asked]
        self._request = b"".join(parts)

    async def total(self) -> int:
        return sum(await self._connection.send_parts(_LIST_OFFSETS, _LIST_OFFSETS_VERSION, [self._request], self._read))

    def _read(self, frame: memoryview) -> list[int]:
        offsets: list[int] = []
        (topics,) = _COUNT.unpack_from(frame, _COUNT.size)  # after the throttle time
        at = 2 * _COUNT.size
        for _ in range(topics):
            (name,) = _NAME_LENGTH.unpack_from(frame, at)
            at += _NAME_LENGTH.size + name
            (partitions,) = _COUNT.unpack_from(frame, at)
            at += _COUNT.size
            end = at + partitions * _PARTITION_ANSWERED.size
            offsets += [max(0, offset) for _, _, _, offset in _PARTITION_ANSWERED.iter_unpack(frame[at:end])]
            at = end
        return offsets
