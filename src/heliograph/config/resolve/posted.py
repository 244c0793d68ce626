"""Connectors as somebody gives them to a running process, by name: what is wrong with one, and the flow that they make.

Those of one pair of clusters make one flow, whatever other connectors there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heliograph.config.declare.secrets import HIDDEN, is_secret
from heliograph.config.declare.setting import Scope
from heliograph.config.messages import ConfigError, ConfigNotice
from heliograph.config.read.connector import CLASSES, KAFKA, Connector, ConnectorValue, from_config
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.joining import document
from heliograph.config.read.providers import references
from heliograph.config.read.scopes import SettingKey
from heliograph.config.resolve.deployment import assemble
from heliograph.model.flow import ConnectOffsets, Flow

Config = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PostedFlow:
    """`flow` is None where all connectors are disabled by their own settings."""

    flow: Flow | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def connector(name: str, config: Config) -> Connector:
    """Raises ConfigError if it is none of MirrorMaker 2's, or lacks what says whose it is."""
    try:
        found = from_config("", f"connector {name}", {key: ConnectorValue(value, 0) for key, value in config.items()})
    except ConfigError as error:
        raise _said(error) from None
    if isinstance(found, ConfigNotice):
        raise ConfigError(found.text.removesuffix(": it is passed over"))
    return found


def part_of(config: Config) -> str | None:
    """Which of MirrorMaker 2's connectors it is, by its class alone; None if it is none of them."""
    package, _, simple = config.get("connector.class", "").strip().rpartition(".")
    known = {name.removesuffix("Connector"): part for part, name in CLASSES.items()}
    return known.get(simple.removesuffix("Connector")) if package in ("", KAFKA) else None


def flow_of(connectors: Sequence[Connector], worker: Config, offsets: ConnectOffsets | None) -> PostedFlow:
    """The flow of the connectors of one pair. `worker` is what the process itself was told about producers and
    providers; `offsets` where Connect would keep the source offsets. Raises ConfigError."""
    target = connectors[0].target
    extra = {
        SettingKey(Scope.CLUSTER, target, key): FileEntry(0, f"{target}.{key}", value)
        for key, value in worker.items()
        if key.startswith("producer.")
    }
    providers = {
        SettingKey(Scope.TOP, "", key): FileEntry(0, key, value)
        for key, value in worker.items()
        if key.startswith("config.providers")
    }
    try:
        deployment = assemble(document("", connectors, extra | providers), may_be_idle=True)
    except ConfigError as error:
        raise _said(error) from None
    name = f"{connectors[0].source}->{target}"
    flow = next((one for one in (*deployment.flows, *deployment.heartbeat_only_flows) if one.name == name), None)
    if flow is not None and offsets is not None:
        flow = replace(flow, connect_offsets=offsets)
    warnings, notes = (
        tuple(str(one).removeprefix(": ") for one in some) for some in (deployment.warnings, deployment.notes)
    )
    return PostedFlow(flow, warnings, notes)


def shown(config: Config) -> dict[str, str]:
    """As it may be told to anybody: a reference to a secret is none."""
    return {key: HIDDEN if _hides(key, value) else value for key, value in config.items()}


def with_secrets(config: Config, before: Config) -> dict[str, str]:
    """What was shown and comes back stands for what it was. Raises ConfigError where nothing is known."""
    whole = dict(config)
    for key, value in config.items():
        if value == HIDDEN and is_secret(key):
            if key not in before:
                raise ConfigError(f"{key}: {HIDDEN} is what is shown in place of a secret: write the secret itself")
            whole[key] = before[key]
    return whole


def _hides(key: str, value: str) -> bool:
    return is_secret(key) and bool(value.strip()) and not references(value)


def _said(error: ConfigError) -> ConfigError:
    """There is no file to blame."""
    return ConfigError(str(error).removeprefix(": "))
