"""The real command between clusters that are secured differently; no secret is found anywhere while it runs."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import psutil
import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from heliograph.client import MirrorClient
from heliograph.sandbox import SandboxCluster, write_key_store
from logs import PATIENCE, Log, Pair, some_records, until
from ports import free_port
from running.command import heliograph, in_process, kill, start
from secured import SecuredPair


def _file(path: Path, topic: str, a: Mapping[str, str], b: Mapping[str, str], *more: str) -> Path:
    lines = [
        *("clusters = A, B", "A->B.enabled = true", f"A->B.topics = {topic}.*", "replication.factor = 1"),
        *("refresh.topics.interval.seconds = 1", "emit.heartbeats.enabled = false"),
        *("heartbeats.replication.enabled = false", "sync.topic.acls.enabled = false"),
        *(f"{alias}.{name} = {value}" for alias, settings in (("A", a), ("B", b)) for name, value in settings.items()),
        *more,
    ]
    path.write_text("\n".join([*lines, ""]))
    return path


@pytest.mark.parametrize(("source", "target"), [("scram", "mtls"), ("plain", "oauth")])
def test_a_mirror_between_clusters_that_are_secured_differently(
    secured: SecuredPair, topic: str, tmp_path: Path, source: str, target: str
) -> None:
    """The first on Spark's own processes for executors, which get their logins from the driver."""
    logs = secured.logs
    logs.a.create(topic, partitions=2)
    for partition in range(2):
        logs.a.write(topic, some_records(500), partition)
    a, b = (
        cluster.security.client_settings("writer", kind) for cluster, kind in ((secured.a, source), (secured.b, target))
    )
    file = _file(tmp_path / "mm2.properties", topic, a, b)
    _allow_what_is_printed(secured, file, "writer")
    executors = ("--master", "local-cluster[1,2,1024]", "--conf", "spark.executor.memory=512m")
    done = heliograph("run", file, "--until-caught-up", *(executors if source == "scram" else ()))
    assert done.returncode == 0, done.stderr
    for partition in range(2):
        assert logs.b.read(f"A.{topic}", partition) == logs.a.read(topic, partition)
    _commands_work(file, topic, b)


def _commands_work(file: Path, topic: str, b: Mapping[str, str]) -> None:
    """With the same logins."""
    assert topic in _said("offsets", file)
    assert "A->B" in _said("status", file)
    assert "A->B" in _said("run", file, "--plan")
    assert "A->B" in _said("groups", file)
    assert "there" in _said("acls", file, "--principal", "User:writer", "--check")
    client = MirrorClient(b["bootstrap.servers"], config=b)
    assert f"A.{topic}" in client.remote_topics("A")


def _said(*arguments: object) -> str:
    done = in_process(*arguments)
    assert done.exit_code == 0, done.output
    return done.output


def _allow_what_is_printed(secured: SecuredPair, file: Path, user: str) -> None:
    """The ACLs of `heliograph acls`, and no others."""
    printed = in_process("acls", file, "--principal", f"User:{user}", "--json")
    assert printed.exit_code == 0, printed.output
    rows = json.loads(printed.stdout)
    for alias, cluster in (("A", secured.a), ("B", secured.b)):
        acls = [_acl(row) for row in rows if row["cluster"] == alias and not row["optional"]]
        assert acls
        _allow(cluster, acls)


def _allow(cluster: SandboxCluster, acls: list[ACL]) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    assert not admin.create_acls(acls)["failed"]
    pattern = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    of_principal = ACLFilter(acls[0].principal, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)
    until(lambda: set(acls) <= set(admin.describe_acls(of_principal)[0]))
    admin.close()


def _acl(row: Mapping[str, str]) -> ACL:
    operation = re.sub(r"(?<!^)(?=[A-Z])", "_", row["operation"]).upper()
    pattern = ResourcePattern(
        ResourceType[row["resource_type"].upper()], row["name"], ACLResourcePatternType[row["pattern"].upper()]
    )
    return ACL(row["principal"], "*", ACLOperation[operation], ACLPermissionType.ALLOW, pattern)


def _processes_of(process: int) -> Iterator[psutil.Process]:
    parent = psutil.Process(process)
    yield from (parent, *parent.children(recursive=True))


def _found(secrets: Mapping[str, bytes], content: bytes) -> set[str]:
    return {name for name, secret in secrets.items() if secret in content}


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                yield str(path), path.read_bytes()
        except OSError:
            continue  # it is gone


def _of_processes(pid: int) -> Iterator[tuple[str, bytes]]:
    for process in _processes_of(pid):
        for name in ("cmdline", "environ"):
            try:
                yield f"{process.pid} {name}", Path(f"/proc/{process.pid}/{name}").read_bytes()
            except OSError:
                continue


def _of_rest(port: int) -> Iterator[tuple[str, bytes]]:
    paths = ["/", "/connectors?expand=info&expand=status", "/metrics", "/health"]
    paths += ["/heliograph/v1/flows", "/heliograph/v1/events"]
    paths += [f"/connectors/{quote(name)}/config" for name in json.loads(_answer(port, "/connectors"))]
    assert len(paths) > 6
    return ((path, _answer(port, path)) for path in paths)


def _answer(port: int, path: str) -> bytes:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
            content: bytes = answer.read()
    except HTTPError as error:  # /health, while a flow restarts
        with error:
            content = error.read()
    return content


