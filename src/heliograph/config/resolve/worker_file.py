"""The file of a Connect worker (`connect-distributed.properties`): where it stores its state, and where it listens."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from heliograph.config.declare.kinds import REPLICATION_FACTOR, TEXT, Kind, whole
from heliograph.config.declare.locations import TOP, top
from heliograph.config.declare.setting import Setting
from heliograph.config.declare.supported import (
    BOOTSTRAP_SERVERS,
    GROUP_ID,
    LISTENERS,
    NOTIFY_WEBHOOK,
    SECRETS_REFRESH,
    SPARK_SECURE,
)
from heliograph.config.messages import ConfigError, ConfigNotice, ErrorCollector
from heliograph.config.read import properties
from heliograph.config.read.entry import top_key
from heliograph.config.read.providers import declared_providers
from heliograph.config.read.rest_settings import read_rest_settings
from heliograph.config.read.settings import Settings
from heliograph.config.read.worker import FOR_CONNECTORS
from heliograph.config.resolve.connecting import connecting
from heliograph.config.resolve.security import Client, of_top_level
from heliograph.model.flow import Cluster
from heliograph.model.rest_settings import RestOptions, RestSettings

T = TypeVar("T")
_PORT = 8083
_NO_OPTIONS = RestOptions()
# The defaults of Connect's storage topics.
_PARTITIONS = {"config": 1, "offset": 25, "status": 5}
_REPLICAS = 3


@dataclass(frozen=True, slots=True)
class StorageTopic:
    name: str
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class WorkerFile:
    """`cluster` stores the worker's state. `advertised` is the worker's own address. `settings` are those that apply to
    its connectors, secrets included."""

    file: str
    cluster: Cluster
    group: str
    configs: StorageTopic
    offsets: StorageTopic
    status: StorageTopic
    rest: RestSettings
    advertised: str
    settings: Mapping[str, str] = field(repr=False)
    webhook: str = field(default="", repr=False)
    secrets_refresh: float = 0.0
    warnings: tuple[ConfigNotice, ...] = ()
    spark_secure: bool | None = None


def load_worker(path: str | os.PathLike[str], options: RestOptions = _NO_OPTIONS) -> WorkerFile:
    """Raises `ConfigError` with all errors of the file."""
    file = os.fspath(path)
    entries = {entry.key: entry for entry in properties.read(path)}
    providers = declared_providers(file, entries.values())
    read = _Reader(Settings(file, {top_key(key): entry for key, entry in entries.items()}, providers))
    cluster = Cluster("worker", read.get(BOOTSTRAP_SERVERS.name, BOOTSTRAP_SERVERS.kind, (), is_required=True))
    group = read.get(GROUP_ID.name, GROUP_ID.kind, "", is_required=True)
    topics = (read.storage_topic("config"), read.storage_topic("offset"), read.storage_topic("status"))
    rest = read.rest(options)
    host, port = (rest.listeners[0].host, rest.listeners[0].port) if rest.listeners else ("", _PORT)
    webhook = read.get(NOTIFY_WEBHOOK.name, NOTIFY_WEBHOOK.kind, "")
    refresh = read.get(SECRETS_REFRESH.name, SECRETS_REFRESH.kind, float(SECRETS_REFRESH.default or 0))
    spark_secure = read.get(SPARK_SECURE.name, SPARK_SECURE.kind, None)
    warnings: tuple[ConfigNotice, ...] = ()
    with read.errors:
        security, warnings = of_top_level(read.settings)
        cluster = replace(cluster, security=security)
    with read.errors:
        cluster = replace(cluster, connecting=connecting(Client(read.settings, ("", ""), (top(),), read.errors)))
    advertised = read.text("rest.advertised.host.name") or host or "127.0.0.1"
    advertised_port = read.text("rest.advertised.port") or port
    read.errors.raise_collected()
    return WorkerFile(
        file,
        cluster,
        group,
        *topics,
        rest,
        f"{advertised}:{advertised_port}",
        {key: entry.reveal() for key, entry in entries.items() if key.startswith(FOR_CONNECTORS)},
        webhook,
        refresh,
        warnings,
        spark_secure,
    )


class _Reader:
    """Reads single values of the file and collects the errors."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.errors = ErrorCollector()

    def get(self, name: str, kind: Kind[T], default: T, *, is_required: bool = False) -> T:
        """`default` also takes the place of a value that has an error."""
        entry = self.settings.entries.get(top_key(name))
        if is_required and (entry is None or not entry.reveal().strip()):
            self.errors.add(ConfigError(f"{self.settings.file}: no {name}: a Connect worker's file must have it"))
        elif entry is not None:
            with self.errors:
                return self.settings.parse(Setting(name, kind, None, TOP), entry)
        return default

    def text(self, name: str) -> str:
        """'' if the file does not have it."""
        return self.get(name, TEXT, "")

    def storage_topic(self, kind: str) -> StorageTopic:
        name = self.get(f"{kind}.storage.topic", TEXT, "", is_required=True)
        partitions = self.get(f"{kind}.storage.partitions", whole(-1, but_not=0), _PARTITIONS[kind])
        factor = self.get(f"{kind}.storage.replication.factor", REPLICATION_FACTOR, _REPLICAS)
        return StorageTopic(name, 1 if kind == "config" else partitions, factor)

    def rest(self, options: RestOptions) -> RestSettings:
        """Without `listeners`, the settings that Connect had for it before."""
        if options.addresses is None and not self.text(LISTENERS.name):
            address = ("http", self.text("rest.host.name"), self.get("rest.port", whole(0, 65535), _PORT))
            options = replace(options, addresses=(address,))
        with self.errors:
            return read_rest_settings(self.settings, options)
        return RestSettings()
