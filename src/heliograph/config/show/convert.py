"""Writing a document in another format, with the same flows. References stay as they are written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from heliograph.config.declare.secrets import is_secret
from heliograph.config.declare.setting import Scope
from heliograph.config.messages import at
from heliograph.config.read.connector import CLASSES
from heliograph.config.read.document import Settings
from heliograph.config.read.providers import references
from heliograph.config.read.strimzi import FIELDS, KIND, PATTERNS, WORKER
from heliograph.config.resolve.deployment import Deployment
from heliograph.config.show.projection import ProjectedConnector, connectors, left_out, of_workers
from heliograph.model.flow import HEARTBEAT

PROPERTIES, CONNECT, STRIMZI = "properties", "connect", "strimzi"
FORMATS = (PROPERTIES, CONNECT, STRIMZI)

# What Strimzi calls them where a resource does not say; in v1 it must.
_WORKER_DEFAULTS = {
    "groupId": "mirrormaker2-cluster",
    "configStorageTopic": "mirrormaker2-cluster-configs",
    "offsetStorageTopic": "mirrormaker2-cluster-offsets",
    "statusStorageTopic": "mirrormaker2-cluster-status",
}
_BOOTSTRAP = "bootstrap.servers"


@dataclass(frozen=True, slots=True)
class Converted:
    """`left_out` says which settings the other format has no place for."""

    text: str
    left_out: tuple[str, ...] = ()


def convert(document: Settings, deployment: Deployment, form: str) -> Converted:
    match form:
        case "properties":
            return Converted(_properties(document))
        case "connect":
            return _connect(document, deployment)
        case "strimzi":
            return _strimzi(document, deployment)
    raise ValueError(f"'{form}' is not one of {', '.join(FORMATS)}")


def bare_secrets(document: Settings) -> Iterator[str]:
    """A sentence for every secret that stands in a file itself, instead of a reference to where it is kept."""
    for address, entry in document.values.entries.items():
        if is_secret(address.name) and entry.value.strip() and not references(entry.value):
            place = at(entry.file or document.values.file, entry.line)
            name = entry.of_owner(entry.name)
            yield f"{place}: {name} is a secret written out: ${{file:...}} or ${{env:...}} is safer"


def _properties(document: Settings) -> str:
    order = (Scope.TOP, Scope.CLUSTER, Scope.FLOW)
    addresses = sorted(document.values.entries, key=lambda one: order.index(one.scope))
    lines: list[str] = []
    owner = ""
    for address in addresses:
        if address.owner != owner:
            lines.append("")
            owner = address.owner
        lines.append(
            f"{_escaped(address.key(), True)} = {_escaped(document.values.entries[address].value)}".rstrip(" ")
        )
    return "\n".join(lines) + "\n"


def _escaped(text: str, is_key: bool = False) -> str:
    """As Java reads it back. A blank at the end is written as a code, for editors cut it off."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    escaped = re.sub(r"[^\x20-\x7e]", _code, escaped)
    if is_key:
        return re.sub(r"[ :=]|^[#!]", r"\\\g<0>", escaped)
    return re.sub(r"^ | $", r"\\u0020", escaped)


def _code(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _connect(document: Settings, deployment: Deployment) -> Converted:
    exported = list(connectors(document, (*deployment.flows, *deployment.heartbeat_only_flows)))
    text = json.dumps([{"name": one.name, "config": one.whole_config()} for one in exported], indent=2)
    return Converted(text + "\n", _left_out(document, deployment, workers=False))


def _left_out(document: Settings, deployment: Deployment, workers: bool) -> tuple[str, ...]:
    said = []
    for address, reason in left_out(document, (*deployment.flows, *deployment.heartbeat_only_flows), workers):
        entry = document.values.entries[address]
        place = at(entry.file or document.values.file, entry.line)
        said.append(f"{place}: {entry.of_owner(entry.name)} is left out: {reason}")
    return tuple(said)


def _strimzi(document: Settings, deployment: Deployment) -> Converted:
    """One resource for each target, as Strimzi wants it. v1 has no heartbeat connector, so it is v1beta2 with one."""
    import yaml

    exported = list(connectors(document, (*deployment.flows, *deployment.heartbeat_only_flows)))
    texts: list[str] = []
    for target in dict.fromkeys(one.target for one in exported):
        mine = [one for one in exported if one.target == target]
        resource = _resource(target, mine, of_workers(document, (target,)))
        text = yaml.safe_dump(resource, sort_keys=False, allow_unicode=True, width=1000)
        if re.search(r"^ +(ssl|sasl|security)\.", text, re.MULTILINE):
            text = (
                "# Heliograph reads security settings under config; for Strimzi put them into secrets,\n"
                "# and write tls and authentication instead.\n" + text
            )
        texts.append(text)
    return Converted("---\n".join(texts), _left_out(document, deployment, workers=True))


def _resource(target: str, exported: list[ProjectedConnector], workers: dict[str, str]) -> dict[str, Any]:
    beats = any(one.part == HEARTBEAT for one in exported)
    sources = list(dict.fromkeys(one.source for one in exported))
    of_target = _cluster(target, "target", exported)
    of_sources = {
        alias: _cluster(alias, "source", [one for one in exported if one.source == alias]) for alias in sources
    }
    worker = {name: workers.pop(key) for name, key in WORKER.items() if key in workers and not beats}
    if workers:
        of_target["config"] = of_target.get("config", {}) | workers
    spec: dict[str, Any]
    if beats:
        spec = {"connectCluster": target, "clusters": [*of_sources.values(), of_target]}
    else:
        spec = {"target": of_target | _WORKER_DEFAULTS | worker}
    spec["mirrors"] = [
        {
            **({"sourceCluster": alias, "targetCluster": target} if beats else {"source": of_sources[alias]}),
            **_mirror([one for one in exported if one.source == alias]),
        }
        for alias in sources
    ]
    name = re.sub(r"[^a-z0-9]+", "-", target.lower()).strip("-") or "target"
    return {
        "apiVersion": "kafka.strimzi.io/v1beta2" if beats else "kafka.strimzi.io/v1",
        "kind": KIND,
        "metadata": {"name": f"mirror-to-{name}"},
        "spec": spec,
    }


def _cluster(alias: str, side: str, exported: list[ProjectedConnector]) -> dict[str, Any]:
    prefix = f"{side}.cluster."
    config = {
        key.removeprefix(prefix): value
        for one in exported
        for key, value in one.config.items()
        if key.startswith(prefix)
    }
    cluster: dict[str, Any] = {"alias": alias, "bootstrapServers": config.pop(_BOOTSTRAP, "")}
    return cluster | ({"config": config} if config else {})


def _mirror(exported: list[ProjectedConnector]) -> dict[str, Any]:
    keys = {key: name for name, key in PATTERNS.items()}
    mirror: dict[str, Any] = {}
    patterns: dict[str, str] = {}
    for one in sorted(exported, key=lambda one: list(CLASSES).index(one.part)):
        config = {
            key: value
            for key, value in one.config.items()
            if not key.startswith(("source.cluster.", "target.cluster."))
        }
        patterns |= {keys[key]: config.pop(key) for key in list(config) if key in keys}
        tasks = config.pop("tasks.max", None)
        connector: dict[str, Any] = {}
        if tasks is not None:
            connector["tasksMax"] = int(tasks) if tasks.strip().isdecimal() else tasks
        mirror[FIELDS[one.part]] = connector | ({"config": config} if config else {})
    return mirror | patterns
