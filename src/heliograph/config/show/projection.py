"""The settings of a flow as Connect's connectors: those that MirrorMaker 2's driver would create of a file.

A projection: flows are built from the settings, never from these. Values are as they are written, so references to
secrets stay references. Settings of Connect's workers or of the driver are in no connector; they are listed apart.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from heliograph.config.declare import catalogue, locations
from heliograph.config.declare.locations import Scope
from heliograph.config.declare.secrets import Value, reveal
from heliograph.config.declare.supported import (
    CLIENT_ID,
    CLUSTERS,
    CONFIG_PROVIDERS,
    ENABLED,
    OF_CHECKPOINT,
    OF_HEARTBEAT,
    PARTS,
    REQUEST_TIMEOUT,
)
from heliograph.config.read.connector import CLASSES, KAFKA
from heliograph.config.read.joining import AGREED, SHARED, is_of_clients
from heliograph.config.read.keys import SettingKey, top_key
from heliograph.config.read.settings import Settings
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, Flow

_FALLBACKS = (CLIENT_ID.name, REQUEST_TIMEOUT.name)
_KINDS = ("consumer.", "producer.", "admin.")
_OF_CLIENTS = ("source.", "target.", *_KINDS, CONFIG_PROVIDERS.name)
_AGREED = frozenset(setting.name for setting in AGREED)


@dataclass(frozen=True, slots=True)
class ProjectedConnector:
    """A connector of a flow. `name` is that of the file, if it has one. `config` has neither class nor name nor
    aliases."""

    name: str
    source: str
    target: str
    part: str
    config: dict[str, Value]

    def whole_config(self) -> dict[str, str]:
        """As it is posted to Connect: secrets are revealed."""
        identity = {
            "connector.class": f"{KAFKA}.{CLASSES[self.part]}",
            "source.cluster.alias": self.source,
            "target.cluster.alias": self.target,
        }
        return identity | {key: reveal(value) for key, value in self.config.items()}


def default_name(source: str, target: str, part: str) -> str:
    """As MM2's driver names connectors."""
    return f"{source}->{target}.{CLASSES[part]}"


def connectors(settings: Settings, flows: Iterable[Flow]) -> Iterator[ProjectedConnector]:
    for flow in flows:
        source, target = flow.source.alias, flow.target.alias
        config = _flow_config(settings, source, target)
        parts = [part for part in CLASSES if part in flow.parts]
        owners = {CHECKPOINT: OF_CHECKPOINT, HEARTBEAT: OF_HEARTBEAT}
        for part in parts:
            foreign = frozenset[str]().union(*(owners.get(other, frozenset()) for other in parts if other != part))
            # The first connector has the settings of the flow; the others those that they read, or must agree on.
            kept = {
                key: value
                for key, value in config.items()
                if key not in foreign and (part == parts[0] or _is_read_by(part, key))
            }
            name = settings.names.get((source, target, part), default_name(source, target, part))
            yield ProjectedConnector(name, source, target, part, kept)


def _is_read_by(part: str, key: str) -> bool:
    own = OF_CHECKPOINT | SHARED if part == CHECKPOINT else OF_HEARTBEAT
    return key in own or key in _AGREED or key.startswith(_OF_CLIENTS)


def _flow_config(settings: Settings, source: str, target: str) -> dict[str, Value]:
    """All that a connector of the flow could read, as one flat map."""
    entries = settings.entries
    config: dict[str, Value] = {}
    for key, entry in entries.items():
        if key.scope is Scope.TOP:
            config |= dict.fromkeys(_from_top(settings, key.name, source, target), entry.value)
    for key, entry in entries.items():
        if key.scope is Scope.CLUSTER and key.owner in (source, target):
            config |= dict.fromkeys(_from_cluster(key, source), entry.value)
    for key, entry in entries.items():
        if key.owner == f"{source}->{target}" and key.name not in (ENABLED.name, PARTS.name):
            config[key.name] = entry.value
    for name in _FALLBACKS:
        _fall_back(settings, config, name, source, ("source.consumer.", "consumer."))
        _fall_back(settings, config, name, target, ("target.admin.", "admin."))
        _fall_back(settings, config, name, target, ("producer.override.",))
    return config


def _from_top(settings: Settings, name: str, source: str, target: str) -> Iterator[str]:
    if name.startswith(CONFIG_PROVIDERS.name):
        yield name
    elif is_of_clients(name):
        for side, alias in (("source", source), ("target", target)):
            if SettingKey(Scope.CLUSTER, alias, name) not in settings.entries:
                yield f"{side}.cluster.{name}"
    elif name not in (ENABLED.name, PARTS.name) and all(
        catalogue.find(scope, name) for scope in (Scope.TOP, Scope.FLOW)
    ):
        yield name


def _from_cluster(key: SettingKey, source: str) -> Iterator[str]:
    side = "source" if key.owner == source else "target"
    name = key.name
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


def left_out(settings: Settings, flows: Iterable[Flow], workers: bool) -> Iterator[tuple[SettingKey, str]]:
    """Settings that are in none of the connectors, with the reason; `workers` is whether the format has a place for
    those of Connect's workers."""
    pairs = [(flow.source.alias, flow.target.alias) for flow in flows]
    for key, entry in settings.entries.items():
        if not entry.line or key.name in (CLUSTERS.name, ENABLED.name, PARTS.name, *_FALLBACKS):
            continue
        if any(_is_carried(settings, key, pair) for pair in pairs):
            continue
        if _is_of_workers(key):
            if not workers or (key.owner and key.owner not in {target for _, target in pairs}):
                yield key, "it is for Connect's workers: set it there"
        elif catalogue.find(key.scope, key.name) is None:
            yield key, "it is not a setting"
        elif key.scope is Scope.FLOW:
            yield key, f"{key.owner} does not run"
        else:
            yield key, "no connector reads it"


def _is_carried(settings: Settings, key: SettingKey, pair: tuple[str, str]) -> bool:
    match key.scope:
        case Scope.TOP:
            return is_of_clients(key.name) or any(True for _ in _from_top(settings, key.name, *pair))
        case Scope.CLUSTER:
            return key.owner in pair and any(True for _ in _from_cluster(key, pair[0]))
        case Scope.FLOW:
            return key.owner == "->".join(pair)
