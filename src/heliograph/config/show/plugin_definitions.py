"""MirrorMaker 2's connectors as Connect describes plugins: every setting with type and default, and the errors of a
given config by setting."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from heliograph.config.declare import catalogue
from heliograph.config.declare.kinds import ADDRESSES, BOOL, NAMES, PATTERNS, TLS_VERSIONS, Kind, split_list
from heliograph.config.declare.locations import Scope
from heliograph.config.declare.secrets import is_secret, shown
from heliograph.config.declare.setting import Setting
from heliograph.config.declare.supported import (
    ALIAS,
    BOOTSTRAP_SERVERS,
    IGNORE_TRANSFORMS,
    TRANSFORMS,
    read_by_others,
)
from heliograph.config.read.providers import references
from heliograph.config.resolve.transforms import named, refusal
from heliograph.model.flow import HEARTBEAT, SOURCE

_REQUIRED = frozenset({"name", "connector.class"})
_BY_TASKS = frozenset({"task.assigned.partitions", "task.assigned.groups", "task.index", "task.class"})

_TYPES = {BOOL.label: "BOOLEAN", "class": "CLASS"} | dict.fromkeys(
    (NAMES.label, PATTERNS.label, ADDRESSES.label, TLS_VERSIONS.label), "LIST"
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A setting as a plugin declares it; `kind` checks it, None if it is not supported."""

    name: str
    type: str
    required: bool
    default: str | None
    importance: str
    about: str
    group: str
    kind: Kind[object] | None


@cache
def definitions(part: str) -> tuple[Definition, ...]:
    """In the order of the reference page, required ones first."""
    declared = tuple(_declared(part))
    sides = ("target",) if part == HEARTBEAT else ("source", "target")
    of_target = replace(ALIAS, default="target")
    return (
        *(definition for definition in declared if definition.required),
        _definition("source.cluster.alias", ALIAS, True, "Clusters"),
        _definition("target.cluster.alias", of_target, False, "Clusters", catalogue.about(ALIAS)),
        *(
            _definition(f"{side}.cluster.{BOOTSTRAP_SERVERS.name}", BOOTSTRAP_SERVERS, True, "Clusters")
            for side in sides
        ),
        *(definition for definition in declared if not definition.required),
    )


def _declared(part: str) -> Iterator[Definition]:
    left_out = read_by_others(part) | _BY_TASKS
    for group in catalogue.groups():
        for setting, _ in group.settings:
            locations = (*setting.where.read, *setting.where.also)
            of_flow = any(location.scope is Scope.FLOW and not location.prefix for location in locations)
            if of_flow and not setting.name.endswith(".*") and setting.name not in left_out:
                yield _definition(setting.name, setting, setting.name in _REQUIRED, group.title)


def _definition(name: str, setting: Setting[object], required: bool, group: str, about: str = "") -> Definition:
    about = about or catalogue.about(setting)
    if not setting.supported and not required:
        about = f"{about} It is ignored: {setting.ignored_because}."
    importance = "HIGH" if required else "MEDIUM" if setting.supported else "LOW"
    kind = setting.kind if setting.supported else None
    return Definition(name, _type(name, setting.kind), required, setting.default, importance, about, group, kind)


def _type(name: str, kind: Kind[object]) -> str:
    if is_secret(name):
        return "PASSWORD"
    if kind.label.startswith("whole number"):
        return "LONG"
    if kind.label.startswith("number, "):
        return "DOUBLE"
    return _TYPES.get(kind.label, "STRING")


def problems(part: str, config: Mapping[str, str]) -> dict[str, list[str]]:
    """The errors by setting, in Connect's words if it has some."""
    errors: dict[str, list[str]] = {}
    for definition in definitions(part):
        name = definition.name
        value = config.get(name)
        if value is None:
            if definition.required:
                errors[name] = [f'Missing required configuration "{name}" which has no default value.']
            continue
        if name == "name" and not value.strip():
            errors[name] = [f"Invalid value {value} for configuration name: String may not be empty"]
        elif definition.kind is not None and not references(value):
            try:
                definition.kind.parse(value)
            except ValueError as reason:
                errors[name] = [f"Invalid value {shown(name, value)} for configuration {name}: it {reason}"]
    names = named(split_list(config.get(TRANSFORMS.name, ""))) if part == SOURCE else ""
    if names and config.get(IGNORE_TRANSFORMS.name, "").strip().lower() != "true":
        errors[TRANSFORMS.name] = [f"{TRANSFORMS.name}: {refusal(names)}"]
    return errors
