"""Which format a file has: an `mm2.properties`, Kafka Connect's connectors, or Strimzi's resource; and reading it.

An `mm2.properties` is a deployment of its own. Connectors may be spread over files, and over directories of files.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from heliograph.config.declare.supported import CLUSTERS
from heliograph.config.messages import ConfigError, ErrorCollector
from heliograph.config.read import connect_json, properties, strimzi
from heliograph.config.read.connector import ConnectorFile, from_config
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.joining import join
from heliograph.config.read.mm2_file import from_properties
from heliograph.config.read.settings import Settings
from heliograph.config.read.tree import json_tree, yaml_trees

_ENDINGS = (".json", ".yaml", ".yml")


def read_all(paths: Sequence[str | os.PathLike[str]]) -> Settings:
    """The settings of one deployment. Raises `ConfigError` with all errors of all files."""
    files = [file for path in paths for file in _files(path)]
    read: list[ConnectorFile] = []
    errors = ErrorCollector()
    for file in files:
        with errors:
            content = _read(file)
            if isinstance(content, ConnectorFile):
                read.append(content)
            elif len(files) == 1:
                return content
            else:
                other = next((name for name in files if name != file), file)
                raise ConfigError(f"{file}: an mm2.properties cannot be combined with {other}: give it alone")
    if not read:
        errors.raise_collected()
    joined = join(", ".join(os.fspath(path) for path in paths), read)
    return replace(joined, errors=(*errors.errors, *joined.errors))


def _files(path: str | os.PathLike[str]) -> list[str]:
    if not Path(path).is_dir():
        return [os.fspath(path)]
    files = sorted(str(file) for file in Path(path).iterdir() if file.suffix.lower() in _ENDINGS and file.is_file())
    if not files:
        raise ConfigError(f"{os.fspath(path)}: no file in this directory ends in {', '.join(_ENDINGS)}")
    return files


def _read(file: str) -> Settings | ConnectorFile:
    ending = Path(file).suffix.lower()
    stem = Path(file).stem
    if ending in _ENDINGS:
        text = _text(file)
        trees = (json_tree(text, file),) if ending == ".json" else yaml_trees(text, file)
        if any(map(strimzi.is_resource, trees)):
            return strimzi.resources(file, trees)
        return connect_json.connectors(file, trees, stem)
    entries = properties.read(file)
    keys = {entry.key for entry in entries}
    if "connector.class" in keys and CLUSTERS.name not in keys:
        return _standalone(file, stem, entries)
    return from_properties(file, entries)


def _standalone(file: str, stem: str, entries: tuple[FileEntry, ...]) -> ConnectorFile:
    """A connector's own properties file, as for `connect-standalone.sh`."""
    given = {entry.key: FileEntry(entry.line, entry.key, entry.value) for entry in entries}
    name = given["name"].value if "name" in given else stem
    read = ConnectorFile(file)
    read.add(from_config(file, f"connector {name}", given))
    return read


def _text(file: str) -> str:
    data = properties.read_bytes(file)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: this is not UTF-8 text: {error.reason} at byte {error.start}") from None
