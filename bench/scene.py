"""The scene of the pictures in docs/: two clusters mirrored both ways, with load in waves, groups and some errors."""

import asyncio
import math
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from heliograph.model.flow import Cluster
from heliograph.sandbox import ClusterSpec, Sandbox
from heliograph.sandbox.ports import free_ports
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Committed, commit_offsets
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.topic_requests import NewTopic, create_topics

# Mean number of records in a tenth of a second.
_EAST = {"orders": 22, "payments": 12, "clicks": 60, "audit-log": 5, "customers": 2, "refunds": 1}
_WEST = {"inventory": 20, "shipments": 10, "returns": 3}
_VALUE = b"x" * 600
_WAVE = 75.0  # seconds from one peak to the next
_LIMIT = 700_000  # bytes per second of one flow: less than its peaks, so that something is behind
_STOPPED, _LOSING = "refunds", "audit-log"
_GROUPS = {"billing": "orders", "fraud-check": "payments", "reports": "clicks"}
_IN_USE = "billing"
_PAUSED_FOR = 12.0  # seconds


@dataclass(frozen=True)
class Scene:
    address: str  # of the REST API
    east: str
    west: str

    def write_to_a_mirror(self) -> None:
        """Another producer writes to a mirror; its partition is stopped."""
        with closing(KafkaProducer(bootstrap_servers=self.west)) as producer:
            producer.send(f"east.{_STOPPED}", b"not ours")

    def lose_records(self) -> None:
        """Records are deleted from the source while their topic is paused."""
        place = TopicPartition(_LOSING, 0)
        self._tell("pause")
        time.sleep(_PAUSED_FOR)
        with closing(KafkaConsumer(bootstrap_servers=self.east)) as reader:
            end = reader.end_offsets([place])[place]
        with closing(KafkaAdminClient(bootstrap_servers=self.east)) as admin:
            admin.delete_records({place: end})
        self._tell("resume")

    def _tell(self, command: str) -> None:
        rest = f"http://{self.address}"
        subprocess.run(heliograph(command, "east->west", "--topic", _LOSING, "--rest", rest), check=True)


def heliograph(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "heliograph", *map(str, arguments)]


@contextmanager
def playing() -> Iterator[Scene]:
    """Everything runs for as long as the block lasts."""
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        east, west = (cluster.bootstrap for cluster in sandbox.start({"east": ClusterSpec(), "west": ClusterSpec()}))
        time.sleep(2)  # a controller that is known
        asyncio.run(_create(east, [*_EAST]))
        asyncio.run(_create(west, [*_WEST]))
        for act in (
            lambda stop: _write(east, _EAST, stop),
            lambda stop: _write(west, _WEST, stop),
            lambda stop: asyncio.run(_commit(east, stop)),
            lambda stop: _read(west, stop),
        ):
            stack.enter_context(_going_on(act))
        file = folder / "mm2.properties"
        file.write_text(_properties(east, west))
        stack.enter_context(_running(heliograph("run", file, "--rest", address)))
        yield Scene(address, east, west)


def _properties(east: str, west: str) -> str:
    often = ("refresh.topics", "refresh.groups", "emit.checkpoints", "emit.heartbeats")
    return (
        f"clusters = east, west\neast.bootstrap.servers = {east}\nwest.bootstrap.servers = {west}\n"
        f"east->west.enabled = true\nwest->east.enabled = true\nreplication.factor = 1\ntasks.max = 2\n"
        f"sync.topic.acls.enabled = false\nsync.group.offsets.enabled = true\nheliograph.on.data.loss = continue\n"
        f"heliograph.max.bytes.per.second = {_LIMIT}\n" + "".join(f"{name}.interval.seconds = 2\n" for name in often)
    )


@contextmanager
def _going_on(act: Callable[[threading.Event], None]) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=act, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def _running(command: list[str]) -> Iterator[None]:
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _write(bootstrap: str, topics: dict[str, int], stop: threading.Event) -> None:
    begun = time.monotonic()
    with closing(KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20)) as producer:
        while not stop.wait(0.1):
            tide = 1 + 0.8 * math.sin(2 * math.pi * (time.monotonic() - begun) / _WAVE)
            for topic, count in topics.items():
                for _ in range(round(count * tide * random.uniform(0.5, 1.5))):
                    producer.send(topic, _VALUE)


def _read(bootstrap: str, stop: threading.Event) -> None:
    """A group with members on the target, whose offsets are therefore not synced."""
    topic = f"east.{_GROUPS[_IN_USE]}"
    with closing(
        KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=_IN_USE, metadata_max_age_ms=2000)
    ) as reader:
        while not stop.is_set():
            reader.poll(timeout_ms=500)


async def _commit(bootstrap: str, stop: threading.Event) -> None:
    """Groups on the source that keep up, without members."""
    client = _client(bootstrap)
    try:
        await client.connect()
        while not stop.is_set():
            topics = (await client.metadata([*_GROUPS.values()])).topics
            places = [(name, partition) for name, topic in topics.items() for partition in topic.leaders]
            ends = await list_offsets(client, topics, places, LATEST, False)
            wanted: dict[str, Any] = {
                group: {
                    place: Committed(end, "")
                    for place, end in ends.items()
                    if place[0] == topic and isinstance(end, int)
                }
                for group, topic in _GROUPS.items()
            }
            await commit_offsets(client, wanted)
            await asyncio.sleep(1.0)
    finally:
        client.close()


async def _create(bootstrap: str, topics: list[str]) -> None:
    client = _client(bootstrap)
    try:
        await client.connect()
        await create_topics(client, [NewTopic(name, 4, 1, ()) for name in topics])
    finally:
        client.close()


def _client(bootstrap: str) -> ClusterClient:
    host, port = bootstrap.split(":")
    return ClusterClient(Cluster("here", ((host, int(port)),)))
