"""All settings of a deployment, in one form for all formats, looked up in MirrorMaker 2's order of precedence.

A bad value is reported with file, line and key. Values with references are quoted as they are in the file, so that no
value of a provider gets into a log.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from heliograph.config.declare import catalogue
from heliograph.config.declare.locations import Scope, SettingLocation
from heliograph.config.declare.setting import Setting
from heliograph.config.declare.supported import CLUSTERS
from heliograph.config.messages import ConfigError, ConfigNotice, position
from heliograph.config.read.entry import FileEntry, SettingKey, keys_of, top_key
from heliograph.config.read.providers import Provider, resolve, unresolved
from heliograph.config.read.templates import hint
from heliograph.model.secret import Secret

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings:
    """`warnings` and `notes` are about the format; `resolve/review.py` adds those about the settings. `errors` were
    found while reading: they are raised together with those of values. `replaced` are entries that a later one of the
    same key has replaced; `names` are those of connectors, by source, target and part; `states` are those of connectors
    that are not to run, and `stopped` are about resources of which nothing is to run. `may_lack_secrets`: what
    references refer to may be on another machine, as nothing is to run here."""

    file: str
    entries: Mapping[SettingKey, FileEntry]
    providers: Mapping[str, Provider | None]
    aliases: tuple[str, ...] = ()
    warnings: tuple[ConfigNotice, ...] = ()
    notes: tuple[ConfigNotice, ...] = ()
    replaced: tuple[FileEntry, ...] = ()
    names: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    may_lack_secrets: bool = False
    errors: tuple[str, ...] = ()
    states: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    stopped: tuple[ConfigNotice, ...] = ()

    @property
    def is_of_connectors(self) -> bool:
        """Whether connectors were joined to these settings, rather than an `mm2.properties` read."""
        clusters = self.entries.get(top_key(CLUSTERS.name))
        return clusters is not None and not clusters.line

    def find(
        self, setting: Setting[object], source: str, target: str, locations: tuple[SettingLocation, ...] | None = None
    ) -> FileEntry | None:
        """The entry that applies to the flow `source->target`."""
        keys = keys_of(setting.names, setting.where.read if locations is None else locations, source, target)
        return next((self.entries[key] for key in keys if key in self.entries), None)

    def get(
        self, setting: Setting[T], source: str, target: str, locations: tuple[SettingLocation, ...] | None = None
    ) -> T:
        entry = self.find(setting, source, target, locations)
        if entry is not None:
            return self.parse(setting, entry)
        if setting.default is None:
            raise ConfigError(f"{self.file}: no {setting.name}")
        return setting.kind.parse(setting.default)

    def parse(self, setting: Setting[T], entry: FileEntry) -> T:
        # The text of a secret is in no variable of this function, which a traceback might show.
        try:
            return setting.kind.parse(resolve(entry.reveal(), self.providers, self.may_lack_secrets))
        except ValueError as reason:
            if unresolved := tuple(self.unresolved(entry)):
                raise self.error(entry, "; ".join(unresolved)) from None
            if isinstance(entry.value, Secret):
                raise self.error(entry, f"{entry.value} {reason}") from None
            raise self.error(entry, f"'{entry.value}' {hint(entry.value, str(reason))}") from None

    def unresolved(self, entry: FileEntry) -> Iterator[str]:
        """A sentence for each of its references that is not resolved."""
        for reference, reason in unresolved(entry.reveal(), self.providers):
            yield f"{reference} is not resolved: {reason}"

    def is_known_elsewhere(self, entry: FileEntry) -> bool:
        """Whether the value is a reference that another machine may resolve."""
        return self.may_lack_secrets and next(self.unresolved(entry), None) is not None

    def of_flow(self, source: str, target: str) -> dict[str, str]:
        """The texts that a flow's connectors see: settings of flows at top level, and all settings of the flow itself.
        References are resolved."""
        texts: dict[str, str] = {}
        for owner in ("", f"{source}->{target}"):
            for key, entry in self.entries.items():
                if key.owner == owner and (owner or catalogue.find(Scope.FLOW, key.name) is not None):
                    texts[key.name] = resolve(entry.reveal(), self.providers)
        return texts

    def position(self, entry: FileEntry) -> str:
        return position(entry.file or self.file, entry.line)

    def notice(self, entry: FileEntry, text: str) -> ConfigNotice:
        return ConfigNotice(entry.line, entry.key, entry.with_owner(text), entry.file or self.file)

    def error(self, entry: FileEntry, text: str) -> ConfigError:
        return ConfigError(f"{self.position(entry)}: {entry.with_owner(entry.name)}: {' '.join(text.splitlines())}")
