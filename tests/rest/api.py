"""A client for Connect's REST API, and both that answer it: a real worker, and `heliograph serve`."""

import http.client
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heliograph.sandbox.mirrormaker import connect_worker_command
from logs import Log, until
from mm2 import SOON_UP
from ports import free_port
from running.command import kill, start


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any  # decoded if it is JSON, else the text
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
            response = connection.getresponse()
            content = response.read().decode()
            try:
                return Answer(response.status, json.loads(content), response.getheader("Location") or "")
            except ValueError:
                return Answer(response.status, content)
        finally:
            connection.close()

    def up(self) -> bool:
        try:
            return self("GET", "/connectors").status == 200
        except OSError:
            return False

    def state(self, name: str) -> list[str]:
        """The state of a connector, then those of its tasks."""
        answer = self("GET", f"/connectors/{name}/status")
        if answer.status != 200:
            return []
        return [answer.body["connector"]["state"], *(task["state"] for task in answer.body["tasks"])]

    def until(self, condition: Callable[["Api"], bool]) -> None:
        until(lambda: condition(self), lambda: self("GET", "/connectors?expand=status").body)


def worker_file(folder: Path, log: Log, name: str) -> tuple[Path, Api]:
    """A worker's own file, with topics and a group of its own."""
    port = free_port()
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
    """The config of one of MirrorMaker 2's connectors, as users write it."""
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
    """A real Connect worker."""
    with file.with_suffix(".log").open("ab") as output:
        process = subprocess.Popen(
            connect_worker_command(file, heap_mb=512, flags=SOON_UP), stdout=output, stderr=output, cwd=file.parent
        )
    with _running(process, file, api):
        yield process


@contextmanager
def serving(file: Path, api: Api, *options: str) -> Iterator[Api]:
    """`heliograph serve` with the same file."""
    with _running(start("serve", file, *options, log=file.with_suffix(".log")), file, api):
        yield api


@contextmanager
def _running(process: "subprocess.Popen[bytes]", file: Path, api: Api) -> Iterator[None]:
    try:
        log = file.with_suffix(".log")
        until(lambda: api.up() or process.poll() is not None, log.read_text)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            kill(process)
