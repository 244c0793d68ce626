"""TLS of the REST address. Renewed files are used for new connections, without a restart."""

import os
import ssl
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from cryptography import x509

from heliograph.model.rest_settings import NONE, REQUIRED, ListenerTls
from heliograph.model.security import PEM, KeyStore, TrustStore
from heliograph.rest.renewed_file import Renewed

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class RenewedContext(ssl.SSLContext):
    """For a server: each connection uses a context that was made from the files as they are now. Raises ValueError or
    OSError if they cannot be used."""

    renewed: Renewed[ssl.SSLContext]

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """asyncio calls it for each connection."""
        return self.renewed.get().wrap_bio(*arguments, **options)


def listener_context(tls: ListenerTls) -> ssl.SSLContext:
    trust_location = tls.trust.location if tls.trust is not None else ""
    files = (tls.key.location, tls.key_location, trust_location)
    context = RenewedContext(ssl.PROTOCOL_TLS_SERVER)
    context.renewed = Renewed(files, lambda: _context(tls), f"the certificate of the REST address ({files[0]})")
    return context


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate, in DER, as Kafka writes principals: `CN=alice,O=Example`."""
    return x509.load_der_x509_certificate(certificate).subject.rfc4514_string()


def _context(tls: ListenerTls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    unknown = [name for name in tls.protocols if name not in _VERSIONS]
    if unknown:
        raise ValueError(f"ssl.enabled.protocols: {unknown[0]} is not supported: write TLSv1.2, TLSv1.3 or both")
    versions = [_VERSIONS[name] for name in tls.protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    _load_key(context, tls)
    if tls.trust is not None and tls.client_auth != NONE:
        context.verify_mode = ssl.CERT_REQUIRED if tls.client_auth == REQUIRED else ssl.CERT_OPTIONAL
        try:
            context.load_verify_locations(cadata=trusted_pem(tls.trust))
        except ssl.SSLError as error:
            raise ValueError(f"ssl.truststore.location: {tls.trust.location} has no certificates: {error}") from None
    return context


def _load_key(context: ssl.SSLContext, tls: ListenerTls) -> None:
    """Python's ssl reads keys from files only."""
    password = tls.key.key_password or tls.key.password
    text = key_pem(tls.key) + (_read(tls.key_location) if tls.key_location else "")
    descriptor, file = tempfile.mkstemp(prefix="heliograph-", suffix=".pem")  # readable for this user only
    try:
        with os.fdopen(descriptor, "w") as output:
            output.write(text)
        # Without a password OpenSSL would ask on the terminal.
        context.load_cert_chain(file, password=password.reveal() if password is not None else "")
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        raise ValueError(
            f"ssl.keystore.location: {tls.key.location} cannot be used: {reason}: it must have a private key and its "
            "certificate, and ssl.key.password must be the key's"
        ) from None
    finally:
        with suppress(OSError):
            os.unlink(file)


def key_pem(store: KeyStore) -> str:
    """Private key and certificates as PEM text."""
    if store.key is not None:
        chain = store.certificate_chain.reveal() if store.certificate_chain is not None else ""
        return f"{store.key.reveal()}\n{chain}\n"
    if store.type != PEM:
        raise ValueError(f"ssl.keystore.type: {store.type} is not supported for the REST address yet: write PEM")
    return _read(store.location)


def trusted_pem(store: TrustStore) -> str:
    """Certificates as PEM text."""
    if store.certificates is not None:
        return store.certificates.reveal()
    if store.type != PEM:
        raise ValueError(f"ssl.truststore.type: {store.type} is not supported for the REST address yet: write PEM")
    return _read(store.location)


def _read(file: str) -> str:
    try:
        return Path(file).read_text() + "\n"
    except UnicodeDecodeError:
        raise ValueError(
            f"{file} is no PEM file: ssl.keystore.type or ssl.truststore.type must say what it is"
        ) from None
