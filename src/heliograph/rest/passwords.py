"""Passwords of callers: as a file has them, plain or hashed, and whether one matches."""

import base64
import hashlib
import hmac
import os

from heliograph.model.secret import Secret

_PREFIX = "scrypt:"
_COST, _BLOCK_SIZE, _PARALLELISM = 2**14, 8, 1  # 16 MB and some hundredths of a second for each check
_MEMORY = 64 * 2**20
_SALT_SIZE, _HASH_SIZE = 16, 32


def hashed(password: Secret) -> str:
    """The text that a file may have instead of the password."""
    salt = os.urandom(_SALT_SIZE)
    return f"{_PREFIX}{_encoded(salt)}:{_encoded(_hash(password, salt))}"


def is_hashed(stored: Secret) -> bool:
    return stored.reveal().startswith(_PREFIX)


def matches(password: Secret, stored: Secret) -> bool:
    """Takes the same time for each password. A hash that cannot be read matches none."""
    if not is_hashed(stored):
        return hmac.compare_digest(password.reveal().encode(), stored.reveal().encode())
    try:
        salt, expected = map(base64.b64decode, stored.reveal().removeprefix(_PREFIX).split(":"))
    except ValueError:
        return False
    return hmac.compare_digest(_hash(password, salt), expected)


def _hash(password: Secret, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password.reveal().encode(),
        salt=salt,
        n=_COST,
        r=_BLOCK_SIZE,
        p=_PARALLELISM,
        maxmem=_MEMORY,
        dklen=_HASH_SIZE,
    )


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
