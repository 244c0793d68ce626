"""Several processes that run one file share its flows through a group on the target cluster."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from heliograph.model.member import Assignment, decode_assignment
from heliograph.sandbox import ClusterSpec, Sandbox
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.group_membership import describe_members
from logs import PATIENCE, Log, Pair, on, some_records, until
from ports import free_port
from rest.api import Api
from running.command import heliograph, start

_SESSION = 10.0  # outlasts any pause of a busy machine


@pytest.fixture(scope="module")
def clusters() -> Iterator[Pair]:
    with Sandbox() as sandbox:
        spec = ClusterSpec(settings={"group.min.session.timeout.ms": "1000"}, fast_start=True)
        a, b = sandbox.start({"A": spec, "B": spec})
        yield Pair(Log(a.bootstrap), Log(b.bootstrap))


class Deployment:
    """A file with flows into B whose sources are one cluster under several aliases; and its members."""

    def __init__(self, clusters: Pair, folder: Path, topic: str, sources: int) -> None:
        self.clusters, self.folder, self.topic = clusters, folder, topic
        self.sources = [f"S{number}" for number in range(sources)]
        self.group = f"heliograph.{topic}.B"
        self.file = folder / "mm2.properties"
        lines = [f"clusters = {', '.join(self.sources)}, B", f"B.bootstrap.servers = {clusters.b.bootstrap}"]
        lines += [f"B.group.id = {topic}", f"B.session.timeout.ms = {int(_SESSION * 1000)}", "replication.factor = 1"]
        lines += ["refresh.topics.interval.seconds = 1"]
        lines += ["emit.heartbeats.enabled = false", "heartbeats.replication.enabled = false"]
        lines += ["heliograph.membership = on", "heliograph.spark.warm = true"]
        for source in self.sources:
            lines += [f"{source}.bootstrap.servers = {clusters.a.bootstrap}", f"{source}->B.enabled = true"]
            lines += [f"{source}->B.topics = {self.name(source)}"]
        self.file.write_text("\n".join(lines))
        self.processes: list[subprocess.Popen[bytes]] = []
        self.apis: list[Api] = []

    def name(self, source: str) -> str:
        return f"{self.topic}-{source}"

    def mirror(self, source: str) -> str:
        return f"{source}.{self.name(source)}"

    def log(self, number: int) -> Path:
        return self.folder / f"log{number}"

    def start(self, file: Path | None = None) -> int:
        number = len(self.processes)
        self.apis.append(Api(free_port()))
        address = f"127.0.0.1:{self.apis[-1].port}"
        self.processes.append(start("run", file or self.file, "--rest", address, "-v", log=self.log(number)))
        return number

    def assignment(self) -> Assignment:
        async def ask(client: ClusterClient) -> Assignment:
            members = await describe_members(client, self.group)
            found = [decode_assignment(member.assignment) for member in members if member.assignment]
            return found[0] if len(found) == len(members) and found else Assignment()

        result: Assignment = on(self.clusters.b, ask)
        return result

    def shares(self) -> list[int]:
        """How many flows each member has, if nothing is moving."""
        shares = self.assignment().shares
        return [] if any(share.coming for share in shares) else sorted(len(share.flows) for share in shares)

    def kill(self, number: int) -> None:
        os.killpg(self.processes[number].pid, signal.SIGKILL)
        self.processes[number].wait(timeout=PATIENCE)

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(timeout=PATIENCE)

    def logs(self) -> str:
        return "\n".join(f"--- {number}\n{self.log(number).read_text()}" for number in range(len(self.processes)))


class Writing:
    """Writes numbered records to the topics of all sources until it is closed."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self.written = dict.fromkeys(deployment.sources, 0)
        self._stop = threading.Event()
        for source in deployment.sources:
            deployment.clusters.a.create(deployment.name(source))
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        while not self._stop.wait(0.1):
            for source in self._deployment.sources:
                count = self.written[source]
                self._deployment.clusters.a.write(self._deployment.name(source), some_records(50, start=count))
                self.written[source] = count + 50

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture
def deployment(clusters: Pair, tmp_path: Path, topic: str) -> Iterator[Deployment]:
    made = Deployment(clusters, tmp_path, topic, 4)
    yield made
    made.end()


@pytest.fixture
def writing(deployment: Deployment) -> Iterator[Writing]:
    running = Writing(deployment)
    yield running
    running.close()


def _copied(deployment: Deployment, source: str) -> int:
    mirror = deployment.mirror(source)
    return deployment.clusters.b.bounds(mirror)[1] if deployment.clusters.b.partitions(mirror) else 0


