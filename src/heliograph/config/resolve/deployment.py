"""From a document to a deployment: clusters, the flows that are switched on, and what there is to say about the file.

The order matters: every value we act on is checked first, in the order of the file; then clusters and flows are put
together.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from heliograph.config.declare import catalogue, clients, locations, syncing, workers
from heliograph.config.declare import mirroring as declared
from heliograph.config.declare.plugins import make_filter, make_policy
from heliograph.config.declare.setting import Scope, Setting, SettingLocation, flow, top
from heliograph.config.messages import ConfigError, ConfigNotice
from heliograph.config.read.document import Settings
from heliograph.config.read.formats import read_all
from heliograph.config.read.scopes import SettingKey
from heliograph.config.read.settings import Values
from heliograph.config.resolve import review
from heliograph.model.flow import (
    HEARTBEAT,
    Cluster,
    ConnectOffsets,
    Flow,
    Groups,
    Heartbeats,
    KeptOffsets,
    OffsetSyncs,
    Policies,
    Reading,
    TopicSync,
    Writing,
)
from heliograph.model.names import AllBut, Matches, NameFilter
from heliograph.model.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a file asks for. `flows` are the enabled ones; `heartbeat_only_flows` are those that only write heartbeats, as MM2's
    do for every pair of clusters. `warnings` are probably mistakes; `notes` say which settings are known but have no
    effect in this version."""

    file: str
    clusters: dict[str, Cluster]
    flows: tuple[Flow, ...]
    heartbeat_only_flows: tuple[Flow, ...] = ()
    warnings: tuple[ConfigNotice, ...] = ()
    notes: tuple[ConfigNotice, ...] = ()
    webhook: str = field(default="", repr=False)


def load(path: str | os.PathLike[str]) -> Deployment:
    """Reads a file, or a directory of files, in any of the formats there are (see `formats`). Raises `ConfigError` with
    one line of text if it cannot be run."""
    return load_all([path])


def load_all(paths: Sequence[str | os.PathLike[str]]) -> Deployment:
    """The same for several files that make one deployment together."""
    return assemble(read_all(paths))


def assemble(document: Settings, *, may_be_idle: bool = False) -> Deployment:
    """`may_be_idle`: it is no error if no flow is switched on."""
    values, aliases = document.values, document.aliases
    noticed = list(document.warnings)
    try:
        noticed += review.warnings(values, aliases)
        _check(values)
        clusters = {alias: _cluster(values, alias, alias, alias, locations.OF_CLUSTER) for alias in aliases}
        pairs = tuple(permutations(aliases, 2))
        enabled = tuple(_flow(values, *pair) for pair in pairs if _enabled(values, *pair))
        beats = tuple(
            replace(_flow(values, *pair), parts=_ONLY_HEARTBEAT)
            for pair in pairs
            if _beats(values, *pair) and not _enabled(values, *pair)
        )
        if not enabled and not may_be_idle:
            raise ConfigError(_no_flow(values, aliases))
    except ConfigError as error:
        error.warnings = tuple(sorted(noticed, key=_place))
        raise
    notes = (
        *document.notes,
        *review.notes(values, aliases, tuple((one.source.alias, one.target.alias) for one in enabled)),
    )
    return Deployment(
        values.file,
        clusters,
        tuple(one for one in enabled if one.parts != _ONLY_HEARTBEAT),
        (*(one for one in enabled if one.parts == _ONLY_HEARTBEAT), *beats),
        tuple(sorted(noticed, key=_place)),
        tuple(sorted(notes, key=_place)),
        values.get(declared.NOTIFY_WEBHOOK, "", ""),
    )


_ONLY_HEARTBEAT = frozenset({HEARTBEAT})


def _place(notice: ConfigNotice) -> tuple[str, ConfigNotice]:
    return notice.file, notice


def _check(values: Values) -> None:
    """Every value that is acted on, wherever it stands: a flow that is off today may be on tomorrow."""
    for at, entry in values.entries.items():
        hit = catalogue.find(at.scope, at.name)
        if hit is not None and hit.supported:
            values.parse(hit.setting, entry)


def _cluster(values: Values, alias: str, source: str, target: str, of: tuple[SettingLocation, ...]) -> Cluster:
    """A cluster as seen by one of its users: name and timeout may differ from client to client, the address does
    not."""
    if values.find(declared.BOOTSTRAP_SERVERS, alias, alias) is None:
        line = values.entries[SettingKey(Scope.TOP, "", declared.CLUSTERS.name)].line
        if not line:
            # Connectors name what they need themselves; one that only writes heartbeats needs no source.
            return Cluster(alias, ())
        raise ConfigError(
            f"{values.file}: no {alias}.bootstrap.servers: the cluster {alias} is listed in 'clusters' (line {line}) "
            "but has no address"
        )
    return Cluster(
        alias,
        values.get(declared.BOOTSTRAP_SERVERS, alias, alias),
        values.get(clients.CLIENT_ID, source, target, of),
        values.get(clients.REQUEST_TIMEOUT, source, target, of) / 1000,
    )


