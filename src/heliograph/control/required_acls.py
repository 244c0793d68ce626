"""The ACLs that a flow needs for what it does, and what is lost without each: all of it in one table.

By the requests that this version sends, not by those of MirrorMaker 2. A principal is who one of four clients logs in
as: the driver's client of the source and of the target, and the clients of the leases, which read the source and write
to the target.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from heliograph.control.internal_topic_setup import InternalTopic, internal_topics
from heliograph.control.mm2_offsets import offsets_topic
from heliograph.control.mm2_workers import workers_group
from heliograph.copy.gap_filler import transactional_id_prefix
from heliograph.model.acl import (
    ALTER,
    ALTER_CONFIGS,
    ANY_NAME,
    CLUSTER,
    CLUSTER_ACTION,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    IDEMPOTENT_WRITE,
    LITERAL,
    PREFIXED,
    READ,
    THE_CLUSTER,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    Grant,
    Named,
    Resource,
    fewest,
    resources_of,
    widest,
)
from heliograph.model.flow import CHECKPOINT, CONTINUE, SOURCE, Cluster, Flow
from heliograph.model.internal_topics import dead_letters_topic, intervals_topic, ledger_topic, signals_topic
from heliograph.model.policy import DefaultReplicationPolicy, IdentityReplicationPolicy


class Client(StrEnum):
    """Who needs an ACL."""

    SOURCE_DRIVER = "driver on the source"
    SOURCE_LEASES = "leases on the source"
    TARGET_DRIVER = "driver on the target"
    TARGET_LEASES = "leases on the target"

    def cluster(self, flow: Flow) -> Cluster:
        """As this client reaches it."""
        return {
            Client.SOURCE_DRIVER: flow.source,
            Client.SOURCE_LEASES: flow.reader or flow.source,
            Client.TARGET_DRIVER: flow.target,
            Client.TARGET_LEASES: flow.writer or flow.target,
        }[self]


_DRIVER = {False: Client.TARGET_DRIVER, True: Client.SOURCE_DRIVER}  # by whether it is about the source


class Feature(StrEnum):
    """What an ACL is for; the value is what is lost without it."""

    COPYING = "records are not copied"
    REPORTS = "the status is not known, and copying pauses whenever a lease ends, as none is renewed"
    NEW_MIRRORS = "mirrors are not created"
    MORE_PARTITIONS = "mirrors do not get more partitions"
    LARGE_BATCHES = "the limits of mirrors are not raised: a larger record stops its partition"
    INTERNAL_TOPICS = "a missing internal topic is not created"
    INTERNAL_TOPICS_CHECK = "settings of internal topics are not checked"
    TRIMMING = "the ledger's journal is not trimmed"
    OPEN_TRANSACTIONS = "producers of transactions that hang are not shown"
    CONFIGS = "topic configs are not synced"
    ACLS = "ACLs are not synced"
    OFFSET_SYNCS = "offset syncs for MirrorMaker 2's tools are not written"
    TAKE_OVER = "mirrors of MirrorMaker 2 are not taken over"
    HAND_BACK = "offsets for MirrorMaker 2 are not written"
    CHECKPOINTS = "group offsets are not translated"
    GROUP_OFFSETS = "group offsets are not synced"
    GROUP_DELETION = "groups are not deleted"
    HEARTBEATS = "heartbeats are not written"
    PRESERVE = "mirrors that preserve offsets are not copied"
    FAST_GAPS = "gaps in mirrors that preserve offsets are filled more slowly"
    DEAD_LETTERS = "a refused record stops its partition"
    MEMBERSHIP = "processes that run the same file do not share its flows: each runs all of them"

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", " ")


OPTIONAL = frozenset({Feature.FAST_GAPS})
# In this order: what is lost with another feature. Without copying there is nothing to sync, which goes without saying.
_NEEDS_FEATURE = {Feature.GROUP_OFFSETS: Feature.CHECKPOINTS, Feature.GROUP_DELETION: Feature.GROUP_OFFSETS}


@dataclass(frozen=True, slots=True)
class Need:
    """One row of the table: a client needs an operation for a feature."""

    client: Client
    grant: Grant
    feature: Feature


@dataclass(frozen=True, slots=True)
class Existing:
    """What the clusters have now: topics and groups of the source, topics of the target."""

    topics: Collection[str]
    groups: Collection[str]
    target_topics: Collection[str]


@dataclass(frozen=True, slots=True)
class Names:
    """The resources of a flow."""

    topics: tuple[Resource, ...]
    mirrors: tuple[Resource, ...]
    groups: tuple[Resource, ...]
    preserving: tuple[Resource, ...]  # the mirrors that preserve offsets
    wider: tuple[str, ...]  # patterns for which names that do not match are allowed as well
    has_earlier_ledger: bool = False


def names_of(flow: Flow, existing: Existing | None = None) -> Names:
    """With `existing`, topics and groups by their names; without, as the filters say."""
    topics = _topics(flow, existing)
    groups = Named(())
    if CHECKPOINT in flow.parts and flow.groups.checkpoints_every is not None:
        groups = resources_of(GROUP, flow.groups.names, None if existing is None else existing.groups)
    preserving = Named(())
    if flow.kept_offsets.topics is not None:
        selected = None if existing is None else [name for name in existing.topics if flow.selects(name)]
        preserving = resources_of(TOPIC, flow.kept_offsets.topics, selected)
        if Resource(TOPIC, ANY_NAME) in preserving.resources:
            preserving = topics
    return Names(
        topics.resources,
        _mirrors(flow, topics.resources),
        groups.resources,
        _mirrors(flow, preserving.resources),
        tuple(dict.fromkeys((*topics.wider, *groups.wider, *preserving.wider))),
        existing is not None and intervals_topic(flow.source.alias) in existing.target_topics,
    )


def _topics(flow: Flow, existing: Existing | None) -> Named:
    selected = None if existing is None else [name for name in existing.topics if flow.selects(name)]
    named = resources_of(TOPIC, flow.topics, selected)
    heartbeats = {flow.policy.heartbeats_topic()} if flow.heartbeats_replication else set()
    heartbeats |= {name for name in selected or () if flow.policy.is_heartbeats_topic(name)}
    return Named(tuple(widest({*named.resources, *(Resource(TOPIC, name) for name in heartbeats)})), named.wider)


def _mirrors(flow: Flow, topics: Iterable[Resource]) -> tuple[Resource, ...]:
    return tuple(widest({_mirror(flow, topic) for topic in topics}))


def _mirror(flow: Flow, topic: Resource) -> Resource:
    if topic.is_single:
        return Resource(TOPIC, flow.mirror_name(topic.name))
    if isinstance(flow.policy, DefaultReplicationPolicy):
        prefix = flow.mirror_name("" if topic.pattern == LITERAL else topic.name)
        # With an empty alias and an empty separator, mirrors have the names of their topics.
        return Resource(TOPIC, prefix, PREFIXED) if prefix else topic
    return topic if isinstance(flow.policy, IdentityReplicationPolicy) else Resource(TOPIC, ANY_NAME)


# --- the table ----------------------------------------------------------------------------------------------------

_Row = tuple[Feature, Client, Iterable[Resource], tuple[str, ...]]


def needs(flow: Flow, names: Names, idempotent_write: bool = False, members_group: str = "") -> list[Need]:
    """`idempotent_write`: the target's brokers are from before 2.8, and ask for that operation, too. `members_group` is
    the group of the processes that share the flow; empty if none do."""
    rows = [*_internal_rows(flow), *_syncing_rows(flow, names)]
    if members_group:
        # JoinGroup, SyncGroup, Heartbeat, LeaveGroup; FindCoordinator, DescribeGroups.
        rows.append((Feature.MEMBERSHIP, Client.TARGET_DRIVER, (Resource(GROUP, members_group),), (READ,)))
    if SOURCE in flow.parts:
        rows += [*_copying_rows(flow, names), *_preserve_rows(flow, names), *_mm2_rows(flow, names)]
        if idempotent_write:
            rows.append((Feature.COPYING, Client.TARGET_LEASES, _CLUSTER, (IDEMPOTENT_WRITE,)))
    return [
        Need(client, Grant(resource, operation), feature)
        for feature, client, resources, operations in rows
        for resource in resources
        for operation in operations
    ]


_CLUSTER = (Resource(CLUSTER, THE_CLUSTER),)


def _topic(name: str) -> tuple[Resource]:
    return (Resource(TOPIC, name),)


def _copying_rows(flow: Flow, names: Names) -> Iterator[_Row]:
    alias = flow.source.alias
    # Metadata, ListOffsets, Fetch, OffsetForLeaderEpoch; Produce. A lease reads a mirror's end to find its position.
    yield Feature.COPYING, Client.SOURCE_DRIVER, names.topics, (DESCRIBE,)
    yield Feature.COPYING, Client.SOURCE_LEASES, names.topics, (READ,)
    yield Feature.COPYING, Client.TARGET_DRIVER, names.mirrors, (DESCRIBE,)
    yield Feature.COPYING, Client.TARGET_LEASES, names.mirrors, (READ, WRITE)
    for client in (Client.TARGET_DRIVER, Client.TARGET_LEASES):
        yield Feature.COPYING, client, _topic(ledger_topic(alias)), (READ, WRITE)
        yield Feature.REPORTS, client, _topic(signals_topic(alias)), (READ, WRITE)
    if names.has_earlier_ledger:
        yield Feature.COPYING, Client.TARGET_DRIVER, _topic(intervals_topic(alias)), (READ,)
        yield Feature.COPYING, Client.TARGET_LEASES, _topic(intervals_topic(alias)), (READ,)
    # CreateTopics, with the configs of the source's topic; CreatePartitions.
    yield Feature.NEW_MIRRORS, Client.SOURCE_DRIVER, names.topics, (DESCRIBE, DESCRIBE_CONFIGS)
    yield Feature.NEW_MIRRORS, Client.TARGET_DRIVER, names.mirrors, (CREATE,)
    yield Feature.MORE_PARTITIONS, Client.SOURCE_DRIVER, names.topics, (DESCRIBE,)
    yield Feature.MORE_PARTITIONS, Client.TARGET_DRIVER, names.mirrors, (ALTER,)
    # DescribeConfigs, IncrementalAlterConfigs, after a broker has refused a batch for its size.
    limits = (DESCRIBE_CONFIGS, ALTER_CONFIGS) if flow.may_raise_limits else (DESCRIBE_CONFIGS,)
    yield Feature.LARGE_BATCHES, Client.TARGET_LEASES, names.mirrors, limits
    # DescribeProducers.
    yield Feature.OPEN_TRANSACTIONS, Client.SOURCE_DRIVER, names.topics, (READ,)
    if flow.policies.refused_record == CONTINUE:
        yield Feature.DEAD_LETTERS, Client.TARGET_LEASES, _topic(dead_letters_topic(alias)), (WRITE,)
        yield Feature.DEAD_LETTERS, Client.TARGET_DRIVER, _topic(dead_letters_topic(alias)), (DESCRIBE,)


def _preserve_rows(flow: Flow, names: Names) -> Iterator[_Row]:
    if flow.kept_offsets.topics is None:
        return
    # FindCoordinator, InitProducerId, AddPartitionsToTxn, EndTxn; DeleteRecords, where a mirror begins.
    transactional_ids = (Resource(TRANSACTIONAL_ID, transactional_id_prefix(flow.name), PREFIXED),)
    yield Feature.PRESERVE, Client.TARGET_LEASES, transactional_ids, (WRITE,)
    yield Feature.PRESERVE, Client.TARGET_LEASES, names.preserving, (DELETE,)
    # WriteTxnMarkers, instead of a transaction for each offset.
    yield Feature.FAST_GAPS, Client.TARGET_LEASES, _CLUSTER, (CLUSTER_ACTION,)


def _internal_rows(flow: Flow) -> Iterator[_Row]:
    for internal in internal_topics(flow, 0, 0):
        client, topic = _DRIVER[internal.on_source], _topic(internal.topic.name)
        yield Feature.INTERNAL_TOPICS, client, topic, (CREATE,)
        yield Feature.INTERNAL_TOPICS_CHECK, client, topic, (DESCRIBE_CONFIGS,)
        yield from _written_rows(flow, internal)
    if flow.parts & {SOURCE, CHECKPOINT}:
        ledger = _topic(ledger_topic(flow.source.alias))
        yield Feature.TRIMMING, Client.TARGET_DRIVER, ledger, (DELETE,)


def _written_rows(flow: Flow, internal: InternalTopic) -> Iterator[_Row]:
    """Produce to MirrorMaker 2's topics, and Fetch of what was written to them before."""
    name, client = internal.topic.name, _DRIVER[internal.on_source]
    if name == flow.offset_syncs_topic:
        yield Feature.OFFSET_SYNCS, client, _topic(name), (WRITE,)
    elif name == flow.checkpoints_topic:
        yield Feature.CHECKPOINTS, client, _topic(name), (READ, WRITE)
        yield Feature.CHECKPOINTS, client, _topic(ledger_topic(flow.source.alias)), (READ,)
    elif name == flow.policy.heartbeats_topic():
        yield Feature.HEARTBEATS, client, _topic(name), (WRITE,)


