"""Strimzi's `KafkaMirrorMaker2` resource, of any version: the connectors that its operator would create.

Fields about pods are ignored and noted; so are Kubernetes secrets, whose content is not in the file.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from heliograph.config.declare.catalogue import ignored_strimzi_fields, unmissed_strimzi_fields
from heliograph.config.declare.kinds import BOOL
from heliograph.config.declare.locations import Scope
from heliograph.config.declare.supported import MM2_CONNECTOR
from heliograph.config.messages import ConfigError, ConfigNotice, Consequence, position
from heliograph.config.read import strimzi_security
from heliograph.config.read.connect_json import given_values
from heliograph.config.read.connector import CLASSES, Connector, ConnectorFile, Worker, class_name
from heliograph.config.read.entry import FileEntry, SettingKey
from heliograph.config.read.tree import Field, Node, Table
from heliograph.config.read.worker import with_worker
from heliograph.model.connect_records import PAUSED, RUNNING, STOPPED
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
# In v1 a resource must have these fields.
WORKER_DEFAULTS = {
    "groupId": "mirrormaker2-cluster",
    "configStorageTopic": "mirrormaker2-cluster-configs",
    "statusStorageTopic": "mirrormaker2-cluster-status",
    "offsetStorageTopic": "mirrormaker2-cluster-offsets",
}
CONNECTOR_FIELDS = ("tasksMax", "pause", "state", "config", "autoRestart")
_STATES = ("running", "paused", "stopped")
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

    def check_pods(self, spec: Table, known: tuple[str, ...]) -> bool:
        """Checks the fields of `spec`, those about pods included. Returns whether there are to be none."""
        ignored = ignored_strimzi_fields("resource")
        replicas = spec.get("replicas")
        is_stopped = replicas is not None and str(replicas.value).strip() == "0"
        if is_stopped and replicas is not None:
            del ignored["replicas"]
            text = (
                "spec.replicas is 0, which is Strimzi's way to stop: nothing of this resource runs; to run it with "
                "Heliograph, set it to 1 or more here"
            )
            self.stopped.append(ConfigNotice(replicas.line, "spec.replicas", text, self.file))
        self.check(spec, "spec.", (*known, "replicas"), ignored)
        return is_stopped

    def spec(self, table: Table) -> Table:
        """The `spec` of a resource. Raises `ConfigError` if there is none, or the resource's version is unknown."""
        self.check(table, "", ("apiVersion", "kind", "metadata", "spec", "status"))
        version = table.get("apiVersion")
        if version is None or version.value not in VERSIONS:
            line, text = (version.line, version.value) if version else (table.line, "")
            raise self.error(line, f"apiVersion: '{text}' is not one of {', '.join(VERSIONS)}")
        field = table.get("spec")
        if field is None or not isinstance(field.value, Table):
            raise self.error(field.line if field else table.line, "no spec")
        return field.value

    def error(self, line: int, text: str) -> ConfigError:
        return ConfigError(f"{position(self.file, line)}: {text}")


@dataclass(frozen=True, slots=True)
class _Cluster:
    alias: str
    path: str
    table: Table


def read_resource(read: Resource, table: Table) -> None:
    spec = read.spec(table)
    is_stopped = read.check_pods(spec, ("connectCluster", "clusters", "target", "mirrors"))
    clusters: dict[str, _Cluster] = {}
    for number, node in enumerate(_list(read, spec, "clusters")):
        with read.errors:
            cluster = _cluster(read, node, f"spec.clusters[{number}].")
            clusters[cluster.alias] = cluster
    target = None
    if (field := spec.get("target")) is not None:
        target = _cluster(read, field.value, "spec.target.")
        clusters[target.alias] = target
    workers = None
    if (connect := spec.get("connectCluster")) is not None:
        workers = clusters.get(str(connect.value))
        if workers is None:
            text = f"spec.connectCluster: '{connect.value}' is not in spec.clusters"
            read.errors.add(read.error(connect.line, text))
    mirrors = _list(read, spec, "mirrors")
    if not mirrors:
        raise read.error(spec.line, "spec.mirrors: there is no mirror")
    first = len(read.connectors)
    for number, mirror in enumerate(mirrors):
        with read.errors:
            if not isinstance(mirror, Table):
                raise read.error(spec.line, f"spec.mirrors[{number}]: a mirror is an object")
            _mirror(read, mirror, f"spec.mirrors[{number}].", clusters, target, workers)
    if is_stopped:
        read.connectors[first:] = [replace(connector, state=STOPPED) for connector in read.connectors[first:]]


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


