"""All declared settings, and how to find one by a name in a file: exactly, in another scope, or by similarity.

Works on names within a scope (`topics` of `A->B.topics`); `read/mm2_file.py` splits off the aliases. Sentences, and the
settings that are not supported, are data: `settings.toml`, which is read when the first of them is needed.
"""

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from heliograph.config.declare.kinds import TEXT, Kind
from heliograph.config.declare.locations import ALL, CLUSTERS_OF_FLOW, Scope, SettingLocation
from heliograph.config.declare.setting import Setting
from heliograph.config.declare.similar import incomplete, misspelt
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


def not_a_setting(name: str) -> str:
    """For a name that looks like a setting and is none, as one of brokers: what is true about it; '' for others."""
    return str(_data()["not_settings"].get(_without_client(name), ""))


def introduction() -> str:
    """The beginning of the reference page."""
    return str(_data()["introduction"])


def ignored_strimzi_fields(kind: str) -> dict[str, str]:
    """The fields of Strimzi's `resource` or `connector` that are ignored, with the reasons."""
    return dict(_data()["strimzi"][kind])


def unmissed_strimzi_fields() -> frozenset[str]:
    """Those of them that nobody misses."""
    return frozenset(_data()["strimzi"]["unmissed"])


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
            is_missed=group.get("is_missed", True) and row["name"] not in _data()["unmissed"]["settings"],
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
    """What to suggest: names that have an effect in this scope, here or in MM2."""
    acting = (
        name
        for (known, name), match in _index().items()
        if known is scope and match.location in (*match.setting.where.read, *CLUSTERS_OF_FLOW)
    )
    return tuple(name for name in acting if not name.endswith(".*"))


@cache
def _client_prefixes() -> tuple[str, ...]:
    prefixes = {match.location.prefix for match in _index().values()} - {""}
    return tuple(sorted(prefixes, key=len, reverse=True))


def _without_client(name: str) -> str:
    """A name without the client or cluster in front: `max.poll.records` of `source.cluster.max.poll.records`."""
    for prefix in _client_prefixes():
        if name.startswith(prefix):
            return _without_client(name[len(prefix) :])
    return name


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
            return None if misspelt(name, _names(scope)) else family
    return None


def find_in_other_scope(scope: Scope, name: str) -> SettingMatch | None:
    """The setting of this name in another scope: known, but not read where it is written."""
    return next((match for other in Scope if other is not scope and (match := find(other, name))), None)


def of_other_client(name: str) -> Setting[object] | None:
    """The setting that has this name without the client or cluster in front of it, or that is for clients only:
    `max.poll.records` for `producer.override.max.poll.records`."""
    bare = _without_client(name)
    return next((setting for setting in settings() if bare in setting.names), None)


@lru_cache(10_000)
def nearest(scope: Scope, name: str) -> str | None:
    """The name that somebody meant who wrote this one: misspelt, or without one of its words."""
    names = _names(scope)
    return misspelt(name, names) or incomplete(name, names)
