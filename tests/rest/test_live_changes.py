"""Running flows are changed, paused and ended through the REST API, and by reloading a file."""

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner, Result

from heliograph.cli import app
from heliograph.copy.compare import compare
from heliograph.model.internal_topics import PROGRESS, signals_topic
from heliograph.model.partitions import MirrorPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import encode
from logs import PATIENCE, Log, Pair, Record, some_records, until
from ports import free_port
from rest.api import Api, connector, serving, worker_file
from running.command import kill, start

ALIAS = "L"
FLOW = f"/heliograph/v1/flows/{quote(f'{ALIAS}->B')}"


class Served:
    """One process for all tests of this file, which can be stopped and started again."""

    def __init__(self, file: Path, api: Api) -> None:
        self._file = file
        self._process = ExitStack()
        self.api = api
        self.log = file.with_suffix(".log")

    def start(self) -> None:
        self._process.enter_context(serving(self._file, self.api, "--log-format", "json"))

    def stop(self) -> None:
        self._process.close()


@pytest.fixture(scope="module")
def served(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = Served(*worker_file(tmp_path_factory.mktemp("live"), pair.b, "live"))
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def api(served: Served) -> Api:
    return served.api


@pytest.fixture
def _no_connectors_left(api: Api) -> Iterator[None]:
    yield
    for name in api("GET", "/connectors").body:
        api("DELETE", f"/connectors/{quote(name)}")
    api.until(lambda api: api("GET", "/heliograph/v1/flows").body == [])


def _copied(pair: Pair, topic: str, count: int, alias: str = ALIAS) -> Callable[[], bool]:
    mirror = f"{alias}.{topic}"
    return lambda: pair.b.exists(mirror) and pair.b.bounds(mirror)[1] == count


def _leases(target: Log, alias: str) -> set[str]:
    """All leases that ever reported progress."""
    return {record.key.decode() for record in target.read(signals_topic(alias), PROGRESS) if record.key}


def _runs(name: str) -> Callable[[Api], bool]:
    return lambda api: api.state(name)[:2] == ["RUNNING", "RUNNING"]


def _put(api: Api, name: str, config: dict[str, str]) -> None:
    assert api("PUT", f"/connectors/{name}/config", config).status in (200, 201)


@pytest.mark.usefixtures("_no_connectors_left")
def test_connectors_are_added_and_removed_one_by_one_in_any_order(
    api: Api, pair: Pair, topic: str, tmp_path: Path
) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(20))
    pair.a.commit(topic, topic, 7)
    for kind in ("Heartbeat", "Checkpoint", "Source"):
        _put(api, f"my-{kind}", connector(kind, ALIAS, (pair.a, pair.b), topic))
        api.until(_runs(f"my-{kind}"))
    until(_copied(pair, topic, 20))
    written = {"my-Checkpoint": {"topics": [f"{ALIAS}.checkpoints.internal"]}}
    api.until(lambda api: api("GET", "/connectors/my-Checkpoint/topics").body == written)
    offset = {"partition": {"cluster": ALIAS, "partition": 0, "topic": topic}, "offset": {"offset": 19}}
    api.until(lambda api: api("GET", "/connectors/my-Source/offsets").body["offsets"] == [offset])

    _check_groups_and_offsets(api, pair, topic, tmp_path / "same.properties")
    api("PUT", "/connectors/my-Source/pause")
    api.until(lambda api: api.state("my-Source") == ["PAUSED", "PAUSED"])
    pair.a.write(topic, some_records(5))
    assert api.state("my-Heartbeat") == ["RUNNING", "RUNNING"]
    beats = pair.b.bounds("heartbeats")[1]
    until(lambda: pair.b.bounds("heartbeats")[1] >= beats + 2)
    assert pair.b.bounds(f"{ALIAS}.{topic}")[1] == 20  # after two heartbeats, still
    api("PUT", "/connectors/my-Source/stop")
    api.until(lambda api: api.state("my-Source") == ["STOPPED"])
    assert api("GET", "/connectors/my-Source/offsets").body["offsets"] == [offset]
    api("PUT", "/connectors/my-Source/resume")
    until(_copied(pair, topic, 25))
    for kind in ("Source", "Heartbeat", "Checkpoint"):
        assert api("DELETE", f"/connectors/my-{kind}").status == 204
    api.until(lambda api: api("GET", "/heliograph/v1/flows").body == [])
    assert pair.b.read(f"{ALIAS}.{topic}") == pair.a.read(topic)


