"""A deployment as plain values, for `heliograph config --json`. It contains no secret, whatever its name."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from heliograph.config.declare.locations import Scope
from heliograph.config.declare.secrets import is_secret
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.deployment import Deployment
from heliograph.model.flow import Cluster, Flow
from heliograph.model.secret import HIDDEN, Secret


def outline(settings: Settings, deployment: Deployment) -> dict[str, Any]:
    """Clusters with the settings that the file has for them, flows with all their values, warnings and notes."""
    return {
        "file": deployment.file,
        "clusters": {alias: _cluster(settings, cluster) for alias, cluster in deployment.clusters.items()},
        "flows": [_flow(deployment, flow) for flow in deployment.flows],
        "beats": [_flow(deployment, flow) for flow in deployment.heartbeat_only_flows],
        "warnings": [str(notice) for notice in deployment.warnings],
        "notes": [str(notice) for notice in deployment.notes],
    }


def _flow(deployment: Deployment, flow: Flow) -> dict[str, Any]:
    """`states` has the parts that are not to run now."""
    pair = (flow.source.alias, flow.target.alias)
    states = {part: state for (*owner, part), state in deployment.states.items() if tuple(owner) == pair}
    return {"name": flow.name, "states": states, **plain(flow)}


def _cluster(settings: Settings, cluster: Cluster) -> dict[str, Any]:
    of_cluster = {
        key.name: str(entry.value)
        for key, entry in settings.entries.items()
        if key.scope is Scope.CLUSTER and key.owner == cluster.alias
    }
    return {**plain(cluster), "settings": of_cluster}


def plain(value: Any, name: str = "") -> Any:
    if isinstance(value, Secret):
        return HIDDEN
    is_shown = value in (None, "") or isinstance(value, bool) or is_dataclass(value)
    if name and is_secret(name.replace("_", ".")) and not is_shown:
        return HIDDEN
    if is_dataclass(value) and not isinstance(value, type):
        own = {field.name: plain(getattr(value, field.name), field.name) for field in fields(value)}
        if isinstance(value, Cluster):
            own["bootstrap_servers"] = addresses(value)
        return {"class": class_name(value), **own} if _has_variants(value) else own
    if isinstance(value, Mapping):
        return {str(key): plain(item, str(key)) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(plain(item) for item in value)
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return {"class": class_name(value)}


def _has_variants(value: object) -> bool:
    """Whether it may be of a user's own class, so that the class is shown."""
    return hasattr(value, "matches") or hasattr(value, "remote_topic")


def class_name(value: object) -> str:
    cls = type(value)
    return cls.__name__ if cls.__module__.startswith("heliograph.") else f"{cls.__module__}.{cls.__qualname__}"


def addresses(cluster: Cluster) -> list[str]:
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in cluster.bootstrap_servers]
