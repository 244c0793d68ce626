"""Every alert fires for its cause: one failure after the other in a real deployment that Prometheus scrapes.

Records go NEAR -> MID -> FAR. MID is a separate cluster, which can be damaged.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import pytest
from kafka.admin import ACLOperation, ResourceType
from prometheus import Prometheus

from access import GUARDED, deny
from heliograph.sandbox import ClusterSpec, Sandbox
from heliograph.sandbox.cluster import SandboxCluster
from heliograph.sandbox.java import find_java
from heliograph.wire.acl_requests import ALLOW, LITERAL, READ, Acl, create_acls
from logs import PATIENCE, Log, Pair, Record, on, some_records, until
from monitoring.prometheus import looking_at, rules
from monitoring.test_rules_and_dashboards import FIRING
from ports import free_port
from rest.api import Api
from running.command import start

# Shorter times than in the rules: the test must not wait for minutes.
SOONER = {
    "heliograph_heartbeat_age_seconds > 60": "heliograph_heartbeat_age_seconds > 5",
    "heliograph_open_transaction_seconds > 300": "heliograph_open_transaction_seconds > 5",
    'changes(process_start_time_seconds{job="heliograph"}[30m]) > 2': "changes(process_start_time_seconds[30m]) > 0",
    "rate(heliograph_throttled_seconds_total[1m])": "rate(heliograph_throttled_seconds_total[10s])",
    'group offsets|offset syncs"} > 600': 'group offsets|offset syncs"} > 7',
}
WELL, WIDE, FOREIGN, SLOW, OPEN = (f"alerts-{name}" for name in ("well", "wide", "foreign", "slow", "open"))
HUNGRY = "hungry-for-alerts"
_LARGEST = 300_000  # a batch, for MID


@dataclass
class Deployment:
    near: Log
    mid: Log
    broker: SandboxCluster
    file: Path
    port: int
    java: Path
    prometheus: Prometheus
    well: bool = True  # all alerts so far have fired
    process: "subprocess.Popen[bytes] | None" = None
    producer: object = None  # of a transaction that is open

    def start(self) -> None:
        """Spark comes up with `let_spark_start`, and has room for as many leases as there are at first."""
        options = ("--rest", f"127.0.0.1:{self.port}", "--master", "local[2,4]")
        self.process = start("run", self.file, *options, log=self.log, JAVA_HOME=str(self.java))

    @property
    def log(self) -> Path:
        return self.file.with_suffix(".log")

    def let_spark_start(self) -> None:
        if (self.java / "go").exists():
            return
        (self.java / "go").touch()
        copied = f'heliograph_topic_copied_records_total{{topic=~"{WELL}|{FOREIGN}|heartbeats"}} > 0'
        until(lambda: len(self.prometheus.query(copied)) == 3)

    def enable(self, flow: str) -> None:
        """Another flow of the file."""
        self.file.write_text(f"{self.file.read_text()}{flow}.enabled = true\n")
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(timeout=PATIENCE)


Cause = Callable[[Deployment], None]


def spark_does_not_come_up(deployment: Deployment) -> None:
    deployment.start()


def the_process_is_gone(deployment: Deployment) -> None:
    deployment.kill()


def it_is_started_again(deployment: Deployment) -> None:
    deployment.start()


def a_record_is_too_large_for_the_mirror(deployment: Deployment) -> None:
    deployment.near.write(WIDE, some_records(1, size=_LARGEST + 1))


def a_transaction_is_not_ended(deployment: Deployment) -> None:
    deployment.producer = deployment.near.transaction(OPEN, 3, commit=None)


def somebody_else_writes_to_a_mirror(deployment: Deployment) -> None:
    deployment.mid.write(f"NEAR.{FOREIGN}", some_records(3))
    deployment.near.write(FOREIGN, some_records(3))


def groups_cannot_be_synced(deployment: Deployment) -> None:
    """One group must not be written; the topic of the other is still paused."""
    deny(deployment.mid, ResourceType.GROUP, "alerts-denied", ACLOperation.READ)
    deployment.near.commit("alerts-denied", WELL, 5)
    deployment.near.commit("alerts-early", SLOW, 5)


def mirrors_drift(deployment: Deployment) -> None:
    """One mirror gets a partition by hand; settings of the other and access rules must not be changed."""
    deployment.mid.grow(f"NEAR.{WELL}", 2)
    deny(deployment.mid, ResourceType.TOPIC, f"NEAR.{FOREIGN}", ACLOperation.ALTER_CONFIGS)
    deployment.near.configure(FOREIGN, retention_ms="123456789")
    deny(deployment.mid, ResourceType.CLUSTER, "kafka-cluster", ACLOperation.ALTER)
    rule = Acl(FOREIGN, LITERAL, "User:reader", "*", READ, ALLOW)
    assert on(deployment.near, lambda client: create_acls(client, [rule])) == [None]
    kinds = {"partitions", "settings", "access rules"}
    until(lambda: {series["metric"]["what"] for series in deployment.prometheus.query("heliograph_drift > 0")} == kinds)


def more_comes_in_than_is_copied(deployment: Deployment) -> None:
    """To a topic that was paused for hours."""
    assert Api(deployment.port)("PUT", f"/heliograph/v1/flows/{quote('NEAR->MID')}/topics/{SLOW}/resume").status == 202
    write_old(deployment.near, 60_000)


def brokers_hold_us_to_a_quota(deployment: Deployment) -> None:
    deployment.mid.limit("heliograph", "producer_byte_rate", 50_000)


def retention_follows_the_copy(deployment: Deployment) -> None:
    """So close to the position that it will soon overtake it."""

    def is_about_to_overtake() -> bool:
        deployment.near.delete_before(SLOW, 0, max(0, deployment.mid.bounds(f"NEAR.{SLOW}")[1] - 50))
        return "HeliographRetentionOvertakes" in deployment.prometheus.firing()

    until(is_about_to_overtake)


def a_cluster_of_a_new_flow_is_not_there(deployment: Deployment) -> None:
    deployment.enable("NEAR->GONE")


def spark_has_no_room_for_the_leases_of_a_new_flow(deployment: Deployment) -> None:
    deployment.near.create(HUNGRY, partitions=2)
    deployment.near.write(HUNGRY, some_records(10))
    deployment.enable("MORE->MID")


def heartbeats_may_not_be_written_any_more(deployment: Deployment) -> None:
    deny(deployment.mid, ResourceType.TOPIC, "heartbeats", ACLOperation.WRITE)


def a_cluster_is_gone(deployment: Deployment) -> None:
    deployment.broker.kill(1)


# The order matters: each cause builds on those before.
CAUSES: dict[Cause, set[str]] = {
    spark_does_not_come_up: {"HeliographFlowStarting", "HeliographSparkDown"},
    the_process_is_gone: {"HeliographDown"},
    it_is_started_again: {"HeliographRestarting"},
    a_record_is_too_large_for_the_mirror: {"HeliographRecordsRefused"},
    a_transaction_is_not_ended: {"HeliographTransactionHangs"},
    somebody_else_writes_to_a_mirror: {"HeliographForeignWriter"},
    groups_cannot_be_synced: {"HeliographGroupNotSynced", "HeliographGroupUntranslated"},
    heartbeats_may_not_be_written_any_more: {
        *("HeliographSyncFailing", "HeliographSyncStale", "HeliographHeartbeatOld")
    },
    mirrors_drift: {"HeliographDrift"},
    more_comes_in_than_is_copied: {*("HeliographLagOld", "HeliographLagBeyondObjective", "HeliographLagGrowing")},
    brokers_hold_us_to_a_quota: {"HeliographThrottled"},
    retention_follows_the_copy: {"HeliographRetentionOvertakes"},
    a_cluster_of_a_new_flow_is_not_there: {"HeliographFlowFailed"},
    spark_has_no_room_for_the_leases_of_a_new_flow: {"HeliographLeasesMissing", "HeliographNoProgress"},
    a_cluster_is_gone: {"HeliographPartitionWaiting", "HeliographLeasesFailing"},
}


_WITHOUT_SPARK = (spark_does_not_come_up, the_process_is_gone, it_is_started_again)


@pytest.fixture(scope="module")
def deployment(pair: Pair, closed_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("alerts")
    port = free_port()
    settings = GUARDED | {"message.max.bytes": str(_LARGEST), "quota.window.num": "2"}
    with looking_at(port, folder, SOONER) as prometheus, Sandbox() as sandbox:
        (broker,) = sandbox.start({"MID": ClusterSpec(settings=settings, fast_start=True)})
        mid, file = Log(broker.bootstrap), folder / "mm2.properties"
        file.write_text(_properties(pair, mid, closed_port))
        for topic in (WELL, WIDE, FOREIGN, SLOW, OPEN):
            pair.a.create(topic)
        for topic in (WELL, FOREIGN):
            pair.a.write(topic, some_records(10))
        write_old(pair.a, 20_000)
        deployment = Deployment(pair.a, mid, broker, file, port, _java_that_waits(folder), prometheus)
        try:
            yield deployment
        finally:
            deployment.kill()


def write_old(near: Log, count: int) -> None:
    two_hours_ago = int(time.time() * 1000) - 7_200_000
    near.write(SLOW, [Record(0, two_hours_ago, b"key", b"x" * 100)] * count, per_batch=500)


def _properties(pair: Pair, mid: Log, closed_port: int) -> str:
    near, far = pair.a.bootstrap, pair.b.bootstrap
    addresses = {"NEAR": near, "MID": mid.bootstrap, "FAR": far, "MORE": near, "GONE": f"127.0.0.1:{closed_port}"}
    often = (
        "refresh.topics",
        "refresh.groups",
        "sync.topic.configs",
        "sync.topic.acls",
        "emit.checkpoints",
        "sync.group.offsets",
    )
    lines = [
        f"clusters = {', '.join(addresses)}",
        *(f"{alias}.bootstrap.servers = {address}" for alias, address in addresses.items()),
        "NEAR->MID.enabled = true",
        "NEAR->MID.topics = alerts-.*",
        "NEAR->MID.groups = alerts-.*",
        "NEAR->MID.heliograph.max.bytes.per.second = 100000",
        f"NEAR->MID.heliograph.topics.paused = {SLOW}",
        "MID->FAR.enabled = true",
        "MID->FAR.topics = only-heartbeats",
        "MID->FAR.sync.topic.acls.enabled = false",
        "emit.heartbeats.enabled = false",
        "NEAR->MID.emit.heartbeats.enabled = true",
        "NEAR->MID.heartbeats.replication.enabled = false",
        f"MORE->MID.topics = {HUNGRY}",
        "MORE->MID.tasks.max = 2",
        "MORE->MID.heartbeats.replication.enabled = false",
        "sync.group.offsets.enabled = true",
        "replication.factor = 1",
        "heliograph.lease.seconds = 5",
        "heliograph.raise.mirror.limits = false",
        "heliograph.on.refused.record = continue",
        "heliograph.on.foreign.writer = continue",
        *(f"{name}.interval.seconds = 1" for name in often),
    ]
    return "".join(f"{line}\n" for line in lines)


def _java_that_waits(folder: Path) -> Path:
    """The home of a Java that starts when it contains a file `go`."""
    java = folder / "java"
    command = java / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        f'#!/bin/sh\nwhile [ ! -e "{java}/go" ]; do sleep 0.1; done\nexec "{find_java().executable}" "$@"\n'
    )
    command.chmod(0o755)
    return java


def test_every_alert_has_a_cause() -> None:
    assert {*chain(*CAUSES.values())} | FIRING == {rule["alert"] for rule in rules("alert")}


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.__name__)
def test_alerts_fire_for_their_cause(deployment: Deployment, cause: Cause) -> None:
    if not deployment.well:
        pytest.skip("an alert before it has not fired")
    deployment.well = False
    if cause not in _WITHOUT_SPARK:
        deployment.let_spark_start()
    until(lambda: not deployment.prometheus.firing() & CAUSES[cause])
    cause(deployment)
    missing = set(CAUSES[cause])

    def all_have_fired() -> bool:
        missing.difference_update(deployment.prometheus.firing())
        return not missing

    until(all_have_fired, lambda: f"{missing} did not fire")
    deployment.well = True


def test_an_outage_is_logged_once(deployment: Deployment) -> None:
    """A message about the cluster in the middle, while it is up."""
    if not deployment.well:
        pytest.skip("there was none")
    refused = [line.partition(" ")[2] for line in deployment.log.read_text().splitlines() if "Connect call" in line]
    assert any("lease 0 failed" in line for line in refused)
    assert any("topics could not be refreshed" in line for line in refused)
    assert any("checkpoints could not be synced" in line for line in refused)
    assert len(refused) == len(set(refused))


def test_what_is_not_allowed_is_named(deployment: Deployment) -> None:
    if not deployment.well:
        pytest.skip("nothing was asked for")
    rule = f"rule ALLOW READ on topic NEAR.{FOREIGN} to User:reader from host *"
    line = f"{rule} could not be created: CLUSTER_AUTHORIZATION_FAILED: needs ALTER permission."
    assert line in deployment.log.read_text()
