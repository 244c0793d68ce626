"""Reads key stores and trust stores: JKS, PKCS12 and PEM, from files or from texts in settings.

As in Java, a file may be of the other binary format than its type says: newer Javas write PKCS12 where JKS is asked
for.
"""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)

from heliograph.model.secret import Secret
from heliograph.model.security import KeyStore, TrustStore
from heliograph.wire.security import jks
from heliograph.wire.security.failures import SecurityFailure

T = TypeVar("T")
_CERTIFICATE = re.compile(rb"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----(.*?)-----END", re.DOTALL)
_KEY = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----(.*?)-----END \1-----", re.DOTALL)
_JCEKS = b"\xce\xce\xce\xce"
_DER = b"\x30"


@dataclass(frozen=True, slots=True)
class OwnKey:
    """A client's or server's private key, not encrypted, and its certificates, as PEM."""

    key: bytes = field(repr=False)
    chain: bytes


def load_certificates(store: TrustStore) -> bytes:
    """The certificates of a trust store, as PEM. Raises SecurityFailure."""
    if store.certificates is not None:
        text = store.certificates.reveal().encode()
        return _require_certificates(_pem_certificates(text), "ssl.truststore.certificates", "its text")
    setting = "ssl.truststore"

    def parse(data: bytes, password: str | None) -> list[bytes]:
        if data.startswith(jks.MAGIC):
            store = jks.read(data, password)
            chains = (certificate for _, chain in store.keys for certificate in chain)
            return [_armor(certificate) for certificate in (*store.certificates, *chains)]
        if data.startswith(_DER):
            _, certificates = _read_pkcs12(data, password)
            return certificates
        return _pem_certificates(data)

    certificates = _read(setting, store.location, store.password, parse)
    return _require_certificates(certificates, f"{setting}.location", store.location)


def load_key(store: KeyStore) -> OwnKey:
    """The key of a key store. Raises SecurityFailure."""
    setting = "ssl.keystore"
    if store.key is not None:
        key = _pem_key(store.key.reveal().encode(), store.key_password, f"{setting}.key")
        chain = store.certificate_chain.reveal().encode() if store.certificate_chain else b""
        name = f"{setting}.certificate.chain"
        return OwnKey(key, _require_certificates(_pem_certificates(chain), name, "its text"))
    key_password = store.key_password or store.password

    def parse(data: bytes, password: str | None) -> tuple[bytes, list[bytes]]:
        if data.startswith(jks.MAGIC):
            return _jks_key(data, password, key_password, store.location)
        if data.startswith(_DER):
            key, certificates = _read_pkcs12(data, password)
            if key is None:
                raise ValueError("it has no private key")
            return key, certificates
        return _pem_key(data, key_password, f"{setting}.location"), _pem_certificates(data)

    key, certificates = _read(setting, store.location, store.password, parse)
    return OwnKey(key, _require_certificates(certificates, f"{setting}.location", store.location))


def _read(setting: str, location: str, password: Secret | None, parse: Callable[[bytes, str | None], T]) -> T:
    try:
        data = Path(location).read_bytes()
    except OSError as error:
        reason = f"{location} cannot be read: {error.strerror or error}"
        raise SecurityFailure(f"{setting}.location: {reason}: check the path on this machine") from None
    if data.startswith(_JCEKS):
        text = f"{location} is a JCEKS store, which is not supported: convert it with keytool -importkeystore to PKCS12"
        raise SecurityFailure(f"{setting}.location: {text}")
    try:
        return parse(data, password.reveal() if password else None)
    except jks.WrongPassword:
        text = f"{location} cannot be opened with this password, or is damaged: correct the password"
        raise SecurityFailure(f"{setting}.password: {text}") from None
    except (ValueError, IndexError) as error:
        text = f"{location} is not a readable key store: {error}: expected JKS, PKCS12 or PEM"
        raise SecurityFailure(f"{setting}.location: {text}") from None


def _jks_key(
    data: bytes, password: str | None, key_password: Secret | None, location: str
) -> tuple[bytes, list[bytes]]:
    keys = jks.read(data, password).keys
    if not keys:
        raise ValueError("it has no private key")
    encrypted, chain = keys[0]
    try:
        plain = jks.decrypt(encrypted, key_password.reveal() if key_password else "")
    except jks.WrongPassword:
        text = f"the key in {location} cannot be read with this password: correct the password"
        raise SecurityFailure(f"ssl.key.password: {text}") from None
    return _to_pem(load_der_private_key(plain, None)), [_armor(certificate) for certificate in chain]


def _read_pkcs12(data: bytes, password: str | None) -> tuple[bytes | None, list[bytes]]:
    try:
        store = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    except ValueError as error:
        raise (jks.WrongPassword() if "password" in str(error).lower() else error) from None
    certificates = [*([store.cert] if store.cert else []), *store.additional_certs]
    pems = [certificate.certificate.public_bytes(Encoding.PEM) for certificate in certificates]
    return (_to_pem(store.key) if store.key is not None else None), pems


def _pem_key(data: bytes, password: Secret | None, setting: str) -> bytes:
    found = _KEY.search(data)
    if found is None:
        raise SecurityFailure(f"{setting}: there is no private key in it: expected '-----BEGIN PRIVATE KEY-----'")
    kind, body = found.groups()
    # Settings of one line have the line breaks as spaces, or none at all.
    lines = body if b"Proc-Type" in body else b"\n" + b"\n".join(body.split()) + b"\n"
    pem = b"-----BEGIN %s-----%s-----END %s-----\n" % (kind, lines, kind)
    try:
        secret = password.reveal().encode() if password and b"ENCRYPTED" in pem else None
        return _to_pem(load_pem_private_key(pem, secret))
    except TypeError:
        raise SecurityFailure(f"ssl.key.password: the key of {setting} is encrypted: set the password") from None
    except ValueError:
        text = f"the key of {setting} cannot be read: correct the password, or the key if it is not encrypted"
        raise SecurityFailure(f"ssl.key.password: {text}") from None


def _to_pem(key: object) -> bytes:
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())  # type: ignore[attr-defined]
    return pem


def _pem_certificates(data: bytes) -> list[bytes]:
    try:
        return [_armor(base64.b64decode(b"".join(body.split()))) for body in _CERTIFICATE.findall(data)]
    except binascii.Error as error:
        raise ValueError(f"a certificate in it is damaged: {error}") from None


def _require_certificates(certificates: list[bytes], setting: str, where: str) -> bytes:
    if not certificates:
        raise SecurityFailure(f"{setting}: there is no certificate in {where}")
    return b"".join(certificates)


def _armor(der: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"
