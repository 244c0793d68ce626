"""Sets SCRAM passwords of users on a cluster, over the unsecured listener of its brokers.

The requests are written by hand, as in `probe`: AlterUserScramCredentials and DescribeUserScramCredentials, version 0.
"""

import hashlib
import secrets
import socket
import struct
import time
from collections.abc import Mapping, Sequence

from heliograph.sandbox.errors import SandboxError
from heliograph.sandbox.ports import HOST
from heliograph.sandbox.probe import exchange

_DESCRIBE, _ALTER = 50, 51
_FEWEST_ITERATIONS = 4096  # that Kafka allows
_HASHES = {1: "sha256", 2: "sha512"}  # by Kafka's number of the mechanism


def set_passwords(ports: Sequence[int], passwords: Mapping[str, str], deadline: float) -> None:
    """Returns when all brokers at `ports` know the passwords. Raises SandboxError if a broker refuses."""
    # A broker says how many iterations a user's password has, and nothing else about it: a new number for each change
    # shows which brokers know it.
    known = [count for user in passwords for count in _iterations(ports[0], user)]
    iterations = max(known, default=_FEWEST_ITERATIONS - 1) + 1
    for mechanism in _HASHES:  # one by one: a broker takes one password of a user in a request
        _alter(ports[0], passwords, mechanism, iterations)
    for port in ports:
        while any(_iterations(port, user) != [iterations] * len(_HASHES) for user in passwords):
            if time.monotonic() > deadline:
                raise SandboxError(f"the broker at port {port} does not know the SCRAM passwords in time")
            time.sleep(0.02)


def _alter(port: int, passwords: Mapping[str, str], mechanism: int, iterations: int) -> None:
    start = struct.pack(">bi", mechanism, iterations)
    upsertions = [
        _string(user) + start + _salted(password, _HASHES[mechanism], iterations) + b"\0"
        for user, password in passwords.items()
    ]
    answer = _ask(port, _ALTER, _length(0) + _length(len(upsertions)) + b"".join(upsertions) + b"\0")
    answer.skip(4)  # throttle time
    for _ in range(answer.length()):
        user, (code,), message = answer.string(), answer.unpack(">h"), answer.string()
        if code:
            raise SandboxError(f"the broker at port {port} refuses the SCRAM password of {user}: {message}")
        answer.skip(1)


def _iterations(port: int, user: str) -> list[int]:
    """Of the user's password for each mechanism, as this broker knows them."""
    try:
        answer = _ask(port, _DESCRIBE, _length(1) + _string(user) + b"\0\0")
    except (OSError, struct.error):
        return []
    answer.skip(4 + 2)  # throttle time, error
    answer.string()
    found = []
    for _ in range(answer.length()):
        answer.string()
        answer.skip(2)
        answer.string()
        for _ in range(answer.length()):
            found.append(answer.unpack(">bi")[1])
            answer.skip(1)
        answer.skip(1)
    return found


def _salted(password: str, hash_name: str, iterations: int) -> bytes:
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)
    return _length(len(salt)) + salt + _length(len(salted)) + salted


def _ask(port: int, api_key: int, body: bytes) -> "_Answer":
    with socket.create_connection((HOST, port), timeout=10) as connection:
        # An empty list of tagged fields ends the header, in the request and in the answer.
        answer = _Answer(exchange(connection, api_key, 0, b"\0" + body))
    answer.skip(4 + 1)
    return answer


class _Answer:
    """Reads the fields of a response of a flexible version in turn."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def skip(self, count: int) -> None:
        self._at += count

    def unpack(self, form: str) -> tuple[int, ...]:
        self._at += struct.calcsize(form)
        return struct.unpack_from(form, self._data, self._at - struct.calcsize(form))

    def length(self) -> int:
        """Of a string or an array: an unsigned varint, one more than the length; 0 means null."""
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return max(value - 1, 0)

    def string(self) -> str:
        length = self.length()
        self._at += length
        return self._data[self._at - length : self._at].decode()


def _length(count: int) -> bytes:
    value, written = count + 1, b""
    while value >= 0x80:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


def _string(text: str) -> bytes:
    return _length(len(text.encode())) + text.encode()
