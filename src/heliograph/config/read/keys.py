"""What a key applies to: splits `A.` or `A->B.` off its front, by the aliases that the file lists.

Aliases may contain dots and one may begin like another (`eu` and `eu.west`), and an alias may be named like a setting
(`source`): the longest alias after which a known name follows wins, then the longest alias, then the top level.
"""

import difflib
from dataclasses import dataclass

from heliograph.config.declare import catalogue
from heliograph.config.declare.locations import Scope
from heliograph.config.messages import ConfigError
from heliograph.config.read.entry import FileEntry


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


def split_key(file: str, entry: FileEntry, aliases: tuple[str, ...]) -> SettingKey:
    if entry.reveal().startswith("->") or entry.key.endswith("->"):
        raise _error(file, entry, f"keys must not contain spaces: write '{_example(aliases)}'")
    if "->" in entry.key:
        return _split_flow(file, entry, aliases)
    owners = _owners(entry.key, aliases)
    for alias in owners:
        if catalogue.find(Scope.CLUSTER, entry.key[len(alias) + 1 :]) is not None:
            return SettingKey(Scope.CLUSTER, alias, entry.key[len(alias) + 1 :])
    if not owners or catalogue.find(Scope.TOP, entry.key) is not None:
        return top_key(entry.key)
    return SettingKey(Scope.CLUSTER, owners[0], entry.key[len(owners[0]) + 1 :])


def _owners(key: str, aliases: tuple[str, ...]) -> list[str]:
    """The aliases that the key begins with, longest first."""
    return sorted((alias for alias in aliases if key.startswith(f"{alias}.")), key=len, reverse=True)


def _split_flow(file: str, entry: FileEntry, aliases: tuple[str, ...]) -> SettingKey:
    source, _, rest = entry.key.partition("->")
    targets = _owners(f"{rest}.", aliases)
    known = [alias for alias in targets if catalogue.find(Scope.FLOW, rest[len(alias) + 1 :]) is not None]
    target = next(iter(known + targets), None)
    for alias in (source, target if target is not None else _intended_alias(rest)):
        if alias not in aliases:
            raise _error(file, entry, not_a_cluster(alias or "an empty alias", aliases))
    assert target is not None
    if source == target:
        raise _error(file, entry, "source and target are the same cluster")
    return SettingKey(Scope.FLOW, f"{source}->{target}", rest[len(target) + 1 :])


def _error(file: str, entry: FileEntry, text: str) -> ConfigError:
    return ConfigError(f"{file}:{entry.line}: {entry.key}: {text}")


def not_a_cluster(alias: str, aliases: tuple[str, ...]) -> str:
    meant = nearest_alias(alias, aliases)
    return f"{alias} is not in 'clusters' ({', '.join(aliases)})" + (f"; did you mean {meant}?" if meant else "")


def nearest_alias(alias: str, aliases: tuple[str, ...]) -> str | None:
    close = difflib.get_close_matches(alias.lower(), [known.lower() for known in aliases], n=1)
    return next((known for known in aliases if close and known.lower() == close[0]), None)


def _intended_alias(rest: str) -> str:
    """What is probably meant as alias: all before a known setting's name, else all before the first dot."""
    pieces = rest.split(".")
    for length in range(1, len(pieces)):
        if catalogue.find(Scope.FLOW, ".".join(pieces[length:])) is not None:
            return ".".join(pieces[:length])
    return pieces[0]


def _example(aliases: tuple[str, ...]) -> str:
    return f"{aliases[0]}->{aliases[1]}.enabled = true" if len(aliases) > 1 else "A->B.enabled = true"
