"""The form of a declaration: what a setting is called, what it holds, where it may stand, and whether we act on it.

The declarations themselves are in `mirroring`, `clients`, `security` and `workers`. Parsing, warnings about unknown
names and the page `docs/configuration.md` all come from them; nothing else spells a setting's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from heliograph.config.declare.kinds import Kind

T_co = TypeVar("T_co", covariant=True)


class Scope(Enum):
    """Whom a key of the file is about."""

    TOP = "top level"
    CLUSTER = "cluster"
    FLOW = "flow"


class Role(Enum):
    """Which cluster of a flow `A->B` a cluster-scoped key belongs to."""

    SOURCE = "A"
    TARGET = "B"
    EITHER = "C"


@dataclass(frozen=True, slots=True)
class SettingLocation:
    """Somewhere a setting may stand: a scope, and what comes between the alias and the name (`source.consumer.`)."""

    scope: Scope
    prefix: str = ""
    role: Role = Role.EITHER

    def owner(self, source: str, target: str) -> str:
        """Whom the key belongs to for one flow: '' at top level, else an alias or `source->target`."""
        match self.scope:
            case Scope.TOP:
                return ""
            case Scope.FLOW:
                return f"{source}->{target}"
            case Scope.CLUSTER:
                return target if self.role is Role.TARGET else source

    def key(self, name: str, source: str = "A", target: str = "B") -> str:
        """The whole key as it is written in a file."""
        owner = self.owner(source, target)
        return f"{owner}.{self.prefix}{name}" if owner else f"{self.prefix}{name}"


def top(prefix: str = "") -> SettingLocation:
    return SettingLocation(Scope.TOP, prefix)


def flow(prefix: str = "") -> SettingLocation:
    return SettingLocation(Scope.FLOW, prefix)


def cluster(prefix: str = "", role: Role = Role.EITHER) -> SettingLocation:
    return SettingLocation(Scope.CLUSTER, prefix, role)


def source(prefix: str = "") -> SettingLocation:
    return cluster(prefix, Role.SOURCE)


def target(prefix: str = "") -> SettingLocation:
    return cluster(prefix, Role.TARGET)


@dataclass(frozen=True, slots=True)
class LocationSet:
    """A set of places with a name. `read` is in order of precedence, highest first; `also` are places that MM2 knows
    but which reach clients that Heliograph does not have."""

    label: str
    read: tuple[SettingLocation, ...]
    also: tuple[SettingLocation, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting(Generic[T_co]):
    """One setting. `default` is written as it would stand in a file, None if there is none. A name that ends in `.*`
    stands for all names that begin that way. `old_names` are deprecated names, used where the new one is absent."""

    name: str
    kind: Kind[T_co]
    default: str | None
    about: str
    where: LocationSet
    supported: bool = False
    old_names: tuple[str, ...] = ()
    ignored_because: str = ""  # why it has no meaning here, as the end of a sentence


@dataclass(frozen=True, slots=True)
class SettingGroup:
    """A table of the reference page. `ignored_because` is for those settings that are not acted on and do not say why."""

    title: str
    about: str
    settings: tuple[Setting[object], ...]
    ignored_because: str = ""
