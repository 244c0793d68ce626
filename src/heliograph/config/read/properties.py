"""Reads a Java `.properties` file into entries with their lines. What the keys mean is decided elsewhere."""

import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import javaproperties

from heliograph.config.declare.secrets import hide
from heliograph.config.declare.supported import SASL_JAAS_CONFIG
from heliograph.config.messages import ConfigError
from heliograph.config.read.entry import FileEntry
from heliograph.model.secret import Secret

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
            if isinstance(element, javaproperties.KeyValue) and _continues_login(entries, element.key, element.value):
                login = entries[-1]
                whole = Secret(f"{login.reveal().rstrip()} {element.key}={element.value}")
                entries[-1] = replace(login, value=whole, is_continued=True)
            elif isinstance(element, javaproperties.KeyValue):
                value = hide(element.key, element.value)
                entries.append(FileEntry(line, element.key, value, drops_backslash=_drops_backslash(element.source)))
            line += _line_ends(element.source)
    except javaproperties.InvalidUEscapeError as error:
        raise ConfigError(
            f"{file}:{line}: '{error.escape}' is not a character: write four hexadecimal digits after \\u "
            "(a backslash in a regular expression is written twice)"
        ) from None
    return tuple(entries)


def _continues_login(entries: list[FileEntry], key: str, value: str) -> bool:
    """Whether a line belongs to a `sasl.jaas.config` before it, as files that were copied from a page have it: the
    login is not terminated, and the line is an option of it."""
    login = entries[-1] if entries else None
    return (
        login is not None
        and login.key.endswith(SASL_JAAS_CONFIG.name)
        and not login.reveal().rstrip().endswith(";")
        and re.fullmatch(r"\w+", key) is not None
        and value.startswith(('"', "'"))
    )


def _line_ends(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _drops_backslash(source: str) -> bool:
    text = source.replace("\\\\", "")
    return any(char == "\\" and follower not in "tnfru \t\f:=#!\r\n" for char, follower in pairwise(text))
