"""TLS of the REST address. Renewed files are used for new connections, without a restart."""

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography import x509

from heliograph.model.rest_settings import NONE, REQUIRED, ListenerTls
from heliograph.model.secret import Secret
from heliograph.model.security import KeyStore
from heliograph.rest.renewed_file import Renewed
from heliograph.wire.security.failures import SecurityFailure
from heliograph.wire.security.keystores import load_certificates, load_key
from heliograph.wire.security.tls import set_cipher_suites, set_versions, use_key


class RenewedContext(ssl.SSLContext):
    """For a server: each connection uses a context that was made from the files as they are now. Raises
    SecurityFailure or OSError if they cannot be used."""

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
    context.options |= ssl.OP_NO_RENEGOTIATION
    set_versions(context, tls.protocols)
    set_cipher_suites(context, tls.cipher_suites)
    use_key(context, load_key(_key_store(tls)))
    if tls.trust is not None and tls.client_auth != NONE:
        context.verify_mode = ssl.CERT_REQUIRED if tls.client_auth == REQUIRED else ssl.CERT_OPTIONAL
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Java, and as for brokers
        context.load_verify_locations(cadata=load_certificates(tls.trust).decode("ascii"))
    return context


def _key_store(tls: ListenerTls) -> KeyStore:
    """With a private key in a file of its own, both files as texts."""
    if not tls.key_location:
        return tls.key
    return replace(tls.key, key=_text(tls.key_location), certificate_chain=_text(tls.key.location))


def _text(file: str) -> Secret:
    try:
        return Secret(Path(file).read_text())
    except UnicodeDecodeError:
        raise SecurityFailure(f"{file} is no PEM file") from None
