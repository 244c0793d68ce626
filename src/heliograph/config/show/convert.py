"""Writes settings in another format, with the same flows.

References stay as they are written. A literal secret is written as a reference to an environment variable.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from heliograph.config.declare.locations import Scope
from heliograph.config.declare.secrets import is_literal_secret, reveal
from heliograph.config.declare.supported import (
    BOOTSTRAP_SERVERS,
    CONFIG_PROVIDERS,
    EMIT_HEARTBEATS_ENABLED,
    ENABLED,
    MM2_CONNECTOR,
    PARTS,
)
from heliograph.config.read.connector import CLASSES
from heliograph.config.read.entry import FileEntry, SettingKey, top_key
from heliograph.config.read.providers import USUAL_PROVIDERS
from heliograph.config.read.settings import Settings
from heliograph.config.read.strimzi import FIELDS, KIND, PATTERNS, WORKER, WORKER_DEFAULTS
from heliograph.config.read.worker import STATE
from heliograph.config.resolve.deployment import Deployment
from heliograph.config.show.projection import ProjectedConnector, connectors, default_name, left_out, of_workers
from heliograph.model.connect_records import RUNNING
from heliograph.model.flow import HEARTBEAT

PROPERTIES, CONNECT, STRIMZI = "properties", "connect", "strimzi"
FORMATS = (PROPERTIES, CONNECT, STRIMZI)


@dataclass(frozen=True, slots=True)
class Converted:
    """`left_out` are notes about settings that the other format has no place for."""

    text: str
    left_out: tuple[str, ...] = ()


def convert(settings: Settings, deployment: Deployment, form: str) -> Converted:
    settings = _without_literal_secrets(settings, declare_provider=form == PROPERTIES)
    match form:
        case "properties":
            return Converted(_properties(_without_paused(settings, deployment)), tuple(_paused(settings)))
        case "connect":
            return _connect(settings, deployment)
        case "strimzi":
            return _strimzi(settings, deployment)
    raise ValueError(f"'{form}' is not one of {', '.join(FORMATS)}")


def bare_secrets(settings: Settings) -> Iterator[str]:
    """A sentence for every literal secret of a file: it is not converted."""
    for key, entry in settings.entries.items():
        if is_literal_secret(entry.value):
            yield (
                f"{settings.position(entry)}: {entry.with_owner(entry.name)} is a literal secret and not printed: "
                f"set the environment variable {_variable(key)}, or replace ${{env:{_variable(key)}}} by a reference "
                "such as ${file:/path/to/file.properties:key}"
            )


def _variable(key: SettingKey) -> str:
    return re.sub(r"[^A-Z0-9]+", "_", key.key().upper())


def _without_literal_secrets(settings: Settings, declare_provider: bool) -> Settings:
    """Literal secrets become references to environment variables. Connectors need no declaration of their provider, an
    `mm2.properties` does."""
    entries = dict(settings.entries)
    literal = [key for key, entry in entries.items() if is_literal_secret(entry.value)]
    for key in literal:
        entries[key] = replace(entries[key], value=f"${{env:{_variable(key)}}}")
    if literal and declare_provider and "env" not in settings.providers:
        added = {
            CONFIG_PROVIDERS.name: ", ".join((*settings.providers, "env")),
            f"{CONFIG_PROVIDERS.name}.env.class": USUAL_PROVIDERS["env"],
        }
        entries |= {top_key(name): FileEntry(0, name, value) for name, value in added.items()}
    return replace(settings, entries=entries)


def _properties(settings: Settings) -> str:
    lines: list[str] = []
    owner = ""
    for key in sorted(settings.entries, key=lambda key: list(Scope).index(key.scope)):
        if key.owner != owner:
            lines.append("")
            owner = key.owner
        lines.append(f"{_escaped(key.key(), True)} = {_escaped(settings.entries[key].reveal())}".rstrip(" "))
    return "\n".join(lines) + "\n"


def _without_paused(settings: Settings, deployment: Deployment) -> Settings:
    """An `mm2.properties` has no place for states: what is not to run is left out."""
    entries = dict(settings.entries)
    for flow in deployment.all_flows:
        paused = deployment.paused_parts(flow)
        changed = {PARTS.name: ", ".join(part for part in CLASSES if part in flow.parts - paused)} if paused else {}
        if paused == flow.parts:
            changed = {ENABLED.name: "false", EMIT_HEARTBEATS_ENABLED.name: "false"}
        for name, value in changed.items():
            key = SettingKey(Scope.FLOW, flow.name, name)
            entries[key] = FileEntry(0, key.key(), value)
    return replace(settings, entries=entries)


def _paused(settings: Settings) -> Iterator[str]:
    for (source, target, part), state in settings.states.items():
        yield f"{settings.file}: the {CLASSES[part]} of {source}->{target} is left out: it is {state.lower()}"


def _escaped(text: str, is_key: bool = False) -> str:
    """As Java reads it. A space at the end is written as a code, because editors remove it."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    escaped = re.sub(r"[^\x20-\x7e]", _code, escaped)
    if is_key:
        return re.sub(r"[ :=]|^[#!]", r"\\\g<0>", escaped)
    return re.sub(r"^ | $", r"\\u0020", escaped)


