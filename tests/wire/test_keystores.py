"""Key stores and trust stores as Java's keytool writes them, and PEM as settings contain it."""

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from heliograph.model.secret import Secret
from heliograph.model.security import JKS, PEM, PKCS12, KeyStore, Tls, TrustStore
from heliograph.sandbox.java import find_java
from heliograph.wire.security.failures import SecurityFailure
from heliograph.wire.security.keystores import OwnKey, load_certificates, load_key
from heliograph.wire.security.tls import client_context, openssl_name

STORE, KEY = Secret("store-password"), Secret("key-password")


def _is_pair(own: OwnKey) -> bool:
    """Whether the certificate is that of the key."""
    certificate = x509.load_pem_x509_certificate(own.chain)
    return certificate.public_key() == load_pem_private_key(own.key, None).public_key()


@pytest.fixture(scope="module")
def keytool(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Stores that keytool has written, made side by side."""
    folder = tmp_path_factory.mktemp("stores")
    tool = Path(find_java().executable).with_name("keytool")
    new_key = ["-genkeypair", "-alias", "me", "-keyalg", "EC", "-dname", "CN=me"]
    commands = {
        "key.jks": [*new_key, "-storetype", "JKS", "-keypass", KEY.reveal()],
        "key.p12": [*new_key, "-storetype", "PKCS12"],
        "legacy.p12": ["-J-Dkeystore.pkcs12.legacy", *new_key, "-storetype", "PKCS12"],
        "key.jceks": [*new_key, "-storetype", "JCEKS"],
        "trust.jks": ["-importcert", "-noprompt", "-alias", "ca", "-file", str(folder / "ca.pem"), "-storetype", "JKS"],
        "trust.p12": ["-importcert", "-noprompt", "-alias", "ca", "-file", str(folder / "ca.pem")],
    }
    _, certificate = _key_pair()
    (folder / "ca.pem").write_bytes(certificate)
    started = [
        subprocess.Popen(
            [tool, *arguments, "-keystore", folder / name, "-storepass", STORE.reveal()], stderr=subprocess.DEVNULL
        )
        for name, arguments in commands.items()
    ]
    assert [process.wait(timeout=240) for process in started] == [0] * len(started)
    return lambda name: folder / name


def _key_pair() -> tuple[ec.EllipticCurvePrivateKey, bytes]:
    """A key, and its certificate as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "me")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    return key, certificate.public_bytes(Encoding.PEM)


def test_keys_that_keytool_wrote(keytool: Callable[[str], Path]) -> None:
    assert _is_pair(load_key(KeyStore(JKS, str(keytool("key.jks")), STORE, KEY)))
    assert _is_pair(load_key(KeyStore(PKCS12, str(keytool("key.p12")), STORE)))
    assert _is_pair(load_key(KeyStore(PKCS12, str(keytool("legacy.p12")), STORE)))


def test_the_type_may_name_the_other_binary_format(keytool: Callable[[str], Path]) -> None:
    """Java reads both, as its default type has changed."""
    assert _is_pair(load_key(KeyStore(JKS, str(keytool("key.p12")), STORE)))
    assert _is_pair(load_key(KeyStore(PKCS12, str(keytool("key.jks")), STORE, KEY)))


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12"])
def test_trusted_certificates_that_keytool_wrote(keytool: Callable[[str], Path], name: str) -> None:
    (expected,) = x509.load_pem_x509_certificates(keytool("ca.pem").read_bytes())
    pem = load_certificates(TrustStore(JKS, str(keytool(name)), STORE))
    assert x509.load_pem_x509_certificates(pem) == [expected]


def test_a_jks_trust_store_opens_without_a_password_as_in_java(keytool: Callable[[str], Path]) -> None:
    assert load_certificates(TrustStore(JKS, str(keytool("trust.jks"))))


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12", "key.jks"])
def test_a_wrong_password_is_reported_with_setting_and_file(keytool: Callable[[str], Path], name: str) -> None:
    with pytest.raises(SecurityFailure, match=rf"^ssl\.truststore\.password: \S*{name} cannot be opened") as failure:
        load_certificates(TrustStore(JKS, str(keytool(name)), Secret("not-the-password")))
    assert "not-the-password" not in str(failure.value)


def test_what_is_wrong_with_a_key_store(keytool: Callable[[str], Path], tmp_path: Path) -> None:
    def failure(name: str, password: Secret = STORE, folder: Callable[[str], Path] = keytool) -> str:
        with pytest.raises(SecurityFailure) as raised:
            load_key(KeyStore(JKS, str(folder(name)), password))
        return str(raised.value).replace(str(folder(name).parent) + "/", "")

    assert failure("key.jks") == (
        "ssl.key.password: the key in key.jks cannot be read with this password: correct the password"
    )
    assert failure("key.jceks") == (
        "ssl.keystore.location: key.jceks is a JCEKS store, which is not supported: convert it with keytool "
        "-importkeystore to PKCS12"
    )
    assert failure("missing") == (
        "ssl.keystore.location: missing cannot be read: No such file or directory: check the path on this machine"
    )
    assert "there is no private key in it" in failure("ca.pem")
    damaged = tmp_path / "damaged.jks"
    damaged.write_bytes(keytool("trust.jks").read_bytes()[:40])
    assert "cannot be opened with this password, or is damaged" in failure("damaged.jks", folder=tmp_path.joinpath)


@pytest.mark.parametrize("separator", ["\n", " ", ""])
def test_pem_in_a_setting_may_be_one_line(separator: str) -> None:
    key, certificate = _key_pair()
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"key-password")).decode()
    chain = Secret(certificate.decode().replace("\n", separator))
    for text, password in ((plain, None), (encrypted, KEY)):
        own = load_key(KeyStore(PEM, "", None, password, Secret(text.replace("\n", separator)), chain))
        assert _is_pair(own)
    assert load_certificates(TrustStore(PEM, certificates=chain))


def test_an_encrypted_key_needs_its_password() -> None:
    key, certificate = _key_pair()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"key-password")).decode()
    chain = Secret(certificate.decode())
    with pytest.raises(SecurityFailure, match=r"^ssl\.key\.password: the key of ssl\.keystore\.key is encrypted"):
        load_key(KeyStore(PEM, "", None, None, Secret(text), chain))
    with pytest.raises(SecurityFailure, match=r"^ssl\.key\.password: the key of ssl\.keystore\.key cannot be read"):
        load_key(KeyStore(PEM, "", None, Secret("wrong"), Secret(text), chain))


def test_a_renewed_file_gives_a_new_context(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(_key_pair()[1])
    tls = Tls(TrustStore(PEM, str(file)))
    first = client_context(tls)
    assert client_context(tls) is first
    renewed = tmp_path / "renewed.pem"
    renewed.write_bytes(_key_pair()[1])
    renewed.rename(file)
    assert client_context(tls) is not first


def test_settings_that_leave_no_way_to_connect_are_reported() -> None:
    with pytest.raises(SecurityFailure, match=r"^ssl\.enabled\.protocols: 'SSLv3' is not supported"):
        client_context(Tls(protocols=("SSLv3",)))
    with pytest.raises(SecurityFailure, match=r"^ssl\.cipher\.suites: none of TLS_NO_WITH_NO is supported"):
        client_context(Tls(cipher_suites=("TLS_NO_WITH_NO",)))


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA256", "AES256-SHA256"),
        ("TLS_DHE_RSA_WITH_AES_128_CBC_SHA", "DHE-RSA-AES128-SHA"),
    ],
)
def test_names_of_cipher_suites(java: str, openssl: str) -> None:
    assert openssl_name(java) == openssl
