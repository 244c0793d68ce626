"""The settings of a flow as Connect's connectors: those that MirrorMaker 2's driver would create of a file.

A projection: flows are built from the settings, never from these. Values are as they are written, so references to
secrets stay references. Settings of Connect's workers or of the driver are in no connector; they are listed apart.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from heliograph.config.declare import catalogue, locations, supported
from heliograph.config.declare.locations import Scope
from heliograph.config.declare.secrets import Value, reveal
from heliograph.config.declare.supported import (
    ALIAS,
    CONFIG_PROVIDERS,
    ENABLED,
    OF_CHECKPOINTS,
    PARTS,
    READ_BY_ONE,
    read_by_others,
)
from heliograph.config.read.connector import ALIAS_NAMES, CLASSES, NAME_SETTINGS, class_name
from heliograph.config.read.entry import FileEntry, SettingKey, top_key
from heliograph.config.read.joining import NAMING, SHARED, is_of_clients
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.security import ROLES, TARGET_PRODUCER
from heliograph.model.connect_records import RUNNING
from heliograph.model.flow import CHECKPOINT, Flow

_OF_CLUSTERS = (locations.CLIENT_CLUSTER, locations.RECORDS_CLUSTER)
_FALLBACKS = tuple(name for name, setting in supported.SUPPORTED.items() if setting.where in _OF_CLUSTERS)
_KINDS = ("consumer.", "producer.", "admin.")
_OF_CLIENTS = ("source.", "target.", *_KINDS, CONFIG_PROVIDERS.name)
_NAMES_TOPICS = frozenset({*(setting.name for setting in NAMING), supported.OFFSET_SYNCS_LOCATION.name})


@dataclass(frozen=True, slots=True)
class ProjectedConnector:
    """A connector of a flow. `name` is that of the file, if it has one. `source` and `target` are the names of the
    clusters, `aliases` what MM2's connector calls them. `config` has neither class nor name nor aliases. `state` is the
    one that it is to have."""

    name: str
    source: str
    target: str
    part: str
    config: dict[str, Value]
    aliases: tuple[str, str]
    state: str = RUNNING

    def whole_config(self) -> dict[str, str]:
        """As it is posted to Connect: secrets are revealed."""
        identity = {"connector.class": class_name(self.part)} | dict(
            zip(ALIAS_NAMES.values(), self.aliases, strict=True)
        )
        return identity | self._names() | {key: reveal(value) for key, value in self.config.items()}

    def other_aliases(self) -> dict[str, str]:
        """The aliases that are not the names of the clusters, as settings."""
        sides = zip(ALIAS_NAMES.values(), self.aliases, (self.source, self.target), strict=True)
        return {setting: alias for setting, alias, name in sides if alias != name}

    def _names(self) -> dict[str, str]:
        """The names of the clusters that are not their aliases: the connector becomes the same flow again."""
        sides = zip(NAME_SETTINGS.values(), self.aliases, (self.source, self.target), strict=True)
        return {setting: name for setting, alias, name in sides if alias != name}


def default_name(source: str, target: str, part: str) -> str:
    """As MM2's driver names connectors."""
    return f"{source}->{target}.{CLASSES[part]}"


def connectors(settings: Settings, flows: Iterable[Flow]) -> Iterator[ProjectedConnector]:
    for flow in flows:
        source, target = flow.source.alias, flow.target.alias
        config = _flow_config(settings, source, target)
        parts = [part for part in CLASSES if part in flow.parts]
        for part in parts:
            foreign = read_by_others(part, parts)
            # The first connector has the settings of the flow; the others those that they read, or must agree on.
            kept = {
                key: value
                for key, value in config.items()
                if key not in foreign and (part == parts[0] or _is_read_by(part, key))
            }
            name = settings.names.get((source, target, part), default_name(source, target, part))
            state = settings.states.get((source, target, part), RUNNING)
            yield ProjectedConnector(name, source, target, part, _named_by(part, kept), flow.aliases, state)


def _named_by(part: str, config: dict[str, Value]) -> dict[str, Value]:
    """With the checkpoint connector's own replication policy, as this connector writes it."""
    own = {name: value for name, value in config.items() if name.startswith(OF_CHECKPOINTS)}
    others = {name: value for name, value in config.items() if name not in own}
    if part != CHECKPOINT:
        return others
    return others | {name.removeprefix(OF_CHECKPOINTS): value for name, value in own.items()}


def _is_read_by(part: str, key: str) -> bool:
    is_shared = part == CHECKPOINT and key in SHARED
    return is_shared or key in READ_BY_ONE[part] or key in _NAMES_TOPICS or key.startswith(_OF_CLIENTS)


def _flow_config(settings: Settings, source: str, target: str) -> dict[str, Value]:
    """All that a connector of the flow could read, as one flat map."""
    config = {
        name: entry.value
        for scope in Scope  # the narrower one wins
        for key, entry in settings.entries.items()
        if key.scope is scope
        for name in _names(settings, key, source, target)
    } | {name: entry.value for name, entry in _security(settings, source, target).items()}
    for name in _FALLBACKS:
        _fall_back(settings, config, name, source, ("source.consumer.", "consumer."))
        _fall_back(settings, config, name, target, ("producer.override.",))
        if supported.SUPPORTED[name].where is locations.CLIENT_CLUSTER:
            _fall_back(settings, config, name, source, ("source.admin.", "admin."))
            _fall_back(settings, config, name, target, ("target.admin.", "admin."))
    return config


