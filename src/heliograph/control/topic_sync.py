"""The topics syncer: which topics are mirrored, which mirrors must be created or grown."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from heliograph.control.config_sync import ANY_TIME, FAITHFUL, new_mirror_configs
from heliograph.model.flow import Flow
from heliograph.wire.cluster import ClusterClient, Topic
from heliograph.wire.errors import INVALID_CONFIG, INVALID_PARTITIONS, TOPIC_ALREADY_EXISTS, BrokerError, lacking
from heliograph.wire.topic_requests import NewTopic, create_partitions, create_topics, describe_configs

log = logging.getLogger(__name__)

_TRIES = 5  # a broker complains about one setting at a time


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
    """What this flow mirrors, and what the target lacks for it."""
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
    """How many partitions the mirror of this source topic must have at least."""
    return max(len(topic.leaders), flow.least_partitions)


@dataclass(frozen=True, slots=True)
class TopicSyncResult:
    """Source topics that have a mirror, with their partition counts, and why others have none. `too_wide`: those whose
    mirrors have more partitions than they should, with how many; no broker takes partitions away."""

    partitions: dict[str, int]
    failed: dict[str, str]
    too_wide: dict[str, int] = field(default_factory=dict)


async def sync_topics(
    flow: Flow, source: ClusterClient, target: ClusterClient, there: Mapping[str, Topic]
) -> TopicSyncResult:
    """Create and grow the mirrors of the source's topics, `there`. One that fails does not hold up the others."""
    here = (await target.metadata(None)).topics
    todo = plan(flow, there, here)
    failed = await _create(flow, source, target, [(name, wanted_partitions(flow, there[name])) for name in todo.create])
    grown = await create_partitions(target, todo.grow)
    counts = {}
    for name in todo.mirrored:
        mirror, wanted = flow.mirror_name(name), len(there[name].leaders)
        problem = grown.get(mirror)
        if mirror in todo.grow and problem is None:
            log.info("%s: mirror %s grown to %d partitions", flow.name, mirror, todo.grow[mirror])
        if mirror in todo.grow and problem is not None and problem.code != INVALID_PARTITIONS:
            failed[name] = f"mirror {mirror} could not be grown to {todo.grow[mirror]} partitions: {problem}"
            failed[name] += lacking(problem.code, "Alter")
            wanted = min(wanted, len(here[mirror].leaders))
        if name not in failed or mirror in here:
            counts[name] = wanted
    too_wide = {
        name: count
        for name in counts
        if (mirror := flow.mirror_name(name)) in here
        and (count := len(here[mirror].leaders)) > wanted_partitions(flow, there[name])
    }
    return TopicSyncResult(counts, failed, too_wide)


async def _create(
    flow: Flow, source: ClusterClient, target: ClusterClient, topics: list[tuple[str, int]]
) -> dict[str, str]:
    if not topics:
        return {}
    configs = await describe_configs(source, [name for name, _count in topics])
    failed = {
        name: f"its configs cannot be read: {said}{lacking(said.code, 'DescribeConfigs')}"
        for name, said in configs.items()
        if isinstance(said, BrokerError)
    }
    topics = [(name, count) for name, count in topics if name not in failed]
    new = {
        flow.mirror_name(name): NewTopic(
            flow.mirror_name(name),
            count,
            flow.replication_factor,
            tuple(sorted(new_mirror_configs(flow.topic_sync, there).items())),
        )
        for name, count in topics
        if isinstance(there := configs.get(name, {}), dict)
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
    """Without the settings that the target complains about, which another version may not know; those about times go
    together."""
    named = {key for key, _value in topic.configs if re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", complaint)}
    dropped = named - FAITHFUL.keys() or ANY_TIME.keys()
    if dropped & ANY_TIME.keys():
        dropped = dropped | ANY_TIME.keys()
    for key in sorted(dropped - ANY_TIME.keys()):
        log.warning("mirror %s is created without %s, which the target does not take: %s", topic.name, key, complaint)
    kept = tuple((key, value) for key, value in topic.configs if key not in dropped)
    return NewTopic(topic.name, topic.partitions, topic.replication_factor, kept)


def _advice(flow: Flow, error: BrokerError) -> str:
    if error.name == "INVALID_REPLICATION_FACTOR":
        return f"{error} (replication.factor is {flow.replication_factor}: set it to at most the number of brokers)"
    return f"{error}{lacking(error.code, 'Create')}"