def _check_groups_and_offsets(api: Api, pair: Pair, topic: str, file: Path) -> None:
    """The API answers what the commands show."""
    file.write_text(
        f"clusters = {ALIAS}, B\n{ALIAS}.bootstrap.servers = {pair.a.bootstrap}\n"
        f"B.bootstrap.servers = {pair.b.bootstrap}\n{ALIAS}->B.enabled = true\n{ALIAS}->B.topics = {topic}\n"
        f"{ALIAS}->B.groups = {topic}\nheartbeats.replication.enabled = false\n"
    )

    def command(*arguments: str) -> Any:
        (shown,) = json.loads(CliRunner().invoke(app, [arguments[0], str(file), *arguments[1:], "--json"]).stdout)
        return shown

    def same(path: str, *arguments: str) -> bool:
        return bool(api("GET", f"{FLOW}/{path}").body == command(*arguments))

    until(lambda: same("groups", "groups"))
    until(lambda: same("offsets", "offsets"))
    assert api("GET", f"{FLOW}/offsets/{ALIAS}.{topic}").body == command("offsets", f"{ALIAS}->B", topic)
    (before,) = command("groups", f"{ALIAS}->B", topic)["groups"]
    assert api("GET", f"{FLOW}/groups/{topic}").body == before
    assert (before["state"], before["partitions"][0]["target_offset"]) == ("switched-off", None)
    for path in ("groups/sync", f"groups/{topic}/sync"):
        got = api("POST", f"{FLOW}/{path}")
        assert got.status == 200, got
    assert (got.body["state"], got.body["partitions"][0]["target_offset"]) == ("synced", 7)
    assert api("GET", f"{FLOW}/groups/{topic}").body == got.body
    for path, status, message in (
        (f"{FLOW}/groups/{topic}x", 404, f"{ALIAS} has no consumer group {topic}x; did you mean {topic}?"),
        (f"{FLOW}/groups/a%2Fb", 404, f"{ALIAS} has no consumer group a/b"),
        (f"{FLOW}/offsets/none", 404, f"{ALIAS}->B has no topic none"),
        ("/heliograph/v1/flows/none/offsets", 404, "There is no flow none"),
    ):
        got = api("GET", path)
        assert (got.status, got.body) == (status, {"error_code": status, "message": message})
    api("PUT", "/connectors/my-Checkpoint/pause")
    api.until(lambda api: api("POST", f"{FLOW}/groups/{topic}/sync").status == 409)
    api("PUT", "/connectors/my-Checkpoint/resume")


