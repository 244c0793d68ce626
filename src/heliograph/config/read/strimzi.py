"""Strimzi's `KafkaMirrorMaker2` resource, versions v1beta2 and v1: the connectors that its operator would create.

Fields about pods are ignored and noted; so are Kubernetes secrets, whose content is not in the file.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from heliograph.config.declare.catalogue import ignored_strimzi_fields, unmissed_strimzi_fields
from heliograph.config.declare.kinds import BOOL
from heliograph.config.declare.locations import Scope
from heliograph.config.messages import ConfigError, ConfigNotice, Consequence, position
from heliograph.config.read import strimzi_security
from heliograph.config.read.connect_json import given_values
from heliograph.config.read.connector import Connector, ConnectorFile, class_name
from heliograph.config.read.entry import FileEntry, SettingKey
from heliograph.config.read.tree import Field, Node, Table
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE

KIND = "KafkaMirrorMaker2"
_GROUPS = ("kafka.strimzi.io", "eventstreams.ibm.com")  # IBM Event Streams has Strimzi's resource as its own
VERSIONS = tuple(f"{group}/{version}" for group in _GROUPS for version in ("v1", "v1beta2", "v1alpha1"))
FIELDS = {SOURCE: "sourceConnector", CHECKPOINT: "checkpointConnector", HEARTBEAT: "heartbeatConnector"}

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
class Resource(ConnectorFile):
    """What was read from the resources of a file."""

    def check(self, table: Table, path: str, known: tuple[str, ...], ignored: Mapping[str, str] | None = None) -> None:
        """Notes every field that is ignored, and warns about unknown ones."""
        reasons = ignored or {}
        for tree_field in table.fields:
            name = f"{path}{tree_field.name}"
            if tree_field.name in reasons:
                text = f"{name} is ignored: {reasons[tree_field.name]}"
                is_missed = tree_field.name not in unmissed_strimzi_fields()
                consequence = Consequence.NO_EFFECT if is_missed else Consequence.NONE
                self.notes.append(ConfigNotice(tree_field.line, name, text, self.file, consequence))
            elif tree_field.name not in known:
                near = difflib.get_close_matches(tree_field.name, (*known, *reasons), n=1)
                hint = f"did you mean '{path}{near[0]}'?" if near else "it is ignored"
                self.warnings.append(ConfigNotice(tree_field.line, name, f"unknown field '{name}': {hint}", self.file))

    def error(self, line: int, text: str) -> ConfigError:
        return ConfigError(f"{position(self.file, line)}: {text}")


@dataclass(frozen=True, slots=True)
class _Cluster:
    alias: str
    path: str
    table: Table


def is_resource(tree: Node) -> bool:
    return isinstance(tree, Table) and tree.get("kind") is not None and tree.get("apiVersion") is not None


def resources(file: str, trees: tuple[Node, ...]) -> Resource:
    """All resources of a file together; those of other kinds are ignored. Raises `ConfigError` if there is nothing."""
    read = Resource(file)
    for table in _tables(trees):
        kind = table.text("kind")
        if kind == KIND:
            with read.errors:
                _resource(read, table)
        else:
            text = f"a resource of kind {kind} is ignored"
            read.notes.append(ConfigNotice(table.line, "kind", text, file, Consequence.NONE))
    if not read.connectors:
        read.errors.raise_collected()
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
    spec_field = table.get("spec")
    if spec_field is None or not isinstance(spec_field.value, Table):
        raise read.error(spec_field.line if spec_field else table.line, "no spec")
    spec = spec_field.value
    read.check(spec, "spec.", ("connectCluster", "clusters", "target", "mirrors"), ignored_strimzi_fields("resource"))
    clusters: dict[str, _Cluster] = {}
    for number, node in enumerate(_list(read, spec, "clusters")):
        with read.errors:
            cluster = _cluster(read, node, f"spec.clusters[{number}].")
            clusters[cluster.alias] = cluster
    target = None
    if (field := spec.get("target")) is not None:
        target = _cluster(read, field.value, "spec.target.")
        clusters[target.alias] = target
    mirrors = _list(read, spec, "mirrors")
    if not mirrors:
        raise read.error(spec.line, "spec.mirrors: there is no mirror")
    for number, mirror in enumerate(mirrors):
        with read.errors:
            if not isinstance(mirror, Table):
                raise read.error(spec.line, f"spec.mirrors[{number}]: a mirror is an object")
            _mirror(read, mirror, f"spec.mirrors[{number}].", clusters, target)
    connect = spec.get("connectCluster")
    if connect is not None and connect.value not in clusters:
        raise read.error(connect.line, f"spec.connectCluster: '{connect.value}' is not in spec.clusters")


def _list(read: Resource, table: Table, name: str) -> tuple[Node, ...]:
    field = table.get(name)
    if field is None:
        return ()
    if not isinstance(field.value, tuple):
        raise read.error(field.line, f"spec.{name}: this must be a list")
    return field.value


def _cluster(read: Resource, node: Node, path: str) -> _Cluster:
    if not isinstance(node, Table):
        raise ConfigError(f"{read.file}: {path.removesuffix('.')}: a cluster is an object")
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
    # The target's config is that of Connect's workers, as `B.x` in an mm2.properties.
    _add_worker(read, target)
    common = _of_cluster(read, source, "source") | _of_cluster(read, target, "target")
    for part, name in FIELDS.items():
        if (field := table.get(name)) is not None:
            with read.errors:
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


def _patterns(read: Resource, table: Table, path: str) -> dict[str, FileEntry]:
    for old, new in _OLD_PATTERNS.items():
        if (field := table.get(old)) is not None:
            text = "is ignored: it is the old name of" if table.get(new) else "is an old name: write"
            warning = f"'{path}{old}' {text} '{path}{new}'"
            read.warnings.append(ConfigNotice(field.line, f"{path}{old}", warning, read.file))
    old_patterns = {old: PATTERNS[new] for old, new in _OLD_PATTERNS.items()}
    return _values(table, path, old_patterns) | _values(table, path, PATTERNS)


def _values(table: Table, path: str, names: Mapping[str, str]) -> dict[str, FileEntry]:
    """The fields that mean settings, by the settings' names."""
    return {
        setting: FileEntry(field.line, setting, str(field.value), written=f"{path}{name}")
        for name, setting in names.items()
        if (field := table.get(name)) is not None
    }