def _all_move_on(deployment: Deployment) -> Callable[[], bool]:
    before = {source: _copied(deployment, source) for source in deployment.sources}
    return lambda: all(_copied(deployment, source) > count for source, count in before.items())


def _check_mirrors(deployment: Deployment, writing: Writing) -> None:
    """Everything is on the mirrors once and in order."""
    writing.close()
    for source, count in writing.written.items():
        until(lambda: _copied(deployment, source) >= count, deployment.logs)  # noqa: B023
        assert deployment.clusters.b.read(deployment.mirror(source)) == deployment.clusters.a.read(
            deployment.name(source)
        )


def _is_shown(deployment: Deployment) -> bool:
    """Whether every member knows who drives what. Not while flows move."""
    shown = heliograph("status", deployment.file).stdout
    for api in deployment.apis:
        (group,) = api("GET", "/heliograph/v1/members").body
        drivers = {flow: member for member in group["members"] for flow in member["flows"]}
        if group["group"] != deployment.group or len(drivers) != len(deployment.sources):
            return False
        for flow, member in drivers.items():
            status = api("GET", f"/connectors/{flow.replace('->', '-%3E')}.MirrorSourceConnector/status").body
            if (status["connector"]["state"], status["connector"]["worker_id"]) != ("RUNNING", member["worker_id"]):
                return False
        for member in group["members"]:
            if f"B: member {member['member']} on {member['host']} drives {', '.join(member['flows'])}" not in shown:
                return False
    return True


def test_flows_are_shared_and_those_of_a_killed_member_continue_on_the_others(
    deployment: Deployment, writing: Writing
) -> None:
    first = deployment.start()
    until(_all_move_on(deployment), deployment.logs)
    deployment.start()
    until(lambda: deployment.shares() == [2, 2], deployment.logs)
    until(_all_move_on(deployment), deployment.logs)
    until(lambda: _is_shown(deployment), deployment.logs)
    deployment.kill(first)
    until(lambda: deployment.shares() == [4], deployment.logs)
    until(_all_move_on(deployment), deployment.logs)
    _check_mirrors(deployment, writing)


def test_an_orderly_stop_hands_over_at_once(deployment: Deployment, writing: Writing) -> None:
    first, second = deployment.start(), deployment.start()
    until(lambda: deployment.shares() == [2, 2], deployment.logs)
    until(_all_move_on(deployment), deployment.logs)
    deployment.processes[first].send_signal(signal.SIGTERM)
    until(_all_move_on(deployment), deployment.logs)
    until(lambda: deployment.shares() == [4], deployment.logs)
    assert deployment.processes[first].wait(timeout=PATIENCE) == 0, deployment.logs()
    assert deployment.processes[second].poll() is None
    _check_mirrors(deployment, writing)


def test_a_frozen_member_that_wakes_up_writes_nothing(deployment: Deployment, writing: Writing) -> None:
    first, second = deployment.start(), deployment.start()
    until(lambda: deployment.shares() == [2, 2], deployment.logs)
    until(_all_move_on(deployment), deployment.logs)
    family = psutil.Process(deployment.processes[first].pid)
    everyone = [family, *family.children(recursive=True)]
    for process in everyone:
        process.suspend()
    until(lambda: deployment.shares() == [4], deployment.logs)
    until(_all_move_on(deployment), deployment.logs)
    for process in everyone:
        process.resume()
    until(lambda: "no longer a member" in deployment.log(first).read_text(), deployment.logs)
    until(lambda: deployment.shares() == [2, 2], deployment.logs)  # it is a member again
    assert deployment.processes[second].poll() is None
    _check_mirrors(deployment, writing)


def test_another_file_is_refused_until_the_members_with_the_first_one_are_gone(
    deployment: Deployment, writing: Writing
) -> None:
    first = deployment.start()
    until(lambda: deployment.shares() == [4], deployment.logs)
    other = deployment.folder / "other.properties"
    other.write_text(f"{deployment.file.read_text()}\ntasks.max = 2\n")
    second = deployment.start(other)
    until(lambda: "its file differs from that of member" in deployment.log(second).read_text(), deployment.logs)
    assert "in: tasks_max" in deployment.log(second).read_text()
    until(lambda: deployment.shares() == [0, 4], deployment.logs)
    deployment.processes[first].send_signal(signal.SIGTERM)
    until(lambda: deployment.shares() == [4], deployment.logs)
    until(_all_move_on(deployment), deployment.logs)
    _check_mirrors(deployment, writing)
