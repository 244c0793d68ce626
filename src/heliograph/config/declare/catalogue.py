"""All declared settings, and how to find one by what stands in a file: exactly, misplaced, or nearly.

Works on names within a scope (`topics` of `A->B.topics`); aliases are for `scopes` to take off.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from functools import cache

from heliograph.config.declare import clients, mirroring, security, syncing, workers
from heliograph.config.declare.setting import Scope, Setting, SettingGroup, SettingLocation


def _with_reasons(group: SettingGroup) -> SettingGroup:
    return replace(
        group,
        settings=tuple(
            one if one.supported or one.ignored_because else replace(one, ignored_because=group.ignored_because)
            for one in group.settings
        ),
    )


GROUPS: tuple[SettingGroup, ...] = tuple(
    map(
        _with_reasons,
        (*mirroring.GROUPS, *syncing.GROUPS, *clients.GROUPS, *security.GROUPS, *workers.GROUPS),
    )
)
SETTINGS: tuple[Setting[object], ...] = tuple(setting for group in GROUPS for setting in group.settings)

# Names that never were settings but are written again and again, with the right one and where the wrong one comes from.
_ENABLED = "the setting ends in '.enabled'"
_MIRRORMAKER_1 = "it belongs to MirrorMaker 1"
MISTAKES: dict[str, tuple[str, str]] = {
    "enable": ("enabled", "old documentation leaves out the 'd'"),
    "emit.heartbeats": ("emit.heartbeats.enabled", _ENABLED),
    "emit.checkpoints": ("emit.checkpoints.enabled", _ENABLED),
    "emit.offset-syncs": ("emit.offset-syncs.enabled", _ENABLED),
    "refresh.topics": ("refresh.topics.enabled", _ENABLED),
    "refresh.groups": ("refresh.groups.enabled", _ENABLED),
    "sync.topic.configs": ("sync.topic.configs.enabled", _ENABLED),
    "sync.topic.acls": ("sync.topic.acls.enabled", _ENABLED),
    "sync.group.offsets": ("sync.group.offsets.enabled", _ENABLED),
    "heartbeats.replication": ("heartbeats.replication.enabled", _ENABLED),
    "whitelist": ("topics", _MIRRORMAKER_1),
    "topics.whitelist": ("topics", _MIRRORMAKER_1),
    "topic.whitelist": ("topics", _MIRRORMAKER_1),
    "topics.include": ("topics", "there is only an exclude list beside it"),
    "groups.whitelist": ("groups", _MIRRORMAKER_1),
    "groups.include": ("groups", "there is only an exclude list beside it"),
    "blacklist": ("topics.exclude", _MIRRORMAKER_1),
    "topic.blacklist": ("topics.exclude", _MIRRORMAKER_1),
    "num.streams": ("tasks.max", _MIRRORMAKER_1),
}


@dataclass(frozen=True, slots=True)
class SettingMatch:
    """A declared setting found at a place. `supported` is about this place; `old_name` if a deprecated name was used."""

    setting: Setting[object]
    place: SettingLocation
    supported: bool
    old_name: str = ""


@cache
def _index() -> dict[tuple[Scope, str], SettingMatch]:
    index: dict[tuple[Scope, str], SettingMatch] = {}
    for setting in SETTINGS:
        for places, supported in ((setting.where.read, setting.supported), (setting.where.also, False)):
            for place in places:
                for name in (setting.name, *setting.old_names):
                    spelt = (place.scope, place.prefix + name)
                    if spelt in index and index[spelt].setting is not setting:
                        raise AssertionError(f"{spelt} is declared twice")
                    index.setdefault(
                        spelt, SettingMatch(setting, place, supported, "" if name == setting.name else name)
                    )
    return index


@cache
def _names(scope: Scope) -> tuple[str, ...]:
    return tuple(name for known, name in _index() if known is scope and not name.endswith(".*"))


@cache
def find(scope: Scope, name: str) -> SettingMatch | None:
    """The setting of this name in this scope. A family such as `offset.storage.*` takes any name but one that looks
    like a slip of the pen in a name of its own (`offset.storage.replication.facto`)."""
    exact = _index().get((scope, name))
    if exact is not None:
        return exact
    pieces = name.split(".")
    for length in range(len(pieces) - 1, 0, -1):
        family = _index().get((scope, ".".join(pieces[:length]) + ".*"))
        if family is not None:
            return None if difflib.get_close_matches(name, _names(scope), n=1, cutoff=0.93) else family
    return None


def elsewhere(scope: Scope, name: str) -> SettingMatch | None:
    """The setting of this name in some other scope: known, but put where nobody reads it."""
    for other in Scope:
        if other is not scope and (hit := find(other, name)) is not None:
            return hit
    return None


def nearest(scope: Scope, name: str) -> str | None:
    """The declared name of this scope that looks most like the given one, if any does."""
    close = difflib.get_close_matches(name, _names(scope), n=1, cutoff=0.72)
    return close[0] if close else None
