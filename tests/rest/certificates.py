"""Certificates that tests issue themselves, as PEM files."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Issuer:
    """`file` has the certificate to trust."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    file: Path

    def issue(self, file: Path, name: str, password: str = "") -> Path:
        """Writes key and certificate of a name to one file, for servers on 127.0.0.1 and for clients."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        addresses = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        certificate = (
            _builder(_name(name), self.certificate.subject, key)
            .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        file.write_bytes(_pem(key, password) + certificate.public_bytes(serialization.Encoding.PEM))
        return file


def issuer(folder: Path, name: str = "Test CA") -> Issuer:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name(name), _name(name), key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{name.replace(' ', '-')}.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Issuer(key, certificate, file)


def _name(name: str) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Example"), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    )


def _builder(subject: x509.Name, issued_by: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issued_by)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
    )


def _pem(key: ec.EllipticCurvePrivateKey, password: str) -> bytes:
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        encryption = serialization.BestAvailableEncryption(password.encode())
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
