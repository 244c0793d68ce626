"""Which format a file has: an `mm2.properties`, Kafka Connect's connectors or worker, or Strimzi's resource; and
reading it.

An `mm2.properties` is a deployment of its own. Connectors may be spread over files, and over directories of files.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from heliograph.config.declare.supported import CLUSTERS
from heliograph.config.messages import ConfigError, ErrorCollector
from heliograph.config.read import connect_json, kubernetes, properties, worker
from heliograph.config.read.connector import ConnectorFile, Worker, from_config
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
    workers: list[Worker] = []
    errors = ErrorCollector()
    for file in files:
        with errors:
            content = _read(file)
            if isinstance(content, ConnectorFile):
                read.append(content)
            elif isinstance(content, Worker):
                workers.append(content)
            elif len(files) == 1:
                return content
            else:
                other = next((name for name in files if name != file), file)
                raise ConfigError(f"{file}: an mm2.properties cannot be combined with {other}: give it alone")
    if len(workers) > 1:
        text = f"this is the file of a Connect worker, as {workers[0].file} is: give only one"
        errors.add(ConfigError(f"{workers[1].file}: {text}"))
    if not any(content.connectors for content in read):
        errors.raise_collected()
    if workers and not read:
        raise worker.alone(workers[0])
    joined = join(", ".join(os.fspath(path) for path in paths), worker.with_workers(read, next(iter(workers), None)))
    return replace(joined, errors=(*errors.errors, *joined.errors))


def is_worker_file(path: str | os.PathLike[str]) -> bool:
    """Whether it is the file of a Connect worker. Raises `ConfigError` if it cannot be read."""
    if Path(path).suffix.lower() in _ENDINGS or Path(path).is_dir():
        return False
    return worker.is_worker({entry.key for entry in properties.read(path)})


def _files(path: str | os.PathLike[str]) -> list[str]:
    if not Path(path).is_dir():
        return [os.fspath(path)]
    files = sorted(str(file) for file in Path(path).iterdir() if file.suffix.lower() in _ENDINGS and file.is_file())
    if not files:
        raise ConfigError(f"{os.fspath(path)}: no file in this directory ends in {', '.join(_ENDINGS)}")
    return files


def _read(file: str) -> Settings | ConnectorFile | Worker:
    ending = Path(file).suffix.lower()
    stem = Path(file).stem
    if ending in _ENDINGS:
        text = _text(file)
        trees = (json_tree(text, file),) if ending == ".json" else yaml_trees(text, file)
        if any(map(kubernetes.is_resource, trees)):
            return kubernetes.resources(file, trees)
        return connect_json.connectors(file, trees, stem)
    entries = properties.read(file)
    keys = {entry.key for entry in entries}
    if "connector.class" in keys and CLUSTERS.name not in keys:
        return _standalone(file, stem, entries)
    if worker.is_worker(keys):
        return worker.worker_of(file, entries)
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
