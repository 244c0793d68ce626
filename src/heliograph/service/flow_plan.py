"""What a run would do, without doing anything: for `heliograph run --plan`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from heliograph.control.acl_sync import AclSync
from heliograph.control.config_sync import pending_changes
from heliograph.control.internal_topic_setup import look_up
from heliograph.control.takeover import take_over
from heliograph.control.topic_sync import plan, wanted_partitions
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import CHECKPOINT, SOURCE, Flow
from heliograph.model.partitions import MirrorPartition
from heliograph.service.cycles import cycle_of
from heliograph.service.partition_position import partition_positions
from heliograph.wire.cluster import ClusterClient, Topic
from heliograph.wire.consumer_groups import consumer_groups


@dataclass(slots=True)
class FlowPlan:
    """`copy` counts source offsets, so that a hole counts as if there were records."""

    flow: str
    internal: list[str] = field(default_factory=list)  # topics to create, each with its cluster
    create: dict[str, int] = field(default_factory=dict)  # mirror -> partitions
    grow: dict[str, int] = field(default_factory=dict)
    settings: dict[str, dict[str, str | None]] = field(default_factory=dict)  # mirror -> changes
    access_rules: int = 0
    taken_over: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    copy: dict[str, int] = field(default_factory=dict)  # source topic -> offsets to go
    groups: int = 0


async def plan_flow(flow: Flow, flows: tuple[Flow, ...]) -> FlowPlan:
    """Only asks. What would be decided by looking at records while copying is not foreseen."""
    source, target = ClusterClient(flow.source), ClusterClient(flow.target)
    try:
        outcome = FlowPlan(flow.name)
        for one, there in await look_up(flow, source, target):
            if there.error:
                outcome.internal.append(f"{one.topic.name} on {(source if one.on_source else target).cluster.alias}")
        if SOURCE in flow.parts:
            topics = (await source.metadata(None)).topics
            rest = {name: topic for name, topic in topics.items() if not cycle_of(name, flow, flows)}
            await _mirrors(flow, source, target, rest, outcome)
        if CHECKPOINT in flow.parts and flow.groups.checkpoints_every is not None:
            outcome.groups = sum(map(flow.groups.names.matches, await consumer_groups(source)))
        return outcome
    finally:
        source.close()
        target.close()


async def _mirrors(
    flow: Flow, source: ClusterClient, target: ClusterClient, there: Mapping[str, Topic], outcome: FlowPlan
) -> None:
    here = (await target.metadata(None)).topics
    todo = plan(flow, there, here)
    outcome.create = {flow.mirror_name(name): wanted_partitions(flow, there[name]) for name in todo.create}
    outcome.grow = dict(todo.grow)
    if flow.topic_sync.configs_every is not None:
        outcome.settings, _unknown = await pending_changes(flow, source, target, todo.existing)
    if flow.topic_sync.acls_every is not None:
        outcome.access_rules = len(await AclSync(flow).missing(source, target))
    ledger = Ledger(target, flow.source.alias)
    if ledger.topic in here:
        await ledger.catch_up()
    partitions = [
        MirrorPartition(name, flow.mirror_name(name), number)
        for name in todo.mirrored
        for number in there[name].leaders
    ]
    filled = [one for one in partitions if one.mirror in here and one.partition in here[one.mirror].leaders]
    taken = await take_over(flow, source, target, ledger, filled, dry=True)
    outcome.taken_over = [
        f"{one.partition}: mirror offset {one.mirror_end}, source offset {one.source}" for one in taken.taken
    ]
    outcome.refused = {str(one): why for one, why in taken.refused.items()}
    positions = {one.partition: one.source for one in taken.taken}
    for one in await partition_positions(flow, source, target, ledger, partitions, there, here):
        position = positions.get(one.partition, one.position)
        if position is None or one.source_end is None:
            outcome.refused.setdefault(str(one.partition), one.problem)
        elif one.source_end > position:
            topic = one.partition.topic
            outcome.copy[topic] = outcome.copy.get(topic, 0) + one.source_end - position
