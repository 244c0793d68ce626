"""The REST address over TLS: certificates, client certificates, renewal."""

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heliograph.model.rest_settings import NONE, REQUESTED, REQUIRED, Listener, ListenerTls, RestSettings
from heliograph.model.secret import Secret
from heliograph.model.security import PEM, KeyStore, TrustStore
from heliograph.rest.server import AddressTaken, open_listener
from rest.certificates import Issuer, issuer
from rest.served_app import Client, serving


@pytest.fixture
def ca(tmp_path: Path) -> Issuer:
    return issuer(tmp_path)


def _settings(key: Path, ca: Issuer, client_auth: str = NONE, **more: Any) -> RestSettings:
    trust = None if client_auth == NONE else TrustStore(PEM, str(ca.file))
    tls = ListenerTls(KeyStore(PEM, str(key)), trust=trust, client_auth=client_auth)
    return replace(RestSettings((Listener("127.0.0.1", 0, tls),)), **more)


def _trusting(client: Client, ca: Issuer, certificate: Path | None = None) -> Client:
    context = ssl.create_default_context(cafile=ca.file)
    if certificate is not None:
        context.load_cert_chain(certificate)
    return replace(client, tls=context)


def _serial_number(client: Client) -> str:
    connection = client.connection()
    connection.connect()
    assert isinstance(connection.sock, ssl.SSLSocket)
    certificate = connection.sock.getpeercert()
    connection.close()
    assert certificate is not None
    return str(certificate["serialNumber"])


def test_the_api_is_served_over_tls(ca: Issuer, tmp_path: Path) -> None:
    with serving(_settings(ca.issue(tmp_path / "server.pem", "localhost"), ca)) as client:
        assert client.url.startswith("https://127.0.0.1:")
        assert _trusting(client, ca)("GET", "/connectors").body == ["ab", "cd"]
        created = _trusting(client, ca)("PUT", "/connectors/ab/config", {"name": "other"})
        assert created.status == 400
        with pytest.raises(ssl.SSLCertVerificationError):
            _trusting(client, issuer(tmp_path, "Other CA"))("GET", "/")


def test_a_renewed_certificate_is_used_for_new_connections(ca: Issuer, tmp_path: Path) -> None:
    file = ca.issue(tmp_path / "server.pem", "localhost")
    with serving(_settings(file, ca)) as client:
        trusting = _trusting(client, ca)
        before = _serial_number(trusting)
        ca.issue(tmp_path / "next.pem", "localhost").replace(file)
        after = _serial_number(trusting)
        assert after != before
        file.write_text("not a certificate")
        assert _serial_number(trusting) == after, "the last version stays in use"


def test_issuers_of_client_certificates_are_renewed_too(ca: Issuer, tmp_path: Path) -> None:
    server = ca.issue(tmp_path / "server.pem", "localhost")
    other = issuer(tmp_path, "Other CA")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(other.file.read_bytes())
    settings = _settings(server, replace(ca, file=trusted), REQUIRED)
    with serving(settings) as client:
        theirs = _trusting(client, ca, other.issue(tmp_path / "theirs.pem", "them"))
        mine = _trusting(client, ca, ca.issue(tmp_path / "mine.pem", "me"))
        assert theirs("GET", "/connectors").status == 200
        trusted.write_bytes(ca.file.read_bytes())
        assert mine("GET", "/connectors").status == 200
        with pytest.raises(OSError):
            theirs("GET", "/connectors")


def test_a_client_certificate_is_a_login_with_the_roles_of_its_subject(ca: Issuer, tmp_path: Path) -> None:
    roles = tmp_path / "roles"
    roles.write_text("CN\\=alice,O\\=Example = viewer\n")
    server = ca.issue(tmp_path / "server.pem", "localhost")
    alice, bob = (ca.issue(tmp_path / f"{name}.pem", name) for name in ("alice", "bob"))
    with serving(_settings(server, ca, REQUESTED, roles=str(roles))) as client:
        assert _trusting(client, ca, alice)("GET", "/connectors").status == 200
        assert _trusting(client, ca, alice)("PUT", "/connectors/ab/pause").status == 403
        refused = _trusting(client, ca, bob)("GET", "/connectors")
        assert (refused.status, refused.body["message"]) == (
            403,
            "CN=bob,O=Example has no role: heliograph.rest.roles gives one",
        )
        assert _trusting(client, ca)("GET", "/connectors").status == 401


def test_without_a_certificate_no_connection_is_made_where_one_is_required(ca: Issuer, tmp_path: Path) -> None:
    with serving(_settings(ca.issue(tmp_path / "server.pem", "localhost"), ca, REQUIRED)) as client:
        with pytest.raises(OSError):
            _trusting(client, ca)("GET", "/connectors")


def test_a_worker_that_asks_for_a_certificate_and_a_password_gets_both(ca: Issuer, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("alice=wonder\n")
    server = ca.issue(tmp_path / "server.pem", "localhost")
    with serving(_settings(server, ca, REQUIRED, users=str(users))) as client:
        with_certificate = _trusting(client, ca, ca.issue(tmp_path / "me.pem", "me"))
        assert with_certificate("GET", "/connectors").status == 401
        assert with_certificate.as_user("alice", "wonder")("GET", "/connectors").status == 200


def test_a_key_may_have_a_password_and_a_file_of_its_own(ca: Issuer, tmp_path: Path) -> None:
    both = ca.issue(tmp_path / "both.pem", "localhost", "open sesame").read_text()
    key, _, certificate = both.partition("-----BEGIN CERT")
    (tmp_path / "key.pem").write_text(key)
    (tmp_path / "cert.pem").write_text(f"-----BEGIN CERT{certificate}")
    store = KeyStore(PEM, str(tmp_path / "cert.pem"), key_password=Secret("open sesame"))
    tls = ListenerTls(store, str(tmp_path / "key.pem"))
    with serving(RestSettings((Listener("127.0.0.1", 0, tls),))) as client:
        assert _trusting(client, ca)("GET", "/connectors").status == 200
    wrong = replace(tls, key=replace(store, key_password=Secret("wrong")))
    with pytest.raises(
        AddressTaken, match=r"ssl\.key\.password: the key of ssl\.keystore\.key cannot be read"
    ) as error:
        open_listener(Listener("127.0.0.1", 0, wrong))
    assert "wrong" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    tls = ListenerTls(KeyStore(PEM, str(tmp_path / "none.pem")))
    with pytest.raises(AddressTaken, match=r"none\.pem cannot be read: No such file or directory"):
        open_listener(Listener("127.0.0.1", 0, tls))
