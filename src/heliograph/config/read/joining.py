"""Connectors of the same pair of clusters make one flow.

They become entries as in an `mm2.properties`, so that looking values up, checking them and warning about them is done
in one place. What Connect's workers are set up with is not in such files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations

from heliograph.config.declare import catalogue, locations
from heliograph.config.declare.mirroring import (
    BOOTSTRAP_SERVERS,
    CLUSTERS,
    CONFIG_PROVIDERS,
    ENABLED,
    INTERNAL_TOPIC_SEPARATOR_ENABLED,
    PARTS,
    REPLICATION_POLICY_CLASS,
    REPLICATION_POLICY_SEPARATOR,
    TOPICS,
    TOPICS_EXCLUDE,
)
from heliograph.config.declare.secrets import shown
from heliograph.config.declare.setting import Scope, Setting
from heliograph.config.declare.syncing import (
    EMIT_HEARTBEATS_ENABLED,
    EMIT_OFFSET_SYNCS_ENABLED,
    OF_CHECKPOINT,
    OF_HEARTBEAT,
    OFFSET_SYNCS_LOCATION,
    TOPIC_FILTER_CLASS,
)
from heliograph.config.messages import ConfigError, ConfigNotice, at
from heliograph.config.read.connector import CLASSES, Connector
from heliograph.config.read.document import Settings
from heliograph.config.read.entry import FileEntry
from heliograph.config.read.providers import declared as declared_providers
from heliograph.config.read.providers import references
from heliograph.config.read.scopes import SettingKey
from heliograph.config.read.settings import Values
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE

# What Connect and Strimzi usually call Kafka's providers. They are declared for a worker, which is not in these files.
_PROVIDERS = "org.apache.kafka.common.config.provider"
USUAL_PROVIDERS = {
    "env": f"{_PROVIDERS}.EnvVarConfigProvider",
    "file": f"{_PROVIDERS}.FileConfigProvider",
    "directory": f"{_PROVIDERS}.DirectoryConfigProvider",
    "strimzienv": f"{_PROVIDERS}.EnvVarConfigProvider",
    "strimzifile": f"{_PROVIDERS}.FileConfigProvider",
    "strimzidir": f"{_PROVIDERS}.DirectoryConfigProvider",
}
# What all connectors of a flow must agree on: names of topics come from these.
AGREED: tuple[Setting[object], ...] = (
    REPLICATION_POLICY_CLASS,
    REPLICATION_POLICY_SEPARATOR,
    INTERNAL_TOPIC_SEPARATOR_ENABLED,
    OFFSET_SYNCS_LOCATION,
)
# What source and checkpoint connector both read.
SHARED = frozenset(
    name
    for one in (TOPICS, TOPICS_EXCLUDE, TOPIC_FILTER_CLASS, EMIT_OFFSET_SYNCS_ENABLED)
    for name in (one.name, *one.old_names)
)
# What is not a setting of the flow but says which connector this is.
_IDENTITY = frozenset({"name", "connector.class", "source.cluster.alias", "target.cluster.alias", ENABLED.name})


def document(
    file: str,
    found: Sequence[Connector],
    extra: Mapping[SettingKey, FileEntry] | None = None,
    warnings: Iterable[ConfigNotice] = (),
    notes: Iterable[ConfigNotice] = (),
) -> Settings:
    """One document of all connectors. `extra` is what a format knows besides, about clusters."""
    if not found:
        raise ConfigError(f"{file}: none of MirrorMaker 2's connectors is in it")
    aliases = tuple(dict.fromkeys(alias for one in found for alias in (one.source, one.target)))
    flows = _flows(found)
    said = list(notes)
    warned = list(warnings)
    replaced: list[FileEntry] = []
    entries = {_top(CLUSTERS.name): FileEntry(0, CLUSTERS.name, ", ".join(aliases))}
    for (source, target), parts in flows.items():
        _agree(parts)
        for one in parts.values():
            _add_shared(entries, one)
        entries |= dict(_settings(parts, said, warned, replaced))
        running = _running(parts, said)
        owner = f"{source}->{target}"
        entries[_of_flow(owner, ENABLED)] = FileEntry(0, f"{owner}.{ENABLED.name}", "true" if running else "false")
        if running and running != set(CLASSES):
            words = ", ".join(part for part in CLASSES if part in running)
            entries[_of_flow(owner, PARTS)] = FileEntry(0, f"{owner}.{PARTS.name}", words)
        if not running:
            entries[_of_flow(owner, EMIT_HEARTBEATS_ENABLED)] = _silence(owner)
    for pair in permutations(aliases, 2):
        if pair not in flows:
            owner = "->".join(pair)
            entries[_of_flow(owner, EMIT_HEARTBEATS_ENABLED)] = _silence(owner)
    entries |= extra or {}
    _check_addresses(entries, flows)
    said += _usual_providers(file, entries)
    top = {address.name: entry.value for address, entry in entries.items() if address.scope is Scope.TOP}
    try:
        providers = declared_providers(top)
    except ValueError as bad:
        raise ConfigError(f"{file}: config.providers: {bad}") from None
    return Settings(
        Values(file, entries, providers),
        aliases,
        tuple(dict.fromkeys(warned)),
        tuple(dict.fromkeys(said)),
        tuple(replaced),
        {(one.source, one.target, one.part): one.name for one in found if one.name},
    )


def _top(name: str) -> SettingKey:
    return SettingKey(Scope.TOP, "", name)


def _of_flow(owner: str, setting: Setting[object]) -> SettingKey:
    return SettingKey(Scope.FLOW, owner, setting.name)


def _silence(owner: str) -> FileEntry:
    """In an `mm2.properties` every pair of clusters writes heartbeats; connectors run only where there are some."""
    return FileEntry(0, f"{owner}.{EMIT_HEARTBEATS_ENABLED.name}", "false")


def _flows(found: Sequence[Connector]) -> dict[tuple[str, str], dict[str, Connector]]:
    flows: dict[tuple[str, str], dict[str, Connector]] = {}
    for one in found:
        parts = flows.setdefault((one.source, one.target), {})
        if one.part in parts:
            raise ConfigError(
                f"{one.file}: {one.label}: there is a {CLASSES[one.part]} of {one.source}->{one.target} already, "
                f"{parts[one.part].label}: put them together into one"
            )
        parts[one.part] = one
    return {pair: {part: parts[part] for part in CLASSES if part in parts} for pair, parts in flows.items()}


def _place(one: Connector, key: str) -> SettingKey:
    """Where the setting would stand in an `mm2.properties`."""
    if key.startswith(CONFIG_PROVIDERS.name):
        return _top(key)
    for side, alias in (("source", one.source), ("target", one.target)):
        name = key.removeprefix(f"{side}.cluster.")
        hit = catalogue.find(Scope.CLUSTER, name) if name != key else None
        if hit is not None and (is_of_clients(name) or not hit.setting.supported):
            return SettingKey(Scope.CLUSTER, alias, name)
    return SettingKey(Scope.FLOW, f"{one.source}->{one.target}", key)


def is_of_clients(name: str) -> bool:
    """Whether MM2's clients take it from a cluster's settings: addresses and security. The rest is at most a
    worker's."""
    hit = catalogue.find(Scope.CLUSTER, name)
    return hit is not None and (hit.setting is BOOTSTRAP_SERVERS or hit.setting.where is locations.SECURITY)


