"""A running tool: started as a user would start it, monitored, stopped; and the end of its log if it fails."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clusters import FAR, Pair, client_of, create
from delay import start_proxy
from processes import Tree
from tools import TARGET, Flow, Kind, Tool, command, properties
from workloads import ROUND_TRIP, Workload

from heliograph.sandbox import SandboxCluster
from heliograph.sandbox.broker import telling_lines
from heliograph.sandbox.ports import HOST
from heliograph.sandbox.processes import Processes

_STOP_WITHIN = 40.0
_LINES = 1
_LINE_LENGTH = 300


class ToolFailed(Exception):
    """A tool failed; the reason in one line."""


@dataclass(frozen=True)
class Proxy:
    """Makes the source far away: its address for clients, and its process."""

    address: str
    pid: int


@dataclass(frozen=True)
class Stage:
    """The clusters and the processes of tools, which all end with the benchmark, however it ends."""

    pair: Pair
    processes: Processes
    proxy: Proxy | None = None

    @classmethod
    def of(cls, pair: Pair, processes: Processes) -> "Stage":
        """With a proxy if the source has a listener for it."""
        if pair.far_port is None:
            return cls(pair, processes)
        upstream = int(pair.source.bootstrap_of(FAR).rpartition(":")[2])
        port, pid = start_proxy(processes, upstream, ROUND_TRIP, pair.far_port)
        return cls(pair, processes, Proxy(f"{HOST}:{port}", pid))

    def proxy_to(self, port: int) -> int:
        """The port of another proxy to that port, as slow as the one to the source."""
        return start_proxy(self.processes, port, ROUND_TRIP)[0]


@dataclass(frozen=True)
class Mirror:
    cluster: SandboxCluster
    topic: str


def by_cluster(mirrors: Sequence[Mirror]) -> list[tuple[SandboxCluster, list[str]]]:
    """The mirrors' names, for each cluster that has any."""
    clusters = {id(mirror.cluster): mirror.cluster for mirror in mirrors}
    return [
        (cluster, [mirror.topic for mirror in mirrors if mirror.cluster is cluster]) for cluster in clusters.values()
    ]


class Run:
    """One process of a tool with its children, and its log."""

    def __init__(self, stage: Stage, name: str, pid: int, log: Path, mirrors: Sequence[Mirror]) -> None:
        self.tree = Tree([pid])
        self.mirrors = mirrors
        self._processes = stage.processes
        self._name = name
        self._pid = pid
        self._log = log

    def check(self) -> None:
        """Raise ToolFailed if it has ended."""
        status = self._processes.exits()[self._name]
        if status is not None:
            raise ToolFailed(f"it ended with status {status}: {self.last_words()}")

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def last_words(self) -> str:
        """The end of the log, without addresses and paths."""
        output = re.sub(r"\x1b\[[0-9;]*m", "", self.log())
        complaints = [line for line in output.splitlines() if re.search(r"\b(WARN|WARNING|ERROR)\b", line)]
        lines = complaints[-_LINES:] or telling_lines(output, _LINES)
        text = " / ".join(" ".join(line.split()) for line in lines) or "its log is empty"
        text = re.sub(r"(?:file:)?/[\w.+~-]+(?:/[\w.+~-]+)+", "<path>", text)
        return re.sub(r"(?:localhost|\d+\.\d+\.\d+\.\d+)(?::\d+)?", "<address>", text)[:_LINE_LENGTH]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """None of its processes runs for as long as the block lasts."""
        pids = self.tree.pids()
        for pid in pids:
            _signal(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                _signal(pid, signal.SIGCONT)

    def stop(self) -> None:
        """Asks the tool to end, and kills it with all its children if it does not."""
        pids = self.tree.pids()
        self._processes.signal(self._name, signal.SIGTERM)
        if self._processes.wait(self._name, _STOP_WITHIN) is not None:
            return
        for pid in pids:
            _signal(pid, signal.SIGKILL)
        self._processes.wait(self._name, _STOP_WITHIN)
        for left in Path(tempfile.gettempdir()).glob(f"heliograph-run-{self._pid}-*"):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def running(
    stage: Stage, tool: Tool, alias: str, workload: Workload, topic: str, topics: Sequence[str] = ()
) -> Iterator[Run]:
    """A tool that mirrors a workload's topic, for as long as the block lasts.

    With `topics`, all of them, and `topic` is the pattern that their names have.
    """
    flows, mirrors = _flows(stage, alias, workload, topic)
    if topics:
        mirrors = [Mirror(stage.pair.target, f"{alias}.{name}") for name in topics]
    if tool.kind is Kind.FRANZ_GO:
        for mirror in mirrors:
            asyncio.run(_create_mirror(mirror, workload))
    file = stage.processes.folder / f"{alias}.properties"
    file.write_text(properties(tool, workload, flows))
    log = file.with_suffix(".log")
    argv = command(tool, workload, flows, file)
    run = Run(stage, alias, stage.processes.start(alias, argv, cwd=stage.processes.folder, log=log), log, mirrors)
    try:
        yield run
    finally:
        run.stop()


def _flows(stage: Stage, alias: str, workload: Workload, topic: str) -> tuple[list[Flow], list[Mirror]]:
    """What a tool is to copy, and the mirrors that result from it."""
    source, target = stage.pair.source, stage.pair.target
    source_client, target_client = _client_settings(source, workload), _client_settings(target, workload)
    if workload.far:
        assert stage.proxy is not None
        source_client = {"bootstrap.servers": stage.proxy.address}
    flows = [Flow(alias, TARGET, source_client, target_client, topic)]
    mirrors = [Mirror(target, flows[0].mirror)]
    if workload.two_way:
        flows.append(Flow(TARGET, alias, target_client, source_client, topic))
        mirrors.append(Mirror(source, flows[1].mirror))
    return flows, mirrors


def _client_settings(cluster: SandboxCluster, workload: Workload) -> dict[str, str]:
    if workload.tls:
        return cluster.security.client_settings(kind="tls")
    return {"bootstrap.servers": cluster.bootstrap}


async def _create_mirror(mirror: Mirror, workload: Workload) -> None:
    """For a tool that does not create mirrors: with the source's limits, and not compacted any further."""
    size = workload.max_message_bytes
    async with client_of(mirror.cluster) as client:
        await create(client, mirror.topic, workload.partitions, [("max.message.bytes", str(size))] if size else ())


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
