"""Certificates of the sandbox as TLS clients judge them, and the files in which they are."""

import os
import socket
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key, pkcs12

from heliograph.sandbox import Authority, Identity, SandboxError, write_key_store, write_trust_store
from heliograph.sandbox.certificates import LOOPBACK

DAY = timedelta(days=1)


def handshake(folder: Path, server: Identity, trusted: Authority, host: str = "127.0.0.1") -> str | None:
    """The TLS version that both sides agree on. Raises SSLError if the client refuses the server."""
    write_key_store(folder / "server.pem", server)
    write_trust_store(folder / "ca.pem", trusted)
    listening = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listening.load_cert_chain(folder / "server.pem")
    client = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            listening.wrap_socket(theirs, server_side=True).close()
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(ours, server_hostname=host) as connection:
            return connection.version()
    finally:
        ours.close()
        thread.join()


def test_a_certificate_is_good_for_the_hosts_that_it_names(tmp_path: Path) -> None:
    authority = Authority()
    for host in LOOPBACK:
        assert handshake(tmp_path, authority.issue("broker", hosts=LOOPBACK), authority, host) == "TLSv1.3"


@pytest.mark.parametrize(
    "fault", ["expired", "not yet valid", "IP address mismatch", "self-signed certificate in certificate chain"]
)
def test_a_client_refuses_a_faulty_certificate(tmp_path: Path, fault: str) -> None:
    authority, now = Authority(), datetime.now(UTC)
    faulty = {
        "expired": lambda: authority.issue("broker", hosts=LOOPBACK, valid_until=now - DAY),
        "not yet valid": lambda: authority.issue("broker", hosts=LOOPBACK, valid_from=now + DAY),
        "IP address mismatch": lambda: authority.issue("broker", hosts=("elsewhere.example",)),
        "self-signed certificate in certificate chain": lambda: Authority("another").issue("broker", hosts=LOOPBACK),
    }[fault]()
    with pytest.raises(ssl.SSLError, match=fault):
        handshake(tmp_path, faulty, authority)


def test_a_pem_file_has_the_key_first_and_can_be_encrypted(tmp_path: Path) -> None:
    identity, file = Authority().issue("mirror"), tmp_path / "mirror.pem"
    write_key_store(file, identity)
    assert file.read_text() == identity.key_pem() + identity.certificate_pem
    write_key_store(file, identity, key_password="s3cret")
    assert file.read_text().startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    key = load_pem_private_key(file.read_bytes(), b"s3cret")
    assert key.public_key() == identity.key.public_key()


def test_a_pkcs12_file_has_key_and_chain(tmp_path: Path) -> None:
    authority = Authority()
    identity = authority.issue("mirror")
    write_key_store(tmp_path / "mirror.p12", identity, "s3cret")
    key, certificate, others = pkcs12.load_key_and_certificates((tmp_path / "mirror.p12").read_bytes(), b"s3cret")
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert (key.private_numbers(), certificate) == (identity.key.private_numbers(), identity.certificate)
    assert others == [authority.certificate]


def test_files_are_for_their_owner_and_are_replaced_in_one_step(tmp_path: Path) -> None:
    authority, file = Authority(), tmp_path / "mirror.pem"
    write_key_store(file, authority.issue("mirror"))
    with file.open() as before:
        write_key_store(file, authority.issue("renewed"))
        assert x509.load_pem_x509_certificate(file.read_bytes()).subject.rfc4514_string() == "CN=renewed"
        assert x509.load_pem_x509_certificate(before.read().encode()).subject.rfc4514_string() == "CN=mirror"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["mirror.pem"]


def test_a_file_of_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=r"key store ends with \.pem, \.p12, \.jks, not with '\.crt'"):
        write_key_store(tmp_path / "mirror.crt", Authority().issue("mirror"))
    with pytest.raises(SandboxError, match="a trust store ends with"):
        write_trust_store(tmp_path / "ca.crt", Authority())
