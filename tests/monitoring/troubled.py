"""A cluster with denied operations, and a run on it with many errors."""

import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType

from heliograph.sandbox import ClusterSpec, Sandbox
from logs import JOINS_SOON, PATIENCE, Log, Record, until
from running.command import start

GUARDED = ClusterSpec(
    settings={
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:nobody",
    },
    fast_start=True,
)
_ME = "User:ANONYMOUS"
_ANY_TIME = str(2**63 - 1)
_DENIED = {
    "no-settings": ACLOperation.DESCRIBE_CONFIGS,
    "no-read": ACLOperation.READ,
    "A.no-write": ACLOperation.WRITE,
    "A.no-create": ACLOperation.CREATE,
    "heliograph-signals.C.internal": ACLOperation.WRITE,
    "heliograph-ledger.E.internal": ACLOperation.CREATE,
}


@contextmanager
def troubled(sandbox: Sandbox, folder: Path) -> Iterator[Path]:
    """Yields the log of a run. Flows that cannot run at all are added to its file later."""
    (cluster,) = sandbox.start({"G": GUARDED})
    guarded = Log(cluster.bootstrap)
    _make_topics(guarded)
    _deny(guarded)
    file, log = folder / "mm2.properties", folder / "log"
    first, later = {"A->B": "no-.*, big, early, tomorrow", "C->D": "wide"}, {"E->F": "wide", "M->N": "wide"}
    _write(file, guarded, first)
    with closing(
        KafkaConsumer(
            "wide", bootstrap_servers=guarded.bootstrap, group_id="M-mm2", max_poll_interval_ms=3600_000, **JOINS_SOON
        )
    ) as worker:
        until(lambda: worker.poll(timeout_ms=100) or worker.assignment(), every=0)
        process = start("run", file, log=log)
        try:
            until(lambda: "is up, master" in log.read_text())  # earlier, a flow that cannot run would end the process
            _write(file, guarded, first | later)
            process.send_signal(signal.SIGHUP)
            yield log
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)


def _write(file: Path, guarded: Log, flows: dict[str, str]) -> None:
    """Both sides of each flow are the same cluster, which works because the topics are named."""
    aliases = [alias for flow in flows for alias in flow.split("->")]
    off = ("sync.topic.acls", "sync.topic.configs", "heartbeats.replication", "emit.checkpoints", "emit.heartbeats")
    file.write_text(
        f"clusters = {', '.join(aliases)}\n"
        + "".join(f"{alias}.bootstrap.servers = {guarded.bootstrap}\n" for alias in aliases)
        + "".join(f"{flow}.enabled = true\n{flow}.topics = {topics}\n" for flow, topics in flows.items())
        + "".join(f"{name}.enabled = false\n" for name in off)
        + "A->B.emit.heartbeats.enabled = true\nreplication.factor = 1\nC->D.replication.factor = 3\ntasks.max = 1\n"
        + "heliograph.raise.mirror.limits = false\n"
    )


def _make_topics(guarded: Log) -> None:
    now = int(time.time() * 1000)
    late, usual = Record(0, now + 7200_000, b"key", b"value"), Record(0, now, b"key", b"value")
    for topic in ("no-settings", "no-read", "no-write", "no-create", "wide"):
        guarded.create(topic)
        guarded.write(topic, [usual])
    guarded.create("big", max_message_bytes="3000000")
    guarded.write("big", [Record(0, now, b"key", b"x" * 2_000_000)])
    for topic in ("early", "tomorrow"):
        guarded.create(topic, message_timestamp_after_max_ms=_ANY_TIME)
        guarded.write(topic, [late])
    for mirror in ("A.big", "A.early"):  # made by hand, with limits as they are by default
        guarded.create(mirror)
    guarded.create("heartbeats", cleanup_policy="compact", message_timestamp_before_max_ms="0")  # as if clocks differed
    guarded.create("mm2-offsets.M.internal", cleanup_policy="compact")


def _deny(guarded: Log) -> None:
    """Denies only these operations. Create on the cluster would allow any topic, so that is denied, too."""
    denied = {ResourcePattern(ResourceType.TOPIC, name): operation for name, operation in _DENIED.items()}
    denied[ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")] = ACLOperation.CREATE
    rules = [ACL(_ME, "*", ACLOperation.ALL, ACLPermissionType.ALLOW, about) for about in denied]
    rules += [ACL(_ME, "*", operation, ACLPermissionType.DENY, about) for about, operation in denied.items()]
    admin: Any = KafkaAdminClient(bootstrap_servers=guarded.bootstrap)
    assert not admin.create_acls(rules)["failed"]
    admin.close()
