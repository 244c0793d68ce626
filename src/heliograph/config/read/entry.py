"""One setting as it stands in some file, whatever the file's format: what it says, and where to find it again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One `key = value`. `line` is where it begins, 0 if nobody wrote it; `source` is its text in a properties file,
    with any continuation lines.

    `key` is always that of an `mm2.properties`. In other formats the writer spells it otherwise: `written` is what
    stands there, `owner` in which part of the file, and `spelling` how other keys would be spelt in that part, as
    beginnings to replace. `file` is the file, if there are several.
    """

    line: int
    key: str
    value: str
    source: str = ""
    file: str = ""
    owner: str = ""
    written: str = ""
    spelling: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The key as its writer knows it."""
        return self.written or self.key

    def spelt(self, key: str) -> str:
        """How another key would be written beside this one."""
        for beginning, instead in self.spelling:
            if key.startswith(beginning):
                return instead + key[len(beginning) :]
        return key

    def of_owner(self, text: str) -> str:
        return f"{self.owner}: {text}" if self.owner else text