def _mirror(
    read: Resource,
    table: Table,
    path: str,
    clusters: dict[str, _Cluster],
    target: _Cluster | None,
    workers: _Cluster | None,
) -> None:
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
    worker = _worker(read, workers or target)
    for part, name in FIELDS.items():
        if (field := table.get(name)) is not None:
            with read.errors:
                connector = _connector(read, field, f"{path}{name}.", part, (source, target), common, patterns)
                read.connectors.append(with_worker(connector, worker))


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
    return values(table, path, old_patterns) | values(table, path, PATTERNS)


def values(table: Table, path: str, names: Mapping[str, str]) -> dict[str, FileEntry]:
    """The fields that mean settings, by the settings' names."""
    return {
        setting: FileEntry(field.line, setting, str(field.value), written=f"{path}{name}")
        for name, setting in names.items()
        if (field := table.get(name)) is not None
    }


def _of_cluster(read: Resource, cluster: _Cluster, side: str) -> dict[str, FileEntry]:
    """A cluster's settings as its connectors have them; `_add_worker` adds the target's `config`."""
    table, path = cluster.table, cluster.path
    own = config_of(read, table, path)
    security, notes = strimzi_security.settings(read.file, cluster.alias, table, path, own.keys())
    read.notes += [note for note in notes if note not in read.notes]
    given = {
        **values(table, path, {"alias": "alias", "bootstrapServers": "bootstrap.servers"}),
        **security,
        **(own if side == "source" else {}),
    }
    return {f"{side}.cluster.{name}": value for name, value in given.items()}


def config_of(read: Resource, table: Table, path: str) -> dict[str, FileEntry]:
    field = table.get("config")
    if field is None:
        return {}
    if not isinstance(field.value, Table):
        raise read.error(field.line, f"{path}config: this must be an object")
    return given_values(read.file, "", field.value, f"{path}config.")


def _worker(read: Resource, cluster: _Cluster) -> Worker:
    """The workers of the resource, which store their state in this cluster."""
    defaults = {name: FileEntry(0, name, WORKER_DEFAULTS[field]) for field, name in WORKER.items()}
    config = config_of(read, cluster.table, cluster.path)
    return Worker(read.file, {**defaults, **config, **values(cluster.table, cluster.path, WORKER)})


def _add_worker(read: Resource, target: _Cluster) -> None:
    given = config_of(read, target.table, target.path) | values(target.table, target.path, WORKER)
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
) -> Connector:
    table = field.value if isinstance(field.value, Table) else Table((), field.line)
    read.check(table, path, CONNECTOR_FIELDS, ignored_strimzi_fields("connector"))
    check_auto_restart(read, table, path)
    given = {
        "name": FileEntry(field.line, "name", path),
        "connector.class": FileEntry(field.line, "connector.class", class_name(part)),
        **common,
        **config_of(read, table, path),
        **patterns,
        **values(table, path, {"tasksMax": "tasks.max"}),
    }
    source, target = clusters
    if part == SOURCE:
        name = f"{source.alias}->{target.alias}.{CLASSES[part]}"
        given.setdefault(MM2_CONNECTOR.name, FileEntry(0, MM2_CONNECTOR.name, name))
    spelling = (
        *((f"{cluster.alias}.bootstrap.servers", f"{cluster.path}bootstrapServers") for cluster in clusters),
        (f"{source.alias}->{target.alias}.", f"{path}config."),
        *((f"{cluster.alias}.", f"{cluster.path}config.") for cluster in clusters),
    )
    state = connector_state(read, table, path)
    pair = (source.alias, target.alias)
    return Connector(read.file, "", part, *pair, given, f"{path}config.", state, spelling, worker=None)


def check_auto_restart(read: Resource, table: Table, path: str) -> None:
    """What fails is always tried again, as with `autoRestart`: only a limit has no effect."""
    field = table.get("autoRestart")
    options = field.value if field is not None and isinstance(field.value, Table) else Table(())
    read.check(options, f"{path}autoRestart.", ("enabled", "maxRestarts"))
    for option in options.fields:
        if option.name == "maxRestarts" or str(option.value).lower() == "false":
            name = f"{path}autoRestart.{option.name}"
            text = (
                f"{name} has no effect: what fails is always tried again, a stopped partition with every lease; write "
                f"'{path}state: stopped' to keep the connector from running"
            )
            read.notes.append(ConfigNotice(option.line, name, text, read.file))


def connector_state(read: Resource, table: Table, path: str) -> str:
    """As Connect names it. `pause` is the old way to write it, and counts only without `state`."""
    pause, state = table.get("pause"), table.get("state")
    if state is not None and state.value not in _STATES:
        raise read.error(state.line, f"{path}state: '{state.value}' is not one of {', '.join(_STATES)}")
    paused = False
    if pause is not None:
        try:
            paused = BOOL.parse(str(pause.value))
        except ValueError as error:
            raise read.error(pause.line, f"{path}pause: '{pause.value}' {error}") from None
    if state is None:
        return PAUSED if paused else RUNNING
    return str(state.value).upper()
