"""Both who answer Connect's REST API: a real worker, and `heliograph serve`. And a client for it."""

import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heliograph.sandbox.mirrormaker import connect_worker_command
from heliograph.sandbox.ports import free_ports
from logs import PATIENCE, Log, until
from mm2 import SOON_UP
from running.command import start


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any  # what the JSON says, else the text
    location: str = ""


@dataclass(frozen=True)
class Api:
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __call__(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            text = body if isinstance(body, str) or body is None else json.dumps(body)
            connection.request(method, path, text, {} if text is None else {"Content-Type": kind})
            got = connection.getresponse()
            said = got.read().decode()
            try:
                return Answer(got.status, json.loads(said), got.getheader("Location") or "")
            except ValueError:
                return Answer(got.status, said)
        finally:
            connection.close()

    def up(self) -> bool:
        try:
            return self("GET", "/connectors").status == 200
        except OSError:
            return False

    def state(self, name: str) -> list[str]:
        """The connector's, then its tasks'."""
        got = self("GET", f"/connectors/{name}/status")
        if got.status != 200:
            return []
        return [got.body["connector"]["state"], *(task["state"] for task in got.body["tasks"])]

    def until(self, what: Callable[["Api"], bool]) -> None:
        until(lambda: what(self), lambda: self("GET", "/connectors?expand=status").body)


def worker_file(folder: Path, log: Log, name: str) -> tuple[Path, Api]:
    """A worker's own file, with topics and a group of its own."""
    (port,) = free_ports(1)
    file = folder / f"{name}.properties"
    converters = "\n".join(
        f"{kind}.converter=org.apache.kafka.connect.converters.ByteArrayConverter"
        for kind in ("key", "value", "header")
    )
    storage = "\n".join(
        f"{kind}.storage.topic={name}-{kind}s\n{kind}.storage.replication.factor=1"
        for kind in ("config", "offset", "status")
    )
    file.write_text(
        f"bootstrap.servers={log.bootstrap}\ngroup.id={name}\n{storage}\n{converters}\n"
        f"offset.storage.partitions=2\nstatus.storage.partitions=1\noffset.flush.interval.ms=500\n"
        f"listeners=http://127.0.0.1:{port}\n"
    )
    return file, Api(port)


def connector(kind: str, source: str, pair: tuple[Log, Log], topics: str, **more: str) -> dict[str, str]:
    """The config of one of MirrorMaker 2's connectors, in the way of people."""
    return {
        "connector.class": f"org.apache.kafka.connect.mirror.Mirror{kind}Connector",
        "source.cluster.alias": source,
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": pair[0].bootstrap,
        "target.cluster.bootstrap.servers": pair[1].bootstrap,
        "topics": topics,
        "groups": topics,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "heartbeats.replication.enabled": "false",
        "refresh.topics.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "tasks.max": "2",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


@contextmanager
def connect_worker(file: Path, api: Api) -> Iterator["subprocess.Popen[bytes]"]:
    """A real one."""
    with file.with_suffix(".log").open("ab") as output:
        process = subprocess.Popen(
            connect_worker_command(file, heap_mb=512, flags=SOON_UP), stdout=output, stderr=output, cwd=file.parent
        )
    with _running(process, file, api):
        yield process


@contextmanager
def serving(file: Path, api: Api) -> Iterator[Api]:
    """Heliograph in its place."""
    with _running(start("serve", file, log=file.with_suffix(".log")), file, api):
        yield api


@contextmanager
def _running(process: "subprocess.Popen[bytes]", file: Path, api: Api) -> Iterator[None]:
    try:
        deadline = time.monotonic() + PATIENCE
        while not api.up():
            assert process.poll() is None, file.with_suffix(".log").read_text()
            assert time.monotonic() < deadline, file.with_suffix(".log").read_text()
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
