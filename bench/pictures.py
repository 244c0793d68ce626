"""`make pictures` draws docs/pictures: `heliograph top` and `heliograph status` of a flow that copies."""

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text

from heliograph.cli.remote import NoAnswer
from heliograph.cli.top import frame, look_at, remember
from heliograph.model.flow import Cluster
from heliograph.sandbox import ClusterSpec, Sandbox
from heliograph.sandbox.ports import free_ports
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.topics import NewTopic, create_topics

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH, HEIGHT = 80, 34
SECONDS = 60
LIMIT = 1_500_000  # so that something is behind
TOPICS = {
    "orders": 400,
    "payments": 150,
    "clicks": 1500,
    "audit-log": 40,
    "customers": 10,
}  # records in a tenth of a second


def main() -> None:
    (port,) = free_ports(1)
    rest = f"http://127.0.0.1:{port}"
    with Sandbox() as sandbox, tempfile.TemporaryDirectory() as folder:
        east, west = sandbox.start({"east": ClusterSpec(), "west": ClusterSpec()})
        time.sleep(2)  # a controller that is known
        file = Path(folder) / "mm2.properties"
        file.write_text(
            f"clusters = east, west\neast.bootstrap.servers = {east.bootstrap}\n"
            f"west.bootstrap.servers = {west.bootstrap}\neast->west.enabled = true\nreplication.factor = 1\n"
            f"emit.heartbeats.interval.seconds = 1\nrefresh.topics.interval.seconds = 1\n"
            f"tasks.max = 2\nheliograph.max.bytes.per.second = {LIMIT}\n"
        )
        asyncio.run(_create(east.bootstrap))
        stop = threading.Event()
        writing = threading.Thread(target=_write, args=(east.bootstrap, stop))
        writing.start()
        running = subprocess.Popen(_command("run", file, "--rest", f"127.0.0.1:{port}"), stderr=subprocess.DEVNULL)
        try:
            _draw("top", _top(rest))
            _draw("status", _printed("status", "--rest", rest))
        finally:
            stop.set()
            writing.join()
            running.terminate()
            running.wait()


def _command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "heliograph", *map(str, arguments)]


async def _create(bootstrap: str) -> None:
    host, port = bootstrap.split(":")
    client = ClusterClient(Cluster("east", ((host, int(port)),)))
    try:
        await client.connect()
        await create_topics(client, [NewTopic(name, 4, 1, ()) for name in TOPICS])
    finally:
        client.close()


def _write(bootstrap: str, stop: threading.Event) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20)
    while not stop.is_set():
        for topic, count in TOPICS.items():
            for _ in range(int(count * random.uniform(0.2, 1.8))):
                producer.send(topic, b"x" * 300)
        time.sleep(0.1)
    producer.close()


def _top(rest: str) -> RenderableType:
    """After a while, so that there is something behind."""
    history: dict[str, deque[float]] = {}
    until = time.monotonic() + SECONDS
    while True:
        try:
            look = look_at(rest)
        except NoAnswer:
            time.sleep(1)  # it is not up yet
            continue
        remember(history, look)
        if time.monotonic() > until and look.busiest:
            return frame(look, history, "http://127.0.0.1:8083", WIDTH, HEIGHT)
        time.sleep(1)


def _printed(*arguments: str) -> Text:
    env = os.environ | {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1"}
    done = subprocess.run(_command(*arguments), capture_output=True, text=True, env=env, check=False)
    return Text.from_ansi(done.stdout)


def _draw(name: str, shown: RenderableType) -> None:
    console = Console(record=True, width=WIDTH, height=HEIGHT, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(shown)
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{name}.svg").write_text(console.export_svg(title=f"heliograph {name}"))


if __name__ == "__main__":
    main()
