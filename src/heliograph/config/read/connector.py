"""One of MirrorMaker 2's three connectors, as Kafka Connect knows it: a flat map of settings for a pair of clusters."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from heliograph.config.declare.kinds import ALIAS, ALIASES, Kind
from heliograph.config.declare.plugins import MIRROR_PACKAGE
from heliograph.config.messages import ConfigError, ConfigNotice, ErrorCollector, position
from heliograph.config.read.entry import FileEntry, SettingKey
from heliograph.model.connect_records import RUNNING
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE

CLASSES = {
    SOURCE: "MirrorSourceConnector",
    CHECKPOINT: "MirrorCheckpointConnector",
    HEARTBEAT: "MirrorHeartbeatConnector",
}

ALIAS_NAMES = {side: f"{side}.cluster.alias" for side in ("source", "target")}

NAME_SETTINGS = {side: f"heliograph.{side}.name" for side in ALIAS_NAMES}

_OWNER = "connector "


@dataclass(frozen=True, slots=True)
class Connector:
    """`given` are its settings by name. `owner` is what messages call it; `path` is in front of its keys there. `state`
    is the one that it is to have, whatever `enabled` says. `worker` is the name of its Connect cluster, as Strimzi has
    one; empty: that of the worker's file, if there is one; None: its settings say where Connect stores its state."""

    file: str
    owner: str
    part: str
    source: str
    target: str
    given: Mapping[str, FileEntry]
    path: str = ""
    state: str = RUNNING
    spelling: tuple[tuple[str, str], ...] = ()
    worker: str | None = ""

    def entry(self, name: str, key: SettingKey | None = None) -> FileEntry:
        given = self.given[name]
        return replace(
            given,
            key=name if key is None else key.key(),
            file=given.file or self.file,
            owner="" if given.file else self.owner,
            written=given.written or self.path + name,
            spelling=self.spelling,
        )

    def error(self, name: str, text: str) -> ConfigError:
        entry = self.entry(name)
        return ConfigError(f"{position(self.file, entry.line)}: {entry.with_owner(f'{entry.name}: {text}')}")

    @property
    def sides(self) -> tuple[tuple[str, str], tuple[str, str]]:
        return ("source", self.source), ("target", self.target)

    @property
    def flow(self) -> str:
        return f"{self.source}->{self.target}"

    @property
    def aliases(self) -> tuple[str, str]:
        """What MM2's connector calls source and target. `source` and `target` are the names of these clusters here."""
        return aliases_of(_alias_texts(self.given))

    @property
    def name(self) -> str:
        """Empty if the format has no names."""
        return self.owner.removeprefix(_OWNER) if self.owner.startswith(_OWNER) else ""

    @property
    def label(self) -> str:
        return self.owner or self.path.removesuffix(".config.")


@dataclass(frozen=True, slots=True)
class Worker:
    """The settings of the workers of a Connect cluster, by name. `is_stopped`: it has no workers for now."""

    file: str
    given: Mapping[str, FileEntry]
    is_stopped: bool = False


@dataclass(slots=True)
class ConnectorFile:
    """What one file adds to a deployment of connectors. `extra` are settings of clusters beside the connectors' own;
    `errors` are about connectors that cannot be read; `workers` are Connect clusters by name; `stopped` are about
    resources of which nothing is to run."""

    file: str
    connectors: list[Connector] = field(default_factory=list)
    extra: dict[SettingKey, FileEntry] = field(default_factory=dict)
    warnings: list[ConfigNotice] = field(default_factory=list)
    notes: list[ConfigNotice] = field(default_factory=list)
    errors: ErrorCollector = field(default_factory=ErrorCollector)
    workers: dict[str, Worker] = field(default_factory=dict)
    stopped: list[ConfigNotice] = field(default_factory=list)

    def add(self, read: Connector | ConfigNotice) -> None:
        if isinstance(read, Connector):
            self.connectors.append(read)
        else:
            self.warnings.append(read)


def aliases_of(config: Mapping[str, str]) -> tuple[str, str]:
    """The aliases of source and target in a connector's config."""
    source, target = (config.get(name, side).strip() for side, name in ALIAS_NAMES.items())
    return source, target


def _alias_texts(given: Mapping[str, FileEntry]) -> dict[str, str]:
    return {name: given[name].reveal() for name in ALIAS_NAMES.values() if name in given}


def _cluster_names(given: Mapping[str, FileEntry], aliases: tuple[str, str]) -> tuple[str, str]:
    """What flows and Heliograph's topics call source and target: their aliases, unless these are empty or the same."""
    source, target = (
        given[NAME_SETTINGS[side]].reveal().strip() if NAME_SETTINGS[side] in given else alias or side
        for side, alias in zip(ALIAS_NAMES, aliases, strict=True)
    )
    return (source if source != target else f"{source}-source"), target


def class_name(part: str) -> str:
    return f"{MIRROR_PACKAGE}.{CLASSES[part]}"


def part_of_class(connector_class: str) -> str | None:
    """Which of MirrorMaker 2's connectors a class is; None if it is none of them."""
    package, _, simple = connector_class.strip().rpartition(".")
    known = {name.removesuffix("Connector"): part for part, name in CLASSES.items()}
    return known.get(simple.removesuffix("Connector")) if package in ("", MIRROR_PACKAGE) else None


def from_config(
    file: str, owner: str, given: Mapping[str, FileEntry], *, state: str = RUNNING, worker: str = ""
) -> Connector | ConfigNotice:
    """The connector of a config; a notice if it is not one of MM2's, because a directory may contain others too."""
    connector_class = given.get("connector.class", FileEntry(0, "connector.class", ""))
    part = part_of_class(connector_class.reveal())
    if part is None:
        name = connector_class.reveal()
        what = f"'{name}' is not one of MirrorMaker 2's connectors" if name else "there is no connector.class"
        return ConfigNotice(connector_class.line, "connector.class", f"{owner}: {what}: it is ignored", file)
    if "source.cluster.alias" not in given:
        raise ConfigError(f"{position(file, connector_class.line)}: {owner}: no source.cluster.alias")
    pair = _cluster_names(given, aliases_of(_alias_texts(given)))
    connector = Connector(file, owner, part, *pair, given, state=state, spelling=_spelling(*pair), worker=worker)
    errors = ErrorCollector()
    for side, alias in ALIAS_NAMES.items():
        for name, kind in ((alias, ALIAS), (NAME_SETTINGS[side], ALIASES)):
            with errors:
                _check(connector, name, kind)
    errors.raise_collected()
    return connector


def _check(connector: Connector, name: str, kind: Kind[object]) -> None:
    if name not in connector.given:
        return
    text = connector.given[name].reveal().strip()
    try:
        kind.parse(text)
    except ValueError as error:
        raise connector.error(name, f"'{text}' {error}") from None
    if "," in text:
        raise connector.error(name, f"'{text}' has a comma: write one alias")


def _spelling(source: str, target: str) -> tuple[tuple[str, str], ...]:
    """How a connector spells the keys of an `mm2.properties`."""
    return (
        (f"{source}->{target}.", ""),
        *((f"{source}.{kind}.", f"source.{kind}.") for kind in ("consumer", "producer", "admin")),
        (f"{target}.producer.", "producer.override."),
        *((f"{target}.{kind}.", f"target.{kind}.") for kind in ("consumer", "admin")),
        (f"{source}.", "source.cluster."),
        (f"{target}.", "target.cluster."),
    )
