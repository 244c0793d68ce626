"""An `mm2.properties` as settings: what each key applies to, by the aliases that the file lists.

`A.` or `A->B.` is split off the front of a key. Aliases may contain dots and one may begin like another (`eu` and
`eu.west`), and an alias may be named like a setting (`source`): the longest alias after which a known name follows
wins, then the longest alias, then the top level.
"""

import difflib
import re
from dataclasses import replace

from heliograph.config.declare import catalogue
from heliograph.config.declare.locations import Scope
from heliograph.config.declare.secrets import hide
from heliograph.config.declare.supported import CLUSTERS, ENABLED
from heliograph.config.messages import ConfigError, ConfigNotice, ErrorCollector, repeated
from heliograph.config.read.entry import FileEntry, SettingKey, top_key
from heliograph.config.read.other_files import what_it_is
from heliograph.config.read.providers import declared_providers
from heliograph.config.read.settings import Settings


def from_properties(file: str, entries: tuple[FileEntry, ...]) -> Settings:
    """`file` is only a name for messages."""
    latest = {entry.key: entry for entry in entries}
    warnings = list(repeated(((entry.key, entry.line) for entry in entries), file))
    try:
        settings = Settings(file, {}, declared_providers(file, latest.values()))
        clusters = latest.get(CLUSTERS.name)
        if clusters is None:
            raise ConfigError(f"{file}: {what_it_is(latest)}")
        aliases = settings.parse(CLUSTERS, clusters)
        errors = ErrorCollector()
        by_key: dict[SettingKey, FileEntry] = {}
        for entry in sorted(latest.values(), key=lambda entry: entry.line):
            if (ignored := _of_unknown_flow(file, entry, aliases)) is not None:
                warnings.append(ignored)
                continue
            with errors:
                key = _split_key(file, entry, aliases)
                # An alias that looks like a secret (`private.bootstrap.servers`) does not make its settings secret.
                by_key[key] = replace(entry, value=hide(key.name, entry.reveal()))
    except ConfigError as error:
        error.warnings = tuple(warnings)
        raise
    replaced = tuple(entry for entry in entries if latest[entry.key] is not entry)
    return replace(
        settings, entries=by_key, aliases=aliases, warnings=tuple(warnings), replaced=replaced, errors=errors.errors
    )


def _of_unknown_flow(file: str, entry: FileEntry, aliases: tuple[str, ...]) -> ConfigNotice | None:
    """A notice if the setting is that of a flow between other clusters, which MM2 ignores. It is an error if the alias
    is similar to one of the file's, and misspelt; or if the flow is enabled, as it would not run."""
    if "->" not in entry.key or entry.key.endswith("->"):
        return None
    source, target = _flow_aliases(entry.key, aliases)
    if entry.key == f"{source}->{target}.{ENABLED.name}":
        return None
    unknown = [alias for alias in (source, target) if alias and alias not in aliases]
    if not unknown or any(nearest_alias(alias, aliases) for alias in unknown):
        return None
    text = f"'{entry.key}' is ignored, as by MM2: {_not_a_cluster(unknown[0], aliases)}"
    return ConfigNotice(entry.line, entry.key, text, file)


def _split_key(file: str, entry: FileEntry, aliases: tuple[str, ...]) -> SettingKey:
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
    source, target = _flow_aliases(entry.key, aliases)
    for alias in (source, target):
        if alias not in aliases:
            raise _error(file, entry, _not_a_cluster(alias or "an empty alias", aliases))
    if source == target:
        raise _error(file, entry, "source and target are the same cluster")
    owner = f"{source}->{target}"
    return SettingKey(Scope.FLOW, owner, entry.key[len(owner) + 1 :])


def _flow_aliases(key: str, aliases: tuple[str, ...]) -> tuple[str, str]:
    """Source and target of a flow's key; where no alias of the file fits, what is probably meant as one."""
    source, _, rest = key.partition("->")
    targets = _owners(f"{rest}.", aliases)
    known = [alias for alias in targets if catalogue.find(Scope.FLOW, rest[len(alias) + 1 :]) is not None]
    return source, next(iter(known + targets), None) or _intended_alias(rest)


def _error(file: str, entry: FileEntry, text: str) -> ConfigError:
    return ConfigError(f"{file}:{entry.line}: {entry.key}: {text}")


def _not_a_cluster(alias: str, aliases: tuple[str, ...]) -> str:
    meant = nearest_alias(alias, aliases)
    return f"{alias} is not in 'clusters' ({', '.join(aliases)})" + (f"; did you mean {meant}?" if meant else "")


def _intended_alias(rest: str) -> str:
    """What is probably meant as alias: all before a known setting's name, else all before the first dot."""
    return (split_at_setting(Scope.FLOW, rest) or rest.split("."))[0]


def split_at_setting(scope: Scope, key: str) -> tuple[str, str] | None:
    """Splits a key at the first dot that a known setting's name follows."""
    for dot in re.finditer(r"\.", key):
        if catalogue.find(scope, key[dot.end() :]) is not None:
            return key[: dot.start()], key[dot.end() :]
    return None


def _example(aliases: tuple[str, ...]) -> str:
    return f"{aliases[0]}->{aliases[1]}.enabled = true" if len(aliases) > 1 else "A->B.enabled = true"


def nearest_alias(alias: str, aliases: tuple[str, ...]) -> str | None:
    close = difflib.get_close_matches(alias.lower(), [known.lower() for known in aliases], n=1)
    return next((known for known in aliases if close and known.lower() == close[0]), None)