def _syncing_rows(flow: Flow, names: Names) -> Iterator[_Row]:
    source, target = Client.SOURCE_DRIVER, Client.TARGET_DRIVER
    if SOURCE in flow.parts and flow.topic_sync.configs_every is not None:
        yield Feature.CONFIGS, source, names.topics, (DESCRIBE, DESCRIBE_CONFIGS)
        yield Feature.CONFIGS, target, names.mirrors, (DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
    if SOURCE in flow.parts and flow.topic_sync.acls_every is not None:
        yield Feature.ACLS, source, _CLUSTER, (DESCRIBE,)
        yield Feature.ACLS, target, _CLUSTER, (DESCRIBE, ALTER)
    # ListGroups, FindCoordinator, OffsetFetch, which leaves out topics that the client may not describe; ListOffsets.
    yield Feature.CHECKPOINTS, source, names.groups, (DESCRIBE,)
    if names.groups:
        yield Feature.CHECKPOINTS, source, names.topics, (DESCRIBE,)
        yield Feature.CHECKPOINTS, target, names.mirrors, (DESCRIBE,)
    if names.groups and flow.groups.sync_every is not None:
        # OffsetCommit asks for Read on the topics as well.
        yield Feature.GROUP_OFFSETS, target, names.groups, (DESCRIBE, READ)
        yield Feature.GROUP_OFFSETS, target, names.mirrors, (READ,)
        if flow.groups.deletes:
            yield Feature.GROUP_DELETION, target, names.groups, (DELETE,)


def _mm2_rows(flow: Flow, names: Names) -> Iterator[_Row]:
    """MirrorMaker 2's offsets, and whether it still runs; records of both logs are compared with each other."""
    source, target = Client.SOURCE_DRIVER, Client.TARGET_DRIVER
    offsets = _topic(offsets_topic(flow))
    yield Feature.TAKE_OVER, target, offsets, (READ,)
    yield Feature.TAKE_OVER, target, (Resource(GROUP, workers_group(flow)),), (DESCRIBE,)
    if flow.connect_offsets.status_topic:
        yield Feature.TAKE_OVER, target, _topic(flow.connect_offsets.status_topic), (READ,)
    yield Feature.TAKE_OVER, _DRIVER[not flow.offset_syncs.on_target], _topic(flow.offset_syncs_topic), (READ,)
    yield Feature.TAKE_OVER, source, names.topics, (READ,)
    yield Feature.TAKE_OVER, target, names.mirrors, (READ,)
    yield Feature.HAND_BACK, target, offsets, (WRITE,)


# --- from the table to ACLs ---------------------------------------------------------------------------------------


def grants(table: Iterable[Need], with_optional: bool = False) -> list[Grant]:
    """The fewest ACLs with which a principal has all of these."""
    return fewest(need.grant for need in table if with_optional or need.feature not in OPTIONAL)


def lost_without(table: Collection[Need], grant: Grant) -> set[Feature]:
    """The features that are lost if this one of the `grants` is missing."""
    rest = [other for other in grants(table) if other != grant]
    lost = {
        need.feature
        for need in table
        if need.feature not in OPTIONAL and not any(other.allows(need.grant) for other in rest)
    }
    for feature, condition in _NEEDS_FEATURE.items():
        if condition in lost and any(need.feature is feature for need in table):
            lost.add(feature)
    return lost
