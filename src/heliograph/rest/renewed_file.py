"""Files that are read again when they change."""

import logging
import os
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from heliograph.wire.errors import WireError

T = TypeVar("T")
log = logging.getLogger(__name__)

Version = tuple[tuple[int, int, int], ...]


class Renewed(Generic[T]):
    """What `load` returns, loaded again when one of the files has changed. If that fails, the last value stays in use
    and the reason is logged. The first load raises its error."""

    def __init__(self, files: Sequence[str], load: Callable[[], T], subject: str) -> None:
        self._files = [file for file in files if file]
        self._load = load
        self._subject = subject
        self._version = self._current_version()
        self._value = load()

    def get(self) -> T:
        version = self._current_version()
        if version != self._version:
            self._version = version
            try:
                self._value = self._load()
                log.info("%s has changed and is used from now on", self._subject)
            except (OSError, ValueError, WireError) as error:
                log.error("%s has changed and cannot be used, the last version stays in use: %s", self._subject, error)
        return self._value

    def _current_version(self) -> Version:
        return tuple(map(_version, self._files))


def _version(file: str) -> tuple[int, int, int]:
    try:
        status = os.stat(file)
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino
