"""Clusters with the same topics and groups for two tools that run the same file, and what each tool makes of them.

All that a tool creates is described in lines of text, so that two results compare as sets and a difference can be read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from heliograph.config import load
from heliograph.control.mm2_offsets import offsets_topic
from heliograph.control.mm2_workers import workers_group
from heliograph.model.flow import Cluster
from heliograph.model.mm2_records import BadRecord, Checkpoint, Heartbeat, OffsetSync
from heliograph.model.policy import HEARTBEATS
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Committed, commit_offsets, committed_offsets, delete_groups, list_groups
from heliograph.wire.errors import WireError
from heliograph.wire.metadata import Topic
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.records import read_all, write
from heliograph.wire.topic_requests import NewTopic, create_topics, delete_topics, describe_configs
from logs import Log, on
from waiting import async_until

_RECORDS = 10
# `@` is the letter of the cluster: topics of two clusters have different names, so that Identity can copy both ways.
_TOPICS = {
    "orders-@": 2,
    "orders.@.v1": 1,
    "orders_@": 1,
    "numbers-@-12": 1,
    "numbers-@-x": 1,
    "secret-@": 3,
    "BIG-@": 1,
    "A.from-A-on-@": 1,
    "B.from-B-on-@": 1,
    "x.A.from-A-by-x-on-@": 1,
    "@.replica": 1,
    "__hidden-@": 1,
    "@heartbeats": 1,
    "ready-@": 1,
}
_LATER = "ready-again-@"
_GROUPS = {
    "app-@": ("orders-@", "orders.@.v1", "secret-@"),
    "batch-@": ("orders_@",),
    "readers-of-B-@": ("B.from-B-on-@",),
    "console-consumer-@": ("orders-@",),
    "connect-@": ("orders-@",),
    "__group-@": ("orders-@",),
}
_OF_BROKERS = frozenset({"__consumer_offsets", "__transaction_state"})
# The tools' own topics. A file that names Connect's topics uses these endings.
_OF_HELIOGRAPH = re.compile(r"heliograph-.*\.internal")
_OF_CONNECT = re.compile(r"mm2-(configs|status)\..*\.internal|.*-(config|status)-storage")
_OFFSETS_OF_CONNECT = re.compile(r"mm2-offsets\..*\.internal|.*-offset-storage")
# For all files: one broker per cluster, and everything is noticed and written within a second.
_COMMON = "\n".join(
    [
        "replication.factor = 1",
        "checkpoints.topic.replication.factor = 1",
        "heartbeats.topic.replication.factor = 1",
        "offset-syncs.topic.replication.factor = 1",
        "offset.storage.replication.factor = 1",
        "offset.storage.partitions = 1",
        "status.storage.replication.factor = 1",
        "status.storage.partitions = 1",
        "config.storage.replication.factor = 1",
        "refresh.topics.interval.seconds = 1",
        "refresh.groups.interval.seconds = 1",
        "emit.checkpoints.interval.seconds = 1",
        "sync.group.offsets.enabled = true",
        "sync.group.offsets.interval.seconds = 1",
        # Each record has its offset sync, so that MM2 translates offsets exactly.
        "offset.lag.max = 0",
        # MM2 looks for its classes three times, and takes seconds each time unless it goes by lists of them.
        "plugin.discovery = service_load",
    ]
)
# For the workers on each cluster. MM2 may hold offset syncs back until it flushes, by default after a minute.
_OF_WORKERS = ("offset.flush.interval.ms = 1000", "plugin.discovery = service_load")
_ADDRESS = re.compile(r"^(\S+)\.bootstrap\.servers\b.*$", re.MULTILINE)

Clusters = Mapping[str, Log]  # by letter


def written(file: Path, clusters: Clusters, folder: Path) -> Path:
    """The file with the addresses of these clusters for `@a@`, `@b@`, …, and what all files need for `@common@`."""
    text = file.read_text(encoding="latin-1").replace("@common@", _COMMON)
    text = _ADDRESS.sub(lambda line: "\n".join([line[0], *(f"{line[1]}.{setting}" for setting in _OF_WORKERS)]), text)
    for letter, log in clusters.items():
        text = text.replace(f"@{letter}@", log.bootstrap)
    folder.mkdir(parents=True, exist_ok=True)
    filled = folder / "mm2.properties"
    filled.write_text(text, encoding="latin-1")
    return filled


# --- content ------------------------------------------------------------------------------------------------------


def fill(clusters: Clusters) -> None:
    """Deletes everything on these clusters, then creates the topics and groups."""
    for letter, log in clusters.items():
        on(log, partial(_fill, letter))


def add_later_topics(clusters: Clusters) -> None:
    for letter, log in clusters.items():
        on(log, partial(_create, {_name(_LATER, letter): 1}))


async def _fill(letter: str, client: ClusterClient) -> None:
    await _clear(client)
    await _create({_name(topic, letter): partitions for topic, partitions in _TOPICS.items()}, client)
    groups = {
        _name(group, letter): {(_name(topic, letter), 0): Committed(_RECORDS) for topic in topics}
        for group, topics in _GROUPS.items()
    }
    outcome = await commit_offsets(client, groups)
    assert outcome == dict.fromkeys(groups), outcome


def _name(pattern: str, letter: str) -> str:
    return pattern.replace("@", letter)


async def _clear(client: ClusterClient) -> None:
    async def have_no_groups() -> bool:
        """A member that was killed stays in its group for some seconds."""
        return all(error is None for error in (await delete_groups(client, await list_groups(client))).values())

    async def have_no_topics() -> bool:
        names = set((await client.metadata(None)).topics) - _OF_BROKERS
        if names:
            await delete_topics(client, names)
        return not names

    await async_until(have_no_topics)
    await async_until(have_no_groups)


async def _create(partitions: Mapping[str, int], client: ClusterClient) -> None:
    outcome = await create_topics(client, [NewTopic(name, count, 1) for name, count in partitions.items()])
    assert outcome == dict.fromkeys(partitions), outcome

    async def have_leaders() -> bool:
        topics = (await client.metadata(partitions)).topics
        ends = await list_offsets(client, topics, [(name, 0) for name in partitions], LATEST, False)
        return all(isinstance(end, int) for end in ends.values())

    await async_until(have_leaders)
    for name, topic in (await client.metadata(partitions)).topics.items():
        await write(client, topic, 0, [(b"%d" % number, name.encode()) for number in range(_RECORDS)])


# --- results ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """What is on the clusters of one tool."""

    lines: frozenset[str]

    def has_mirror(self, letter: str, topic: str) -> bool:
        """Whether this cluster has a topic with records that is called like the other's, after any prefix."""
        return any(re.fullmatch(rf"{letter}: topic .*{topic}: .* with records", line) for line in self.lines)

    def with_lines(self, lines: frozenset[str]) -> "Result":
        return Result(self.lines | lines)

    def differences(self, other: "Result") -> str:
        only = [f"- {line}" for line in self.lines - other.lines] + [f"+ {line}" for line in other.lines - self.lines]
        return "\n".join(sorted(only, key=lambda line: line[2:]))


