"""Connectors that are posted to a running process, by name: they become settings and a flow as those of a file do.

Connectors of one pair of clusters make one flow, whatever other connectors there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heliograph.config.declare.locations import Scope
from heliograph.config.declare.secrets import hide, is_literal_secret, is_secret
from heliograph.config.messages import ConfigError, ConfigNotice
from heliograph.config.read.connector import Connector, ConnectorFile, from_config, part_of_class
from heliograph.config.read.entry import FileEntry, SettingKey, top_key
from heliograph.config.read.joining import join
from heliograph.config.resolve.deployment import assemble
from heliograph.config.resolve.worker_file import FOR_CONNECTORS, OF_WORKER
from heliograph.model.flow import ConnectOffsets, Flow
from heliograph.model.secret import HIDDEN

Config = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PostedFlow:
    """`flow` is None if all connectors are disabled by their own settings."""

    flow: Flow | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def connector(name: str, config: Config) -> Connector:
    """Raises `ConfigError` if it is not one of MirrorMaker 2's, or its clusters are missing."""
    given = {key: FileEntry(0, key, hide(key, value)) for key, value in config.items()}
    try:
        read = from_config("", f"connector {name}", given)
    except ConfigError as error:
        raise _without_file(error) from None
    if isinstance(read, ConfigNotice):
        raise ConfigError(read.text.removesuffix(": it is ignored"))
    return read


def part_of(config: Config) -> str | None:
    """Which of MirrorMaker 2's connectors it is, by its class alone; None if it is none of them."""
    return part_of_class(config.get("connector.class", ""))


def flow_of(connectors: Sequence[Connector], worker: Config, offsets: ConnectOffsets | None) -> PostedFlow:
    """The flow of the connectors of one pair. `worker` are the settings of a worker's file, of which those of its
    producer, its offsets and its providers apply; `offsets` is where Connect stores source offsets. Raises
    `ConfigError`."""
    target = connectors[0].target
    extra = {}
    for name, value in worker.items():
        if not name.startswith(FOR_CONNECTORS):
            continue
        key = SettingKey(Scope.CLUSTER, target, name) if name.startswith(OF_WORKER) else top_key(name)
        extra[key] = FileEntry(0, key.key(), hide(name, value))
    try:
        deployment = assemble(join("", [ConnectorFile("", list(connectors), extra)]), may_be_idle=True)
    except ConfigError as error:
        raise _without_file(error) from None
    flow_name = f"{connectors[0].source}->{target}"
    flow = next((flow for flow in deployment.all_flows if flow.name == flow_name), None)
    if flow is not None and offsets is not None:
        flow = replace(flow, connect_offsets=offsets)
    warnings, notes = (
        tuple(str(notice).removeprefix(": ") for notice in notices)
        for notices in (deployment.warnings, deployment.notes)
    )
    return PostedFlow(flow, warnings, notes)


def shown(config: Config) -> dict[str, str]:
    """The config that may be shown to anybody. A reference to a secret is not one."""
    return {key: HIDDEN if is_literal_secret(hide(key, value)) else value for key, value in config.items()}


def with_secrets(config: Config, before: Config) -> dict[str, str]:
    """A secret that comes back as it was shown keeps its value. Raises `ConfigError` if it had none."""
    whole = dict(config)
    for key, value in config.items():
        if value == HIDDEN and is_secret(key):
            if key not in before:
                raise ConfigError(f"{key}: {HIDDEN} is what is shown in place of a secret: write the secret itself")
            whole[key] = before[key]
    return whole


def _without_file(error: ConfigError) -> ConfigError:
    """There is no file to name."""
    return ConfigError(*(text.removeprefix(": ") for text in error.errors))
