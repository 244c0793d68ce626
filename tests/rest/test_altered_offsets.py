"""Offsets of stopped connectors are altered and reset: PATCH and DELETE /connectors/{name}/offsets, on real mirrors."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from heliograph.model.internal_topics import STATUS, signals_topic
from heliograph.wire.records import encode
from logs import PATIENCE, Log, Pair, Record, some_records, until
from rest.api import Answer, Api, connector, worker_file
from running.command import start

ALTERED = {"message": "The offsets for this connector have been altered successfully"}
RESET = {"message": "The offsets for this connector have been reset successfully"}


class Served:
    """`heliograph serve`, which can be killed and started again."""

    def __init__(self, file: Path, api: Api) -> None:
        self._file = file
        self._process: subprocess.Popen[bytes] | None = None
        self.api = api
        self.log = file.with_suffix(".log")

    def start(self) -> None:
        self._process = process = start("serve", self._file, log=self.log)
        until(lambda: self.api.up() or process.poll() is not None, self.log.read_text)
        assert process.poll() is None, self.log.read_text()

    def kill(self) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=PATIENCE)


@pytest.fixture(scope="module")
def served(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = Served(*worker_file(tmp_path_factory.mktemp("altered"), pair.b, "altered"))
    running.start()
    yield running
    running.kill()


class Mirrored:
    """A source connector, and a checkpoint connector if there are groups, of a flow of its own."""

    def __init__(self, api: Api, pair: Pair, topic: str, alias: str) -> None:
        self.api = api
        self.pair = pair
        self.topic = topic
        self.alias = alias
        self.mirror = f"{alias}.{topic}"
        self.path = f"/connectors/{alias}-Source"

    def post(self, kind: str = "Source", state: str = "RUNNING", **more: str) -> None:
        config = connector(kind, self.alias, (self.pair.a, self.pair.b), self.topic, **more)
        body = {"name": f"{self.alias}-{kind}", "initial_state": state, "config": config}
        answer = self.api("POST", "/connectors", body)
        assert answer.status == 201, answer

    def is_copied(self, partition: int, end: int) -> bool:
        return self.pair.b.exists(self.mirror) and self.pair.b.bounds(self.mirror, partition)[1] == end

    def stop(self) -> None:
        self.api("PUT", f"{self.path}/stop")
        self.api.until(lambda api: api.state(f"{self.alias}-Source") == ["STOPPED"])

    def resume(self) -> None:
        assert self.api("PUT", f"{self.path}/resume").status == 202

    def alter(self, **offsets: int | None) -> Answer:
        """p0=7: the last record of partition 0 that counts as copied is that at offset 7."""
        entries = [
            {
                "partition": {"cluster": self.alias, "topic": self.topic, "partition": int(name[1:])},
                "offset": None if offset is None else {"offset": offset},
            }
            for name, offset in offsets.items()
        ]
        return self.api("PATCH", f"{self.path}/offsets", {"offsets": entries})

    def offsets(self) -> dict[int, int]:
        entries = self.api("GET", f"{self.path}/offsets").body["offsets"]
        return {entry["partition"]["partition"]: entry["offset"]["offset"] for entry in entries}

    def translated(self, offset: int) -> int:
        """The mirror offset of a group that has committed an offset of partition 0."""
        self.pair.a.commit(self.topic, self.topic, offset)
        group = self.api("GET", f"/heliograph/v1/flows/{quote(f'{self.alias}->B')}/groups/{self.topic}").body
        assert group["partitions"][0]["source_offset"] == offset
        return int(group["partitions"][0]["mirror_offset"])

    def events(self) -> list[str]:
        return [event["text"] for event in self.api("GET", f"/heliograph/v1/events?topic={self.topic}").body]


def _after_a_kill(change: Callable[[], Answer]) -> Answer:
    """A process that was killed counts as running until its last status is 20 s old."""
    answers: list[Answer] = []

    def is_allowed() -> bool:
        answers.append(change())
        return answers[-1].status != 409

    until(is_allowed)
    return answers[-1]


def test_records_are_skipped_and_copied_again_as_asked(served: Served, pair: Pair, topic: str) -> None:
    flow = Mirrored(served.api, pair, topic, "altered")
    pair.a.create(topic, partitions=2)
    pair.a.write(topic, some_records(30))
    pair.a.write(topic, some_records(10), partition=1)
    flow.post()
    flow.post("Checkpoint")
    until(lambda: flow.is_copied(0, 30) and flow.is_copied(1, 10))
    assert flow.alter(p0=34).status == 400
    flow.stop()
    pair.a.write(topic, some_records(20))
    source = pair.a.read(topic)

    done = flow.alter(p0=34)  # five records are skipped
    assert (done.status, done.body) == (200, ALTERED)
    assert flow.offsets() == {0: 34, 1: 9}
    text = f"{topic}-0 continues with source offset 35 instead of 30, at mirror offset 30, as asked for"
    assert f"altered->B: {text}: 5 offsets are skipped" in flow.events()
    assert [flow.translated(offset) for offset in (12, 30, 32, 40)] == [12, 30, 30, 30]
    served.kill()
    served.start()
    served.api.until(lambda api: api.state("altered-Source") == ["STOPPED"])
    assert flow.offsets() == {0: 34, 1: 9}
    flow.resume()
    until(lambda: flow.is_copied(0, 45))
    assert pair.b.read(flow.mirror) == [*source[:30], *source[35:50]]
    assert [flow.translated(offset) for offset in (12, 30, 32, 35, 40, 50)] == [12, 30, 30, 30, 35, 45]

    flow.stop()
    assert _after_a_kill(lambda: flow.alter(p0=19, p1=None)).body == ALTERED
    assert flow.offsets() == {0: 19}
    assert [flow.translated(offset) for offset in (12, 19, 20, 40)] == [12, 19, 45, 45]
    flow.resume()
    until(lambda: flow.is_copied(0, 75) and flow.is_copied(1, 20))
    copied = [*source[:30], *source[35:50], *source[20:50]]
    assert pair.b.read(flow.mirror) == copied
    assert pair.b.read(flow.mirror, 1) == pair.a.read(topic, 1) * 2
    assert [flow.translated(offset) for offset in (12, 19, 20, 40, 50)] == [12, 19, 45, 65, 75]

    served.kill()
    pair.a.write(topic, some_records(5))
    served.start()
    until(lambda: flow.is_copied(0, 80))
    source = pair.a.read(topic)
    copied += source[50:]
    assert pair.b.read(flow.mirror) == copied

    flow.stop()
    done = _after_a_kill(lambda: served.api("DELETE", f"{flow.path}/offsets"))
    assert (done.status, done.body) == (200, RESET)
    assert flow.offsets() == {}
    flow.resume()
    until(lambda: flow.is_copied(0, 135) and flow.is_copied(1, 30))
    assert pair.b.read(flow.mirror) == [*copied, *source]
    assert [flow.translated(offset) for offset in (0, 12, 55)] == [80, 92, 135]


def test_a_connector_that_never_ran_begins_where_asked(served: Served, pair: Pair, topic: str) -> None:
    flow = Mirrored(served.api, pair, topic, "begun")
    pair.a.create(topic)
    pair.a.write(topic, some_records(20))
    flow.post(state="STOPPED")
    served.api.until(lambda api: api.state("begun-Source") == ["STOPPED"])
    assert flow.offsets() == {}
    assert flow.alter(p0=11).body == ALTERED
    assert flow.offsets() == {0: 11}
    flow.resume()
    until(lambda: flow.is_copied(0, 8))
    assert pair.b.read(flow.mirror) == pair.a.read(topic)[12:]


def _refused(answer: Answer, status: int, *texts: str) -> None:
    assert answer.status == status, answer
    assert [text for text in texts if text not in answer.body["message"]] == [], answer


def test_what_cannot_be_done_is_refused_as_a_whole(served: Served, pair: Pair, topic: str) -> None:
    flow = Mirrored(served.api, pair, topic, "refused")
    pair.a.create(topic, partitions=2)
    pair.a.write(topic, some_records(20))
    flow.post()
    until(lambda: flow.is_copied(0, 20))
    flow.stop()
    before = flow.offsets()
    _refused(flow.alter(p0=7, p1=3), 400, f"{topic}-1: the source ends at offset 0, and 4 would be copied next")
    _refused(flow.alter(p0=7, p2=0), 400, f"topic {topic} of refused has no partition 2")
    other = {"partition": {"cluster": "refused", "topic": "none", "partition": 0}, "offset": {"offset": 1}}
    _refused(served.api("PATCH", f"{flow.path}/offsets", {"offsets": [other]}), 400, "refused->B has no topic none")
    assert flow.offsets() == before
    _write_status(pair.b, "refused")
    _refused(flow.alter(p0=7), 409, "another process (run someone on far) has written a status of refused->B")
    assert flow.offsets() == before


def _write_status(target: Log, alias: str) -> None:
    """As another process would that runs the same flow."""
    value = json.dumps({"name": f"{alias}->B", "run_id": "someone", "host": "far"}).encode()
    target.append(signals_topic(alias), [encode([Record(0, 0, b"status", value)])], STATUS)


def test_a_mirror_with_the_sources_offsets_keeps_them(served: Served, pair: Pair, topic: str) -> None:
    flow = Mirrored(served.api, pair, topic, "preserved")
    pair.a.create(topic)
    pair.a.write(topic, some_records(20))
    flow.post(heliograph_offsets="preserve")
    until(lambda: flow.is_copied(0, 20))
    flow.stop()
    reason = f"{topic}-0: the mirror has the source's offsets (heliograph.offsets = preserve)"
    _refused(flow.alter(p0=7), 400, reason)
    _refused(served.api("DELETE", f"{flow.path}/offsets"), 400, reason)
    assert flow.alter(p0=19).body == ALTERED  # where it is anyway
    flow.resume()
    pair.a.write(topic, some_records(5))
    until(lambda: flow.is_copied(0, 25))
    assert pair.b.read(flow.mirror) == pair.a.read(topic)


def test_offsets_of_checkpoints_and_heartbeats_mean_nothing(served: Served, pair: Pair, topic: str) -> None:
    flow = Mirrored(served.api, pair, topic, "others")
    of: dict[str, dict[str, Any]] = {
        "Checkpoint": {"group": "g", "topic": "t", "partition": 0},
        "Heartbeat": {"sourceClusterAlias": "others", "targetClusterAlias": "B"},
    }
    for kind, partition in of.items():
        flow.post(kind, state="STOPPED")
        path = f"/connectors/others-{kind}/offsets"
        answer = served.api("PATCH", path, {"offsets": [{"partition": partition, "offset": {"offset": 0}}]})
        assert (answer.status, answer.body) == (200, ALTERED)
        assert served.api("DELETE", path).body == RESET
