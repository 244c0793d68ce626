"""Connectors of the same pair of clusters make one flow: joins them to settings as in an `mm2.properties`.

So values are looked up, checked and warned about in one place. Settings of Connect's workers are not in such files.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product

from heliograph.config.declare import catalogue, locations, supported
from heliograph.config.declare.kinds import split_list
from heliograph.config.declare.locations import Scope
from heliograph.config.declare.secrets import shown
from heliograph.config.declare.setting import Setting
from heliograph.config.declare.supported import BOOTSTRAP_SERVERS, CLUSTERS, CONFIG_PROVIDERS, ENABLED
from heliograph.config.messages import ConfigError, ConfigNotice, Consequence, ErrorCollector, position
from heliograph.config.read.connector import CLASSES, Connector, ConnectorFile
from heliograph.config.read.entry import FileEntry, SettingKey, top_key
from heliograph.config.read.providers import USUAL_PROVIDERS, declared_providers, references
from heliograph.config.read.settings import Settings
from heliograph.model.connect_records import RUNNING
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE

# All connectors of a flow must agree on these, because topic names depend on them.
AGREED: tuple[Setting[object], ...] = (
    supported.REPLICATION_POLICY_CLASS,
    supported.REPLICATION_POLICY_SEPARATOR,
    supported.INTERNAL_TOPIC_SEPARATOR_ENABLED,
    supported.OFFSET_SYNCS_LOCATION,
)
# Both source and checkpoint connector read these.
_SHARED: tuple[Setting[object], ...] = (
    *(supported.TOPICS, supported.TOPICS_EXCLUDE),
    *(supported.TOPIC_FILTER_CLASS, supported.EMIT_OFFSET_SYNCS_ENABLED),
)
SHARED = frozenset(name for setting in _SHARED for name in setting.names)
# Which connector it is: not a setting of the flow.
_IDENTITY = frozenset({"name", "connector.class", "source.cluster.alias", "target.cluster.alias", ENABLED.name})

Parts = Mapping[str, Connector]  # the connectors of one flow, by part
Flows = Mapping[tuple[str, str], Parts]  # by source and target


def join(file: str, files: Sequence[ConnectorFile]) -> Settings:
    """The settings of all connectors of all files; `file` is only a name for messages."""
    connectors = [connector for read in files for connector in read.connectors]
    errors = ErrorCollector(error for read in files for error in read.errors.errors)
    if not connectors:
        errors.raise_collected()
        raise ConfigError(f"{file}: there is none of MirrorMaker 2's connectors in it")
    aliases = tuple(dict.fromkeys(alias for connector in connectors for alias in (connector.source, connector.target)))
    notes = [note for read in files for note in read.notes]
    warnings = [warning for read in files for warning in read.warnings]
    replaced: list[FileEntry] = []
    flows = _flows(connectors, errors)
    entries = {top_key(CLUSTERS.name): FileEntry(0, CLUSTERS.name, ", ".join(aliases))}
    for pair, parts in flows.items():
        _check_agreement(parts, errors)
        for connector in parts.values():
            _add_shared(entries, connector, errors)
        entries |= dict(_settings(parts, notes, warnings, replaced))
        with errors:
            entries |= _enabled("->".join(pair), parts, notes)
    for pair in permutations(aliases, 2):
        if pair not in flows:
            # In an mm2.properties every pair of clusters writes heartbeats; connectors only where there are some.
            entries |= _of_flow("->".join(pair), supported.EMIT_HEARTBEATS_ENABLED, "false")
    for read in files:
        entries |= read.extra
    _check_addresses(entries, flows, errors)
    notes += _declare_usual_providers(file, entries)
    return Settings(
        file,
        entries,
        declared_providers(file, (entry for key, entry in entries.items() if key.scope is Scope.TOP)),
        aliases,
        tuple(dict.fromkeys(warnings)),
        tuple(dict.fromkeys(notes)),
        tuple(replaced),
        {
            (connector.source, connector.target, connector.part): connector.name
            for connector in connectors
            if connector.name
        },
        errors=errors.errors,
        states={
            (connector.source, connector.target, connector.part): connector.state
            for connector in connectors
            if connector.state != RUNNING
        },
        stopped=tuple(notice for read in files for notice in read.stopped),
    )


def _of_flow(owner: str, setting: Setting[object], value: str) -> dict[SettingKey, FileEntry]:
    key = SettingKey(Scope.FLOW, owner, setting.name)
    return {key: FileEntry(0, key.key(), value)}


def _flows(connectors: Sequence[Connector], errors: ErrorCollector) -> Flows:
    flows: dict[tuple[str, str], dict[str, Connector]] = {}
    for connector in connectors:
        parts = flows.setdefault((connector.source, connector.target), {})
        first = parts.setdefault(connector.part, connector)
        if first is not connector:
            text = f"there is a {CLASSES[connector.part]} of {connector.flow} already"
            errors.add(ConfigError(f"{connector.file}: {connector.label}: {text}, {first.label}: merge them"))
    return {pair: {part: parts[part] for part in CLASSES if part in parts} for pair, parts in flows.items()}


def _entries(connector: Connector) -> Iterator[tuple[str, SettingKey, FileEntry]]:
    """All but the connector's identity: the name, and key and entry as in an `mm2.properties`."""
    for name in connector.given:
        if name not in _IDENTITY:
            key = _key(connector, name)
            yield name, key, connector.entry(name, key)


