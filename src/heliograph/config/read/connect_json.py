"""Reads connectors as they are posted to a Kafka Connect cluster: JSON."""

from collections.abc import Iterator

from heliograph.config.messages import ConfigError, ConfigNotice, ErrorCollector, position, repeated
from heliograph.config.read.connector import ConnectorFile, from_config
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.tree import Node, Table
from heliograph.model.connect_records import PAUSED, RUNNING, STOPPED
from heliograph.model.secret import Secret


def connectors(file: str, tree: Node, stem: str) -> ConnectorFile:
    """The connectors of a JSON file: one, a list, or Connect's response to `GET /connectors?expand=info`; each as
    `{"name": ..., "config": {...}}` or as the bare config. `stem` is the name of one that has none."""
    read = ConnectorFile(file)
    with read.errors:
        for number, (name, wrapper, config) in enumerate(_configs(file, tree)):
            fallback = name or config.text("name") or (stem if number == 0 else f"{stem}-{number + 1}")
            owner = f"connector {fallback}"
            read.warnings += _warnings(file, owner, wrapper, config)
            initial = wrapper.text("initial_state").upper()
            state = initial if initial in (PAUSED, STOPPED) else RUNNING
            with read.errors:
                read.add(from_config(file, owner, given_values(file, f"{owner}: ", config), state=state))
    return read


def _configs(file: str, tree: Node) -> Iterator[tuple[str, Table, Table]]:
    """Name, all fields, and the config among them, for every connector."""
    if isinstance(tree, tuple):
        for item in tree:
            yield from _configs(file, item)
        return
    if not isinstance(tree, Table):
        raise ConfigError(f"{file}: a connector is an object with 'name' and 'config', or a list of such objects")
    config = tree.get("config")
    if config is not None and isinstance(config.value, Table):
        yield tree.text("name"), tree, config.value
    elif tree.get("connector.class") is not None:
        yield "", tree, tree
    elif tree.fields and all(isinstance(field.value, Table) and field.value.get("info") for field in tree.fields):
        for field in tree.fields:
            info = field.value.get("info") if isinstance(field.value, Table) else None
            yield from _configs(file, info.value if info else None)
    else:
        raise ConfigError(f"{position(file, tree.line)}: no connector.class: this is not a connector")


def _warnings(file: str, owner: str, wrapper: Table, config: Table) -> Iterator[ConfigNotice]:
    yield from repeated(((field.name, field.line) for field in config.fields), file, f"{owner}: ")
    if wrapper is config:
        return
    for field in wrapper.fields:
        if field.name not in ("name", "config", "tasks", "type", "initial_state"):
            yield ConfigNotice(field.line, field.name, f"{owner}: unknown field '{field.name}': it is ignored", file)


def given_values(file: str, owner: str, config: Table, path: str = "") -> dict[str, FileEntry]:
    """The settings of an object. `owner` is in front of messages, `path` in front of the settings' names."""
    given: dict[str, FileEntry] = {}
    errors = ErrorCollector()
    for field in config.fields:
        written = f"{path}{field.name}"
        with errors:
            if isinstance(field.value, str | Secret):
                given[field.name] = FileEntry(field.line, field.name, field.value, written=written if path else "")
            elif field.value is not None:
                raise ConfigError(
                    f"{position(file, field.line)}: {owner}{written}: a setting is a text, not a list or an object"
                )
    errors.raise_collected()
    return given
