"""Java's own key store format, JKS, which no maintained Python library reads.

Certificates are stored as they are. A private key is encrypted with a stream of SHA-1 digests. The last 20 bytes are a
digest of the password and everything before.
"""

import hashlib
import hmac
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

MAGIC = b"\xfe\xed\xfe\xed"
_DIGEST = hashlib.sha1
_SIZE = _DIGEST().digest_size
_WHITENER = b"Mighty Aphrodite"
_PRIVATE_KEY, _TRUSTED_CERTIFICATE = 1, 2


class WrongPassword(ValueError):
    """The password is not the store's, or not the key's; or the file is damaged."""


@dataclass(frozen=True, slots=True)
class JavaKeyStore:
    """`keys` are encrypted, each with its chain of certificates (DER)."""

    certificates: list[bytes]
    keys: list[tuple[bytes, list[bytes]]] = field(repr=False)


def read(data: bytes, password: str | None) -> JavaKeyStore:
    """Without a password the digest is not checked, as in Java."""
    body, digest = data[:-_SIZE], data[-_SIZE:]
    if password is not None:
        expected = _DIGEST(password.encode("utf-16-be") + _WHITENER + body).digest()
        if not hmac.compare_digest(expected, digest):
            raise WrongPassword
    fields = _Fields(body)
    _magic, version, count = fields.numbers(">4siI")
    store = JavaKeyStore([], [])
    for _ in range(count):
        (tag,) = fields.numbers(">i")
        fields.take(">H")  # alias
        fields.numbers(">q")  # time of creation
        if tag == _PRIVATE_KEY:
            key = fields.take(">I")
            (length,) = fields.numbers(">I")
            store.keys.append((key, [_certificate(fields, version) for _ in range(length)]))
        elif tag == _TRUSTED_CERTIFICATE:
            store.certificates.append(_certificate(fields, version))
        else:
            raise ValueError(f"it has an entry of the unknown type {tag}")
    return store


def decrypt(key: bytes, password: str) -> bytes:
    """The private key (PKCS #8, DER) of an encrypted one."""
    _algorithm, encrypted = _elements(_elements(key)[0])
    salt, data, check = encrypted[:_SIZE], encrypted[_SIZE:-_SIZE], encrypted[-_SIZE:]
    secret = password.encode("utf-16-be")
    stream = b"".join(_stream(secret, salt, len(data)))
    plain = bytes(left ^ right for left, right in zip(data, stream, strict=False))
    if not hmac.compare_digest(_DIGEST(secret + plain).digest(), check):
        raise WrongPassword
    return plain


def _stream(secret: bytes, salt: bytes, length: int) -> Iterator[bytes]:
    digest = salt
    for _ in range(0, length, _SIZE):
        digest = _DIGEST(secret + digest).digest()
        yield digest


def _certificate(fields: "_Fields", version: int) -> bytes:
    if version > 1:
        fields.take(">H")  # its type, always X.509
    return fields.take(">I")


class _Fields:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        if self._at + struct.calcsize(form) > len(self._data):
            raise ValueError("it is truncated")
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def take(self, form: str) -> bytes:
        """Bytes whose length is in front of them."""
        (length,) = self.numbers(form)
        if self._at + length > len(self._data):
            raise ValueError("it is truncated")
        self._at += length
        return self._data[self._at - length : self._at]


def _elements(data: bytes) -> list[bytes]:
    """The contents of the DER elements that follow each other."""
    contents = []
    at = 0
    while at < len(data):
        length = data[at + 1]
        at += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(data[at : at + size], "big")
            at += size
        contents.append(data[at : at + length])
        at += length
    return contents
