"""What a run would do, without changing anything: for `heliograph run --plan`."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from heliograph.control.acl_sync import AclSync
from heliograph.control.config_sync import pending_changes
from heliograph.control.internal_topic_setup import look_up
from heliograph.control.takeover import TakeOverResult, take_over
from heliograph.control.topic_sync import plan, wanted_partitions
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import CHECKPOINT, SOURCE, Flow
from heliograph.model.partitions import MirrorPartition
from heliograph.service.cycles import cycle_of
from heliograph.service.partition_position import partition_positions
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import consumer_groups
from heliograph.wire.errors import BrokerError
from heliograph.wire.metadata import Topic


@dataclass(slots=True)
class FlowPlan:
    """`copy` counts source offsets, also those without records."""

    flow: str
    internal: list[str] = field(default_factory=list)  # topics to create, each with its cluster
    create: dict[str, int] = field(default_factory=dict)  # mirror -> partitions
    grow: dict[str, int] = field(default_factory=dict)
    settings: dict[str, dict[str, str | None]] = field(default_factory=dict)  # mirror -> changes
    access_rules: int = 0
    taken_over: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    copy: dict[str, int] = field(default_factory=dict)  # source topic -> offsets to copy
    groups: int = 0
    not_known: list[str] = field(default_factory=list)  # what we are not allowed to look at, and why


async def plan_flow(flow: Flow, flows: tuple[Flow, ...]) -> FlowPlan:
    """Reads only. What copiers decide by looking at records is not foreseen."""
    with closing(ClusterClient(flow.source)) as source, closing(ClusterClient(flow.target)) as target:
        outcome = FlowPlan(flow.name)
        for internal, existing in await look_up(flow, source, target):
            if existing.error:
                cluster = (source if internal.on_source else target).cluster
                outcome.internal.append(f"{internal.topic.name} on {cluster.alias}")
        if SOURCE in flow.parts:
            topics = (await source.metadata(None)).topics
            not_cyclic = {name: topic for name, topic in topics.items() if not cycle_of(name, flow, flows)}
            await _plan_mirrors(flow, source, target, not_cyclic, outcome)
        if CHECKPOINT in flow.parts and flow.groups.checkpoints_every is not None:
            outcome.groups = sum(map(flow.groups.names.matches, await consumer_groups(source)))
        return outcome


@contextmanager
def _if_allowed(outcome: FlowPlan, what: str) -> Iterator[None]:
    try:
        yield
    except BrokerError as error:
        if not error.forbidden:
            raise
        outcome.not_known.append(f"{what}: {error}")


async def _plan_mirrors(
    flow: Flow, source: ClusterClient, target: ClusterClient, source_topics: Mapping[str, Topic], outcome: FlowPlan
) -> None:
    target_topics = (await target.metadata(None)).topics
    todo = plan(flow, source_topics, target_topics)
    outcome.create = {flow.mirror_name(name): wanted_partitions(flow, source_topics[name]) for name in todo.create}
    outcome.grow = dict(todo.grow)
    if flow.topic_sync.configs_every is not None:
        outcome.settings, _unknown = await pending_changes(flow, source, target, todo.existing)
    if flow.topic_sync.acls_every is not None:
        with _if_allowed(outcome, "access rules to create"):
            outcome.access_rules = len(await AclSync(flow).missing(source, target))
    ledger = Ledger(target, flow.source.alias)
    if ledger.topic in target_topics:
        await ledger.catch_up()
    partitions = [
        MirrorPartition(name, flow.mirror_name(name), number)
        for name in todo.mirrored
        for number in source_topics[name].leaders
    ]
    existing = [
        partition
        for partition in partitions
        if partition.mirror in target_topics and partition.partition in target_topics[partition.mirror].leaders
    ]
    result = TakeOverResult()
    with _if_allowed(outcome, "mirrors to take over from MirrorMaker 2"):
        result = await take_over(flow, source, target, ledger, existing, dry=True)
    outcome.taken_over = [
        f"{taken.partition}: mirror offset {taken.mirror_end}, source offset {taken.source}" for taken in result.taken
    ]
    outcome.refused = {str(partition): why for partition, why in result.refused.items()}
    taken_at = {taken.partition: taken.source for taken in result.taken}
    for at in await partition_positions(flow, source, target, ledger, partitions, source_topics, target_topics):
        position = taken_at.get(at.partition, at.position)
        if position is None or at.source_end is None:
            outcome.refused.setdefault(str(at.partition), at.problem)
        elif at.source_end > position:
            topic = at.partition.topic
            outcome.copy[topic] = outcome.copy.get(topic, 0) + at.source_end - position
