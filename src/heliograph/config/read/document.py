"""What was read, in one form for all formats: every setting by whom it is about, not yet checked.

The aliases come first, because only with them the keys of an `mm2.properties` can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from heliograph.config.declare.mirroring import CLUSTERS
from heliograph.config.messages import ConfigError, ConfigNotice
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.providers import declared as declared_providers
from heliograph.config.read.scopes import address
from heliograph.config.read.settings import Values
from heliograph.config.resolve import review


@dataclass(frozen=True, slots=True)
class Settings:
    """`warnings` and `notes` are what the format's reader has to say; about the settings themselves `review` speaks.
    `replaced` are entries that another one of the same key took the place of; `names` are those of connectors that have
    some, by source, target and part."""

    values: Values
    aliases: tuple[str, ...]
    warnings: tuple[ConfigNotice, ...] = ()
    notes: tuple[ConfigNotice, ...] = ()
    replaced: tuple[FileEntry, ...] = ()
    names: Mapping[tuple[str, str, str], str] = field(default_factory=dict)


def from_properties(file: str, entries: tuple[FileEntry, ...]) -> Settings:
    """The document of an `mm2.properties`; `file` is only a name for messages."""
    warnings = tuple(review.repeated(file, entries))
    latest = {entry.key: entry for entry in entries}
    try:
        values, aliases = _values(file, dict(sorted(latest.items(), key=lambda item: item[1].line)))
    except ConfigError as error:
        error.warnings = warnings
        raise
    replaced = tuple(entry for entry in entries if latest[entry.key] is not entry)
    return Settings(values, aliases, warnings, replaced=replaced)


def _values(file: str, latest: dict[str, FileEntry]) -> tuple[Values, tuple[str, ...]]:
    try:
        providers = declared_providers({key: entry.value for key, entry in latest.items()})
    except ValueError as bad:
        raise ConfigError(f"{file}: config.providers: {bad}") from None
    entry = latest.get(CLUSTERS.name)
    if entry is None:
        raise ConfigError(f"{file}: no clusters: write for example 'clusters = A, B' and an address for each")
    aliases = Values(file, {}, providers).parse(CLUSTERS, entry)
    return Values(file, {address(file, entry, aliases): entry for entry in latest.values()}, providers), aliases