def _code(char: re.Match[str]) -> str:
    units = char[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _connect(settings: Settings, deployment: Deployment) -> Converted:
    listed = [
        {
            "name": default_name(connector.source, connector.target, connector.part),
            "config": connector.whole_config(),
            **({"initial_state": connector.state} if connector.state != RUNNING else {}),
        }
        for connector in connectors(settings, deployment.all_flows)
    ]
    return Converted(
        json.dumps(listed, indent=2) + "\n", tuple(left_out(settings, deployment.all_flows, workers=False))
    )


def _strimzi(settings: Settings, deployment: Deployment) -> Converted:
    """One resource for each target, as Strimzi requires. v1 has no heartbeat connector, so it is v1beta2 with one."""
    import yaml

    projected = list(connectors(settings, deployment.all_flows))
    texts: list[str] = []
    for target in dict.fromkeys(connector.target for connector in projected):
        of_target = [connector for connector in projected if connector.target == target]
        workers = {name: reveal(value) for name, value in of_workers(settings, target).items()}
        resource = _resource(target, of_target, workers)
        text = yaml.safe_dump(resource, sort_keys=False, allow_unicode=True, width=1000)
        if re.search(r"^ +(ssl|sasl|security)\.", text, re.MULTILINE):
            text = (
                "# Heliograph reads security settings under config; for Strimzi put them into secrets,\n"
                "# and write tls and authentication instead.\n" + text
            )
        texts.append(text)
    return Converted("---\n".join(texts), tuple(left_out(settings, deployment.all_flows, workers=True)))


def _resource(target: str, projected: list[ProjectedConnector], workers: dict[str, str]) -> dict[str, Any]:
    has_heartbeats = any(connector.part == HEARTBEAT for connector in projected)
    by_source: dict[str, list[ProjectedConnector]] = {}
    for connector in projected:
        by_source.setdefault(connector.source, []).append(connector)
    of_target = _cluster(target, "target", projected)
    of_sources = {alias: _cluster(alias, "source", of_alias) for alias, of_alias in by_source.items()}
    said = {key: workers.get(key, WORKER_DEFAULTS[name]) for name, key in WORKER.items()}
    worker = {name: workers.pop(key) for name, key in WORKER.items() if key in workers and not has_heartbeats}
    if workers:
        of_target["config"] = of_target.get("config", {}) | workers
    spec: dict[str, Any]
    if has_heartbeats:
        spec = {"connectCluster": target, "clusters": [*of_sources.values(), of_target]}
    else:
        spec = {"target": of_target | WORKER_DEFAULTS | worker}
    spec["mirrors"] = [
        {
            **({"sourceCluster": alias, "targetCluster": target} if has_heartbeats else {"source": of_sources[alias]}),
            **_mirror([_without_state(connector, said) for connector in of_alias]),
        }
        for alias, of_alias in by_source.items()
    ]
    name = re.sub(r"[^a-z0-9]+", "-", target.lower()).strip("-") or "target"
    return {
        "apiVersion": "kafka.strimzi.io/v1beta2" if has_heartbeats else "kafka.strimzi.io/v1",
        "kind": KIND,
        "metadata": {"name": f"mirror-to-{name}"},
        "spec": spec,
    }


def _without_state(connector: ProjectedConnector, said: dict[str, str]) -> ProjectedConnector:
    """Without the place of MM2's offsets, as far as the resource says it by itself."""
    name = default_name(connector.source, connector.target, connector.part)
    implied = {MM2_CONNECTOR.name: name} | {of_flow: said[of_worker] for of_worker, of_flow in STATE.items()}
    config = {key: value for key, value in connector.config.items() if implied.get(key) != reveal(value)}
    return replace(connector, config=config)


def _cluster(alias: str, side: str, projected: list[ProjectedConnector]) -> dict[str, Any]:
    prefix = f"{side}.cluster."
    config = {
        key.removeprefix(prefix): reveal(value)
        for connector in projected
        for key, value in connector.config.items()
        if key.startswith(prefix)
    }
    cluster: dict[str, Any] = {"alias": alias, "bootstrapServers": config.pop(BOOTSTRAP_SERVERS.name, "")}
    return cluster | ({"config": config} if config else {})


def _mirror(projected: list[ProjectedConnector]) -> dict[str, Any]:
    names = {key: name for name, key in PATTERNS.items()}
    mirror: dict[str, Any] = {}
    patterns: dict[str, str] = {}
    for connector in sorted(projected, key=lambda connector: list(CLASSES).index(connector.part)):
        config = {
            key: reveal(value)
            for key, value in connector.config.items()
            if not key.startswith(("source.cluster.", "target.cluster."))
        }
        patterns |= {names[key]: config.pop(key) for key in list(config) if key in names}
        tasks = config.pop("tasks.max", None)
        fields: dict[str, Any] = {"state": connector.state.lower()} if connector.state != RUNNING else {}
        if tasks is not None:
            fields["tasksMax"] = int(tasks) if tasks.strip().isdecimal() else tasks
        config |= connector.other_aliases()  # they win over those of the clusters
        mirror[FIELDS[connector.part]] = fields | ({"config": config} if config else {})
    return mirror | patterns