def _enabled(values: Values, source: str, target: str) -> bool:
    """As MM2's driver: with no word of its own a flow follows the top level, if it exists for its heartbeats."""
    if values.find(declared.ENABLED, source, target, (flow(),)) is not None:
        return values.get(declared.ENABLED, source, target, (flow(),))
    return _beats(values, source, target) and values.get(declared.ENABLED, source, target, (top(),))


def _beats(values: Values, source: str, target: str) -> bool:
    entry = values.find(syncing.EMIT_HEARTBEATS_ENABLED, source, target)
    return entry is None or entry.value.strip().lower() == "true"


def _no_flow(values: Values, aliases: tuple[str, ...]) -> str:
    if not values.entries[SettingKey(Scope.TOP, "", declared.CLUSTERS.name)].line:
        return f"{values.file}: No source->target replication flows: every connector has 'enabled' set to false"
    if len(aliases) < 2:
        return f"{values.file}: No source->target replication flows: 'clusters' lists {aliases[0]} only, two are needed"
    for at, entry in values.entries.items():
        if at.scope is Scope.FLOW and catalogue.find(at.scope, at.name) is None:
            right, _ = catalogue.MISTAKES.get(at.name, (catalogue.nearest(at.scope, at.name), ""))
            if right == declared.ENABLED.name:
                return (
                    f"{values.file}:{entry.line}: No source->target replication flows: "
                    f"'{entry.key}' is no setting, did you mean '{at.key(right)}'?"
                )
    pair = f"{aliases[0]}->{aliases[1]}"
    return f"{values.file}: No source->target replication flows: set '{pair}.enabled = true' or that of another pair"


def _flow(values: Values, source: str, target: str) -> Flow:
    def every(enabled: Setting[bool], interval: Setting[int]) -> float | None:
        return _every(values, enabled, interval, source, target)

    return Flow(
        source=_cluster(values, source, source, target, locations.OF_SOURCE),
        target=_cluster(values, target, source, target, locations.OF_TARGET),
        parts=values.get(declared.PARTS, source, target),
        policy=_policy(values, source, target),
        topics=_own_filter(values, syncing.TOPIC_FILTER_CLASS, source, target)
        or NameFilter(values.get(declared.TOPICS, source, target), values.get(declared.TOPICS_EXCLUDE, source, target)),
        paused_topics=frozenset(values.get(declared.TOPICS_PAUSED, source, target)) - {""},
        heartbeats_replication=values.get(declared.HEARTBEATS_REPLICATION_ENABLED, source, target),
        replication_factor=values.get(declared.REPLICATION_FACTOR, source, target),
        tasks_max=values.get(declared.TASKS_MAX, source, target),
        refresh_topics_every=every(declared.REFRESH_TOPICS_ENABLED, declared.REFRESH_TOPICS_INTERVAL),
        least_partitions=values.get(declared.PARTITIONS, source, target),
        kept_offsets=_kept_offsets(values, source, target),
        topic_sync=TopicSync(
            every(syncing.SYNC_TOPIC_CONFIGS_ENABLED, syncing.SYNC_TOPIC_CONFIGS_INTERVAL),
            every(syncing.SYNC_TOPIC_ACLS_ENABLED, syncing.SYNC_TOPIC_ACLS_INTERVAL),
            _settings_left_alone(values, source, target),
            values.get(syncing.USE_DEFAULTS_FROM, source, target) == "source",
        ),
        offset_syncs=OffsetSyncs(
            values.get(syncing.EMIT_OFFSET_SYNCS_ENABLED, source, target),
            values.get(syncing.OFFSET_SYNCS_LOCATION, source, target) == "target",
            values.get(syncing.OFFSET_LAG_MAX, source, target),
            values.get(syncing.OFFSET_SYNCS_FACTOR, source, target),
        ),
        groups=Groups(
            _own_filter(values, syncing.GROUP_FILTER_CLASS, source, target)
            or NameFilter(
                values.get(syncing.GROUP_NAMES, source, target),
                values.get(syncing.GROUPS_EXCLUDE, source, target),
            ),
            every(syncing.REFRESH_GROUPS_ENABLED, syncing.REFRESH_GROUPS_INTERVAL),
            every(syncing.EMIT_CHECKPOINTS_ENABLED, syncing.EMIT_CHECKPOINTS_INTERVAL),
            every(syncing.SYNC_GROUP_OFFSETS_ENABLED, syncing.SYNC_GROUP_OFFSETS_INTERVAL),
            values.get(syncing.CHECKPOINTS_FACTOR, source, target),
            values.get(syncing.SYNC_GROUP_DELETES, source, target),
        ),
        heartbeats=Heartbeats(
            every(syncing.EMIT_HEARTBEATS_ENABLED, syncing.EMIT_HEARTBEATS_INTERVAL),
            values.get(syncing.HEARTBEATS_FACTOR, source, target),
        ),
        connect_offsets=ConnectOffsets(
            _given(values, workers.OFFSET_STORAGE_TOPIC, source, target),
            values.get(declared.MM2_CONNECTOR, source, target),
            _given(values, workers.GROUP_ID, source, target),
        ),
        reading=Reading(
            values.get(clients.FETCH_MAX_BYTES, source, target),
            values.get(clients.MAX_PARTITION_FETCH_BYTES, source, target),
            values.get(clients.FETCH_MIN_BYTES, source, target),
            values.get(clients.FETCH_MAX_WAIT, source, target) / 1000,
            values.get(clients.ISOLATION_LEVEL, source, target) == "read_committed",
            values.get(clients.AUTO_OFFSET_RESET, source, target) == "latest",
        ),
        writing=Writing(
            values.get(clients.MAX_REQUEST_SIZE, source, target),
            values.get(clients.REQUEST_TIMEOUT, source, target, locations.OF_WRITING) / 1000,
            values.get(clients.BATCH_SIZE, source, target),
        ),
        buffer_memory=values.get(declared.BUFFER_MEMORY, source, target),
        lease_seconds=values.get(declared.LEASE_SECONDS, source, target),
        max_bytes_per_second=values.get(declared.MAX_BYTES_PER_SECOND, source, target),
        may_raise_limits=values.get(declared.RAISE_MIRROR_LIMITS, source, target),
        policies=Policies(
            values.get(declared.ON_DATA_LOSS, source, target),
            values.get(declared.ON_RECREATED_TOPIC, source, target),
            values.get(declared.ON_FOREIGN_WRITER, source, target),
            values.get(declared.ON_REFUSED_RECORD, source, target),
        ),
    )


