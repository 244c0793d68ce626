"""Hides the secrets of a lease from Spark's files.

Spark writes the data of a job to files, but not its function. So the work is encrypted, and the key is part of the
function, which goes from memory to memory; over a network only if Spark encrypts that (see `secured_channels`).
"""

import pickle

from cryptography.fernet import Fernet

from heliograph.copy.work import Work


class Seal:
    """One key per driver."""

    def __init__(self) -> None:
        self._key = Fernet.generate_key()

    def close(self, work: Work) -> bytes:
        return Fernet(self._key).encrypt(pickle.dumps(work, pickle.HIGHEST_PROTOCOL))

    def open(self, sealed: bytes) -> Work:
        work = pickle.loads(Fernet(self._key).decrypt(sealed))
        assert isinstance(work, Work)
        return work
