"""Syncing topics: which topics are mirrored, which mirrors must be created or get more partitions."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from heliograph.control.config_sync import ANY_TIME, FAITHFUL, new_mirror_configs
from heliograph.model.flow import Flow
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import INVALID_CONFIG, INVALID_PARTITIONS, TOPIC_ALREADY_EXISTS, BrokerError, lacking
from heliograph.wire.metadata import Topic
from heliograph.wire.topic_requests import NewTopic, create_partitions, create_topics, describe_configs

log = logging.getLogger(__name__)

_TRIES = 5  # a broker rejects one config at a time


@dataclass(frozen=True, slots=True)
class TopicPlan:
    mirrored: tuple[str, ...]  # source topics
    create: tuple[str, ...]  # source topics whose mirror is missing
    grow: dict[str, int]  # mirror -> partitions

    @property
    def existing(self) -> list[str]:
        """Source topics that have a mirror."""
        missing = set(self.create)
        return [name for name in self.mirrored if name not in missing]


def plan(flow: Flow, source: Mapping[str, Topic], target: Mapping[str, Topic]) -> TopicPlan:
    """Which topics this flow mirrors, and what is missing on the target."""
    mirrored = tuple(
        sorted(name for name, topic in source.items() if not topic.internal and not topic.error and flow.selects(name))
    )
    create = tuple(name for name in mirrored if flow.mirror_name(name) not in target)
    grow = {
        mirror: wanted
        for name in mirrored
        if (mirror := flow.mirror_name(name)) in target
        and (wanted := wanted_partitions(flow, source[name])) > len(target[mirror].leaders)
    }
    return TopicPlan(mirrored, create, grow)


def wanted_partitions(flow: Flow, topic: Topic) -> int:
    """The least number of partitions that the mirror of this source topic must have."""
    return max(len(topic.leaders), flow.least_partitions)


@dataclass(frozen=True, slots=True)
class TopicSyncResult:
    """Partition counts of source topics that have a mirror, and why others have none. `too_wide`: partition counts of
    mirrors that have too many; partitions cannot be deleted."""

    partitions: dict[str, int]
    failed: dict[str, str]
    too_wide: dict[str, int] = field(default_factory=dict)


async def sync_topics(
    flow: Flow, source: ClusterClient, target: ClusterClient, source_topics: Mapping[str, Topic]
) -> TopicSyncResult:
    """Creates and grows the mirrors of the source's topics. One that fails does not hold up the others."""
    mirrors = (await target.metadata(None)).topics
    todo = plan(flow, source_topics, mirrors)
    missing = [(name, wanted_partitions(flow, source_topics[name])) for name in todo.create]
    failed = await _create(flow, source, target, missing)
    grown = await create_partitions(target, todo.grow)
    counts = {}
    for name in todo.mirrored:
        mirror, wanted = flow.mirror_name(name), len(source_topics[name].leaders)
        problem = grown.get(mirror)
        if mirror in todo.grow and problem is None:
            log.info("%s: mirror %s grown to %d partitions", flow.name, mirror, todo.grow[mirror])
        if mirror in todo.grow and problem is not None and problem.code != INVALID_PARTITIONS:
            failed[name] = f"mirror {mirror} could not be grown to {todo.grow[mirror]} partitions: {problem}"
            failed[name] += lacking(problem.code, "Alter")
            wanted = min(wanted, len(mirrors[mirror].leaders))
        if name not in failed or mirror in mirrors:
            counts[name] = wanted
    too_wide = {
        name: count
        for name in counts
        if (mirror := flow.mirror_name(name)) in mirrors
        and (count := len(mirrors[mirror].leaders)) > wanted_partitions(flow, source_topics[name])
    }
    return TopicSyncResult(counts, failed, too_wide)


async def _create(
    flow: Flow, source: ClusterClient, target: ClusterClient, topics: list[tuple[str, int]]
) -> dict[str, str]:
    if not topics:
        return {}
    configs = await describe_configs(source, [name for name, _count in topics])
    failed = {
        name: f"its configs cannot be read: {error}{lacking(error.code, 'DescribeConfigs')}"
        for name, error in configs.items()
        if isinstance(error, BrokerError)
    }
    topics = [(name, count) for name, count in topics if name not in failed]
    new = {
        flow.mirror_name(name): NewTopic(
            flow.mirror_name(name),
            count,
            flow.replication_factor,
            tuple(sorted(new_mirror_configs(flow.topic_sync, source_configs).items())),
        )
        for name, count in topics
        if isinstance(source_configs := configs.get(name, {}), dict)
    }
    outcomes = await create_topics(target, list(new.values()))
    for _ in range(_TRIES):
        fewer = [
            _without(new[mirror], error.detail or "")
            for mirror, error in outcomes.items()
            if error and error.code == INVALID_CONFIG
        ]
        new |= {topic.name: topic for topic in fewer}
        outcomes |= await create_topics(target, fewer)
    for name, count in topics:
        mirror = flow.mirror_name(name)
        error = outcomes.get(mirror)
        if error is None:
            log.info("%s: mirror %s created with %d partitions", flow.name, mirror, count)
        elif error.code != TOPIC_ALREADY_EXISTS:
            failed[name] = f"mirror {mirror} could not be created: {_advice(flow, error)}"
    return failed


def _without(topic: NewTopic, complaint: str) -> NewTopic:
    """Without the configs that the target rejects, which its version may not know; those about timestamps are removed
    together."""
    named = {key for key, _value in topic.configs if re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", complaint)}
    dropped = named - FAITHFUL.keys() or ANY_TIME.keys()
    if dropped & ANY_TIME.keys():
        dropped = dropped | ANY_TIME.keys()
    for key in sorted(dropped - ANY_TIME.keys()):
        log.warning("mirror %s is created without %s, which the target rejects: %s", topic.name, key, complaint)
    kept = tuple((key, value) for key, value in topic.configs if key not in dropped)
    return NewTopic(topic.name, topic.partitions, topic.replication_factor, kept)


def _advice(flow: Flow, error: BrokerError) -> str:
    if error.name == "INVALID_REPLICATION_FACTOR":
        return f"{error} (replication.factor is {flow.replication_factor}: set it to at most the number of brokers)"
    return f"{error}{lacking(error.code, 'Create')}"