@pytest.mark.usefixtures("_no_connectors_left")
def test_changing_the_topics_while_records_come_in_loses_and_repeats_nothing(api: Api, pair: Pair, topic: str) -> None:
    """A lease continues if its topics do not change, and all leases continue if only other settings change."""
    first, second = f"{topic}-one", f"{topic}-other"
    for name in (first, second):
        pair.a.create(name)
    stop = threading.Event()
    config = connector("Source", ALIAS, (pair.a, pair.b), first)
    _put(api, "src", config)
    writing = [threading.Thread(target=_keep_writing, args=(pair.a, name, stop)) for name in (first, second)]
    before = _leases(pair.b, ALIAS) if pair.b.exists(signals_topic(ALIAS)) else set()
    for thread in writing:
        thread.start()
    try:
        until(lambda: pair.b.exists(f"{ALIAS}.{first}") and pair.b.bounds(f"{ALIAS}.{first}")[1] > 0)
        until(lambda: _leases(pair.b, ALIAS) > before)
        (first_lease,) = _leases(pair.b, ALIAS) - before
        _put(api, "src", config | {"topics": f"{first}, {second}"})
        until(lambda: pair.b.exists(f"{ALIAS}.{second}") and pair.b.bounds(f"{ALIAS}.{second}")[1] > 0)
        _put(
            api,
            "src",
            config | {"topics": f"{first}, {second}", "groups": "other.*", "sync.topic.acls.enabled": "false"},
        )
        _put(api, "src", config | {"topics": first})
        api.until(lambda api: api.state("src") == ["RUNNING", "RUNNING"])
        assert {lease for lease in _leases(pair.b, ALIAS) - before if lease.split("-")[-2] == "0"} == {first_lease}
        # Settings of leases: they restart, at the right position.
        _put(api, "src", config | {"heliograph.buffer.memory": str(32 << 20)})
        until(lambda: any(lease.split("-")[-2:] == ["0", "2"] for lease in _leases(pair.b, ALIAS) - before))
        _put(api, "src", config | {"topics": f"{first}, {second}", "tasks.max": "1"})
        api.until(lambda api: len(api("GET", f"{FLOW}/mirrors").body) == 2 and len(api.state("src")) == 2)
    finally:
        stop.set()
        for thread in writing:
            thread.join()
    for name in (first, second):
        until(_copied(pair, name, pair.a.bounds(name)[1]))
        assert pair.b.read(f"{ALIAS}.{name}") == pair.a.read(name)


@pytest.mark.usefixtures("_no_connectors_left")
def test_adding_and_removing_topics_does_not_disturb_a_busy_flow(api: Api, pair: Pair, topic: str) -> None:
    """While 50 MB come in a second, as far as the machine can."""
    heavy, light = f"{topic}-heavy", f"{topic}-light"
    for name in (heavy, light):
        pair.a.create(name)
    pair.a.write(light, some_records(20))
    stop = threading.Event()
    before = _leases(pair.b, ALIAS) if pair.b.exists(signals_topic(ALIAS)) else set()
    config = connector("Source", ALIAS, (pair.a, pair.b), heavy) | {"tasks.max": "1"}
    _put(api, "src", config)
    pouring = threading.Thread(target=_keep_pouring, args=(pair.a, heavy, stop))
    pouring.start()
    try:
        until(lambda: pair.b.exists(f"{ALIAS}.{heavy}") and pair.b.bounds(f"{ALIAS}.{heavy}")[1] > 0)
        until(lambda: _leases(pair.b, ALIAS) > before)
        _put(api, "src", config | {"topics": f"{heavy}, {light}"})
        until(_copied(pair, light, 20))
        _put(api, "src", config)
        api.until(lambda api: len(api("GET", f"{FLOW}/mirrors").body) == 1)
    finally:
        stop.set()
        pouring.join()
    until(_copied(pair, heavy, pair.a.bounds(heavy)[1]))
    assert len(_leases(pair.b, ALIAS) - before) == 1  # it was not restarted
    assert asyncio.run(_difference(pair, heavy)) is None


def _keep_pouring(log: Log, topic: str, stop: threading.Event) -> None:
    batch = encode([Record(0, 1_700_000_000_000, b"k", os.urandom(1000)) for _ in range(500)])
    while not stop.is_set():
        began = time.monotonic()
        log.append(topic, [batch] * 10)  # 5 MB
        time.sleep(max(0.0, began + 0.1 - time.monotonic()))


async def _difference(pair: Pair, topic: str) -> str | None:
    source, target = ClusterClient(pair.a.cluster), ClusterClient(pair.b.cluster)
    await asyncio.gather(source.connect(), target.connect())
    try:
        return (await compare(source, target, MirrorPartition(topic, f"{ALIAS}.{topic}", 0))).difference
    finally:
        source.close()
        target.close()


def _keep_writing(log: Log, topic: str, stop: threading.Event) -> None:
    while not stop.is_set():
        log.write(topic, some_records(200), per_batch=50)
        time.sleep(0.05)


def _debug_lines_of_leases(log: Path, lease: str = "") -> list[str]:
    """Only leases log with the loggers of the data plane at this level."""
    lines = map(json.loads, log.read_text().rpartition("\n")[0].splitlines())
    messages = [
        line["message"] for line in lines if line["level"] == "DEBUG" and line["logger"].startswith("heliograph.copy")
    ]
    return [message for message in messages if lease in message]


