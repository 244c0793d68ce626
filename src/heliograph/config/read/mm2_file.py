"""An `mm2.properties` as settings. The aliases come first, because keys cannot be split without them."""

from collections.abc import Iterator
from dataclasses import replace

from heliograph.config.declare.secrets import hide
from heliograph.config.declare.supported import CLUSTERS
from heliograph.config.messages import ConfigError, ConfigNotice, ErrorCollector
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.keys import SettingKey, split_key
from heliograph.config.read.providers import declared_providers
from heliograph.config.read.settings import Settings


def from_properties(file: str, entries: tuple[FileEntry, ...]) -> Settings:
    """`file` is only a name for messages."""
    latest = {entry.key: entry for entry in entries}
    warnings = tuple(_repeated(file, entries))
    try:
        settings = Settings(file, {}, declared_providers(file, {key: entry.value for key, entry in latest.items()}))
        clusters = latest.get(CLUSTERS.name)
        if clusters is None:
            raise ConfigError(f"{file}: no clusters: write for example 'clusters = A, B' and an address for each")
        aliases = settings.parse(CLUSTERS, clusters)
        by_key = _by_key(file, sorted(latest.values(), key=lambda entry: entry.line), aliases)
    except ConfigError as error:
        error.warnings = warnings
        raise
    replaced = tuple(entry for entry in entries if latest[entry.key] is not entry)
    return replace(settings, entries=by_key, aliases=aliases, warnings=warnings, replaced=replaced)


def _by_key(file: str, entries: list[FileEntry], aliases: tuple[str, ...]) -> dict[SettingKey, FileEntry]:
    by_key: dict[SettingKey, FileEntry] = {}
    errors = ErrorCollector()
    for entry in entries:
        with errors:
            key = split_key(file, entry, aliases)
            # An alias that looks like a secret (`private.bootstrap.servers`) does not make its settings secret.
            by_key[key] = replace(entry, value=hide(key.name, entry.reveal()))
    errors.raise_collected()
    return by_key


def _repeated(file: str, entries: tuple[FileEntry, ...]) -> Iterator[ConfigNotice]:
    """Keys set more than once; the last one counts, as in Java."""
    lines: dict[str, int] = {}
    for entry in entries:
        if entry.key in lines:
            text = f"'{entry.key}' is set again: this value replaces the one in line {lines[entry.key]}"
            yield ConfigNotice(entry.line, entry.key, text, file)
        lines[entry.key] = entry.line
