"""TLS contexts of clients, made from their settings and made again when a file of theirs has changed."""

import os
import re
import ssl
import tempfile
from pathlib import Path

from heliograph.model.security import Tls
from heliograph.wire.security.failures import SecurityFailure
from heliograph.wire.security.keystores import OwnKey, load_certificates, load_key

_VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_TLS12_SUITE = re.compile(r"(?:TLS|SSL)_(?:(\w+)_)?WITH_(\w+)")

_MOST_CONTEXTS = 100

_Stamp = tuple[int, int, int] | None
_contexts: dict[Tls, tuple[tuple[_Stamp, ...], ssl.SSLContext]] = {}


def client_context(tls: Tls) -> ssl.SSLContext:
    """Raises SecurityFailure. Reads files: call it in a thread."""
    files = [tls.trust.location, *([tls.key.location] if tls.key else [])]
    stamps = tuple(_stamp(location) for location in files)
    known = _contexts.get(tls)
    if known is not None and known[0] == stamps:
        return known[1]
    try:
        context = _make(tls)
    except (ValueError, OSError) as error:  # their texts may quote what is in a store
        text = f"the settings of TLS cannot be used ({type(error).__name__})"
        raise SecurityFailure(f"ssl.truststore, ssl.keystore: {text}: check the stores and PEM texts") from None
    if len(_contexts) >= _MOST_CONTEXTS:  # of secrets that were rotated
        _contexts.clear()
    _contexts[tls] = stamps, context
    return context


def _stamp(location: str) -> _Stamp:
    """Changes when a file is written or replaced. Kubernetes replaces a link in its path, which stat() follows."""
    try:
        status = Path(location).stat() if location else None
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino) if status else None


def _make(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.verify_host
    # As in Java, a certificate that is in the trust store is trusted, whoever has issued it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    set_versions(context, tls.protocols)
    set_cipher_suites(context, tls.cipher_suites)
    if tls.trust.location or tls.trust.certificates:
        pem = load_certificates(tls.trust)
        try:
            context.load_verify_locations(cadata=pem.decode("ascii"))
        except ssl.SSLError as error:
            raise SecurityFailure(f"ssl.truststore: its certificates cannot be used: {error.reason}") from None
    else:
        context.load_default_certs()
    if tls.key is not None:
        use_key(context, load_key(tls.key))
    return context


def set_versions(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    unknown = [name for name in names if name not in _VERSIONS]
    if unknown or not names:
        text = f"'{', '.join(unknown)}' is not supported" if unknown else "it is empty"
        raise SecurityFailure(f"ssl.enabled.protocols: {text}: use {', '.join(_VERSIONS)}")
    versions = [_VERSIONS[name] for name in names]
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def set_cipher_suites(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    """Those of TLS 1.3 cannot be chosen in Python: all of them stay enabled unless only older ones are named."""
    older = [name for name in names if "_WITH_" in name]
    if not names:
        return
    if not older:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    if len(older) == len(names):
        context.maximum_version = min(context.maximum_version, ssl.TLSVersion.TLSv1_2)
    try:
        context.set_ciphers(":".join(map(openssl_name, older)))
    except ssl.SSLError:
        raise SecurityFailure(f"ssl.cipher.suites: none of {', '.join(older)} is supported") from None


def openssl_name(suite: str) -> str:
    """OpenSSL's name of a cipher suite of TLS 1.2: `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is
    `ECDHE-RSA-AES128-GCM-SHA256`."""
    parts = _TLS12_SUITE.fullmatch(suite)
    if parts is None:
        return suite
    exchange, cipher = parts[1] or "", re.sub(r"AES_(\d+)", r"AES\1", parts[2])
    cipher = re.sub(r"_CBC|(?<=POLY1305)_SHA256", "", cipher).replace("3DES_EDE", "DES-CBC3")
    prefix = "" if exchange == "RSA" else exchange.replace("_", "-") + "-"
    return prefix + cipher.replace("_", "-")


def use_key(context: ssl.SSLContext, own: OwnKey) -> None:
    """Python reads keys from files only: this one exists in memory where the system has such files."""
    descriptor = os.memfd_create("key") if hasattr(os, "memfd_create") else -1
    with open(descriptor, "wb") if descriptor >= 0 else tempfile.NamedTemporaryFile() as file:
        file.write(own.key + own.chain)
        file.flush()
        name = f"/proc/self/fd/{descriptor}" if descriptor >= 0 else file.name
        try:
            context.load_cert_chain(name)
        except ssl.SSLError as error:
            text = f"key and certificate cannot be used together: {error.reason}"
            raise SecurityFailure(f"ssl.keystore: {text}: check that the certificate belongs to the key") from None
