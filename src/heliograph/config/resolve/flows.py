"""From settings to a flow: the value of every setting for one pair of clusters."""

from dataclasses import dataclass
from typing import TypeVar

from heliograph.config.declare import locations, supported
from heliograph.config.declare.locations import SettingLocation
from heliograph.config.declare.plugins import make_filter
from heliograph.config.declare.setting import Setting
from heliograph.config.messages import ConfigError, ErrorCollector
from heliograph.config.read.entry import top_key
from heliograph.config.read.settings import Settings
from heliograph.config.resolve import naming, security
from heliograph.config.resolve.connecting import connecting, retry_backoff
from heliograph.model import flow
from heliograph.model.compression import Compression
from heliograph.model.names import AllBut, Matches, NameFilter

T = TypeVar("T")


def build_flow(settings: Settings, source: str, target: str, errors: ErrorCollector) -> flow.Flow:
    """The flow is not to be used if there are `errors`."""
    read = _FlowReader(settings, source, target, errors)
    pair = (source, target)
    aliases = naming.connector_aliases(settings, pair)
    source_alias = source if aliases is None else aliases[0]
    clients = {role: _client(settings, role, pair, errors) for role in security.ROLES}
    of_source, of_target = clients[security.SOURCE_ADMIN], clients[security.TARGET_ADMIN]
    reader, writer = clients[security.SOURCE_CONSUMER], clients[security.TARGET_PRODUCER]
    return flow.Flow(
        source=of_source,
        target=of_target,
        reader=reader if reader != of_source else None,
        writer=writer if writer != of_target else None,
        retry_backoff=retry_backoff(read.client(locations.OF_READING), read.client(locations.OF_WRITING)),
        parts=read.get(supported.PARTS),
        connector_aliases=aliases,
        policy=naming.policy(settings, pair, source_alias, errors),
        checkpoint_policy=naming.checkpoint_policy(settings, pair, source_alias, errors),
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
            read.get(supported.MM2_OFFSETS_TOPIC) or read.if_set(supported.OFFSET_STORAGE_TOPIC),
            read.get(supported.MM2_CONNECTOR),
            read.get(supported.MM2_GROUP) or read.if_set(supported.GROUP_ID),
            read.get(supported.MM2_STATUS_TOPIC),
        ),
        flush_offsets_every=read.get(supported.OFFSET_FLUSH_INTERVAL) / 1000,
        reading=_reading(read),
        writing=flow.Writing(
            read.get(supported.MAX_REQUEST_SIZE),
            writer.request_timeout,
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


_CLIENTS = {
    security.SOURCE_ADMIN: locations.OF_SOURCE,
    security.SOURCE_CONSUMER: locations.OF_READING,
    security.TARGET_ADMIN: locations.OF_TARGET,
    security.TARGET_PRODUCER: locations.OF_WRITING,
}


def _client(settings: Settings, role: str, pair: tuple[str, str], errors: ErrorCollector) -> flow.Cluster:
    """A cluster of a flow as one of its clients reaches it."""
    alias = pair[0] if role in (security.SOURCE_ADMIN, security.SOURCE_CONSUMER) else pair[1]
    cluster = build_cluster(settings, alias, pair, _CLIENTS[role], errors)
    return security.secured(cluster, security.client(settings, role, pair, errors))


def build_cluster(
    settings: Settings,
    alias: str,
    pair: tuple[str, str],
    of: tuple[SettingLocation, ...],
    errors: ErrorCollector,
) -> flow.Cluster:
    """A cluster as one of its clients sees it, without security: name and timeouts may differ from client to client,
    addresses do not."""
    address = settings.find(supported.BOOTSTRAP_SERVERS, alias, alias)
    if address is not None and settings.is_known_elsewhere(address):
        return flow.Cluster(alias, ())
    if address is None:
        line = settings.entries[top_key(supported.CLUSTERS.name)].line
        # Without a line it comes from connectors, which are checked elsewhere: one that only writes heartbeats needs no
        # source address.
        if line:
            text = f"the cluster {alias} is listed in 'clusters' (line {line}) but has no address"
            errors.add(ConfigError(f"{settings.file}: no {alias}.bootstrap.servers: {text}"))
        return flow.Cluster(alias, ())
    client = security.Client(settings, pair, of, errors)
    return flow.Cluster(
        alias,
        settings.get(supported.BOOTSTRAP_SERVERS, alias, alias),
        client.get(supported.CLIENT_ID),
        client.get(supported.REQUEST_TIMEOUT) / 1000,
        connecting=connecting(client),
    )


@dataclass(frozen=True, slots=True)
class _FlowReader:
    settings: Settings
    source: str
    target: str
    errors: ErrorCollector

    def get(self, setting: Setting[T]) -> T:
        return self.settings.get(setting, self.source, self.target)

    def client(self, of: tuple[SettingLocation, ...]) -> security.Client:
        return security.Client(self.settings, (self.source, self.target), of, self.errors)

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

    def own_filter(self, setting: Setting[str | type[object]]) -> Matches | None:
        """An instance of the user's own class, if the setting names one."""
        named = self.get(setting)
        if isinstance(named, type):
            with self.errors:
                try:
                    return make_filter(named, self.settings.of_flow(self.source, self.target))
                except ValueError as reason:
                    entry = self.settings.find(setting, self.source, self.target)
                    assert entry is not None, "no default names a user's own class"
                    raise self.settings.error(entry, f"'{entry.value}' {reason}") from None
        return None


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
