"""MirrorMaker 2's connectors as Connect describes plugins: every setting with type and default, and what is wrong with
a given config, setting by setting. Comes from the same declarations as everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from heliograph.config.declare import catalogue
from heliograph.config.declare.kinds import Bool, Decimal, Kind, Names, Patterns, Whole
from heliograph.config.declare.mirroring import BOOTSTRAP_SERVERS
from heliograph.config.declare.secrets import is_secret
from heliograph.config.declare.setting import Scope
from heliograph.config.declare.syncing import OF_CHECKPOINT, OF_HEARTBEAT
from heliograph.config.read.connector import CLASSES, KAFKA
from heliograph.config.read.providers import references
from heliograph.model.flow import CHECKPOINT, HEARTBEAT

_REQUIRED = frozenset({"name", "connector.class", "source.cluster.alias"})
_BY_TASKS = frozenset({"task.assigned.partitions", "task.assigned.groups", "task.index", "task.class"})


@dataclass(frozen=True, slots=True)
class Definition:
    """A setting as a plugin declares it; `kind` is what checks it, None where we do not act on it."""

    name: str
    type: str
    required: bool
    default: str | None
    importance: str
    about: str
    group: str
    kind: Kind[object] | None


def class_name(part: str) -> str:
    return f"{KAFKA}.{CLASSES[part]}"


@cache
def definitions(part: str) -> tuple[Definition, ...]:
    """In the order of the reference page, what every connector must have first."""
    found = sorted(_declared(part), key=lambda one: not one.required)
    sides = ("target",) if part == HEARTBEAT else ("source", "target")
    addresses = [
        Definition(
            f"{side}.cluster.{BOOTSTRAP_SERVERS.name}",
            "LIST",
            True,
            None,
            "HIGH",
            BOOTSTRAP_SERVERS.about,
            "Clusters",
            BOOTSTRAP_SERVERS.kind,
        )
        for side in sides
    ]
    return (*(one for one in found if one.required), *addresses, *(one for one in found if not one.required))


def _declared(part: str) -> Iterator[Definition]:
    foreign = (OF_CHECKPOINT if part != CHECKPOINT else frozenset()) | (
        OF_HEARTBEAT if part != HEARTBEAT else frozenset()
    )
    for group in catalogue.GROUPS:
        for setting in group.settings:
            places = (*setting.where.read, *setting.where.also)
            of_flow = any(place.scope is Scope.FLOW and not place.prefix for place in places)
            if not of_flow or setting.name.endswith(".*") or setting.name in foreign | _BY_TASKS:
                continue
            required = setting.name in _REQUIRED
            about = (
                setting.about
                if setting.supported or required
                else f"{setting.about} Has no effect: {setting.ignored_because}."
            )
            yield Definition(
                setting.name,
                _type(setting.name, setting.kind),
                required,
                setting.default,
                "HIGH" if required else "MEDIUM" if setting.supported else "LOW",
                about,
                group.title,
                setting.kind if setting.supported else None,
            )


def _type(name: str, kind: Kind[object]) -> str:
    if is_secret(name):
        return "PASSWORD"
    match kind:
        case Bool():
            return "BOOLEAN"
        case Whole():
            return "LONG"
        case Decimal():
            return "DOUBLE"
        case Names() | Patterns():
            return "LIST"
    return "CLASS" if kind.label == "class" else "STRING"


def problems(part: str, config: Mapping[str, str]) -> dict[str, list[str]]:
    """By setting, in Connect's words where it has some."""
    found: dict[str, list[str]] = {}
    for one in definitions(part):
        value = config.get(one.name)
        if value is None:
            if one.required:
                found[one.name] = [f'Missing required configuration "{one.name}" which has no default value.']
            continue
        if one.name == "name" and not value.strip():
            found[one.name] = [f"Invalid value {value} for configuration name: String may not be empty"]
        elif one.kind is not None and not references(value):
            try:
                one.kind.parse(value)
            except ValueError as reason:
                told = "[hidden]" if one.type == "PASSWORD" else value
                found[one.name] = [f"Invalid value {told} for configuration {one.name}: it {reason}"]
    return found
