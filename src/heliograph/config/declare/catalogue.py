"""All declared settings, and how to find one by a name in a file: exactly, in another scope, or by similarity.

Works on names within a scope (`topics` of `A->B.topics`); `read/mm2_file.py` splits off the aliases. Sentences, and the
settings that are not supported, are data: `settings.toml`, which is read when the first of them is needed.
"""

import difflib
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from heliograph.config.declare.kinds import TEXT, Kind
from heliograph.config.declare.locations import ALL, Scope, SettingLocation
from heliograph.config.declare.setting import Setting
from heliograph.config.declare.supported import SUPPORTED


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """A table of the reference page: its settings, each with a sentence, the supported ones first."""

    title: str
    about: str
    settings: tuple[tuple[Setting[object], str], ...]


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("settings.toml").read_text(encoding="utf-8"))


def mistake(name: str) -> tuple[str, str] | None:
    """For a name that is often written by mistake: the right one and the reason."""
    entry = _data()["mistakes"].get(name)
    return None if entry is None else (entry[0], entry[1])


def introduction() -> str:
    """The beginning of the reference page."""
    return str(_data()["introduction"])


def ignored_strimzi_fields(kind: str) -> dict[str, str]:
    """The fields of Strimzi's `resource` or `connector` that are ignored, with the reasons."""
    return dict(_data()["strimzi"][kind])


@cache
def groups() -> tuple[SettingGroup, ...]:
    return tuple(
        SettingGroup(
            group["title"],
            group["about"],
            (*((SUPPORTED[row["name"]], row["about"]) for row in group.get("supported", ())), *_ignored(group)),
        )
        for group in _data()["group"]
    )


def _ignored(group: dict[str, Any]) -> Iterator[tuple[Setting[object], str]]:
    locations = {location_set.label: location_set for location_set in ALL}
    for row in group.get("ignored", ()):
        setting = Setting(
            row["name"],
            Kind(row.get("type", TEXT.label), TEXT.parse),
            row.get("default"),
            locations[row.get("where", group["where"])],
            supported=False,
            ignored_because=row.get("reason", group.get("reason", "")),
        )
        yield setting, row["about"]


def settings() -> Iterator[Setting[object]]:
    return (setting for group in groups() for setting, _ in group.settings)


def about(setting: Setting[object]) -> str:
    """The sentence about a setting."""
    return next(sentence for group in groups() for other, sentence in group.settings if other is setting)


@dataclass(frozen=True, slots=True)
class SettingMatch:
    """A declared setting found at a location. `supported` is about this location; `old_name` is the deprecated name if
    one was used."""

    setting: Setting[object]
    location: SettingLocation
    supported: bool
    old_name: str = ""


def _indexed(declared: Iterable[Setting[object]]) -> dict[tuple[Scope, str], SettingMatch]:
    index: dict[tuple[Scope, str], SettingMatch] = {}
    for setting in declared:
        for locations, supported in ((setting.where.read, setting.supported), (setting.where.also, False)):
            for location in locations:
                for name in setting.names:
                    key = (location.scope, location.prefix + name)
                    if key in index and index[key].setting is not setting:
                        raise AssertionError(f"{key} is declared twice")
                    old_name = "" if name == setting.name else name
                    index.setdefault(key, SettingMatch(setting, location, supported, old_name))
    return index


@cache
def _supported_index() -> dict[tuple[Scope, str], SettingMatch]:
    return _indexed(SUPPORTED.values())


@cache
def _index() -> dict[tuple[Scope, str], SettingMatch]:
    return _indexed(settings())


@cache
def _names(scope: Scope) -> tuple[str, ...]:
    return tuple(name for known, name in _index() if known is scope and not name.endswith(".*"))


@lru_cache(10_000)  # bounded, because names may be posted to a running process
def find(scope: Scope, name: str) -> SettingMatch | None:
    """The setting of this name in this scope. A family such as `offset.storage.*` includes every name except one that
    looks like a misspelt setting (`offset.storage.replication.facto`)."""
    exact = _supported_index().get((scope, name)) or _index().get((scope, name))
    if exact is not None:
        return exact
    pieces = name.split(".")
    for length in range(len(pieces) - 1, 0, -1):
        family = _index().get((scope, ".".join(pieces[:length]) + ".*"))
        if family is not None:
            return None if difflib.get_close_matches(name, _names(scope), n=1, cutoff=0.93) else family
    return None


def find_in_other_scope(scope: Scope, name: str) -> SettingMatch | None:
    """The setting of this name in another scope: known, but not read where it is written."""
    return next((match for other in Scope if other is not scope and (match := find(other, name))), None)


def nearest(scope: Scope, name: str) -> str | None:
    """The declared name of this scope that is most similar to the given one, if any is."""
    close = difflib.get_close_matches(name, _names(scope), n=1, cutoff=0.72)
    return close[0] if close else None
