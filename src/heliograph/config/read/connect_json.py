"""Reading connectors as they are given to a Kafka Connect cluster: JSON, or the properties file of a single one."""

from __future__ import annotations

from collections.abc import Iterator

from heliograph.config.messages import ConfigError, ConfigNotice, at
from heliograph.config.read.connector import Connector, ConnectorValue, from_config
from heliograph.config.read.tree import Node, Table


def connectors(file: str, tree: Node, stem: str) -> tuple[tuple[Connector, ...], tuple[ConfigNotice, ...]]:
    """The connectors of a JSON file: one, a list, or what Connect answers to `GET /connectors?expand=info`; each as
    `{"name": ..., "config": {...}}` or as the bare config. `stem` is the name of one that has none."""
    found: list[Connector] = []
    warnings: list[ConfigNotice] = []
    for number, (name, wrapper, config) in enumerate(_configs(file, tree)):
        fallback = name or config.text("name") or (stem if number == 0 else f"{stem}-{number + 1}")
        owner = f"connector {fallback}"
        warnings += _warnings(file, owner, wrapper, config)
        connector = from_config(file, owner, _given(file, owner, config), runs=_runs(wrapper))
        if isinstance(connector, ConfigNotice):
            warnings.append(connector)
        else:
            found.append(connector)
    return tuple(found), tuple(warnings)


def _configs(file: str, tree: Node) -> Iterator[tuple[str, Table, Table]]:
    """Name, all that was said, and the config in it, for every connector."""
    if isinstance(tree, tuple):
        for one in tree:
            yield from _configs(file, one)
        return
    if not isinstance(tree, Table):
        raise ConfigError(f"{file}: a connector is an object with 'name' and 'config', or a list of such")
    config = tree.get("config")
    if config is not None and isinstance(config.value, Table):
        yield tree.text("name"), tree, config.value
    elif tree.get("connector.class") is not None:
        yield "", tree, tree
    elif tree.fields and all(isinstance(one.value, Table) and one.value.get("info") for one in tree.fields):
        for named in tree.fields:
            info = named.value.get("info") if isinstance(named.value, Table) else None
            yield from _configs(file, info.value if info else None)
    else:
        raise ConfigError(f"{at(file, tree.line)}: no connector.class: this is no connector")


def _runs(wrapper: Table) -> bool:
    return wrapper.text("initial_state").upper() not in ("PAUSED", "STOPPED")


def _warnings(file: str, owner: str, wrapper: Table, config: Table) -> Iterator[ConfigNotice]:
    seen: dict[str, int] = {}
    for one in config.fields:
        if one.name in seen:
            text = f"{owner}: '{one.name}' is set again: this value replaces the one in line {seen[one.name]}"
            yield ConfigNotice(one.line, one.name, text, file)
        seen[one.name] = one.line
    if wrapper is config:
        return
    for one in wrapper.fields:
        if one.name not in ("name", "config", "tasks", "type", "initial_state"):
            yield ConfigNotice(one.line, one.name, f"{owner}: unknown field '{one.name}': it is ignored", file)


def _given(file: str, owner: str, config: Table) -> dict[str, ConnectorValue]:
    given: dict[str, ConnectorValue] = {}
    for one in config.fields:
        if isinstance(one.value, Table | tuple):
            raise ConfigError(
                f"{at(file, one.line)}: {owner}: {one.name}: a setting is a text, not a list or an object"
            )
        if one.value is not None:
            given[one.name] = ConnectorValue(one.value, one.line)
    return given