@pytest.mark.usefixtures("_no_connectors_left")
def test_single_topics_are_paused_from_a_shell(served: Served, pair: Pair, topic: str) -> None:
    api = served.api
    first, second, last = (f"{topic}-{name}" for name in ("one", "other", "last"))
    for name in (first, second, last):
        pair.a.create(name)
        pair.a.write(name, some_records(10))
    config = connector("Source", ALIAS, (pair.a, pair.b), f"{topic}.*", tasks_max="1")
    _put(api, "src", config | {"heliograph.topics.paused": last})
    until(_copied(pair, first, 10))
    until(_copied(pair, second, 10))

    def command(*arguments: str) -> str:
        done = _command(api, *arguments)
        assert done.exit_code == 0, done.output
        return done.stdout

    assert _debug_lines_of_leases(served.log) == []
    assert "heliograph DEBUG" in command("logs", "level", "debug")
    assert command("pause", f"{ALIAS}->B", "--topic", first) == f"paused {ALIAS}->B {first}\n"
    command("resume", f"{ALIAS}->B", "--topic", last)
    until(_copied(pair, last, 10))  # by the only lease, which executes commands in order: it has paused the first topic

    def states() -> dict[str, dict[str, int]]:
        return {mirror["topic"]: mirror["states"] for mirror in api("GET", f"{FLOW}/mirrors").body}

    def change(verb: str, state: str) -> None:
        command(verb, f"{ALIAS}->B", "--topic", last)
        until(lambda: states()[last] == {state: 1}, states)

    def running_lease_logs_debug() -> bool:
        change("pause", "paused")
        change("resume", "caught-up")
        return bool(_debug_lines_of_leases(served.log))

    until(running_lease_logs_debug)
    until(lambda: states() == {first: {"paused": 1}, second: {"caught-up": 1}, last: {"caught-up": 1}}, states)
    for name in (first, second):
        pair.a.write(name, some_records(5))
    until(_copied(pair, second, 15))
    assert pair.b.bounds(f"{ALIAS}.{first}")[1] == 10
    assert api("GET", "/connectors/src/config").body["heliograph.topics.paused"] == first
    assert json.loads(command("resume", f"{ALIAS}->B", "--topic", first, "--json")) == {
        "resumed": [f"{ALIAS}->B {first}"]
    }
    until(_copied(pair, first, 15))
    leases = _leases(pair.b, ALIAS)
    assert "restarted src" in command("restart", "src")
    assert "src" in command("connectors")
    shown = json.loads(command("status", "--json"))
    assert [flow["connectors"] for flow in shown["flows"]] == [{"src": "RUNNING"}]
    until(lambda: any(_debug_lines_of_leases(served.log, lease) for lease in _leases(pair.b, ALIAS) - leases))
    assert "heliograph INFO" in command("logs", "level", "info")
    events = api("GET", f"/heliograph/v1/events?flow={quote(f'{ALIAS}->B')}&limit=1000").body
    assert f"{ALIAS}->B: mirror {ALIAS}.{first} created with 1 partitions" in [event["text"] for event in events]
    paths = api("GET", "/heliograph/v1/openapi.json").body["paths"]
    assert {"/connectors/{name}/config", "/heliograph/v1/flows/{flow}/mirrors"} <= paths.keys()
    groups = paths["/heliograph/v1/flows/{flow}/groups/{group}"]["get"]["responses"]
    assert groups["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/GroupStanding")
    assert groups.keys() >= {"404", "503"}
    wrong = _command(api, "pause", "none")
    assert (wrong.exit_code, wrong.stderr) == (1, "heliograph: There is no flow none\n")


