"""A deployment as plain values, for showing it: nothing secret is in them, whatever it was called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from heliograph.config.declare.secrets import HIDDEN, is_secret, shown
from heliograph.config.declare.setting import Scope
from heliograph.config.read.document import Settings
from heliograph.config.resolve.deployment import Deployment
from heliograph.model.flow import Cluster


def outline(document: Settings, deployment: Deployment) -> dict[str, Any]:
    """Clusters with the settings that the file has for them, flows with all their values, warnings and notes."""
    return {
        "file": deployment.file,
        "clusters": {alias: _cluster(document, one) for alias, one in deployment.clusters.items()},
        "flows": [{"name": flow.name, **plain(flow)} for flow in deployment.flows],
        "beats": [{"name": flow.name, **plain(flow)} for flow in deployment.heartbeat_only_flows],
        "warnings": [str(notice) for notice in deployment.warnings],
        "notes": [str(notice) for notice in deployment.notes],
    }


def _cluster(document: Settings, cluster: Cluster) -> dict[str, Any]:
    settings = {
        address.name: shown(address.name, entry.value)
        for address, entry in document.values.entries.items()
        if address.scope is Scope.CLUSTER and address.owner == cluster.alias
    }
    return {**plain(cluster), "settings": settings}


def plain(value: Any, name: str = "") -> Any:
    if name and is_secret(name.replace("_", ".")) and value not in (None, ""):
        return HIDDEN
    if isinstance(value, Cluster):
        rest = {one.name: plain(getattr(value, one.name), one.name) for one in fields(value)}
        return rest | {"bootstrap_servers": addresses(value)}
    if is_dataclass(value) and not isinstance(value, type):
        own = {one.name: plain(getattr(value, one.name), one.name) for one in fields(value)}
        return {"class": class_name(value), **own} if _has_variants(value) else own
    if isinstance(value, Mapping):
        return {str(key): plain(one, str(key)) for key, one in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(plain(one) for one in value)
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return {"class": class_name(value)}


def _has_variants(value: object) -> bool:
    """Whether a class of a user's own might stand in its place, so that its name says something."""
    return hasattr(value, "matches") or hasattr(value, "remote_topic")


def class_name(value: object) -> str:
    cls = type(value)
    return cls.__name__ if cls.__module__.startswith("heliograph.") else f"{cls.__module__}.{cls.__qualname__}"


def addresses(cluster: Cluster) -> list[str]:
    return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in cluster.bootstrap_servers]
