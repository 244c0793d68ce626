"""Strimzi's `KafkaMirrorMaker2` resource, versions v1beta2 and v1: what its operator would make of it.

The operator turns a resource into connectors, and so do we; `joining` does the rest. Fields about pods have no meaning
here and are noted; so are secrets, whose content no file of this kind holds.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from heliograph.config.declare.kinds import Bool
from heliograph.config.declare.setting import Scope
from heliograph.config.messages import ConfigError, ConfigNotice, at
from heliograph.config.read import strimzi_security
from heliograph.config.read.connector import CLASSES, KAFKA, Connector, ConnectorValue
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.scopes import SettingKey
from heliograph.config.read.tree import Field, Node, Table
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE

KIND = "KafkaMirrorMaker2"
VERSIONS = ("kafka.strimzi.io/v1", "kafka.strimzi.io/v1beta2", "kafka.strimzi.io/v1alpha1")
FIELDS = {SOURCE: "sourceConnector", CHECKPOINT: "checkpointConnector", HEARTBEAT: "heartbeatConnector"}

_PODS = "it is about Strimzi's pods, and Heliograph runs on Spark"
_MEMORY = "memory and cores are Spark's: see --conf, as in --conf spark.executor.memory=2g"
_NEEDLESS = {
    "version": "there is no Kafka Connect of some version",
    "replicas": "Spark's executors do the work: see --master and --conf",
    "image": _PODS,
    "clientRackInitImage": _PODS,
    "resources": _MEMORY,
    "jvmOptions": _MEMORY,
    "livenessProbe": _PODS,
    "readinessProbe": _PODS,
    "jmxOptions": "there is no Kafka Connect to look into",
    "metricsConfig": "there is no Kafka Connect to be measured: see `heliograph status`",
    "logging": "it is about Kafka Connect's log",
    "rack": "this version does not choose replicas by rack",
    "tracing": "records are sent on as they are, past all interceptors",
    "template": _PODS,
    "externalConfiguration": "give the process its environment variables and files, and refer to them as ${env:NAME} "
    "and ${file:path:key}",
}
_CONNECTOR_NEEDLESS = {
    "version": "there is no connector of some version",
    "autoRestart": "what fails is started again in any case",
    "listOffsets": "how far mirrors have got is shown by `heliograph status`",
    "alterOffsets": "how far a mirror has got is read from the mirror itself",
}
PATTERNS = {
    "topicsPattern": "topics",
    "topicsExcludePattern": "topics.exclude",
    "groupsPattern": "groups",
    "groupsExcludePattern": "groups.exclude",
}
_OLD_PATTERNS = {"topicsBlacklistPattern": "topicsExcludePattern", "groupsBlacklistPattern": "groupsExcludePattern"}
WORKER = {
    "groupId": "group.id",
    "configStorageTopic": "config.storage.topic",
    "statusStorageTopic": "status.storage.topic",
    "offsetStorageTopic": "offset.storage.topic",
}
_CLUSTER = ("alias", "bootstrapServers", "config", "tls", "authentication")


@dataclass(slots=True)
class Resource:
    """What was read from a resource, and what there is to say about it."""

    file: str
    connectors: list[Connector] = field(default_factory=list)
    extra: dict[SettingKey, FileEntry] = field(default_factory=dict)
    warnings: list[ConfigNotice] = field(default_factory=list)
    notes: list[ConfigNotice] = field(default_factory=list)

    def note(self, line: int, name: str, text: str) -> None:
        self.notes.append(ConfigNotice(line, name, f"{name} {text}", self.file))

    def check(
        self, table: Table, path: str, known: tuple[str, ...], ignored_because: Mapping[str, str] | None = None
    ) -> None:
        """Says of every field that is not read why, or that nobody knows it."""
        reasons = ignored_because or {}
        for one in table.fields:
            name = f"{path}{one.name}"
            if one.name in reasons:
                self.note(one.line, name, f"has no meaning here: {reasons[one.name]}")
            elif one.name not in known:
                near = difflib.get_close_matches(one.name, (*known, *reasons), n=1)
                hint = f"did you mean '{path}{near[0]}'?" if near else "it is ignored"
                self.warnings.append(ConfigNotice(one.line, name, f"unknown field '{name}': {hint}", self.file))

    def error(self, line: int, text: str) -> ConfigError:
        return ConfigError(f"{at(self.file, line)}: {text}")


@dataclass(frozen=True, slots=True)
class _Cluster:
    alias: str
    path: str
    table: Table


def is_resource(tree: Node) -> bool:
    return isinstance(tree, Table) and tree.get("kind") is not None and tree.get("apiVersion") is not None


def resources(file: str, trees: tuple[Node, ...]) -> Resource:
    """All resources of a file together; those of other kinds are passed over."""
    read = Resource(file)
    for table in _tables(trees):
        kind = table.text("kind")
        if kind == KIND:
            _resource(read, table)
        else:
            read.notes.append(ConfigNotice(table.line, "kind", f"a resource of kind {kind} is passed over", file))
    if not read.connectors:
        raise ConfigError(f"{file}: no {KIND} with a connector is in it")
    return read


def _tables(trees: tuple[Node, ...]) -> Iterator[Table]:
    for tree in trees:
        items = tree.get("items") if isinstance(tree, Table) and tree.text("kind").endswith("List") else None
        if items is not None and isinstance(items.value, tuple):
            yield from _tables(items.value)
        elif isinstance(tree, Table):
            yield tree


def _resource(read: Resource, table: Table) -> None:
    read.check(table, "", ("apiVersion", "kind", "metadata", "spec", "status"))
    version = table.get("apiVersion")
    if version is None or version.value not in VERSIONS:
        line, text = (version.line, version.value) if version else (table.line, "")
        raise read.error(line, f"apiVersion: '{text}' is not one of {', '.join(VERSIONS)}")
    spec = _table(read, table, "spec", "")
    read.check(spec, "spec.", ("connectCluster", "clusters", "target", "mirrors"), _NEEDLESS)
    clusters = {
        cluster.alias: cluster
        for number, one in enumerate(_list(read, spec, "clusters"))
        for cluster in [_cluster(read, one, f"spec.clusters[{number}].")]
    }
    target = None
    if (field := spec.get("target")) is not None:
        target = _cluster(read, field.value, "spec.target.")
        clusters[target.alias] = target
    mirrors = _list(read, spec, "mirrors")
    if not mirrors:
        raise read.error(spec.line, "spec.mirrors: there is no mirror")
    for number, one in enumerate(mirrors):
        if not isinstance(one, Table):
            raise read.error(spec.line, f"spec.mirrors[{number}]: a mirror has fields")
        _mirror(read, one, f"spec.mirrors[{number}].", clusters, target)
    connect = spec.get("connectCluster")
    if connect is not None and connect.value not in clusters:
        raise read.error(connect.line, f"spec.connectCluster: '{connect.value}' is not in spec.clusters")


def _table(read: Resource, table: Table, name: str, path: str) -> Table:
    found = table.get(name)
    if found is None or not isinstance(found.value, Table):
        raise read.error(found.line if found else table.line, f"no {path}{name}")
    return found.value


def _list(read: Resource, table: Table, name: str) -> tuple[Node, ...]:
    found = table.get(name)
    if found is None:
        return ()
    if not isinstance(found.value, tuple):
        raise read.error(found.line, f"spec.{name}: a list is wanted")
    return found.value


def _cluster(read: Resource, node: Node, path: str) -> _Cluster:
    if not isinstance(node, Table):
        raise ConfigError(f"{read.file}: {path.removesuffix('.')}: a cluster has fields")
    for name in ("alias", "bootstrapServers"):
        if not node.text(name):
            raise read.error(node.line, f"no {path}{name}")
    read.check(node, path, (*_CLUSTER, *(WORKER if path == "spec.target." else ())))
    return _Cluster(node.text("alias"), path, node)


def _mirror(read: Resource, table: Table, path: str, clusters: dict[str, _Cluster], target: _Cluster | None) -> None:
    known = ("sourceCluster", "targetCluster", "source", *FIELDS.values(), *PATTERNS, *_OLD_PATTERNS)
    read.check(table, path, known)
    inline = table.get("source")
    source = _cluster(read, inline.value, f"{path}source.") if inline else _named(read, table, path, "source", clusters)
    if target is None or table.get("targetCluster") is not None:
        target = _named(read, table, path, "target", clusters)
    if source.alias == target.alias:
        raise read.error(table.line, f"{path.removesuffix('.')}: source and target are the same cluster {source.alias}")
    patterns = _patterns(read, table, path)
    # What stands at the target is what Connect's workers would be set up with, as `B.x` in an mm2.properties.
    _add_worker(read, target)
    common = {
        **_of_cluster(read, source, "source"),
        **_of_cluster(read, target, "target"),
    }
    for part, name in FIELDS.items():
        field = table.get(name)
        if field is None:
            continue
        _connector(read, field, f"{path}{name}.", part, (source, target), common, patterns)


def _named(read: Resource, table: Table, path: str, side: str, clusters: dict[str, _Cluster]) -> _Cluster:
    field = table.get(f"{side}Cluster")
    if field is None:
        raise read.error(table.line, f"no {path}{side}Cluster")
    cluster = clusters.get(str(field.value))
    if cluster is None:
        names = ", ".join(clusters) or "none"
        raise read.error(field.line, f"{path}{side}Cluster: '{field.value}' is not in spec.clusters ({names})")
    return cluster


def _patterns(read: Resource, table: Table, path: str) -> dict[str, ConnectorValue]:
    given: dict[str, ConnectorValue] = {}
    for old, new in _OLD_PATTERNS.items():
        if (field := table.get(old)) is not None:
            better = table.get(new)
            text = "is ignored: it is the old name of" if better else "is an old name: call it"
            warning = f"'{path}{old}' {text} '{path}{new}'"
            read.warnings.append(ConfigNotice(field.line, f"{path}{old}", warning, read.file))
            given[PATTERNS[new]] = ConnectorValue(str(field.value), field.line, f"{path}{old}")
    for name, key in PATTERNS.items():
        if (field := table.get(name)) is not None:
            given[key] = ConnectorValue(str(field.value), field.line, f"{path}{name}")
    return given


def _of_cluster(read: Resource, cluster: _Cluster, side: str) -> dict[str, ConnectorValue]:
    """A cluster's settings as its connectors know them; what `config` says at the target is for `_add_worker`."""
    table, path = cluster.table, cluster.path
    address = table.get("bootstrapServers")
    assert address is not None
    own = _config(read, table, path)
    security, notes = strimzi_security.settings(read.file, cluster.alias, table, path, own.keys())
    read.notes += [note for note in notes if note not in read.notes]
    alias = table.get("alias")
    given = {
        "alias": ConnectorValue(cluster.alias, alias.line if alias else 0, f"{path}alias"),
        "bootstrap.servers": ConnectorValue(str(address.value), address.line, f"{path}bootstrapServers"),
        **security,
        **(own if side == "source" else {}),
    }
    return {f"{side}.cluster.{name}": one for name, one in given.items()}