def _command(api: Api, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--rest", api.url])


@pytest.mark.usefixtures("_no_connectors_left")
def test_what_cannot_run_says_why_and_what_is_stopped_is_a_failed_task(
    api: Api, pair: Pair, topic: str, closed_port: int
) -> None:
    pair.a.create(topic)
    pair.b.create(f"{ALIAS}.{topic}")
    pair.b.write(f"{ALIAS}.{topic}", some_records(1))
    pair.a.write(topic, some_records(3))
    config = connector("Source", ALIAS, (pair.a, pair.b), topic)
    _put(api, "src", config | {"source.cluster.bootstrap.servers": f"127.0.0.1:{closed_port}"})
    api.until(lambda api: api.state("src")[:1] == ["FAILED"])
    assert str(closed_port) in api("GET", "/connectors/src/status").body["connector"]["trace"]
    for path in ("groups", "offsets"):
        got = api("GET", f"{FLOW}/{path}")
        assert (got.status, str(closed_port) in got.body["message"]) == (503, True)
    _put(api, "src", config)
    api.until(lambda api: api.state("src") == ["RUNNING", "FAILED"])
    assert "the ledger has no entry for" in api("GET", "/connectors/src/tasks/0/status").body["trace"]
    done = _command(api, "connectors")
    assert done.exit_code == 1
    assert "the ledger has no entry for" in done.stdout
    again = api("POST", "/connectors", {"name": "second", "config": config})
    assert again.status == 400
    assert "there is a MirrorSourceConnector of L->B already" in again.body["message"]
    assert "slash" in api("POST", "/connectors", {"name": "a/b", "config": config}).body["message"]
    hidden = api("POST", "/connectors", {"name": "x", "config": config | {"sasl.jaas.config": "[hidden]"}})
    assert hidden.status == 400


@pytest.mark.usefixtures("_no_connectors_left")
def test_connectors_survive_a_restart(served: Served, pair: Pair, topic: str) -> None:
    api = served.api
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    for kind in ("Source", "Heartbeat", "Checkpoint"):
        _put(api, kind, connector(kind, ALIAS, (pair.a, pair.b), topic))
    api("PUT", "/connectors/Heartbeat/stop")
    api("DELETE", "/connectors/Checkpoint")
    until(_copied(pair, topic, 10))
    served.stop()
    pair.a.write(topic, some_records(10))
    served.start()
    assert sorted(api("GET", "/connectors").body) == ["Heartbeat", "Source"]
    assert api.state("Heartbeat") == ["STOPPED"]
    until(_copied(pair, topic, 20))
    assert pair.b.read(f"{ALIAS}.{topic}") == pair.a.read(topic)


def test_sighup_reloads_the_file_and_a_file_with_errors_changes_nothing(
    pair: Pair, topic: str, properties: Path, tmp_path: Path
) -> None:
    for name in (topic, f"{topic}-later"):
        pair.a.create(name)
        pair.a.write(name, some_records(10))
    good = properties.read_text().replace(f"{topic}.*", topic)
    properties.write_text(good)
    port = free_port()
    api, log = Api(port), tmp_path / "log"
    process = start("run", properties, "--rest", f"127.0.0.1:{port}", log=log)
    name = quote("A->B.MirrorSourceConnector")
    try:
        until(lambda: pair.b.exists(f"A.{topic}") and pair.b.bounds(f"A.{topic}")[1] == 10)
        assert api.state(name) == ["RUNNING", "RUNNING"]
        assert (api("GET", "/health").status, api("GET", "/health").body["status"]) == (200, "healthy")
        properties.write_text(good.replace("A->B.topics", "tasks.max = many\nA->B.topics"))
        process.send_signal(signal.SIGHUP)
        until(lambda: "'many' is not a whole number; the flows run on unchanged" in log.read_text())
        pair.a.write(topic, some_records(10))
        until(_copied(pair, topic, 20, "A"))
        properties.write_text(good.replace(f"topics = {topic}", f"topics = {topic}.*"))
        process.send_signal(signal.SIGHUP)
        until(_copied(pair, f"{topic}-later", 10, "A"))
        assert api("GET", f"/connectors/{name}/config").body["topics"] == f"{topic}.*"
        api("PUT", f"/connectors/{name}/pause")
        api.until(lambda api: api.state(name) == ["PAUSED", "PAUSED"])
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0
    finally:
        kill(process)
    assert "Traceback" not in log.read_text()
