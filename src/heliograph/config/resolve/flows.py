"""From settings to a flow: the value of every setting for one pair of clusters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from heliograph.config.declare import locations, supported
from heliograph.config.declare.locations import SettingLocation
from heliograph.config.declare.plugins import make_filter, make_policy
from heliograph.config.declare.setting import Setting
from heliograph.config.messages import ConfigError, ErrorCollector
from heliograph.config.read.entry import top_key
from heliograph.config.read.settings import Settings
from heliograph.config.resolve import security
from heliograph.model import flow
from heliograph.model.compression import Compression
from heliograph.model.names import AllBut, Matches, NameFilter
from heliograph.model.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy

T = TypeVar("T")


def build_flow(settings: Settings, source: str, target: str, errors: ErrorCollector) -> flow.Flow:
    """The flow is not to be used if there are `errors`."""
    read = _FlowReader(settings, source, target, errors)
    pair = (source, target)
    clients = {role: security.client(settings, role, pair, errors) for role in security.ROLES}
    of_source = build_cluster(settings, source, pair, locations.OF_SOURCE, errors)
    of_target = build_cluster(settings, target, pair, locations.OF_TARGET, errors)
    of_source = security.secured(of_source, clients[security.SOURCE_ADMIN])
    of_target = security.secured(of_target, clients[security.TARGET_ADMIN])
    return flow.Flow(
        source=of_source,
        target=of_target,
        reader=security.unless_equal(of_source, clients[security.SOURCE_CONSUMER]),
        writer=security.unless_equal(of_target, clients[security.TARGET_PRODUCER]),
        parts=read.get(supported.PARTS),
        policy=_policy(read),
        topics=read.own_filter(supported.TOPIC_FILTER_CLASS)
        or NameFilter(read.get(supported.TOPICS), read.get(supported.TOPICS_EXCLUDE)),
        paused_topics=frozenset(read.get(supported.TOPICS_PAUSED)) - {""},
        heartbeats_replication=read.get(supported.HEARTBEATS_REPLICATION_ENABLED),
        replication_factor=read.get(supported.REPLICATION_FACTOR),
        tasks_max=read.get(supported.TASKS_MAX),
        refresh_topics_every=read.interval(supported.REFRESH_TOPICS_ENABLED, supported.REFRESH_TOPICS_INTERVAL),
        least_partitions=read.get(supported.PARTITIONS),
        kept_offsets=_kept_offsets(read),
        topic_sync=_topic_sync(read),
        offset_syncs=flow.OffsetSyncs(
            read.get(supported.EMIT_OFFSET_SYNCS_ENABLED),
            read.get(supported.OFFSET_SYNCS_LOCATION) == "target",
            read.get(supported.OFFSET_LAG_MAX),
            read.get(supported.OFFSET_SYNCS_FACTOR),
        ),
        groups=_groups(read),
        heartbeats=flow.Heartbeats(
            read.interval(supported.EMIT_HEARTBEATS_ENABLED, supported.EMIT_HEARTBEATS_INTERVAL),
            read.get(supported.HEARTBEATS_FACTOR),
        ),
        connect_offsets=flow.ConnectOffsets(
            read.if_set(supported.OFFSET_STORAGE_TOPIC),
            read.get(supported.MM2_CONNECTOR),
            read.if_set(supported.GROUP_ID),
        ),
        reading=_reading(read),
        writing=flow.Writing(
            read.get(supported.MAX_REQUEST_SIZE),
            read.get(supported.REQUEST_TIMEOUT, locations.OF_WRITING) / 1000,
            read.get(supported.BATCH_SIZE) if read.get(supported.JOIN) == supported.AUTO else 0,
            read.get(supported.COMPILED_CODE) == supported.AUTO,
            _compression(read),
        ),
        buffer_memory=read.get(supported.BUFFER_MEMORY),
        lease_seconds=read.get(supported.LEASE_SECONDS),
        max_bytes_per_second=read.get(supported.MAX_BYTES_PER_SECOND),
        may_raise_limits=read.get(supported.RAISE_MIRROR_LIMITS),
        policies=flow.Policies(
            read.get(supported.ON_DATA_LOSS),
            read.get(supported.ON_RECREATED_TOPIC),
            read.get(supported.ON_FOREIGN_WRITER),
            _on_refused_record(read),
        ),
    )


def build_cluster(
    settings: Settings,
    alias: str,
    pair: tuple[str, str],
    of: tuple[SettingLocation, ...],
    errors: ErrorCollector,
) -> flow.Cluster:
    """A cluster as one of its clients sees it: name and timeout may differ from client to client, addresses do not."""
    if settings.find(supported.BOOTSTRAP_SERVERS, alias, alias) is None:
        line = settings.entries[top_key(supported.CLUSTERS.name)].line
        # Without a line it comes from connectors, which are checked elsewhere: one that only writes heartbeats needs no
        # source address.
        if line:
            text = f"the cluster {alias} is listed in 'clusters' (line {line}) but has no address"
            errors.add(ConfigError(f"{settings.file}: no {alias}.bootstrap.servers: {text}"))
        return flow.Cluster(alias, ())
    return flow.Cluster(
        alias,
        settings.get(supported.BOOTSTRAP_SERVERS, alias, alias),
        settings.get(supported.CLIENT_ID, *pair, of),
        settings.get(supported.REQUEST_TIMEOUT, *pair, of) / 1000,
    )


@dataclass(frozen=True, slots=True)
class _FlowReader:
    settings: Settings
    source: str
    target: str
    errors: ErrorCollector

    def get(self, setting: Setting[T], of: tuple[SettingLocation, ...] | None = None) -> T:
        return self.settings.get(setting, self.source, self.target, of)

    def is_set(self, setting: Setting[object]) -> bool:
        return self.settings.find(setting, self.source, self.target) is not None

    def if_set(self, setting: Setting[str]) -> str:
        """'' if it is not in the file: for a default that contains the flow's source."""
        entry = self.settings.find(setting, self.source, self.target)
        return "" if entry is None else self.settings.parse(setting, entry)

    def interval(self, enabled: Setting[bool], interval: Setting[int]) -> float | None:
        """How often something is done; None for never."""
        if not self.get(enabled):
            return None
        seconds = self.get(interval)
        entry = self.settings.find(interval, self.source, self.target)
        if seconds == 0 and entry is not None:
            text = f"0 seconds is not an interval: set {enabled.name} = false to disable it"
            self.errors.add(self.settings.error(entry, text))
        return float(seconds) if seconds > 0 else None

    def own_instance(self, setting: Setting[str | type[object]], make: Callable[[type[object]], T]) -> T | None:
        """Of the user's own class, if the setting names one."""
        named = self.get(setting)
        if isinstance(named, type):
            with self.errors:
                try:
                    return make(named)
                except ValueError as reason:
                    entry = self.settings.find(setting, self.source, self.target)
                    assert entry is not None, "no default names a user's own class"
                    raise self.settings.error(entry, f"'{entry.value}' {reason}") from None
        return None

    def own_filter(self, setting: Setting[str | type[object]]) -> Matches | None:
        return self.own_instance(setting, lambda cls: make_filter(cls, self.settings.of_flow(self.source, self.target)))


