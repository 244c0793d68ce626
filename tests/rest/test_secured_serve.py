"""`heliograph serve` and `heliograph run` with TLS, logins and roles, as separate processes."""

import os
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12

from heliograph.sandbox.ports import free_ports
from logs import Log, Pair
from rest.api import connector, worker_file
from rest.certificates import issuer
from rest.served_app import Client
from running.command import heliograph, kill, start
from waiting import until

PASSWORD, STORE_PASSWORD = "open-sesame-1234", "of-the-key-store"
BASIC = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"


def _pkcs12(pem: Path, file: Path) -> Path:
    data = pem.read_bytes()
    key, certificate = load_pem_private_key(data, None), x509.load_pem_x509_certificate(data)
    encryption = BestAvailableEncryption(STORE_PASSWORD.encode())
    file.write_bytes(pkcs12.serialize_key_and_certificates(b"rest", key, certificate, None, encryption))  # type: ignore[arg-type]
    return file


def _is_up(client: Client) -> bool:
    try:
        return client("GET", "/connectors").status == 200
    except OSError:
        return False


def test_a_workers_file_with_tls_and_connects_basic_auth_is_served_as_it_is(pair: Pair, tmp_path: Path) -> None:
    ca = issuer(tmp_path)
    store = _pkcs12(ca.issue(tmp_path / "server.pem", "localhost"), tmp_path / "rest.p12")
    (tmp_path / "users").write_text(f"alice={PASSWORD}\nbob={PASSWORD}\n")
    (tmp_path / "roles").write_text("alice=operator\nbob=viewer:L->B\n")
    (tmp_path / "connect.jaas").write_text(
        f'KafkaConnect {{ x.PropertyFileLoginModule required file="{tmp_path}/users"; }};'
    )
    file, api = worker_file(tmp_path, pair.b, "secured")
    file.write_text(
        file.read_text().replace(f"listeners=http://127.0.0.1:{api.port}", f"listeners=https://127.0.0.1:{api.port}")
        + f"rest.extension.classes={BASIC}\nheliograph.rest.roles={tmp_path}/roles\nheliograph.rest.open=/health\n"
        f"listeners.https.ssl.keystore.location={store}\nlisteners.https.ssl.keystore.type=PKCS12\n"
        f"listeners.https.ssl.keystore.password={STORE_PASSWORD}\n"
    )
    log = tmp_path / "serve.log"
    options = f"-Djava.security.auth.login.config={tmp_path}/connect.jaas"
    process = start("serve", file, log=log, KAFKA_OPTS=options)
    client = Client(f"https://127.0.0.1:{api.port}", tls=ssl.create_default_context(cafile=ca.file))
    alice, bob = (client.as_user(name, PASSWORD) for name in ("alice", "bob"))
    try:
        until(lambda: _is_up(alice) or process.poll() is not None, log.read_text)
        posted = connector("Heartbeat", "L", (pair.a, pair.b), "none")
        assert alice("PUT", "/connectors/beats/config", posted).status == 201
        assert bob("GET", "/connectors").body == ["beats"]
        assert bob("DELETE", "/connectors/beats").status == 403
        assert client("GET", "/connectors").status == 401
        until(lambda: client("GET", "/health").status == 200, log.read_text)
        (tmp_path / "credentials").write_text(f"user=bob\npassword={PASSWORD}\n")
        secured = ("--rest", client.url, "--ca", ca.file, "--credentials", tmp_path / "credentials")
        shown = heliograph("status", *secured)
        assert (shown.returncode, "beats" in shown.stdout) == (0, True), shown.stdout + shown.stderr
        for text in (log.read_text(), *_visible(process.pid)):
            assert PASSWORD not in text
            assert STORE_PASSWORD not in text
    finally:
        kill(process)


def _visible(pid: int) -> list[str]:
    """What other users of the machine see of a process."""
    return [Path(f"/proc/{pid}/cmdline").read_text(errors="replace")] if os.path.exists("/proc") else []


def test_run_serves_over_tls_with_the_options_an_operator_tries_first(properties: Path, tmp_path: Path) -> None:
    ca = issuer(tmp_path)
    (tmp_path / "users").write_text(f"alice={PASSWORD}\n")
    certificate = ca.issue(tmp_path / "server.pem", "localhost")
    (port,) = free_ports(1)
    log = tmp_path / "run.log"
    process = start(
        *("run", properties, "--rest", f"127.0.0.1:{port}", "--rest-cert", certificate),
        *("--rest-users", tmp_path / "users"),
        log=log,
    )
    client = Client(f"https://127.0.0.1:{port}", tls=ssl.create_default_context(cafile=ca.file))
    try:
        alice = client.as_user("alice", PASSWORD)
        until(lambda: _is_up(alice) or process.poll() is not None, log.read_text)
        assert f"the REST API is at https://127.0.0.1:{port}" in log.read_text()
        assert client("GET", "/connectors").status == 401
        assert replace(client, authorization="Basic x")("GET", "/metrics").status == 401
        assert alice("GET", "/metrics").status == 200
    finally:
        kill(process)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("listeners=https://127.0.0.1:0\n", "listeners: https needs a certificate"),
        ("heliograph.rest.users=/nowhere\n", "/nowhere: there is no such file"),
        ("listeners=https://127.0.0.1:0\nssl.keystore.location=/nowhere\n", "/nowhere cannot be read"),
    ],
)
def test_what_cannot_be_used_is_reported_before_anything_starts(lines: str, says: str, tmp_path: Path) -> None:
    file, _api = worker_file(tmp_path, Log("127.0.0.1:9"), "wrong")
    kept = "".join(line for line in file.read_text().splitlines(True) if not line.startswith("listeners"))
    file.write_text(kept + "rest.host.name=127.0.0.1\nrest.port=0\n" + lines)
    done = heliograph("serve", file)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr


def test_an_address_without_login_is_warned_about(tmp_path: Path) -> None:
    file, _api = worker_file(tmp_path, Log("127.0.0.1:9"), "open")
    done = heliograph("serve", file, "--rest", ":0")
    assert (
        "the REST API listens on all interfaces, port 0, without authentication: anyone who reaches it" in done.stderr
    )
