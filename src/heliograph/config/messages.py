"""What the reader of a configuration has to say about it: an error that stops it, or a remark on one line.

Both name file, line and key in one line of text. Printing them is for the commands.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ConfigNotice:
    """A remark on one line of a file: a warning (probably a mistake) or a note (known, but without effect here)."""

    line: int
    key: str
    text: str
    file: str = ""

    def __str__(self) -> str:
        return one_line(f"{at(self.file, self.line)}: {self.text}")


def one_line(text: str) -> str:
    """Values are quoted as they stand in a file, and may hold anything: also what ends a line or moves a cursor."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def at(file: str, line: int) -> str:
    """Where something stands, for the beginning of a message; 0 is for a line that is not known."""
    return f"{file}:{line}" if line else file


class ConfigError(Exception):
    """A configuration that cannot be run. `warnings` holds what else was noticed before: often the cause, such as a
    misspelt name."""

    warnings: tuple[ConfigNotice, ...] = ()

    def __str__(self) -> str:
        return one_line(super().__str__())
