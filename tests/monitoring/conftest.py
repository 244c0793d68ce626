"""One flow for all tests of this package, with many kinds of errors."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from kafka import KafkaConsumer
from prometheus_client.parser import text_string_to_metric_families

from heliograph.metrics import mbeans
from heliograph.wire.recode import GZIP, NONE
from logs import JOINS_SOON, PATIENCE, Log, Pair, Record, until
from ports import free_port
from rest.api import Api
from running.command import start

FLOW = "W->V"
OWN = f"/heliograph/v1/flows/{quote(FLOW)}"
WELL, STOPPED, LOST, GROUP = "watched-well", "watched-stopped", "watched-lost", "watched-group"
KINDS = "watched-kinds"
KAFKAS = (*mbeans.MM2, *mbeans.CONNECT, *mbeans.CLIENTS)
CLIENT = "watched"  # of the flow, for the brokers' quotas
SECRET = "s3cret-of-the-webhook"
NOT_MIRRORED = "watched-" + "long" * 60  # its mirror's name would be too long

Labels = frozenset[tuple[str, str]]


class Webhook(ThreadingHTTPServer):
    """Accepts every request except the first."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Posted)
        self.posted: list[dict[str, Any]] = []
        self.refused = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/services/{SECRET}"


class _Posted(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.refused:
            self.server.posted.append(body)
        self.send_response(200 if self.server.refused else 503)
        self.server.refused += not self.server.refused
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def samples(text: str) -> dict[str, dict[Labels, float]]:
    """Values by name and labels. No series may be there twice."""
    values: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series = values.setdefault(sample.name, {})
            assert frozenset(sample.labels.items()) not in series, sample
            series[frozenset(sample.labels.items())] = sample.value
    return values


@dataclass(frozen=True)
class Watched:
    api: Api
    pair: Pair
    log: Path  # in JSON
    webhook: Webhook
    metrics_port: Api  # of --metrics-port, with the names of Strimzi's rules
    lost_before: list[int] = field(default_factory=list)  # where the source began after each loss

    def metrics(self, query: str = "") -> dict[str, dict[Labels, float]]:
        """Values by name and labels."""
        answer = self.api("GET", f"/metrics{query}")
        assert answer.status == 200, answer
        return samples(answer.body)

    def value(self, name: str, query: str = "", **labels: str) -> float | None:
        """The value of the series that has at least these labels."""
        for known, value in self.metrics(query).get(name, {}).items():
            if known >= labels.items():
                return value
        return None


def write_now(log: Log, topic: str, count: int, partition: int = 0) -> None:
    now = int(time.time() * 1000)
    log.write(topic, [Record(0, now, b"key", b"x" * 100) for _ in range(count)], partition)


def write_kinds(log: Log) -> None:
    """A hundred records in one gzip batch, and a hundred in a batch each, which will be joined."""
    records = [Record(0, int(time.time() * 1000), None, os.urandom(100)) for _ in range(100)]
    log.write(KINDS, records, codec=GZIP)
    log.write(KINDS, records, codec=NONE, per_batch=1)


@pytest.fixture(scope="package")
def watched(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watching(pair, tmp_path_factory.mktemp("watched")) as running:
        yield running


@contextmanager
def watching(pair: Pair, folder: Path) -> Iterator[Watched]:
    port, metrics_port = free_port(), free_port()
    webhook = Webhook()
    file = folder / "mm2.properties"
    every = ("refresh.topics", "refresh.groups", "emit.checkpoints", "sync.group.offsets", "emit.heartbeats")
    file.write_text(
        f"clusters = W, V\nW.bootstrap.servers = {pair.a.bootstrap}\nV.bootstrap.servers = {pair.b.bootstrap}\n"
        f"W.client.id = {CLIENT}\nV.client.id = {CLIENT}\n"
        f"W->V.enabled = true\nW->V.topics = watched-.*\nW->V.groups = watched-.*\nW->V.tasks.max = 2\n"
        f"replication.factor = 1\nsync.group.offsets.enabled = true\nheliograph.on.data.loss = continue\n"
        f"heliograph.notify.webhook = {webhook.address}\n" + "".join(f"{name}.interval.seconds = 1\n" for name in every)
    )
    pair.a.create(WELL, partitions=2)
    for topic in (STOPPED, LOST, NOT_MIRRORED):
        pair.a.create(topic)
        write_now(pair.a, topic, 10)
    for partition in (0, 1):
        write_now(pair.a, WELL, 1000, partition)
    pair.a.create(KINDS)
    write_kinds(pair.a)
    pair.b.create(f"W.{STOPPED}")
    write_now(pair.b, f"W.{STOPPED}", 1)
    pair.a.commit(GROUP, WELL, 500)
    pair.a.commit(f"{GROUP}-in-use", WELL, 500)
    log = folder / "log"
    options = ("--metrics-port", metrics_port, "--metrics-names", "strimzi", "--log-format", "json")
    process = start("run", file, "--rest", f"127.0.0.1:{port}", *options, log=log)
    watched = Watched(Api(port), pair, log, webhook, Api(metrics_port))
    try:
        until(watched.api.up)
        until(lambda: (watched.value("heliograph_topic_copied_records_total", flow=FLOW, topic=LOST) or 0) > 0)
        in_use = KafkaConsumer(
            f"W.{WELL}",
            bootstrap_servers=pair.b.bootstrap,
            group_id=f"{GROUP}-in-use",
            max_poll_interval_ms=3_600_000,  # it stays in the group, however long the tests take
            **JOINS_SOON,
        )
        with closing(in_use) as consumer:
            lose_records(watched)
            until(lambda: consumer.poll(timeout_ms=100) or consumer.assignment(), every=0)
            until(lambda: watched.value("heliograph_groups_not_synced", reason="active") == 1)
            yield watched
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
        webhook.shutdown()
        webhook.server_close()


def lose_records(watched: Watched) -> None:
    """Five records are deleted from the source while their topic is paused."""
    losses = watched.value("heliograph_notices_total", kind="data-loss")
    assert losses is not None
    until(lambda: watched.value("heliograph_topic_lag_records", topic=LOST) == 0)
    assert watched.api("PUT", f"{OWN}/topics/{LOST}/pause").status == 202
    until(lambda: watched.value("heliograph_partitions", flow=FLOW, state="paused") == 1)
    end = copied = 0

    def lease_has_paused_topic() -> bool:
        nonlocal end, copied
        end, copied = watched.pair.a.bounds(LOST)[1], watched.pair.b.bounds(f"W.{LOST}")[1]
        write_now(watched.pair.a, LOST, 1)
        _wait_for_later_records(watched)
        return watched.pair.b.bounds(f"W.{LOST}")[1] == copied

    def are_lost() -> bool:
        until(lease_has_paused_topic)
        write_now(watched.pair.a, LOST, 9)
        watched.pair.a.delete_before(LOST, 0, end + 5)
        watched.lost_before.append(end + 5)
        _wait_for_later_records(watched)
        return watched.pair.b.bounds(f"W.{LOST}")[1] == copied  # else the lease was only slow: again

    until(are_lost)
    assert watched.api("PUT", f"{OWN}/topics/{LOST}/resume").status == 202
    until(lambda: (watched.value("heliograph_notices_total", kind="data-loss") or 0) > losses)


def _wait_for_later_records(watched: Watched) -> None:
    """What a lease still copies of another topic is copied before these records, or at the same time."""
    source, mirror = watched.pair.a, watched.pair.b
    for partition in (0, 1, 0, 1):  # each lease has one of them; the second time, what came with the first has landed
        write_now(source, WELL, 1, partition)
        end = source.bounds(WELL, partition)[1]
        until(lambda at=partition, end=end: mirror.bounds(f"W.{WELL}", at)[1] == end)  # type: ignore[misc]
