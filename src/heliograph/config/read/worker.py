"""Kafka Connect's workers: a worker's file, or Strimzi's `KafkaConnect`. Connectors get from them where Connect stores
its state, and what workers give to all their connectors.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from heliograph.config.declare.kinds import split_list
from heliograph.config.declare.locations import Scope
from heliograph.config.declare.supported import (
    BOOTSTRAP_SERVERS,
    CLUSTERS,
    CONFIG_PROVIDERS,
    GROUP_ID,
    MM2_CONNECTOR,
    MM2_GROUP,
    MM2_OFFSETS_TOPIC,
    MM2_STATUS_TOPIC,
    OFFSET_FLUSH_INTERVAL,
    OFFSET_STORAGE_TOPIC,
    SECRETS_DIR,
)
from heliograph.config.messages import ConfigError, ConfigNotice
from heliograph.config.read.connector import Connector, ConnectorFile, Worker
from heliograph.config.read.entry import FileEntry, SettingKey, top_key
from heliograph.model.connect_records import STOPPED
from heliograph.model.flow import SOURCE

# Settings of a worker that apply to its connectors begin so.
_OF_WORKER = ("producer.", OFFSET_FLUSH_INTERVAL.name)
FOR_CONNECTORS = (*_OF_WORKER, CONFIG_PROVIDERS.name, SECRETS_DIR.name)
_FILE_OF_OFFSETS = "offset.storage.file.filename"  # of a standalone worker
_STORAGE = frozenset({OFFSET_STORAGE_TOPIC.name, "config.storage.topic", "status.storage.topic", _FILE_OF_OFFSETS})
_CONVERTERS = frozenset({"key.converter", "value.converter"})
# Where a worker says what Heliograph's own settings of a flow say.
STATE = {
    GROUP_ID.name: MM2_GROUP.name,
    OFFSET_STORAGE_TOPIC.name: MM2_OFFSETS_TOPIC.name,
    "status.storage.topic": MM2_STATUS_TOPIC.name,
}


def is_worker(keys: Collection[str]) -> bool:
    """Whether a properties file is a worker's: neither an `mm2.properties` nor a connector."""
    is_other = CLUSTERS.name in keys or "connector.class" in keys
    has_some = not _STORAGE.isdisjoint(keys) or _CONVERTERS.issubset(keys)
    return not is_other and BOOTSTRAP_SERVERS.name in keys and has_some


def worker_of(file: str, entries: Iterable[FileEntry]) -> Worker:
    return Worker(file, {entry.key: entry for entry in entries})


def with_workers(files: Sequence[ConnectorFile], worker: Worker | None) -> list[ConnectorFile]:
    """Gives every connector the settings of its workers; `worker` is that of a worker's file, if there is one."""
    named = {name: known for read in files for name, known in read.workers.items()}
    return [_connected(read, named, worker) for read in files]


def _connected(read: ConnectorFile, named: Mapping[str, Worker], worker: Worker | None) -> ConnectorFile:
    connectors: list[Connector] = []
    extra: dict[SettingKey, FileEntry] = {}
    warnings, notes = list(read.warnings), list(read.notes)
    for connector in read.connectors:
        own = None if connector.worker is None else named.get(connector.worker) or worker
        if own is not None:
            connectors.append(with_worker(connector, own))
            extra |= for_all(own, connector.target)
            warnings += (*_other_cluster(connector, own), *_offsets_in_a_file(own))
            continue
        connectors.append(connector)
        if connector.worker:
            text = (
                f"{connector.label}: the KafkaConnect {connector.worker} is not in these files: give it, too, to take "
                "over mirrors of MirrorMaker 2"
            )
            notes.append(ConfigNotice(0, "", text, read.file))
    return replace(read, connectors=connectors, extra=extra | read.extra, warnings=warnings, notes=notes)


def with_worker(connector: Connector, worker: Worker) -> Connector:
    """With the place where Connect stores the offsets of a source connector, unless its own settings have it."""
    state = STOPPED if worker.is_stopped else connector.state
    if connector.part != SOURCE:
        return replace(connector, state=state)
    of_worker = {
        own: replace(worker.given[name], key=own, file=worker.file, written=worker.given[name].name)
        for name, own in STATE.items()
        if name in worker.given
    }
    if of_worker and connector.name:
        of_worker[MM2_CONNECTOR.name] = FileEntry(0, MM2_CONNECTOR.name, connector.name)
    return replace(connector, given={**of_worker, **connector.given}, state=state)


def for_all(worker: Worker, target: str) -> dict[SettingKey, FileEntry]:
    """The settings of a worker that apply to all its connectors, which write to the cluster `target`."""
    extra = {}
    for name, entry in worker.given.items():
        if name.startswith(FOR_CONNECTORS):
            key = SettingKey(Scope.CLUSTER, target, name) if name.startswith(_OF_WORKER) else top_key(name)
            extra[key] = replace(entry, key=key.key(), file=worker.file, written=entry.name)
    return extra


def _other_cluster(connector: Connector, worker: Worker) -> list[ConfigNotice]:
    """Connect's producer writes to the cluster of its workers, whatever the connector says."""
    ours, theirs = connector.given.get("target.cluster.bootstrap.servers"), worker.given.get(BOOTSTRAP_SERVERS.name)
    if ours is None or theirs is None or connector.part != SOURCE:
        return []
    if "${" in ours.reveal() + theirs.reveal() or set(split_list(ours.reveal())) & set(split_list(theirs.reveal())):
        return []
    entry = connector.entry("target.cluster.bootstrap.servers")
    text = entry.with_owner(
        f"{entry.name}: the worker ({worker.file}) has none of these addresses in bootstrap.servers: MM2 writes to the "
        "worker's cluster, Heliograph to this one"
    )
    return [ConfigNotice(entry.line, entry.name, text, connector.file)]


def _offsets_in_a_file(worker: Worker) -> list[ConfigNotice]:
    entry = worker.given.get(_FILE_OF_OFFSETS)
    if entry is None or OFFSET_STORAGE_TOPIC.name in worker.given:
        return []
    text = f"{entry.name}: the offsets of a standalone worker are not read: its mirrors are not taken over"
    return [ConfigNotice(entry.line, entry.name, text, worker.file)]


def alone(worker: Worker) -> ConfigError:
    if _FILE_OF_OFFSETS in worker.given:
        text = (
            "this is the file of a standalone Connect worker, without flows: give the files of its connectors with it, "
            "the other arguments of connect-standalone.sh"
        )
    else:
        text = (
            "this is the file of a Connect worker, without flows: `heliograph serve` runs with it and takes connectors "
            "over REST; `heliograph run` takes the connectors' own files with it"
        )
    return ConfigError(f"{worker.file}: {text}")
