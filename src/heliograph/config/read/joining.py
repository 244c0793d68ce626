"""Connectors of the same pair of clusters make one flow: joins them to settings as in an `mm2.properties`.

So values are looked up, checked and warned about in one place. Settings of Connect's workers are not in such files.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from heliograph.config.declare import catalogue, locations, supported
from heliograph.config.declare.kinds import split_list
from heliograph.config.declare.locations import Scope
from heliograph.config.declare.secrets import shown
from heliograph.config.declare.setting import Setting
from heliograph.config.declare.supported import BOOTSTRAP_SERVERS, CLUSTERS, CONFIG_PROVIDERS, ENABLED
from heliograph.config.messages import ConfigError, ConfigNotice, Consequence, ErrorCollector, position
from heliograph.config.read.connector import ALIAS_NAMES, CLASSES, NAME_SETTINGS, Connector, ConnectorFile
from heliograph.config.read.entry import FileEntry, SettingKey, top_key
from heliograph.config.read.providers import USUAL_PROVIDERS, declared_providers, references
from heliograph.config.read.settings import Settings
from heliograph.model.connect_records import RUNNING
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE

# How each connector names topics, by itself. A heartbeat connector needs none: its topic is called `heartbeats`.
NAMING: tuple[Setting[object], ...] = (
    supported.REPLICATION_POLICY_CLASS,
    supported.REPLICATION_POLICY_SEPARATOR,
    supported.INTERNAL_TOPIC_SEPARATOR_ENABLED,
)
# Both source and checkpoint connector read these.
_SHARED: tuple[Setting[object], ...] = (
    *(supported.TOPICS, supported.TOPICS_EXCLUDE),
    *(supported.TOPIC_FILTER_CLASS, supported.EMIT_OFFSET_SYNCS_ENABLED),
)
_NAMING = frozenset(setting.name for setting in NAMING)
SHARED = frozenset(name for setting in _SHARED for name in setting.names)
# Which connector it is: not a setting of the flow.
_IDENTITY = frozenset({"name", "connector.class", *ALIAS_NAMES.values(), *NAME_SETTINGS.values(), ENABLED.name})

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
        warnings += (*_other_aliases(parts), *_other_syncs_location(parts))
        for connector in parts.values():
            _add_shared(entries, connector, errors)
        entries |= dict((*_aliases(parts), *_settings(parts, notes, warnings, replaced), *_checkpoint_naming(parts)))
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


def _aliases(parts: Parts) -> Iterator[tuple[SettingKey, FileEntry]]:
    """The aliases that MM2's connectors have, where these are not the names of the clusters."""
    connector = next(iter(parts.values()))
    for (_side, cluster), alias, name in zip(connector.sides, connector.aliases, ALIAS_NAMES.values(), strict=True):
        if alias != cluster:
            key = SettingKey(Scope.FLOW, connector.flow, name)
            is_given = name in connector.given
            yield key, connector.entry(name, key) if is_given else FileEntry(0, key.key(), alias)


def _other_aliases(parts: Parts) -> Iterator[ConfigNotice]:
    first, *others = parts.values()
    for other in others:
        for name, alias, used in zip(ALIAS_NAMES.values(), other.aliases, first.aliases, strict=True):
            if alias != used and name in other.given:
                yield _no_effect(other, name, f"the flow uses '{used}', that of {first.label}")


def _other_syncs_location(parts: Parts) -> Iterator[ConfigNotice]:
    """MM2's source connector writes offset syncs, and its checkpoint connector reads them to translate offsets."""
    name = supported.OFFSET_SYNCS_LOCATION.name
    source, checkpoint = parts.get(SOURCE), parts.get(CHECKPOINT)
    if source is None or checkpoint is None or _meaning(source, name) == _meaning(checkpoint, name):
        return
    written, looked_for = _meaning(source, name), _meaning(checkpoint, name)
    blamed = checkpoint if name in checkpoint.given else source
    entry = blamed.entry(name)
    text = (
        f"{entry.name}: {source.label} writes offset syncs to the {written}, {checkpoint.label} would look for them on "
        f"the {looked_for}. MirrorMaker 2 writes no checkpoints then; Heliograph does, as it needs no offset syncs"
    )
    yield ConfigNotice(entry.line, entry.name, entry.with_owner(text), blamed.file)


def _checkpoint_naming(parts: Parts) -> Iterator[tuple[SettingKey, FileEntry]]:
    """How the checkpoint connector names topics, where it differs from the source connector."""
    source, checkpoint = parts.get(SOURCE), parts.get(CHECKPOINT)
    if source is None or checkpoint is None:
        return
    for setting in NAMING:
        if _meaning(source, setting.name) != _meaning(checkpoint, setting.name):
            key = SettingKey(Scope.FLOW, checkpoint.flow, supported.OF_CHECKPOINTS + setting.name)
            is_given = setting.name in checkpoint.given
            yield (
                key,
                checkpoint.entry(setting.name, key) if is_given else FileEntry(0, key.key(), setting.default or ""),
            )


def _meaning(connector: Connector, name: str) -> object:
    """The value of a setting, or its default. Texts that mean the same have equal values; None if there is neither."""
    match = catalogue.find(Scope.FLOW, name)
    default = None if match is None or match.old_name else match.setting.default
    text = connector.given[name].reveal() if name in connector.given else default
    if match is None or text is None:
        return text and text.strip()
    try:
        return match.setting.kind.parse(text)
    except ValueError:
        return text.strip()


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
            elif _meaning(reader, name) != _meaning(connector, name):
                both_read = connector.part == CHECKPOINT and reader.part == SOURCE
                if both_read and name in _NAMING:
                    continue  # it has an effect: see `_checkpoint_naming`
                replaced.append(entry)  # about other names, `resolve/review.py` says what there is to say
                if both_read and name == supported.OFFSET_SYNCS_LOCATION.name:
                    continue  # `_other_syncs_location` warns about it
                match = catalogue.find(Scope.FLOW, name)
                if match is not None and match.supported:
                    notice = _no_effect(connector, name, f"the flow uses that of {reader.label}")
                    (warnings if both_read and name in SHARED else notes).append(notice)


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
                text = f"{connector.label}: no {side}.cluster.bootstrap.servers"
                if connector.part == HEARTBEAT:
                    text += (
                        ": heartbeats are written there (MirrorMaker 2's worker knows it; newer versions need it, too)"
                    )
                errors.add(ConfigError(f"{connector.file}: {text}"))


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
