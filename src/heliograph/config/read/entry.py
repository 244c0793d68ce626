"""One setting as a file has it, whatever the file's format: its key, its value, and where it is written."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from heliograph.config.declare.locations import Scope, SettingLocation
from heliograph.config.declare.secrets import Value, reveal


@dataclass(frozen=True, slots=True)
class SettingKey:
    """A key in its parts; `owner` is '' at top level, an alias, or `source->target`."""

    scope: Scope
    owner: str
    name: str

    def key(self, name: str | None = None) -> str:
        """The key again, or that of another name of the same owner."""
        local = self.name if name is None else name
        return f"{self.owner}.{local}" if self.owner else local


def top_key(name: str) -> SettingKey:
    return SettingKey(Scope.TOP, "", name)


def keys_of(
    names: Iterable[str], locations: Iterable[SettingLocation], source: str, target: str
) -> Iterator[SettingKey]:
    """Where a setting of the flow `source->target` may be. Old names come last, even one of the flow after a new one at
    top level: MM2 looks at names only when all scopes have been merged."""
    for name, location in product(names, locations):
        yield SettingKey(location.scope, location.owner(source, target), location.prefix + name)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One `key = value`. `line` is where it begins, 0 if it is in no file. `drops_backslash` is whether the value has a
    single backslash that a properties file drops, as in `a\\.b`, which is read as `a.b`. `is_continued` is whether the
    next line was added to the value, though no backslash at the line's end says so.

    `key` is always that of an `mm2.properties`. Other formats spell it differently: `written` is the key there, `owner`
    the part of the file, and `spelling` how other keys are spelt in that part, as prefixes to replace. `file` is the
    file, if there are several.
    """

    line: int
    key: str
    value: Value
    file: str = ""
    owner: str = ""
    written: str = ""
    spelling: tuple[tuple[str, str], ...] = ()
    drops_backslash: bool = False
    is_continued: bool = False

    @property
    def name(self) -> str:
        """The key as it is written."""
        return self.written or self.key

    def reveal(self) -> str:
        """The text of the value, also of a secret."""
        return reveal(self.value)

    def spelt(self, key: str) -> str:
        """How another key is written in the same part of the file."""
        for prefix, replacement in self.spelling:
            if key.startswith(prefix):
                return replacement + key[len(prefix) :]
        return key

    def with_owner(self, text: str) -> str:
        return f"{self.owner}: {text}" if self.owner else text
