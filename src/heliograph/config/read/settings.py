"""The values of a file, looked up by setting and flow in the order of precedence that the setting's places have.

A bad value is reported with file, line and key. Values with references are quoted as they stand in the file, so that
what a provider gave does not end up in a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from heliograph.config.declare import catalogue
from heliograph.config.declare.setting import Scope, Setting, SettingLocation
from heliograph.config.messages import ConfigError, at
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.providers import Provider, references, resolve
from heliograph.config.read.scopes import SettingKey

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Values:
    file: str
    entries: Mapping[SettingKey, FileEntry]
    providers: Mapping[str, Provider | None]

    def find(
        self, setting: Setting[object], source: str, target: str, places: tuple[SettingLocation, ...] | None = None
    ) -> FileEntry | None:
        """The entry that decides for the flow `source->target`. Old names come last, even one of the flow after a new
        one at top level: MM2 looks at names only when all scopes have become one map."""
        for name in (setting.name, *setting.old_names):
            for place in setting.where.read if places is None else places:
                address = SettingKey(place.scope, place.owner(source, target), place.prefix + name)
                if (entry := self.entries.get(address)) is not None:
                    return entry
        return None

    def get(
        self, setting: Setting[T], source: str, target: str, places: tuple[SettingLocation, ...] | None = None
    ) -> T:
        entry = self.find(setting, source, target, places)
        if entry is not None:
            return self.parse(setting, entry)
        if setting.default is None:
            raise ConfigError(f"{self.file}: no {setting.name}")
        return setting.kind.parse(setting.default)

    def parse(self, setting: Setting[T], entry: FileEntry) -> T:
        try:
            return setting.kind.parse(resolve(entry.value, self.providers))
        except ValueError as reason:
            said = "[hidden]" if setting.kind.label == "secret" else f"'{entry.value}'"
            raise self.error(entry, f"{said} {reason}{_hint(entry.value, self.providers)}") from None

    def of_flow(self, source: str, target: str) -> dict[str, str]:
        """The texts that a flow's connectors would see: settings of flows at top level, and all that stands under the
        flow's own name. References are resolved."""
        texts: dict[str, str] = {}
        for owner in ("", f"{source}->{target}"):
            for address, entry in self.entries.items():
                if address.owner == owner and (owner or catalogue.find(Scope.FLOW, address.name) is not None):
                    texts[address.name] = resolve(entry.value, self.providers)
        return texts

    def error(self, entry: FileEntry, text: str) -> ConfigError:
        place = at(entry.file or self.file, entry.line)
        return ConfigError(f"{place}: {entry.of_owner(entry.name)}: {' '.join(text.splitlines())}")


def _hint(value: str, providers: Mapping[str, Provider | None]) -> str:
    for text, provider in references(value):
        if provider not in providers:
            return f" ({text} was not looked up: '{provider}' is not in config.providers)"
    if "#" in value:
        return " (a comment needs a line of its own)"
    return ""