def _key(connector: Connector, name: str) -> SettingKey:
    if name.startswith(CONFIG_PROVIDERS.name):
        return top_key(name)
    for side, alias in connector.sides:
        local = name.removeprefix(f"{side}.cluster.")
        match = catalogue.find(Scope.CLUSTER, local) if local != name else None
        if match is not None and (is_of_clients(local) or not match.setting.supported):
            return SettingKey(Scope.CLUSTER, alias, local)
    return SettingKey(Scope.FLOW, connector.flow, name)


def is_of_clients(name: str) -> bool:
    """Whether MM2's clients read it from a cluster's settings: addresses and security. Others are for workers."""
    match = catalogue.find(Scope.CLUSTER, name)
    return match is not None and (match.setting is BOOTSTRAP_SERVERS or match.setting.where is locations.SECURITY)


def _add_shared(entries: dict[SettingKey, FileEntry], connector: Connector, errors: ErrorCollector) -> None:
    """Adds what is about a cluster or about all: it must be the same for every connector that has it."""
    for name, key, entry in _entries(connector):
        if key.scope is Scope.FLOW:
            continue
        before = entries.setdefault(key, entry)
        if before.reveal().strip() != entry.reveal().strip():
            texts = f"'{shown(name, entry.value)}' differs from '{shown(name, before.value)}'"
            other = f"{before.owner or before.name} ({position(before.file, before.line)})"
            errors.add(connector.error(name, f"{texts} in {other}: it is the same cluster {key.owner}".rstrip()))


def _check_agreement(parts: Parts, errors: ErrorCollector) -> None:
    """Connectors of one flow that name topics differently would not find each other's."""
    first, *others = parts.values()
    for setting, other in product(AGREED, others):
        if setting is supported.OFFSET_SYNCS_LOCATION and HEARTBEAT in (first.part, other.part):
            continue
        blamed, peer = (other, first) if setting.name in other.given else (first, other)
        text, peer_text = (
            connector.given[setting.name].reveal() if setting.name in connector.given else setting.default
            for connector in (blamed, peer)
        )
        if text != peer_text:
            default = "" if setting.name in peer.given else ", the default,"
            differs = f"'{text}' differs from '{peer_text}'{default} in {peer.label}"
            errors.add(blamed.error(setting.name, f"{differs}: the connectors of {first.flow} must agree"))


def _settings(
    parts: Parts, notes: list[ConfigNotice], warnings: list[ConfigNotice], replaced: list[FileEntry]
) -> Iterator[tuple[SettingKey, FileEntry]]:
    """The settings of the flow itself, each from the connector that reads it."""
    for connector in parts.values():
        for name, key, entry in _entries(connector):
            if key.scope is not Scope.FLOW or _repeats_cluster(connector, name):
                continue
            if name == CLUSTERS.name:
                reason = "it is for MM2's own driver; a connector's clusters are source.cluster.* and target.cluster.*"
                notes.append(_no_effect(connector, name, reason, Consequence.NONE))
                continue
            part = next((part for part, names in supported.READ_BY_ONE.items() if name in names), next(iter(parts)))
            reader = parts.get(part)
            if reader is connector:
                yield key, entry
            elif reader is None:
                notes.append(_no_effect(connector, name, f"only a {CLASSES[part]} reads it"))
                yield key, entry
            elif name not in reader.given or reader.given[name].reveal().strip() != entry.reveal().strip():
                match = catalogue.find(Scope.FLOW, name)
                if match is not None and match.supported:
                    both_read = connector.part == CHECKPOINT and reader.part == SOURCE and name in SHARED
                    notice = _no_effect(connector, name, f"the flow uses that of {reader.label}")
                    (warnings if both_read else notes).append(notice)
                replaced.append(entry)  # about other names, `resolve/review.py` says what there is to say


