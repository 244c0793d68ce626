"""MirrorMaker 2 on a Connect cluster, as with Strimzi: noticed while it runs, taken over from, and handed back to."""

import json
import signal
from pathlib import Path

import pytest

from heliograph.model.connect_records import PAUSED, RUNNING, STOPPED
from logs import PATIENCE, Pair, some_records, until
from ports import free_port
from rest.api import Api, connect_worker, connector, worker_file
from running.command import heliograph, kill, start

_RESOURCE = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata:
  name: mirror
spec:
  replicas: 1
  connectCluster: B
  clusters:
    - alias: {alias}
      bootstrapServers: {source}
    - alias: B
      bootstrapServers: {target}
  mirrors:
    - sourceCluster: {alias}
      targetCluster: B
      sourceConnector:
        state: {state}
        config:
          replication.factor: 1
          offset-syncs.topic.replication.factor: 1
          sync.topic.acls.enabled: false
          heartbeats.replication.enabled: false
          refresh.topics.interval.seconds: 1
      topicsPattern: {topic}
"""


def _resource(pair: Pair, folder: Path, alias: str, topic: str, state: str = "running") -> Path:
    file = folder / "mirror.yaml"
    clusters = {"alias": alias, "source": pair.a.bootstrap, "target": pair.b.bootstrap}
    file.write_text(_RESOURCE.format(**clusters, topic=topic, state=state))
    return file


@pytest.fixture
def worker(pair: Pair, tmp_path: Path) -> tuple[Path, Api]:
    """A worker's file with the names that Strimzi gives to group and topics."""
    file, api = worker_file(tmp_path, pair.b, "mirrormaker2-cluster")
    file.write_text(file.read_text().replace("-statuss", "-status"))
    return file, api


def test_a_connector_is_noticed_taken_over_and_handed_back(
    pair: Pair, topic: str, tmp_path: Path, worker: tuple[Path, Api]
) -> None:
    """The workers run all the time: other connectors may need them."""
    name, mirror = "lake->B.MirrorSourceConnector", f"lake.{topic}"
    pair.a.create(topic)
    pair.a.write(topic, some_records(300))
    file, api = worker
    config = connector("Source", "lake", (pair.a, pair.b), topic, sync_topic_acls_enabled="false")
    resource = _resource(pair, tmp_path, "lake", topic)
    posted = tmp_path / "source.json"
    posted.write_text(json.dumps({"name": name, "config": config}))
    path = f"/connectors/{name.replace('>', '%3E')}"

    def copied(count: int) -> None:
        until(lambda: pair.b.exists(mirror) and pair.b.bounds(mirror)[1] == count)

    with connect_worker(file, api):
        assert api("POST", "/connectors", {"name": name, "config": config}).status == 201
        copied(300)
        refused = heliograph("run", resource, "--until-caught-up", "--no-rest")
        assert refused.returncode == 1
        assert (
            "MirrorMaker 2 is still running for lake->B (its group mirrormaker2-cluster on B runs the connector "
            f"{name}, which is RUNNING): two cannot write to the same mirrors, so stop the connector first: PUT "
            f"/connectors/{name}/stop"
        ) in refused.stderr
        assert api("PUT", f"{path}/stop").status == 204
        until(lambda: api.state(path.rpartition("/")[2]) == [STOPPED])
        pair.a.write(topic, some_records(50))
        planned = heliograph("run", posted, "--worker", file, "--plan")
        assert f"take over from MirrorMaker 2: {topic}-0: mirror offset 300, source offset 300" in planned.stdout
        done = heliograph("run", resource, "--until-caught-up", "--no-rest")
        assert done.returncode == 0, done.stderr
        assert f"mirror {mirror}-0 taken over from MirrorMaker 2 at mirror offset 300" in done.stderr
        copied(350)
        assert api("PUT", f"{path}/resume").status == 202
        pair.a.write(topic, some_records(10))
        copied(360)
        assert api("DELETE", path).status == 204
    assert pair.b.read(mirror) == pair.a.read(topic)


def test_a_paused_connector_of_a_resource_copies_when_it_is_resumed(pair: Pair, topic: str, tmp_path: Path) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(20))
    resource = _resource(pair, tmp_path, "pond", topic, "paused")
    ended = heliograph("run", resource, "--until-caught-up", "--no-rest")
    assert ended.returncode == 1
    assert "not caught up: pond->B, which is paused" in ended.stderr
    port, log = free_port(), tmp_path / "log"
    api = Api(port)
    process = start("run", resource, "--rest", f"127.0.0.1:{port}", log=log)
    try:
        name = "pond-%3EB.MirrorSourceConnector"
        until(lambda: api.up() and api.state(name) == [PAUSED], log.read_text)
        assert not pair.b.exists(f"pond.{topic}")
        assert api("PUT", f"/connectors/{name}/resume").status == 202
        until(lambda: pair.b.exists(f"pond.{topic}") and pair.b.bounds(f"pond.{topic}")[1] == 20, log.read_text)
        until(lambda: api.state(name)[:1] == [RUNNING], log.read_text)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE) == 0, log.read_text()
    finally:
        kill(process)