def result(clusters: Clusters) -> Result:
    """Without what is being created at the moment."""
    return Result(frozenset(f"{letter}: {line}" for letter, log in clusters.items() for line in on(log, _lines)))


async def _lines(client: ClusterClient) -> list[str]:
    try:
        return [*await _topic_lines(client), *await _group_lines(client)]
    except WireError as error:  # a topic or group has no leader or coordinator at the moment
        return [f"cannot be read: {error}"]


async def _topic_lines(client: ClusterClient) -> list[str]:
    topics = {name: topic for name, topic in (await client.metadata(None)).topics.items() if name not in _OF_BROKERS}
    configs = await describe_configs(client, topics)
    ends = await list_offsets(client, topics, [(name, 0) for name in topics], LATEST, False)
    lines: list[str] = []
    for name, topic in topics.items():
        if _OFFSETS_OF_CONNECT.fullmatch(name):
            lines.append(f"Connect's offsets are in {name}")
        elif not _OF_HELIOGRAPH.fullmatch(name) and not _OF_CONNECT.fullmatch(name):
            own, end = configs[name], ends[name, 0]
            if isinstance(own, WireError) or isinstance(end, WireError):
                lines.append(f"topic {name} is being created")
                continue
            if end == 0 and (name == HEARTBEATS or name.endswith(f".{HEARTBEATS}")):
                continue  # MM2 creates it even if no heartbeats are written, and copies it
            with_records = " with records" if end > 0 else ""
            lines.append(f"topic {name}: {len(topic.leaders)} partitions, {own['cleanup.policy'].value}{with_records}")
            lines += [f"topic {name}: {line}" for line in await _internal_records(client, topic)]
    return lines


