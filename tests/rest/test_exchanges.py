"""The same requests to a real Connect worker and to Heliograph: the answers are the same, except those listed here."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from logs import PATIENCE, Pair, some_records
from ports import free_port
from rest.api import Answer, Api, connect_worker, connector, serving, worker_file
from running.command import kill, start

# Intended differences, by the name of an exchange: our status, and why. `docs/rest-api.md` lists them, too.
DIFFERENCES = {
    "no JSON": (400, "Connect answers 500 with a Java exception where it should blame the request"),
    "a list as body": (400, "the same"),
    "no config": (400, "the same"),
    "an unknown field": (400, "the same"),
    "an unknown initial state": (400, "the same"),
    "a setting that is an object": (400, "the same"),
    "validate nothing": (400, "the same"),
    "validate an unknown class": (400, "the same"),
    "an unknown class": (400, "the list of plugins is that of Heliograph"),
    "a bad number": (400, "with Heliograph's message, and counted once"),
    "patch a bad number": (400, "the same"),
    "no address": (400, "Connect accepts it, and the connector fails later"),
    "alter an unknown field": (400, "Connect answers 500 with a Java exception where it should blame the request"),
    "alter a null partition": (400, "the same, with Connect's message"),
    "alter without a cluster": (400, "the same"),
    "alter a partition that is no integer": (400, "the same"),
    "alter a list": (400, "the same"),
    "alter an offset that is no integer": (400, "the same"),
    "alter a negative offset": (400, "the same"),
    "alter Checkpoint": (400, "the same"),
    "alter Heartbeat": (400, "the same"),
    "alter another cluster": (400, "Connect stores it without effect"),
    "alter beyond the end": (400, "Connect accepts it, and copies again from the start or continues at the end"),
}
ALIAS, REAL, OURS = "ALIAS", "REALWORKER", "HELIOGRAPH"


class Recorder:
    """Sends requests and stores the answers by name, without values that differ from run to run."""

    def __init__(self, api: Api, alias: str) -> None:
        self.api = api
        self.alias = alias
        self.answers: dict[str, tuple[int, Any]] = {}

    def __call__(self, name: str, method: str, path: str, body: Any = None, kind: str = "application/json") -> Answer:
        assert name not in self.answers
        answer = self.api(method, path, body, kind)
        if isinstance(answer.body, dict) and "connector" in answer.body:
            answer.body["tasks"].sort(key=lambda task: task["id"])  # Connect guarantees no order
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body, sort_keys=True)
        text += f" Location: {answer.location}" if answer.location else ""
        for wrong, right in (
            (self.alias, ALIAS),
            (str(self.api.port), "PORT"),
            (r'"version": ("[^"]*"|null)', '"version": 0'),
            (r'"(commit|kafka_cluster_id)": "[^"]*"', r'"\1": ""'),
            (r'"last_modified": \d+', '"last_modified": 1'),
        ):
            text = re.sub(wrong, right, text)
        self.answers[name] = (answer.status, text)
        return answer


@dataclass(frozen=True)
class Both:
    real: Recorder
    ours: Recorder
    worker_file: Path  # of the real worker
    worker: "subprocess.Popen[bytes]"
    refused: "subprocess.Popen[bytes]"  # Heliograph with the file of a worker that runs
    folder: Path


@pytest.fixture(scope="module")
def both(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """The answers of both to all requests, sent in parallel; both still run."""
    folder = tmp_path_factory.mktemp("exchanges")
    topic = "t-exchanged"
    pair.a.create(topic, partitions=3)
    pair.a.write(topic, some_records(10), partition=0)
    pair.a.write(topic, some_records(5), partition=2)
    pair.a.commit(topic, topic, 4)
    file, real = worker_file(folder, pair.b, "real-worker")
    with (
        connect_worker(file, real) as worker,
        serving(*worker_file(folder, pair.b, "heliograph-worker")) as ours,
    ):
        refused = start("serve", file, "--rest", f"127.0.0.1:{free_port()}", log=folder / "refused.log")
        recorders = Recorder(real, REAL), Recorder(ours, OURS)
        try:
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda recorder: _exchange(recorder, pair, topic), recorders))
            yield Both(*recorders, file, worker, refused, folder)
        finally:
            kill(refused)


def test_the_answers_are_connects(both: Both) -> None:
    real, ours = both.real.answers, both.ours.answers
    assert real.keys() == ours.keys()
    different = {name for name in real if real[name] != ours[name]}
    unexpected = {name: (real[name], ours[name]) for name in different - DIFFERENCES.keys()}
    assert unexpected == {}
    assert DIFFERENCES.keys() - different == set(), "these do not differ any more"
    assert {name: ours[name][0] for name in different} == {name: DIFFERENCES[name][0] for name in different}
    for name in different:
        if ours[name][0] >= 400:
            assert json.loads(ours[name][1])["error_code"] == ours[name][0], name


def test_every_difference_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "rest-api.md").read_text()
    assert [name for name in DIFFERENCES if f"| {name} |" not in page] == []


def test_a_shell_script_cannot_tell_them_apart(both: Both, pair: Pair) -> None:
    def outputs(recorder: Recorder) -> list[str]:
        folder = both.folder / recorder.alias
        folder.mkdir()
        for kind in ("Source", "Checkpoint", "Heartbeat"):
            config = connector(kind, recorder.alias, (pair.a, pair.b), "t-exchanged")
            (folder / f"mm2-{kind.lower()}.json").write_text(json.dumps(config))
        printed = [
            _script(recorder, word, folder)
            for word in ("status", "deploy", "status", "redeploy", "status", "undeploy", "status")
        ]
        (folder / "mm2-source.json").write_text(json.dumps({"connector.class": "MirrorSource"}))
        printed.append(_script(recorder, "deploy", folder).partition("following")[0])
        return [*printed, _script(recorder, "undeploy", folder)]

    with ThreadPoolExecutor() as pool:
        real, ours = pool.map(outputs, (both.real, both.ours))
    assert real == ours
    running = "mm2-source source RUNNING tasks: RUNNING RUNNING"
    assert running in ours[2]
    assert running in ours[4]
    assert ours[6] == "0\n"
    assert ours[7].startswith("1\n")


def _script(recorder: Recorder, word: str, folder: Path) -> str:
    """Exit status and output."""
    script = Path(__file__).parents[2] / "examples" / "connect-rest" / "deploy.sh"
    done = subprocess.run(
        [script, word, folder],
        env=os.environ | {"CONNECT_URL": recorder.api.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return f"{done.returncode}\n{done.stdout}"


def test_connects_connectors_are_taken_over_when_its_workers_are_gone(both: Both, pair: Pair) -> None:
    assert both.refused.wait(timeout=PATIENCE) == 1
    assert "workers of Kafka Connect are running (group real-worker" in (both.folder / "refused.log").read_text()
    config = connector("Source", REAL, (pair.a, pair.b), "t-exchanged", sasl_jaas_config="do not tell")
    for name, state in (("left-paused", "PAUSED"), ("left-stopped", "STOPPED")):
        part = config | {"connector.class": f"Mirror{'Source' if state == 'PAUSED' else 'Heartbeat'}Connector"}
        assert (
            both.real.api("POST", "/connectors", {"name": name, "initial_state": state, "config": part}).status == 201
        )
    both.real.api.until(lambda api: (api.state("left-paused"), api.state("left-stopped")) == (["PAUSED"], ["STOPPED"]))
    both.worker.terminate()
    both.worker.wait(timeout=PATIENCE)
    with serving(both.worker_file, both.real.api):
        both.real.api.until(lambda api: sorted(api("GET", "/connectors").body) == ["left-paused", "left-stopped"])
        assert both.real.api.state("left-paused") == ["PAUSED"]
        assert both.real.api.state("left-stopped") == ["STOPPED"]
        shown = both.real.api("GET", "/connectors/left-paused/config").body
        assert shown == config | {
            "connector.class": "MirrorSourceConnector",
            "name": "left-paused",
            "sasl.jaas.config": "[hidden]",
        }
        assert both.real.api("PUT", "/connectors/left-paused/config", shown).status == 200
        assert both.real.api("DELETE", "/connectors/left-stopped").status == 204
        made = {"name": "made-here", "initial_state": "STOPPED", "config": part}
        assert both.real.api("POST", "/connectors", made).status == 201
        made = {"name": "disabled", "config": part | {"connector.class": "MirrorCheckpoint", "enabled": "false"}}
        assert both.real.api("POST", "/connectors", made).status == 201
        assert both.real.api.state("disabled") == ["RUNNING"]
        assert both.real.api("DELETE", "/connectors/disabled").status == 204
    with connect_worker(both.worker_file, both.real.api):  # and the way back
        both.real.api.until(lambda api: (api.state("left-paused"), api.state("made-here")) == (["PAUSED"], ["STOPPED"]))
        assert sorted(both.real.api("GET", "/connectors").body) == ["left-paused", "made-here"]
        assert both.real.api.state("left-stopped") == []
    kept = [value for key, value in pair.b.pairs("real-worker-configs") if key == b"connector-left-paused"]
    assert b"do not tell" in kept[-1]


def _exchange(call: Recorder, pair: Pair, topic: str) -> None:
    config = connector("Source", call.alias, (pair.a, pair.b), topic)
    _on_nothing(call, config)
    _on_a_source_connector(call, config)
    _on_the_other_connectors(call, pair, topic)
    _on_plugins_and_loggers(call, config)


def _on_nothing(call: Recorder, config: dict[str, str]) -> None:
    call("root", "GET", "/")
    call("health", "GET", "/health")
    call("no connectors", "GET", "/connectors")
    call("no connectors, expanded", "GET", "/connectors?expand=status&expand=info")
    for path in ("", "/config", "/status", "/tasks", "/tasks/0/status", "/topics", "/offsets", "/nonsense"):
        call(f"GET {path} of none", "GET", f"/connectors/none{path}")
    for verb in ("pause", "resume", "stop", "topics/reset"):
        call(f"{verb} none", "PUT", f"/connectors/none/{verb}")
    for verb in ("restart", "restart?includeTasks=true", "tasks/0/restart"):
        call(f"{verb} none", "POST", f"/connectors/none/{verb}")
    call("delete none", "DELETE", "/connectors/none")
    call("patch none", "PATCH", "/connectors/none/config", {"a": "b"})
    call("alter offsets of none", "PATCH", "/connectors/none/offsets", {"offsets": [{"partition": {}, "offset": {}}]})
    call("reset offsets of none", "DELETE", "/connectors/none/offsets")
    call("no path", "GET", "/nonsense")
    call("no method", "DELETE", "/connectors")
    call("no kind", "POST", "/connectors", "x", "text/plain")
    call("no JSON", "POST", "/connectors", '{"name":')
    call("a list as body", "POST", "/connectors", [])
    call("no config", "POST", "/connectors", {"name": "x"})
    call("an empty config", "POST", "/connectors", {"name": "x", "config": {}})
    call("an unknown field", "POST", "/connectors", {"name": "x", "what": 1, "config": config})
    call("an unknown initial state", "POST", "/connectors", {"name": "x", "initial_state": "ODD", "config": config})
    call("a setting that is an object", "PUT", "/connectors/x/config", {"a": {"b": 1}})
    call("an unknown class", "POST", "/connectors", {"name": "x", "config": {"connector.class": "Unknown"}})
    call("another name in the config", "POST", "/connectors", {"name": "x", "config": config | {"name": "y"}})
    call("no name", "POST", "/connectors", {"name": "", "config": config})
    call("a null", "POST", "/connectors", {"name": "x", "config": config | {"of.nobody": None}})
    call("a bad number", "POST", "/connectors", {"name": "x", "config": config | {"tasks.max": "many"}})
    nobody = {key: value for key, value in config.items() if key != "source.cluster.alias"}
    call("no source", "POST", "/connectors", {"name": "x", "config": nobody})
    bare = {key: value for key, value in config.items() if "bootstrap" not in key}
    call("no address", "PUT", "/connectors/x/config", bare)
    call.api("DELETE", "/connectors/x")


def _on_a_source_connector(call: Recorder, config: dict[str, str]) -> None:
    def is_now(*states: str) -> None:
        call.api.until(lambda api: api.state("src") == list(states))

    def noted(count: int) -> None:
        call.api.until(lambda api: len(api("GET", "/connectors/src/offsets").body["offsets"]) == count)

    call("create", "POST", "/connectors", {"name": "src", "config": config | {"tasks.max": 2, "enabled": True}})
    is_now("RUNNING", "RUNNING", "RUNNING")
    call.api.until(lambda api: api("GET", "/connectors/src/topics").body["src"]["topics"] != [])
    noted(2)
    call("create again", "POST", "/connectors", {"name": "src", "config": config})
    for path in ("", "/config", "/status", "/tasks/0/status", "/tasks/9/status", "/tasks/x/status", "/topics"):
        call(f"GET {path}", "GET", f"/connectors/src{path}")
    offsets = call.api("GET", "/connectors/src/offsets").body["offsets"]
    assert sorted((entry["partition"]["partition"], entry["offset"]["offset"]) for entry in offsets) == [(0, 9), (2, 4)]
    assert {tuple(sorted(entry["partition"])) for entry in offsets} == {("cluster", "partition", "topic")}
    tasks = call.api("GET", "/connectors/src/tasks").body
    assert [task["id"] for task in tasks] == [{"connector": "src", "task": 0}, {"connector": "src", "task": 1}]
    assert sorted(",".join(task["config"]["task.assigned.partitions"] for task in tasks).split(",")) == [
        f"{config['topics']}-{partition}" for partition in range(3)
    ]
    assert {task["config"]["task.class"] for task in tasks} == {"org.apache.kafka.connect.mirror.MirrorSourceTask"}
    mine = "/connectors?expand="
    assert call.api("GET", f"{mine}info&expand=status").body["src"].keys() == {"info", "status"}
    assert call.api("GET", f"{mine}status").body["src"].keys() == {"status"}
    assert call.api("GET", f"{mine}odd").body["src"] == {}
    call("restart the failed", "POST", "/connectors/src/restart?includeTasks=true&onlyFailed=true")
    call("restart all", "POST", "/connectors/src/restart?includeTasks=true")
    is_now("RUNNING", "RUNNING", "RUNNING")
    call("restart itself", "POST", "/connectors/src/restart?includeTasks=odd")
    is_now("RUNNING", "RUNNING", "RUNNING")
    call("restart a task", "POST", "/connectors/src/tasks/0/restart")
    call("restart no task", "POST", "/connectors/src/tasks/9/restart")
    call("patch", "PATCH", "/connectors/src/config", {"tasks.max": "1", "enabled": None})
    is_now("RUNNING", "RUNNING")
    call("patch a bad number", "PATCH", "/connectors/src/config", {"tasks.max": "no"})
    call("put", "PUT", "/connectors/src/config", config)
    is_now("RUNNING", "RUNNING", "RUNNING")
    call("put another name", "PUT", "/connectors/src/config", config | {"name": "other"})
    call("pause", "PUT", "/connectors/src/pause")
    call("pause again", "PUT", "/connectors/src/pause")
    is_now("PAUSED", "PAUSED", "PAUSED")
    call("status when paused", "GET", "/connectors/src/status")
    first = {"cluster": call.alias, "partition": 0, "topic": config["topics"]}
    change = {"offsets": [{"partition": first, "offset": {"offset": 1}}]}
    call("alter offsets when paused", "PATCH", "/connectors/src/offsets", change)
    call("reset offsets when paused", "DELETE", "/connectors/src/offsets")
    call("stop", "PUT", "/connectors/src/stop")
    is_now("STOPPED")
    for path in ("", "/status", "/tasks"):
        call(f"GET {path} when stopped", "GET", f"/connectors/src{path}")
    noted(2)
    _alter_offsets(call, first)
    call("alter offsets", "PATCH", "/connectors/src/offsets", change)
    offsets = call.api("GET", "/connectors/src/offsets").body["offsets"]
    assert sorted((entry["partition"]["partition"], entry["offset"]["offset"]) for entry in offsets) == [(0, 1), (2, 4)]
    _alter_offset(call, "alter another cluster", first | {"cluster": "other"}, 1)
    _alter_offset(call, "alter beyond the end", first, 1000)
    call("reset offsets", "DELETE", "/connectors/src/offsets")
    call("offsets after reset", "GET", "/connectors/src/offsets")
    call("resume", "PUT", "/connectors/src/resume")
    is_now("RUNNING", "RUNNING", "RUNNING")
    call("reset topics", "PUT", "/connectors/src/topics/reset")
    call("delete", "DELETE", "/connectors/src")
    call.api.until(lambda api: api.state("src") == [])
    call("status when deleted", "GET", "/connectors/src/status")
    call("delete again", "DELETE", "/connectors/src")


def _alter_offset(call: Recorder, name: str, partition: Any, offset: Any, connector: str = "src") -> None:
    body = {"offsets": [{"partition": partition, "offset": None if offset is None else {"offset": offset}}]}
    call(name, "PATCH", f"/connectors/{connector}/offsets", body)


def _until_alterable(call: Recorder, connector: str) -> None:
    """Connect answers 409 while it rebalances."""
    nothing: dict[str, Any] = {"offsets": [{"partition": {}, "offset": None}]}
    call.api.until(lambda api: api("PATCH", f"/connectors/{connector}/offsets", nothing).status != 409)


def _alter_offsets(call: Recorder, first: dict[str, Any]) -> None:
    path = "/connectors/src/offsets"
    _until_alterable(call, "src")
    call("alter no offsets", "PATCH", path, {"offsets": []})
    call("alter an unknown field", "PATCH", path, {"offsets": [{"partition": first, "offset": None}], "more": 1})
    _alter_offset(call, "reset what is no partition", {"of": "nobody"}, None)
    _alter_offset(call, "alter a null partition", None, 1)
    _alter_offset(call, "alter without a cluster", {"topic": "t", "partition": 0}, 1)
    _alter_offset(call, "alter a partition that is no integer", first | {"partition": "0"}, 1)
    _alter_offset(call, "alter a list", first | {"topic": ["t"]}, 1)
    _alter_offset(call, "alter an offset that is no integer", first, "1")
    _alter_offset(call, "alter a negative offset", first, -1)


def _on_the_other_connectors(call: Recorder, pair: Pair, topic: str) -> None:
    for kind, state in (("Checkpoint", "PAUSED"), ("Heartbeat", "STOPPED")):
        name = f"{call.alias}->B.Mirror{kind}Connector"
        config = connector(kind, call.alias, (pair.a, pair.b), topic, consumer_auto_offset_reset="earliest")
        call(f"create {kind}", "POST", "/connectors", {"name": name, "initial_state": state, "config": config})
        _on_another_connector(call, kind, quote(name), state)
    _on_a_checkpoint_connector_without_groups(call, connector("Checkpoint", call.alias, (pair.a, pair.b), topic))


def _on_a_checkpoint_connector_without_groups(call: Recorder, config: dict[str, str]) -> None:
    call(
        "create without groups",
        "POST",
        "/connectors",
        {"name": "alone", "config": config | {"groups": "no-such-group"}},
    )
    call.api.until(lambda api: api.state("alone") == ["RUNNING"])
    call("status without groups", "GET", "/connectors/alone/status")
    call("tasks without groups", "GET", "/connectors/alone/tasks")
    call("delete without groups", "DELETE", "/connectors/alone")


def _on_another_connector(call: Recorder, kind: str, name: str, state: str) -> None:
    path = f"/connectors/{name}"
    call.api.until(lambda api: api.state(name) == [state])
    call(f"status of {kind}", "GET", f"{path}/status")
    call(f"resume {kind}", "PUT", f"{path}/resume")
    call.api.until(lambda api: api.state(name) == ["RUNNING", "RUNNING"])
    call(f"running {kind}", "GET", path)
    call.api.until(lambda api: api("GET", f"{path}/topics").body.popitem()[1]["topics"] != [])
    call(f"topics of {kind}", "GET", f"{path}/topics")
    call(f"stop {kind}", "PUT", f"{path}/stop")
    call.api.until(lambda api: api.state(name) == ["STOPPED"])
    _until_alterable(call, name)
    partition = {"group": "g", "topic": "t", "partition": 0}
    partition |= {"sourceClusterAlias": call.alias, "targetClusterAlias": "B"}  # what is not needed does no harm
    _alter_offset(call, f"alter {kind} to zero", partition, 0, name)
    _alter_offset(call, f"alter {kind}", partition, 1, name)
    call(f"reset {kind}", "DELETE", f"{path}/offsets")
    call(f"delete {kind}", "DELETE", path)


def _on_plugins_and_loggers(call: Recorder, config: dict[str, str]) -> None:
    source = "/connector-plugins/MirrorSourceConnector/config"
    call("plugins", "GET", "/connector-plugins")
    call("unknown plugin", "GET", "/connector-plugins/Unknown/config")
    got = call.api("GET", source).body
    assert got[0].keys() == {
        *("name", "type", "required", "default_value", "importance", "documentation"),
        *("group", "order_in_group", "width", "display_name", "dependents"),
    }
    types = {setting["name"]: setting["type"] for setting in got}
    wanted = {"topics": "LIST", "enabled": "BOOLEAN", "sasl.jaas.config": "PASSWORD", "offset.lag.max": "LONG"}
    assert wanted.items() <= types.items()
    good = call.api("PUT", f"{source}/validate", config | {"name": "x"}).body
    assert (good["name"], good["error_count"]) == (config["connector.class"], 0)
    bad = call.api("PUT", f"{source}/validate", config | {"name": "x", "replication.factor": "two"}).body
    assert [setting["value"]["name"] for setting in bad["configs"] if setting["value"]["errors"]] == [
        "replication.factor"
    ]
    call("validate another class", "PUT", f"{source}/validate", {"connector.class": "MirrorHeartbeat"})
    call("validate nothing", "PUT", f"{source}/validate", {})
    call("validate an unknown class", "PUT", "/connector-plugins/X/config/validate", {"connector.class": "X"})
    assert "root" in call.api("PUT", "/admin/loggers/root", {"level": "ERROR"}).body
    call("level of the root logger", "GET", "/admin/loggers/root")
    mirror = "/admin/loggers/org.apache.kafka.connect.mirror"
    assert "org.apache.kafka.connect.mirror" in call.api("PUT", mirror, {"level": "DEBUG"}).body
    call("level of a logger", "GET", mirror)
    call("no level", "PUT", mirror, {})
    call("a wrong level", "PUT", mirror, {"level": "LOUD"})
    call("a level everywhere", "PUT", f"{mirror}?scope=cluster", {"level": "WARN"})
    call("no logger", "GET", "/admin/loggers/no.such.thing")
