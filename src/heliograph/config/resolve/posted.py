"""Connectors that are posted to a running process, by name: they become settings and a flow as those of a file do.

Connectors of one pair of clusters make one flow, whatever other connectors there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from heliograph.config.declare.secrets import hide, is_literal_secret, is_secret
from heliograph.config.declare.supported import MM2_CONNECTOR, MM2_GROUP, MM2_OFFSETS_TOPIC, MM2_STATUS_TOPIC
from heliograph.config.messages import ConfigError, ConfigNotice, shown_notes
from heliograph.config.read.connector import Connector, ConnectorFile, Worker, from_config, part_of_class
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.joining import join
from heliograph.config.read.worker import for_all
from heliograph.config.resolve.deployment import assemble
from heliograph.model.flow import SOURCE, ConnectOffsets, Flow
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
    producer, its offsets and its providers apply; `offsets` is where Connect stores source offsets, unless a
    connector's own settings say it. Raises `ConfigError`."""
    target = connectors[0].target
    of_worker = Worker("", {name: FileEntry(0, name, hide(name, value)) for name, value in worker.items()})
    read = ConnectorFile("", list(connectors), for_all(of_worker, target))
    if offsets is not None:
        read.connectors = [_with_offsets(connector, offsets) for connector in connectors]
    try:
        deployment = assemble(join("", [read]), may_be_idle=True)
    except ConfigError as error:
        raise _without_file(error) from None
    flow_name = f"{connectors[0].source}->{target}"
    flow = next((flow for flow in deployment.all_flows if flow.name == flow_name), None)
    warnings, notes = (
        tuple(text.removeprefix(": ") for text in texts)
        for texts in (map(str, deployment.warnings), shown_notes(deployment.notes, verbose=True))
    )
    return PostedFlow(flow, warnings, notes)


def _with_offsets(connector: Connector, offsets: ConnectOffsets) -> Connector:
    if connector.part != SOURCE:
        return connector
    known = {
        MM2_CONNECTOR: offsets.connector,
        MM2_OFFSETS_TOPIC: offsets.topic,
        MM2_GROUP: offsets.group,
        MM2_STATUS_TOPIC: offsets.status_topic,
    }
    given = {setting.name: FileEntry(0, setting.name, text) for setting, text in known.items() if text}
    return replace(connector, given={**given, **connector.given})


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