def _of_cluster(read: Resource, cluster: _Cluster, side: str) -> dict[str, FileEntry]:
    """A cluster's settings as its connectors have them; `_add_worker` adds the target's `config`."""
    table, path = cluster.table, cluster.path
    own = _config(read, table, path)
    security, notes = strimzi_security.settings(read.file, cluster.alias, table, path, own.keys())
    read.notes += [note for note in notes if note not in read.notes]
    given = {
        **_values(table, path, {"alias": "alias", "bootstrapServers": "bootstrap.servers"}),
        **security,
        **(own if side == "source" else {}),
    }
    return {f"{side}.cluster.{name}": value for name, value in given.items()}


def _config(read: Resource, table: Table, path: str) -> dict[str, FileEntry]:
    field = table.get("config")
    if field is None:
        return {}
    if not isinstance(field.value, Table):
        raise read.error(field.line, f"{path}config: this must be an object")
    return given_values(read.file, "", field.value, f"{path}config.")


def _add_worker(read: Resource, target: _Cluster) -> None:
    given = _config(read, target.table, target.path) | _values(target.table, target.path, WORKER)
    spelling = ((f"{target.alias}.", f"{target.path}config."),)
    for name, entry in given.items():
        key = SettingKey(Scope.CLUSTER, target.alias, name)
        read.extra[key] = replace(entry, key=key.key(), file=read.file, spelling=spelling)


def _connector(
    read: Resource,
    field: Field,
    path: str,
    part: str,
    clusters: tuple[_Cluster, _Cluster],
    common: dict[str, FileEntry],
    patterns: dict[str, FileEntry],
) -> None:
    table = field.value if isinstance(field.value, Table) else Table((), field.line)
    read.check(table, path, ("tasksMax", "pause", "state", "config"), ignored_strimzi_fields("connector"))
    given = {
        "name": FileEntry(field.line, "name", path),
        "connector.class": FileEntry(field.line, "connector.class", class_name(part)),
        **common,
        **_config(read, table, path),
        **patterns,
        **_values(table, path, {"tasksMax": "tasks.max"}),
    }
    source, target = clusters
    spelling = (
        *((f"{cluster.alias}.bootstrap.servers", f"{cluster.path}bootstrapServers") for cluster in clusters),
        (f"{source.alias}->{target.alias}.", f"{path}config."),
        *((f"{cluster.alias}.", f"{cluster.path}config.") for cluster in clusters),
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
            paused = BOOL.parse(str(pause.value))
        except ValueError as error:
            raise read.error(pause.line, f"{path}pause: '{pause.value}' {error}") from None
        if paused and state is None:
            return False
    return state is None or state.value == "running"