def _security(settings: Settings, source: str, target: str) -> dict[str, FileEntry]:
    """Security as connectors write it, of an `mm2.properties`: there, other locations win. `producer.override.` and
    the prefixes of other clients only where they differ from their cluster."""
    written: dict[str, FileEntry] = {}
    if settings.is_of_connectors:
        return written
    for setting in {match.setting.name: match.setting for match in map(_match, settings.entries) if match}.values():
        if setting.where is not locations.SECURITY:
            continue
        for side, at in (("source", locations.source()), ("target", locations.target())):
            of_cluster = settings.find(setting, source, target, (at, locations.top()))
            if of_cluster is not None:
                written[f"{side}.cluster.{setting.name}"] = of_cluster
            for role in ROLES:
                entry = settings.find(setting, source, target, locations.of_security(role, False))
                if role.startswith(side) and entry is not None and entry is not of_cluster:
                    prefix = "producer.override." if role == TARGET_PRODUCER else f"{role}."
                    written[prefix + setting.name] = entry
    return written


def _match(key: SettingKey) -> catalogue.SettingMatch | None:
    return catalogue.find(key.scope, key.name)


def _names(settings: Settings, key: SettingKey, source: str, target: str) -> Iterator[str]:
    """The names that a setting has in the connectors of a flow; none if they do not have it."""
    name = key.name
    found = _match(key)
    is_security = found is not None and found.setting.where is locations.SECURITY
    if name in (ENABLED.name, PARTS.name) or _is_alias(key) or (is_security and not settings.is_of_connectors):
        return
    match key.scope:
        case Scope.FLOW:
            if key.owner == f"{source}->{target}":
                yield name
        case Scope.CLUSTER:
            if key.owner in (source, target):
                yield from _names_of_cluster(name, "source" if key.owner == source else "target")
        case Scope.TOP:
            if is_of_clients(name):
                for side, alias in (("source", source), ("target", target)):
                    if SettingKey(Scope.CLUSTER, alias, name) not in settings.entries:
                        yield f"{side}.cluster.{name}"
            elif name.startswith(CONFIG_PROVIDERS.name) or (
                catalogue.find(Scope.TOP, name) and catalogue.find(Scope.FLOW, name)
            ):
                yield name


def _is_alias(key: SettingKey) -> bool:
    match = _match(key)
    return match is not None and match.setting is ALIAS


def _names_of_cluster(name: str, side: str) -> Iterator[str]:
    if is_of_clients(name):
        yield f"{side}.cluster.{name}"
    elif side == "target" and name.startswith("producer."):
        yield "producer.override." + name.removeprefix("producer.")
    elif name.startswith(_KINDS):
        match = catalogue.find(Scope.FLOW, f"{side}.{name}")
        # Clients of a cluster that this flow does not have are another flow's.
        if match is not None and (match.supported or not match.setting.supported):
            yield f"{side}.{name}"


def _fall_back(settings: Settings, config: dict[str, Value], name: str, alias: str, prefixes: tuple[str, ...]) -> None:
    """A name or timeout of a cluster, or of all, is for those of its clients that have none."""
    entries = settings.entries
    entry = entries.get(SettingKey(Scope.CLUSTER, alias, name)) or entries.get(top_key(name))
    if entry is not None and not any(f"{prefix}{name}" in config for prefix in prefixes):
        config[f"{prefixes[0]}{name}"] = entry.value


def of_workers(settings: Settings, target: str) -> dict[str, Value]:
    """The settings of Connect's workers at this target: in no connector. As in MM2, those at top level win."""
    found = {key: entry.value for key, entry in settings.entries.items() if _is_of_workers(key)}
    at_target = {key.name: value for key, value in found.items() if key.owner == target}
    return at_target | {key.name: value for key, value in found.items() if not key.owner}


def _is_of_workers(key: SettingKey) -> bool:
    match = catalogue.find(key.scope, key.name)
    return match is not None and match.setting.where in (locations.WORKER, locations.WORKER_TOP_FIRST)


def left_out(settings: Settings, flows: Iterable[Flow], workers: bool) -> Iterator[str]:
    """A sentence for every setting that is in none of the connectors; `workers` is whether the format has a place for
    those of Connect's workers."""
    pairs = [(flow.source.alias, flow.target.alias) for flow in flows]
    secured = {entry for pair in pairs for entry in _security(settings, *pair).values()}
    for key, entry in settings.entries.items():
        if not entry.line or key.name in (supported.CLUSTERS.name, ENABLED.name, PARTS.name, *_FALLBACKS):
            continue
        is_carried = (
            entry in secured or _is_alias(key) or any(name for pair in pairs for name in _names(settings, key, *pair))
        )
        if is_carried or (pairs and key.scope is Scope.TOP and is_of_clients(key.name)):
            continue
        if _is_of_workers(key):
            if workers and (not key.owner or key.owner in {target for _, target in pairs}):
                continue
            reason = "it is for Connect's workers: set it there"
        elif catalogue.find(key.scope, key.name) is None:
            reason = "it is not a setting"
        else:
            reason = f"{key.owner} does not run" if key.scope is Scope.FLOW else "no connector reads it"
        yield f"{settings.position(entry)}: {entry.with_owner(entry.name)} is left out: {reason}"
