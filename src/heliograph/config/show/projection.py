"""The connectors that MirrorMaker 2's driver would make of a document: the way from any format to Connect's.

Values are taken as they are written, so references to secrets stay references. What Connect's workers or the driver are
set up with has no place in a connector; it is listed apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from heliograph.config.declare import catalogue, locations
from heliograph.config.declare.clients import CLIENT_ID, REQUEST_TIMEOUT
from heliograph.config.declare.mirroring import CLUSTERS, CONFIG_PROVIDERS, ENABLED, PARTS
from heliograph.config.declare.setting import Scope
from heliograph.config.declare.syncing import OF_CHECKPOINT, OF_HEARTBEAT
from heliograph.config.read.connector import CLASSES, KAFKA
from heliograph.config.read.document import Settings
from heliograph.config.read.joining import AGREED, SHARED, is_of_clients
from heliograph.config.read.scopes import SettingKey
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, Flow

_FALLBACKS = (CLIENT_ID.name, REQUEST_TIMEOUT.name)
_KINDS = ("consumer.", "producer.", "admin.")
_OF_CLIENTS = ("source.", "target.", *_KINDS, CONFIG_PROVIDERS.name)
_AGREED = frozenset(setting.name for setting in AGREED)


@dataclass(frozen=True, slots=True)
class ProjectedConnector:
    """A connector of a flow. `config` has neither class nor name nor aliases."""

    source: str
    target: str
    part: str
    config: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}.{CLASSES[self.part]}"

    def whole_config(self) -> dict[str, str]:
        identity = {
            "connector.class": f"{KAFKA}.{CLASSES[self.part]}",
            "source.cluster.alias": self.source,
            "target.cluster.alias": self.target,
        }
        return identity | self.config


def connectors(document: Settings, flows: Iterable[Flow]) -> Iterator[ProjectedConnector]:
    for flow in flows:
        source, target = flow.source.alias, flow.target.alias
        config = flow_config(document, source, target)
        parts = [part for part in CLASSES if part in flow.parts]
        owners = {CHECKPOINT: OF_CHECKPOINT, HEARTBEAT: OF_HEARTBEAT}
        for part in parts:
            foreign = frozenset[str]().union(*(owners.get(other, frozenset()) for other in parts if other != part))
            # The first connector holds what is the flow's own; the others what they read themselves, or must agree on.
            kept = {
                key: value
                for key, value in config.items()
                if key not in foreign and (part == parts[0] or _is_read_by(part, key))
            }
            yield ProjectedConnector(source, target, part, kept)


def _is_read_by(part: str, key: str) -> bool:
    own = OF_CHECKPOINT | SHARED if part == CHECKPOINT else OF_HEARTBEAT
    return key in own or key in _AGREED or key.startswith(_OF_CLIENTS)


def flow_config(document: Settings, source: str, target: str) -> dict[str, str]:
    """All that a connector of the flow could read, as one flat map."""
    entries = document.values.entries
    config: dict[str, str] = {}
    for address, entry in entries.items():
        if address.scope is Scope.TOP:
            config |= dict.fromkeys(_from_top(document, address.name, source, target), entry.value)
    for address, entry in entries.items():
        if address.scope is Scope.CLUSTER and address.owner in (source, target):
            config |= dict.fromkeys(_from_cluster(address, source), entry.value)
    for address, entry in entries.items():
        if address.owner == f"{source}->{target}" and address.name not in (ENABLED.name, PARTS.name):
            config[address.name] = entry.value
    for name in _FALLBACKS:
        _fall_back(document, config, name, source, ("source.consumer.", "consumer."))
        _fall_back(document, config, name, target, ("target.admin.", "admin."))
        _fall_back(document, config, name, target, ("producer.override.",))
    return config


def _from_top(document: Settings, name: str, source: str, target: str) -> Iterator[str]:
    if name.startswith(CONFIG_PROVIDERS.name):
        yield name
    elif is_of_clients(name):
        for side, alias in (("source", source), ("target", target)):
            if SettingKey(Scope.CLUSTER, alias, name) not in document.values.entries:
                yield f"{side}.cluster.{name}"
    elif name not in (ENABLED.name, PARTS.name) and all(catalogue.find(one, name) for one in (Scope.TOP, Scope.FLOW)):
        yield name


def _from_cluster(address: SettingKey, source: str) -> Iterator[str]:
    side = "source" if address.owner == source else "target"
    name = address.name
    if is_of_clients(name):
        yield f"{side}.cluster.{name}"
    elif side == "target" and name.startswith("producer."):
        yield "producer.override." + name.removeprefix("producer.")
    elif name.startswith(_KINDS):
        hit = catalogue.find(Scope.FLOW, f"{side}.{name}")
        # Clients of a cluster that this flow does not have are another flow's.
        if hit is not None and (hit.supported or not hit.setting.supported):
            yield f"{side}.{name}"


def _fall_back(document: Settings, config: dict[str, str], name: str, alias: str, prefixes: tuple[str, ...]) -> None:
    """A name or timeout of a cluster, or of all, is for those of its clients that have none."""
    entries = document.values.entries
    entry = entries.get(SettingKey(Scope.CLUSTER, alias, name)) or entries.get(SettingKey(Scope.TOP, "", name))
    if entry is not None and not any(f"{prefix}{name}" in config for prefix in prefixes):
        config[f"{prefixes[0]}{name}"] = entry.value


def of_workers(document: Settings, targets: Iterable[str]) -> dict[str, str]:
    """What is about Connect's workers at these targets: known, but in no connector. As in MM2, what stands at top level
    goes before."""
    wanted = tuple(targets)
    entries = document.values.entries
    found = {at.name: entry.value for at, entry in entries.items() if at.owner in wanted and _is_of_workers(at)}
    return found | {at.name: entry.value for at, entry in entries.items() if not at.owner and _is_of_workers(at)}


def _is_of_workers(address: SettingKey) -> bool:
    hit = catalogue.find(address.scope, address.name)
    return hit is not None and hit.setting.where in (locations.WORKER, locations.WORKER_TOP_FIRST)


def left_out(document: Settings, flows: Iterable[Flow], workers: bool) -> Iterator[tuple[SettingKey, str]]:
    """What is in the file but in none of the connectors, with the reason; `workers` is whether there is a place for
    what is about Connect's workers."""
    pairs = [(flow.source.alias, flow.target.alias) for flow in flows]
    for address, entry in document.values.entries.items():
        if not entry.line or address.name in (CLUSTERS.name, ENABLED.name, PARTS.name, *_FALLBACKS):
            continue
        if any(_is_carried(document, address, pair) for pair in pairs):
            continue
        if _is_of_workers(address):
            if not workers or (address.owner and address.owner not in {target for _, target in pairs}):
                yield address, "it is for Connect's workers: set it there"
        elif catalogue.find(address.scope, address.name) is None:
            yield address, "it is no setting"
        elif address.scope is Scope.FLOW:
            yield address, f"{address.owner} does not run"
        else:
            yield address, "no connector reads it"


def _is_carried(document: Settings, address: SettingKey, pair: tuple[str, str]) -> bool:
    match address.scope:
        case Scope.TOP:
            if is_of_clients(address.name):
                return True
            return any(True for _ in _from_top(document, address.name, *pair))
        case Scope.CLUSTER:
            return address.owner in pair and any(True for _ in _from_cluster(address, pair[0]))
        case Scope.FLOW:
            return address.owner == "->".join(pair)
