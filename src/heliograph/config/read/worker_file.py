"""The file of a Connect worker (`connect-distributed.properties`): where it keeps its state, and where it listens."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from heliograph.config.declare import workers
from heliograph.config.declare.kinds import Kind, Whole
from heliograph.config.declare.mirroring import BOOTSTRAP_SERVERS, NOTIFY_WEBHOOK
from heliograph.config.messages import ConfigError
from heliograph.config.read import properties
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.providers import declared, resolve
from heliograph.model.flow import Cluster

T = TypeVar("T")
_LISTENER = re.compile(r"(?i)(https?)://(?:\[([^\]]*)\]|([^:/]*)):(\d+)/?")
_PORT = 8083
# What Connect would create them with.
_PARTITIONS = {"config": 1, "offset": 25, "status": 5}


@dataclass(frozen=True, slots=True)
class StorageTopic:
    name: str
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class WorkerFile:
    """`host` is empty for all interfaces. `advertised` is what a worker calls itself. `settings` is all that stands in
    the file, for what concerns connectors, too."""

    file: str
    cluster: Cluster
    group: str
    configs: StorageTopic
    offsets: StorageTopic
    status: StorageTopic
    host: str
    port: int
    advertised: str
    settings: Mapping[str, str]
    webhook: str = field(default="", repr=False)


def load_worker(path: str | os.PathLike[str]) -> WorkerFile:
    """Raises ConfigError with one line of text."""
    file = os.fspath(path)
    entries = {entry.key: entry for entry in properties.read(path)}
    try:
        providers = declared({key: entry.value for key, entry in entries.items()})
    except ValueError as bad:
        raise ConfigError(f"{file}: config.providers: {bad}") from None
    found = _Found(file, entries, {key: resolve(entry.value, providers) for key, entry in entries.items()})
    host, port = _listener(found)
    advertised = found.texts.get("rest.advertised.host.name") or host or "127.0.0.1"
    return WorkerFile(
        file,
        Cluster("worker", found.parsed(BOOTSTRAP_SERVERS.name, BOOTSTRAP_SERVERS.kind)),
        found.needed(workers.GROUP_ID.name),
        _storage(found, "config"),
        _storage(found, "offset"),
        _storage(found, "status"),
        host,
        port,
        f"{advertised}:{found.texts.get('rest.advertised.port') or port}",
        {key: entry.value for key, entry in entries.items()},
        found.webhook(),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    file: str
    entries: Mapping[str, FileEntry]
    texts: Mapping[str, str]

    def needed(self, key: str) -> str:
        value = self.texts.get(key, "").strip()
        if not value:
            raise ConfigError(f"{self.file}: no {key}: a Connect worker's file has it")
        return value

    def parsed(self, key: str, kind: Kind[T], default: T | None = None) -> T:
        if default is not None and key not in self.texts:
            return default
        try:
            return kind.parse(self.needed(key))
        except ValueError as reason:
            raise self.error(key, f"'{self.entries[key].value}' {reason}") from None

    def webhook(self) -> str:
        try:
            return NOTIFY_WEBHOOK.kind.parse(self.texts.get(NOTIFY_WEBHOOK.name, ""))
        except ValueError as reason:
            raise self.error(NOTIFY_WEBHOOK.name, f"[hidden] {reason}") from None

    def error(self, key: str, text: str) -> ConfigError:
        return ConfigError(f"{self.file}:{self.entries[key].line}: {key}: {text}")


def _storage(found: _Found, kind: str) -> StorageTopic:
    partitions = found.parsed(f"{kind}.storage.partitions", Whole(-1, but_not=0), _PARTITIONS[kind])
    factor = found.parsed(f"{kind}.storage.replication.factor", Whole(-1, 32767, but_not=0), 3)
    return StorageTopic(found.needed(f"{kind}.storage.topic"), 1 if kind == "config" else partitions, factor)


def _listener(found: _Found) -> tuple[str, int]:
    """The first one that is plain HTTP. Without any, the names that Connect had for it before."""
    listeners = [one.strip() for one in found.texts.get("listeners", "").split(",") if one.strip()]
    if not listeners:
        return found.texts.get("rest.host.name", "").strip(), found.parsed("rest.port", Whole(0, 65535), _PORT)
    for one in listeners:
        parts = _LISTENER.fullmatch(one)
        if parts is None:
            raise found.error("listeners", f"'{one}' is no address: write http://HOST:PORT, without HOST for all")
        if parts[1].lower() == "http":
            host = parts[2] or parts[3] or ""
            return "" if host in ("0.0.0.0", "::") else host, int(parts[4])
    raise found.error("listeners", "this version speaks HTTP only, without TLS: add an http:// listener")
