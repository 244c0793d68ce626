"""Certificates for TLS: an authority that issues them, and the files in which clients and brokers expect them.

A file's suffix decides its format: `.pem`, `.p12` (PKCS12) or `.jks`. Java's keytool writes the last one, which takes
about a second. A file that exists is replaced in one step, as when a certificate is renewed.
"""

import ipaddress
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.java import find_java
from heliograph.sandbox.private_files import write_private

LOOPBACK = ("localhost", "127.0.0.1")
STORE_TYPES = {".pem": "PEM", ".p12": "PKCS12", ".jks": "JKS"}

_ALIAS = "heliograph"
_YEAR = timedelta(days=365)


@dataclass(frozen=True)
class Identity:
    """A private key, its certificate, and that of the authority that issued it."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuer: x509.Certificate

    @property
    def certificate_pem(self) -> str:
        """The certificate, followed by the authority's."""
        chain = (self.certificate, self.issuer)
        return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in chain)

    def key_pem(self, password: str | None = None) -> str:
        encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


class Authority:
    """A certificate authority (CA). Two of them do not trust each other, whatever their names are."""

    def __init__(self, name: str = "Heliograph sandbox") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, _name(name), self._key.public_key(), _a_day_ago(), _a_day_ago() + 10 * _YEAR)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.certificate = builder.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def issue(
        self,
        name: str,
        *,
        hosts: Sequence[str] = (),
        valid_from: datetime | None = None,
        valid_until: datetime | None = None,
    ) -> Identity:
        """A new key with a certificate for `CN=name`. A broker's has the `hosts` under which clients reach it."""
        key = ec.generate_private_key(ec.SECP256R1())
        first = valid_from or (valid_until - _YEAR if valid_until else _a_day_ago())
        builder = _builder(name, self.certificate.subject, key.public_key(), first, valid_until or first + _YEAR)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = builder.add_extension(usage, critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return Identity(key, builder.sign(self._key, hashes.SHA256()), self.certificate)


def write_key_store(path: Path, identity: Identity, password: str = "", key_password: str | None = None) -> None:
    """The password is for `.p12` and `.jks`. The key's own password is that of the store, and none for `.pem`, unless
    another one is given; PKCS12 has only one."""
    match path.suffix:
        case ".pem":
            write_private(path, (identity.key_pem(key_password) + identity.certificate_pem).encode())
        case ".p12":
            encryption = BestAvailableEncryption(password.encode())
            write_private(
                path,
                pkcs12.serialize_key_and_certificates(
                    _ALIAS.encode(), identity.key, identity.certificate, [identity.issuer], encryption
                ),
            )
        case ".jks":
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                source = Path(folder, "store.p12")
                write_key_store(source, identity, password)
                keytool = _Keytool(Path(folder))
                keytool.run(
                    *("-importkeystore", "-srcstoretype", "PKCS12", "-deststoretype", "JKS", "-srcalias", _ALIAS),
                    *("-srckeystore", str(source), "-destkeystore", str(keytool.store)),
                    passwords={
                        "-srcstorepass": password,
                        "-deststorepass": password,
                        "-destkeypass": key_password or password,
                    },
                )
                write_private(path, keytool.store.read_bytes())
        case suffix:
            raise SandboxError(f"{path}: a key store ends with {', '.join(STORE_TYPES)}, not with {suffix!r}")


def write_trust_store(path: Path, authority: Authority, password: str = "") -> None:
    """The password is for `.p12` and `.jks`."""
    match path.suffix:
        case ".pem":
            write_private(path, authority.pem.encode())
        case ".p12":
            # With the attribute without which Java takes a certificate in a PKCS12 file for an untrusted one.
            trusted = pkcs12.PKCS12Certificate(authority.certificate, _ALIAS.encode())
            write_private(path, pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(password.encode())))
        case ".jks":
            with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                certificate = Path(folder, "ca.pem")
                certificate.write_text(authority.pem)
                keytool = _Keytool(Path(folder))
                keytool.run(
                    *("-importcert", "-noprompt", "-alias", _ALIAS, "-file", str(certificate)),
                    *("-keystore", str(keytool.store), "-storetype", "JKS"),
                    passwords={"-storepass": password},
                )
                write_private(path, keytool.store.read_bytes())
        case suffix:
            raise SandboxError(f"{path}: a trust store ends with {', '.join(STORE_TYPES)}, not with {suffix!r}")


class _Keytool:
    """Java's keytool, with passwords in files: a command line is visible to all users of the machine."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "store.jks"
        self._folder = folder

    def run(self, *arguments: str, passwords: dict[str, str]) -> None:
        command = [str(Path(find_java().executable).resolve().with_name("keytool")), *arguments]
        for option, password in passwords.items():
            file = self._folder / option.strip("-")
            file.write_text(password)
            command += [option + ":file", str(file)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
        except OSError as error:
            raise SandboxError(f"cannot write a JKS file: {error}") from error
        except subprocess.CalledProcessError as error:
            raise SandboxError(f"cannot write a JKS file: keytool says {error.stdout.strip()}") from error


def _builder(
    name: str, issuer: x509.Name, key: ec.EllipticCurvePublicKey, valid_from: datetime, valid_until: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(issuer, _name(name), key, x509.random_serial_number(), valid_from, valid_until)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _a_day_ago() -> datetime:
    return datetime.now(UTC) - timedelta(days=1)
