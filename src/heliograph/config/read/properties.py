"""Reading a Java `.properties` file into entries that know their line. What the keys mean is of no concern here."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import javaproperties

from heliograph.config.messages import ConfigError
from heliograph.config.read.entry import FileEntry

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read(path: str | os.PathLike[str]) -> tuple[FileEntry, ...]:
    return parse(read_bytes(path), os.fspath(path))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    file = os.fspath(path)
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{file}: there is no such file") from None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror or error}") from None


def parse(data: bytes, file: str) -> tuple[FileEntry, ...]:
    """All entries in order, repeated keys included."""
    entries: list[FileEntry] = []
    line = 1
    try:
        # Given bytes, the library decodes them as Java does (Latin-1).
        for element in javaproperties.parse(data.removeprefix(_BYTE_ORDER_MARK)):
            if isinstance(element, javaproperties.KeyValue):
                entries.append(FileEntry(line, element.key, element.value, element.source))
            line += _line_ends(element.source)
    except javaproperties.InvalidUEscapeError as error:
        raise ConfigError(
            f"{file}:{line}: '{error.escape}' is no character: after \\u come four hexadecimal digits "
            "(a backslash in a regular expression is written twice)"
        ) from None
    return tuple(entries)


def _line_ends(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def dropped_backslash(entry: FileEntry) -> bool:
    """Whether the value has a single backslash that the file format drops, as in `a\\.b`, which is read as `a.b`."""
    text = entry.source.replace("\\\\", "")
    return any(char == "\\" and follower not in "tnfru \t\f:=#!\r\n" for char, follower in pairwise(text))