def _add_shared(entries: dict[SettingKey, FileEntry], one: Connector) -> None:
    """What is about a cluster or about all: the same for every connector that says anything about it."""
    for key in one.given:
        address = _place(one, key)
        if key in _IDENTITY or address.scope is Scope.FLOW:
            continue
        entry = one.entry(key, address)
        before = entries.setdefault(address, entry)
        if before.value.strip() != entry.value.strip():
            values = f"'{shown(key, entry.value)}'", f"'{shown(key, before.value)}'"
            raise one.error(
                key,
                f"{values[0]} here, but {values[1]} in {before.owner or before.name} "
                f"({at(before.file, before.line)}): it is the same cluster {address.owner}".rstrip(),
            )


def _agree(parts: Mapping[str, Connector]) -> None:
    """Connectors of one flow that call topics differently would not find each other's."""
    connectors = tuple(parts.values())
    for setting in AGREED:
        first = connectors[0]
        one = first.given.get(setting.name)
        for other in connectors[1:]:
            two = other.given.get(setting.name)
            texts = [setting.default if given is None else given.value for given in (one, two)]
            if HEARTBEAT in (first.part, other.part) and setting is OFFSET_SYNCS_LOCATION:
                continue
            if texts[0] != texts[1]:
                blamed, against = (other, texts[0]) if two is not None else (first, texts[1])
                peer = first if blamed is other else other
                default = "" if setting.name in peer.given else ", the default,"
                raise blamed.error(
                    setting.name,
                    f"'{blamed.given[setting.name].value}' here, but '{against}'{default} in {peer.label}: "
                    f"the connectors of {first.source}->{first.target} must agree",
                )