def _no_effect(
    connector: Connector, name: str, reason: str, consequence: Consequence = Consequence.NO_EFFECT
) -> ConfigNotice:
    entry = connector.entry(name)
    match = catalogue.find(Scope.FLOW, name)
    if match is not None and match.setting.default == entry.reveal().strip():
        consequence = Consequence.NONE
    text = entry.with_owner(f"{entry.name} has no effect: {reason}")
    return ConfigNotice(entry.line, entry.name, text, connector.file, consequence)


def _repeats_cluster(connector: Connector, name: str) -> bool:
    """MM2's driver repeats a cluster's address and security for each of its clients."""
    parts = re.fullmatch(r"(source|target)\.(?:consumer|producer|admin)\.(.*)", name, re.DOTALL)
    cluster = connector.given.get(f"{parts[1]}.cluster.{parts[2]}") if parts else None
    return cluster is not None and cluster.value == connector.given[name].value


def _enabled(owner: str, parts: Parts, notes: list[ConfigNotice]) -> dict[SettingKey, FileEntry]:
    """Whether the flow is enabled, and with which of its parts."""
    running = []
    for part, connector in parts.items():
        enabled = True
        if ENABLED.name in connector.given and part != HEARTBEAT:
            enabled = Settings(connector.file, {}, {}).parse(ENABLED, connector.entry(ENABLED.name))
        if connector.state != RUNNING:
            text = f"{connector.label} is {connector.state.lower()}: it does not run"
            notes.append(ConfigNotice(0, "", text, connector.file, Consequence.ACTION))
        if enabled:
            running.append(part)
    if not running:
        return _of_flow(owner, ENABLED, "false") | _of_flow(owner, supported.EMIT_HEARTBEATS_ENABLED, "false")
    parts_setting = {} if len(running) == len(CLASSES) else _of_flow(owner, supported.PARTS, ", ".join(running))
    return _of_flow(owner, ENABLED, "true") | parts_setting


def _check_addresses(entries: Mapping[SettingKey, FileEntry], flows: Flows, errors: ErrorCollector) -> None:
    for connector in (connector for parts in flows.values() for connector in parts.values()):
        for side, alias in connector.sides:
            is_needed = side == "target" or connector.part != HEARTBEAT
            if is_needed and SettingKey(Scope.CLUSTER, alias, BOOTSTRAP_SERVERS.name) not in entries:
                errors.add(ConfigError(f"{connector.file}: {connector.label}: no {side}.cluster.bootstrap.servers"))


def _declare_usual_providers(file: str, entries: dict[SettingKey, FileEntry]) -> Iterator[ConfigNotice]:
    """Declares the providers that are referred to by their usual names, unless the connectors declare them: they are
    declared for a worker, which is not in these files."""
    declared = entries.get(top_key(CONFIG_PROVIDERS.name))
    names = split_list(declared.reveal()) if declared else ()
    used: dict[str, FileEntry] = {}
    for entry in entries.values():
        for _, provider in references(entry.reveal()):
            if provider in USUAL_PROVIDERS and provider not in names:
                used.setdefault(provider, entry)
    if not used:
        return
    entries[top_key(CONFIG_PROVIDERS.name)] = FileEntry(0, CONFIG_PROVIDERS.name, ", ".join((*names, *used)))
    for name, entry in used.items():
        key = f"{CONFIG_PROVIDERS.name}.{name}.class"
        entries[top_key(key)] = FileEntry(0, key, USUAL_PROVIDERS[name])
        simple = USUAL_PROVIDERS[name].rpartition(".")[2]
        whose = "Strimzi's" if simple.startswith("Kubernetes") else "Kafka's"
        text = (
            f"{entry.name}: '{name}' is taken to be {whose} {simple}: the worker that declares it is not in this file"
        )
        yield ConfigNotice(entry.line, entry.key, entry.with_owner(text), entry.file or file, Consequence.NONE)