def _policy(read: _FlowReader) -> ReplicationPolicy:
    separator = read.get(supported.REPLICATION_POLICY_SEPARATOR)
    internal = None if read.get(supported.INTERNAL_TOPIC_SEPARATOR_ENABLED) else "."
    options = {"source_alias": read.source, "separator": separator, "internal_separator": internal}
    own = read.own_instance(supported.REPLICATION_POLICY_CLASS, lambda cls: make_policy(cls, options))
    if own is not None:
        return own
    if read.get(supported.REPLICATION_POLICY_CLASS) == "IdentityReplicationPolicy":
        return IdentityReplicationPolicy(read.source, separator, internal)
    return DefaultReplicationPolicy(separator, internal)


def _kept_offsets(read: _FlowReader) -> flow.KeptOffsets:
    preserve = read.get(supported.OFFSETS) == supported.PRESERVE
    return flow.KeptOffsets(
        NameFilter(read.get(supported.PRESERVE_TOPICS)) if preserve else None,
        read.get(supported.PRESERVE_MAX_FILL),
        read.get(supported.PRESERVE_MAX_GAP),
    )


def _topic_sync(read: _FlowReader) -> flow.TopicSync:
    own = read.own_filter(supported.CONFIG_PROPERTY_FILTER_CLASS)
    return flow.TopicSync(
        read.interval(supported.SYNC_TOPIC_CONFIGS_ENABLED, supported.SYNC_TOPIC_CONFIGS_INTERVAL),
        read.interval(supported.SYNC_TOPIC_ACLS_ENABLED, supported.SYNC_TOPIC_ACLS_INTERVAL),
        AllBut(own) if own else NameFilter(read.get(supported.CONFIG_PROPERTIES_EXCLUDE)),
        read.get(supported.USE_DEFAULTS_FROM) == "source",
    )


def _groups(read: _FlowReader) -> flow.Groups:
    return flow.Groups(
        read.own_filter(supported.GROUP_FILTER_CLASS)
        or NameFilter(read.get(supported.GROUP_NAMES), read.get(supported.GROUPS_EXCLUDE)),
        read.interval(supported.REFRESH_GROUPS_ENABLED, supported.REFRESH_GROUPS_INTERVAL),
        read.interval(supported.EMIT_CHECKPOINTS_ENABLED, supported.EMIT_CHECKPOINTS_INTERVAL),
        read.interval(supported.SYNC_GROUP_OFFSETS_ENABLED, supported.SYNC_GROUP_OFFSETS_INTERVAL),
        read.get(supported.CHECKPOINTS_FACTOR),
        read.get(supported.SYNC_GROUP_DELETES),
    )


def _reading(read: _FlowReader) -> flow.Reading:
    return flow.Reading(
        read.get(supported.FETCH_MAX_BYTES),
        read.get(supported.MAX_PARTITION_FETCH_BYTES),
        read.get(supported.FETCH_MIN_BYTES),
        read.get(supported.FETCH_MAX_WAIT) / 1000,
        read.get(supported.ISOLATION_LEVEL) == "read_committed",
        read.get(supported.AUTO_OFFSET_RESET) == "latest",
        read.get(supported.CLIENT_RACK).strip(),
    )


def _compression(read: _FlowReader) -> Compression | None:
    """None unless the file asks for one: MM2 writes without compression by default, Heliograph copies batches as they
    are."""
    name = read.if_set(supported.COMPRESSION_TYPE)
    if not name:
        return None
    level = supported.COMPRESSION_LEVELS.get(name)
    return Compression(name, None if level is None else read.get(level))


def _on_refused_record(read: _FlowReader) -> str:
    """With `errors.tolerance = all` MM2 skips a record that its producer cannot send. Here it goes to the dead-letter
    topic, unless the file says otherwise."""
    if read.is_set(supported.ON_REFUSED_RECORD) or read.get(supported.ERRORS_TOLERANCE) != supported.ALL_ERRORS:
        return read.get(supported.ON_REFUSED_RECORD)
    return flow.CONTINUE