def test_serve_stores_connectors_in_a_secured_cluster_and_mirrors_between_secured_ones(
    secured: SecuredPair, topic: str, tmp_path: Path
) -> None:
    logs, port = secured.logs, free_port()
    logs.a.create(topic)
    logs.a.write(topic, some_records(100))
    a, b = secured.a.security.client_settings("admin", "scram"), secured.b.security.client_settings("admin", "plain")
    storage = {f"{kind}.storage.topic": f"{topic}-{kind}" for kind in ("config", "offset", "status")}
    storage |= {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    security = {f"producer.{name}": value for name, value in b.items() if name != "bootstrap.servers"}
    settings = {**b, **security, **storage, "group.id": topic, "listeners": f"http://127.0.0.1:{port}"}
    worker = tmp_path / "connect-distributed.properties"
    worker.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        **{"source.cluster.alias": "A", "target.cluster.alias": "B", "topics": topic, "replication.factor": "1"},
        **{"offset-syncs.topic.replication.factor": "1", "sync.topic.acls.enabled": "false"},
        **{f"source.cluster.{name}": value for name, value in a.items()},
        **{f"target.cluster.{name}": value for name, value in b.items()},
    }
    log = tmp_path / "log"
    process = start("serve", worker, log=log)
    try:
        until(lambda: "the REST API is at" in log.read_text(), lambda: log.read_text()[-4000:])
        address = f"http://127.0.0.1:{port}/connectors/{topic}/config"
        request = Request(address, json.dumps(config).encode(), {"Content-Type": "application/json"}, method="PUT")
        with urlopen(request, timeout=PATIENCE) as answer:
            assert answer.status == 201
        until(lambda: _has_copied(logs, topic, 100), lambda: log.read_text()[-4000:])
        secrets = {
            "A": secured.a.security.passwords["admin"].encode(),
            "B": secured.b.security.passwords["admin"].encode(),
        }
        assert not _found(secrets, _answer(port, f"/connectors/{topic}/config") + log.read_bytes())
    finally:
        os.killpg(process.pid, 9)
        kill(process)
    assert logs.b.read(f"A.{topic}") == logs.a.read(topic)


def _of_internal_topics(log: Log) -> Iterator[tuple[str, bytes]]:
    for topic in log.topics():
        if topic.endswith(".internal"):
            for partition in range(log.partitions(topic)):
                yield topic, b"".join(key + value for key, value in log.pairs(topic, partition))


def _has_copied(logs: Pair, topic: str, count: int) -> bool:
    mirror = f"A.{topic}"
    return logs.b.exists(mirror) and logs.b.bounds(mirror)[1] >= count


def test_secrets_are_found_nowhere_and_are_rotated_while_it_copies(
    secured: SecuredPair, topic: str, tmp_path: Path
) -> None:
    a, b, logs = secured.a.security, secured.b.security, secured.logs
    logs.a.create(topic)
    logs.a.write(topic, some_records(100))
    passwords = tmp_path / "passwords.properties"
    passwords.write_text(f"rotated={a.passwords['rotated']}\n")
    login = a.client_settings("rotated", "scram", stores="JKS")
    literal = login["sasl.jaas.config"]
    login["sasl.jaas.config"] = literal.replace(a.passwords["rotated"], f"${{file:{passwords}:rotated}}")
    certificate = b.client_settings("rotated", "mtls", stores="PKCS12")
    temporary, events = tmp_path / "tmp", tmp_path / "events"
    temporary.mkdir()
    events.mkdir()
    port = free_port()
    file = _file(
        tmp_path / "mm2.properties",
        topic,
        login,
        certificate,
        "config.providers = file",
        "config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider",
        "heliograph.secrets.refresh.seconds = 1",
    )
    _allow_what_is_printed(secured, file, "rotated")
    log = tmp_path / "log"
    process = start(
        *("run", file, "--rest", f"127.0.0.1:{port}", "--verbose"),
        *("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={events.as_uri()}"),
        log=log,
        TMPDIR=str(temporary),
    )
    try:
        until(lambda: _has_copied(logs, topic, 100), lambda: log.read_text()[-4000:])
        first_password, secrets = a.passwords["rotated"], {}
        secrets["password"] = first_password.encode()
        secrets["store password of A"] = a.store_password.encode()
        secrets["store password of B"] = b.store_password.encode()

        a.change_password("rotated", "another-password-than-before")
        secrets["new password"] = b"another-password-than-before"
        passwords.write_text("rotated=another-password-than-before\n")
        until(lambda: "a secret has changed" in log.read_text(), lambda: log.read_text()[-4000:])
        key_store = Path(certificate["ssl.keystore.location"])
        write_key_store(key_store, b.authority.issue("rotated"), password=b.store_password)
        logs.a.write(topic, some_records(100))
        until(lambda: _has_copied(logs, topic, 200), lambda: log.read_text()[-4000:])

        places = [*_contents(temporary), *_contents(events), (str(log), log.read_bytes())]
        assert any(name.startswith(str(events)) for name, _ in places)
        places += [*_of_processes(process.pid), *_of_rest(port)]
        places += _of_internal_topics(logs.b)
        leaks = {name: found for name, content in places if (found := _found(secrets, content))}
        assert not leaks
    finally:
        os.killpg(process.pid, 9)
        kill(process)
    assert logs.b.read(f"A.{topic}") == logs.a.read(topic)
