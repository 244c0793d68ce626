"""One of MirrorMaker 2's three connectors, as Kafka Connect knows it: a flat map of settings for a pair of clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heliograph.config.declare.kinds import Aliases
from heliograph.config.messages import ConfigError, ConfigNotice, at
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.scopes import SettingKey
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE

KAFKA = "org.apache.kafka.connect.mirror"
CLASSES = {
    SOURCE: "MirrorSourceConnector",
    CHECKPOINT: "MirrorCheckpointConnector",
    HEARTBEAT: "MirrorHeartbeatConnector",
}

_CALLED = "connector "


@dataclass(frozen=True, slots=True)
class ConnectorValue:
    """A value and its line; `written` is its name where that is not the key itself."""

    value: str
    line: int
    written: str = ""


@dataclass(frozen=True, slots=True)
class Connector:
    """One connector. `owner` is what messages call it; `path` stands before its keys there. `runs` is whether it is
    started at all, whatever `enabled` says."""

    file: str
    owner: str
    part: str
    source: str
    target: str
    given: Mapping[str, ConnectorValue]
    path: str = ""
    runs: bool = True
    spelling: tuple[tuple[str, str], ...] = ()

    def entry(self, key: str, at: SettingKey | None = None) -> FileEntry:
        given = self.given[key]
        return FileEntry(
            given.line,
            key if at is None else at.key(),
            given.value,
            file=self.file,
            owner=self.owner,
            written=given.written or self.path + key,
            spelling=self.spelling,
        )

    def error(self, key: str, text: str) -> ConfigError:
        name = self.given[key].written or self.path + key
        owner = f"{self.owner}: " if self.owner else ""
        return ConfigError(f"{at(self.file, self.given[key].line)}: {owner}{name}: {text}")

    @property
    def name(self) -> str:
        """Empty where the format gives it none."""
        return self.owner.removeprefix(_CALLED) if self.owner.startswith(_CALLED) else ""

    @property
    def label(self) -> str:
        return self.owner or self.path.removesuffix(".config.")


def from_config(
    file: str, owner: str, given: Mapping[str, ConnectorValue], *, path: str = "", runs: bool = True
) -> Connector | ConfigNotice:
    """The connector of a config; a notice if it is none of MM2's, for a directory may hold others too."""
    cls = given.get("connector.class", ConnectorValue("", 0))
    package, _, simple = cls.value.strip().rpartition(".")
    known = {name.removesuffix("Connector"): part for part, name in CLASSES.items()}
    part = known.get(simple.removesuffix("Connector")) if package in ("", KAFKA) else None
    if part is None:
        what = f"'{cls.value}' is none of MirrorMaker 2's connectors" if cls.value else "there is no connector.class"
        return ConfigNotice(cls.line, "connector.class", f"{owner}: {what}: it is passed over", file)
    source, target = (given.get(f"{side}.cluster.alias") for side in ("source", "target"))
    if source is None:
        raise ConfigError(f"{at(file, cls.line)}: {owner}: no source.cluster.alias")
    pair = (source.value.strip(), target.value.strip() if target else "target")
    connector = Connector(file, owner, part, *pair, given, path, runs, spelling(*pair))
    for side, alias in zip(("source", "target"), pair, strict=True):
        key = f"{side}.cluster.alias"
        try:
            Aliases().parse(alias)
        except ValueError as bad:
            raise connector.error(key, f"'{alias}' {bad}") from None
        if "," in alias:
            raise connector.error(key, f"'{alias}' has a comma: one alias is wanted")
    if pair[0] == pair[1]:
        raise connector.error("source.cluster.alias", f"'{pair[0]}' is the alias of the target too")
    return connector


def spelling(source: str, target: str) -> tuple[tuple[str, str], ...]:
    """How a connector spells what stands in an `mm2.properties`."""
    return (
        (f"{source}->{target}.", ""),
        *((f"{source}.{kind}.", f"source.{kind}.") for kind in ("consumer", "producer", "admin")),
        (f"{target}.producer.", "producer.override."),
        *((f"{target}.{kind}.", f"target.{kind}.") for kind in ("consumer", "admin")),
        (f"{source}.", "source.cluster."),
        (f"{target}.", "target.cluster."),
    )