def _config(read: Resource, table: Table, path: str) -> dict[str, ConnectorValue]:
    field = table.get("config")
    if field is None:
        return {}
    if not isinstance(field.value, Table):
        raise read.error(field.line, f"{path}config: settings are wanted")
    given: dict[str, ConnectorValue] = {}
    for one in field.value.fields:
        if isinstance(one.value, Table | tuple):
            raise read.error(one.line, f"{path}config.{one.name}: a setting is a text, not a list or an object")
        if one.value is not None:
            given[one.name] = ConnectorValue(one.value, one.line, f"{path}config.{one.name}")
    return given


def _add_worker(read: Resource, target: _Cluster) -> None:
    given = _config(read, target.table, target.path)
    for name, key in WORKER.items():
        if (field := target.table.get(name)) is not None:
            given[key] = ConnectorValue(str(field.value), field.line, f"{target.path}{name}")
    spelling = ((f"{target.alias}.", f"{target.path}config."),)
    for key, one in given.items():
        address = SettingKey(Scope.CLUSTER, target.alias, key)
        read.extra[address] = FileEntry(
            one.line, address.key(), one.value, file=read.file, written=one.written, spelling=spelling
        )


def _connector(
    read: Resource,
    field: Field,
    path: str,
    part: str,
    clusters: tuple[_Cluster, _Cluster],
    common: dict[str, ConnectorValue],
    patterns: dict[str, ConnectorValue],
) -> None:
    table = field.value if isinstance(field.value, Table) else Table((), field.line)
    read.check(table, path, ("tasksMax", "pause", "state", "config"), _CONNECTOR_NEEDLESS)
    given = {
        "name": ConnectorValue(path, field.line),
        "connector.class": ConnectorValue(f"{KAFKA}.{CLASSES[part]}", field.line),
        **common,
        **_config(read, table, path),
        **patterns,
    }
    if (tasks := table.get("tasksMax")) is not None:
        given["tasks.max"] = ConnectorValue(str(tasks.value), tasks.line, f"{path}tasksMax")
    source, target = clusters
    spelling = (
        *((f"{one.alias}.bootstrap.servers", f"{one.path}bootstrapServers") for one in clusters),
        (f"{source.alias}->{target.alias}.", f"{path}config."),
        *((f"{one.alias}.", f"{one.path}config.") for one in clusters),
    )
    runs = _runs(read, table, path)
    pair = (source.alias, target.alias)
    read.connectors.append(Connector(read.file, "", part, *pair, given, f"{path}config.", runs, spelling))


def _runs(read: Resource, table: Table, path: str) -> bool:
    pause, state = table.get("pause"), table.get("state")
    if state is not None and state.value not in ("running", "paused", "stopped"):
        raise read.error(state.line, f"{path}state: '{state.value}' is not one of running, paused, stopped")
    if pause is not None:
        try:
            paused = Bool().parse(str(pause.value))
        except ValueError as bad:
            raise read.error(pause.line, f"{path}pause: '{pause.value}' {bad}") from None
        if paused and state is None:
            return False
    return state is None or state.value == "running"
