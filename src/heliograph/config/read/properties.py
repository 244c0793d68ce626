"""Reads a Java `.properties` file into entries with their lines. What the keys mean is decided elsewhere."""

import os
from itertools import pairwise
from pathlib import Path

import javaproperties

from heliograph.config.declare.secrets import hide
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
    """All entries in order, repeated keys included. A key that looks like a secret's has a `Secret` as value."""
    entries: list[FileEntry] = []
    line = 1
    try:
        # The library decodes bytes as Java does (Latin-1).
        for element in javaproperties.parse(data.removeprefix(_BYTE_ORDER_MARK)):
            if isinstance(element, javaproperties.KeyValue):
                value = hide(element.key, element.value)
                entries.append(FileEntry(line, element.key, value, drops_backslash=_drops_backslash(element.source)))
            line += _line_ends(element.source)
    except javaproperties.InvalidUEscapeError as error:
        raise ConfigError(
            f"{file}:{line}: '{error.escape}' is not a character: write four hexadecimal digits after \\u "
            "(a backslash in a regular expression is written twice)"
        ) from None
    return tuple(entries)


def _line_ends(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _drops_backslash(source: str) -> bool:
    text = source.replace("\\\\", "")
    return any(char == "\\" and follower not in "tnfru \t\f:=#!\r\n" for char, follower in pairwise(text))