def _settings(
    parts: Mapping[str, Connector], notes: list[ConfigNotice], warnings: list[ConfigNotice], replaced: list[FileEntry]
) -> Iterator[tuple[SettingKey, FileEntry]]:
    """The settings of the flow itself, each by the connector that it is for."""
    for one in parts.values():
        for key in one.given:
            address = _place(one, key)
            if key in _IDENTITY or address.scope is not Scope.FLOW or _repeats_cluster(one, key):
                continue
            deciding = _deciding(key, parts)
            if deciding is one:
                yield address, one.entry(key, address)
            elif deciding is None:
                text = f"has no effect: only a {_reader(key)} reads it"
                notes.append(_notice(one, key, text))
                yield address, one.entry(key, address)
            elif key not in deciding.given or deciding.given[key].value.strip() != one.given[key].value.strip():
                text = f"has no effect: the flow goes by {deciding.label}"
                both = one.part == CHECKPOINT and deciding.part == SOURCE and key in SHARED
                (warnings if both else notes).append(_notice(one, key, text))
                replaced.append(one.entry(key, address))


def _notice(one: Connector, key: str, text: str) -> ConfigNotice:
    entry = one.entry(key)
    return ConfigNotice(entry.line, entry.name, entry.of_owner(f"{entry.name} {text}"), one.file)


def _reader(key: str) -> str:
    return CLASSES[CHECKPOINT if key in OF_CHECKPOINT else HEARTBEAT]


def _deciding(key: str, parts: Mapping[str, Connector]) -> Connector | None:
    if key in OF_CHECKPOINT:
        return parts.get(CHECKPOINT)
    if key in OF_HEARTBEAT:
        return parts.get(HEARTBEAT)
    return next(iter(parts.values()))


def _repeats_cluster(one: Connector, key: str) -> bool:
    """MM2's driver writes a cluster's address and security down for each of its clients too."""
    for side in ("source", "target"):
        for kind in ("consumer", "producer", "admin"):
            name = key.removeprefix(f"{side}.{kind}.")
            if name != key:
                cluster = one.given.get(f"{side}.cluster.{name}")
                return cluster is not None and cluster.value == one.given[key].value
    return False


def _running(parts: Mapping[str, Connector], notes: list[ConfigNotice]) -> set[str]:
    running = set()
    for part, one in parts.items():
        enabled = True
        if ENABLED.name in one.given and part != HEARTBEAT:
            enabled = Values(one.file, {}, {}).parse(ENABLED, one.entry(ENABLED.name))
        if not one.runs:
            notes.append(ConfigNotice(0, "", f"{one.label} is paused or stopped: it does not run", one.file))
        if enabled and one.runs:
            running.add(part)
    return running


def _check_addresses(
    entries: Mapping[SettingKey, FileEntry], flows: Mapping[tuple[str, str], Mapping[str, Connector]]
) -> None:
    for parts in flows.values():
        for one in parts.values():
            needed = {"target": one.target} if one.part == HEARTBEAT else {"source": one.source, "target": one.target}
            for side, alias in needed.items():
                if SettingKey(Scope.CLUSTER, alias, BOOTSTRAP_SERVERS.name) not in entries:
                    raise ConfigError(f"{one.file}: {one.label}: no {side}.cluster.bootstrap.servers")


def _usual_providers(file: str, entries: dict[SettingKey, FileEntry]) -> Iterator[ConfigNotice]:
    """Declares the providers that are referred to under their usual names, where the connectors declare none."""
    declared = entries.get(_top(CONFIG_PROVIDERS.name))
    names = [name.strip() for name in declared.value.split(",")] if declared else []
    used: dict[str, FileEntry] = {}
    for entry in entries.values():
        for _text, provider in references(entry.value):
            if provider in USUAL_PROVIDERS and provider not in names:
                used.setdefault(provider, entry)
    if not used:
        return
    entries[_top(CONFIG_PROVIDERS.name)] = FileEntry(0, CONFIG_PROVIDERS.name, ", ".join((*names, *used)))
    for name, entry in used.items():
        key = f"{CONFIG_PROVIDERS.name}.{name}.class"
        entries[_top(key)] = FileEntry(0, key, USUAL_PROVIDERS[name])
        simple = USUAL_PROVIDERS[name].rpartition(".")[2]
        text = f"{entry.name}: '{name}' is taken for Kafka's {simple}: what the worker calls so is not in this file"
        yield ConfigNotice(entry.line, entry.key, entry.of_owner(text), entry.file or file)