def _kept_offsets(values: Values, source: str, target: str) -> KeptOffsets:
    preserve = values.get(declared.OFFSETS, source, target) == declared.PRESERVE
    return KeptOffsets(
        NameFilter(values.get(declared.PRESERVE_TOPICS, source, target)) if preserve else None,
        values.get(declared.PRESERVE_MAX_FILL, source, target),
        values.get(declared.PRESERVE_MAX_GAP, source, target),
    )


def _policy(values: Values, source: str, target: str) -> ReplicationPolicy:
    separator = values.get(declared.REPLICATION_POLICY_SEPARATOR, source, target)
    internal = None if values.get(declared.INTERNAL_TOPIC_SEPARATOR_ENABLED, source, target) else "."
    named = values.get(declared.REPLICATION_POLICY_CLASS, source, target)
    if isinstance(named, type):
        options = {"source_alias": source, "separator": separator, "internal_separator": internal}
        try:
            return make_policy(named, options)
        except ValueError as reason:
            raise _unfit(values, declared.REPLICATION_POLICY_CLASS, source, target, reason) from None
    if named == "IdentityReplicationPolicy":
        return IdentityReplicationPolicy(source, separator, internal)
    return DefaultReplicationPolicy(separator, internal)


def _settings_left_alone(values: Values, source: str, target: str) -> Matches:
    own = _own_filter(values, syncing.CONFIG_PROPERTY_FILTER_CLASS, source, target)
    return AllBut(own) if own else NameFilter(values.get(declared.CONFIG_PROPERTIES_EXCLUDE, source, target))


def _own_filter(values: Values, setting: Setting[str | type[object]], source: str, target: str) -> Matches | None:
    """A filter of the user's own class, if the setting names one."""
    named = values.get(setting, source, target)
    if not isinstance(named, type):
        return None
    try:
        return make_filter(named, values.of_flow(source, target))
    except ValueError as reason:
        raise _unfit(values, setting, source, target, reason) from None


def _unfit(
    values: Values, setting: Setting[str | type[object]], source: str, target: str, reason: ValueError
) -> ConfigError:
    entry = values.find(setting, source, target)
    assert entry is not None, "no default names a class of a user's own"
    return values.error(entry, f"'{entry.value}' {reason}")


def _given(values: Values, setting: Setting[str], source: str, target: str) -> str:
    """Empty where nothing stands in the file: the default has the flow's source in it."""
    entry = values.find(setting, source, target)
    return "" if entry is None else values.parse(setting, entry)


def _every(values: Values, enabled: Setting[bool], interval: Setting[int], source: str, target: str) -> float | None:
    """How often something is done; None for never."""
    if not values.get(enabled, source, target):
        return None
    seconds = values.get(interval, source, target)
    entry = values.find(interval, source, target)
    if seconds == 0 and entry is not None:
        raise values.error(entry, f"0 seconds is no interval: set {enabled.name} = false to switch it off")
    return float(seconds) if seconds > 0 else None