async def _group_lines(client: ClusterClient) -> list[str]:
    groups = await list_groups(client)
    lines = [f"Connect's workers are in group {name}" for name, group in groups.items() if group.kind == "connect"]
    with_offsets = [name for name, group in groups.items() if group.has_offsets]
    for name, offsets in (await committed_offsets(client, with_offsets)).items():
        if isinstance(offsets, WireError):
            raise offsets
        lines += [f"group {name}: {at[0]}-{at[1]} at {committed.offset}" for at, committed in offsets.items()]
    return lines


async def _internal_records(client: ClusterClient, topic: Topic) -> set[str]:
    """What the keys of MM2's own records say, and the offsets in checkpoints."""
    described: dict[bytes, str] = {}
    if any(part in topic.name for part in ("heartbeats", "checkpoints", "offset-syncs")):
        async for record in read_all(client, topic, 0):
            if record.key is not None and record.value is not None:
                described[record.key] = _description(topic.name, record.key, record.value)
    return set(described.values()) - {""}


def _description(topic: str, key: bytes, value: bytes) -> str:
    try:
        if "offset-syncs" in topic:
            sync = OffsetSync.from_record(key, value)
            # Those of the later topics are not waited for: Heliograph writes offset syncs every five seconds.
            return "" if _name(_LATER, "") in sync.topic else f"offset sync of {sync.topic}-{sync.partition}"
        if "checkpoints" in topic:
            checkpoint = Checkpoint.from_record(key, value)
            place = f"{checkpoint.topic}-{checkpoint.partition} at {checkpoint.downstream}"
            return f"checkpoint of {checkpoint.group}: {place}"
        heartbeat = Heartbeat.from_record(key, value)
        return f"heartbeat of {heartbeat.source}->{heartbeat.target}"
    except BadRecord:
        return ""  # a topic with such a name, but not one of MM2's


# --- what Heliograph knows without MM2 -----------------------------------------------------------------------------


def looked_for(properties: Path, clusters: Clusters) -> frozenset[str]:
    """What Heliograph expects MM2 to have on the targets if it has run with this file."""
    letters = {log.bootstrap: letter for letter, log in clusters.items()}
    lines: set[str] = set()
    for flow in load(properties).all_flows:
        target = letters[_bootstrap(flow.target)]
        lines.add(f"{target}: Connect's offsets are in {offsets_topic(flow)}")
        lines.add(f"{target}: Connect's workers are in group {workers_group(flow)}")
    return frozenset(lines)


def copying_flows(properties: Path, clusters: Clusters) -> set[tuple[str, str]]:
    """The letters of source and target."""
    letters = {log.bootstrap: letter for letter, log in clusters.items()}
    return {(letters[_bootstrap(flow.source)], letters[_bootstrap(flow.target)]) for flow in load(properties).flows}


def _bootstrap(cluster: Cluster) -> str:
    return ",".join(f"{host}:{port}" for host, port in cluster.bootstrap_servers)
