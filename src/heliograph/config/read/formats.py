"""Which format a file has, and reading it: an `mm2.properties`, Kafka Connect's connectors, or Strimzi's resource.

An `mm2.properties` is a deployment of its own. Connectors may be spread over files, and over directories of files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heliograph.config.declare.mirroring import CLUSTERS
from heliograph.config.messages import ConfigError, ConfigNotice
from heliograph.config.read import connect_json, properties, strimzi
from heliograph.config.read.connector import Connector, ConnectorValue, from_config
from heliograph.config.read.document import Settings, from_properties
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.joining import document
from heliograph.config.read.scopes import SettingKey
from heliograph.config.read.tree import Node, json_tree, yaml_trees

_ENDINGS = (".json", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class _Part:
    """What one file adds to a deployment of connectors."""

    connectors: tuple[Connector, ...] = ()
    extra: dict[SettingKey, FileEntry] | None = None
    warnings: tuple[ConfigNotice, ...] = ()
    notes: tuple[ConfigNotice, ...] = ()


def read_all(paths: Sequence[str | os.PathLike[str]]) -> Settings:
    files = [file for path in paths for file in _files(path)]
    parts: list[_Part] = []
    for file in files:
        read = _read(file)
        if isinstance(read, Settings):
            if len(files) > 1:
                other = next((one for one in files if one != file), file)
                raise ConfigError(f"{file}: an mm2.properties stands alone: it cannot be joined with {other}")
            return read
        parts.append(read)
    return document(
        ", ".join(os.fspath(path) for path in paths),
        [one for part in parts for one in part.connectors],
        {address: entry for part in parts for address, entry in (part.extra or {}).items()},
        [one for part in parts for one in part.warnings],
        [one for part in parts for one in part.notes],
    )


def _files(path: str | os.PathLike[str]) -> list[str]:
    if not Path(path).is_dir():
        return [os.fspath(path)]
    found = sorted(str(one) for one in Path(path).iterdir() if one.suffix.lower() in _ENDINGS and one.is_file())
    if not found:
        raise ConfigError(f"{os.fspath(path)}: no file in this directory ends in {', '.join(_ENDINGS)}")
    return found


def _read(file: str) -> Settings | _Part:
    ending = Path(file).suffix.lower()
    stem = Path(file).stem
    if ending in _ENDINGS:
        text = _text(file)
        trees = (json_tree(text, file),) if ending == ".json" else yaml_trees(text, file)
        return _resources(file, trees) if any(map(strimzi.is_resource, trees)) else _connectors(file, trees, stem)
    entries = properties.read(file)
    keys = {entry.key for entry in entries}
    if "connector.class" in keys and CLUSTERS.name not in keys:
        return _standalone(file, stem, entries)
    return from_properties(file, entries)


def _resources(file: str, trees: tuple[Node, ...]) -> _Part:
    read = strimzi.resources(file, trees)
    return _Part(tuple(read.connectors), read.extra, tuple(read.warnings), tuple(read.notes))


def _connectors(file: str, trees: tuple[Node, ...], stem: str) -> _Part:
    found, warnings = connect_json.connectors(file, trees, stem)
    return _Part(found, None, warnings)


def _standalone(file: str, stem: str, entries: tuple[FileEntry, ...]) -> _Part:
    """A connector's own properties file, as `connect-standalone.sh` takes it."""
    given = {entry.key: ConnectorValue(entry.value, entry.line) for entry in entries}
    found = from_config(file, f"connector {given.get('name', ConnectorValue(stem, 0)).value}", given)
    return _Part((), None, (found,)) if isinstance(found, ConfigNotice) else _Part((found,))


def _text(file: str) -> str:
    data = properties.read_bytes(file)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: this is no UTF-8 text: {error.reason} at byte {error.start}") from None
