"""What a run would do, without doing anything: for `heliograph run --plan`."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from heliograph.control.acls import AclSync
from heliograph.control.configs import pending_changes
from heliograph.control.internal_topics import look_up
from heliograph.control.takeover import take_over
from heliograph.control.topics import plan, wanted_partitions
from heliograph.copy.ledger import Ledger
from heliograph.copy.position import Facts, NoGo, next_position
from heliograph.copy.work import MirrorPartition
from heliograph.model.flow import CHECKPOINT, SOURCE, Flow
from heliograph.service.cycles import comes_home
from heliograph.wire.cluster import ClusterClient, Topic, id_text
from heliograph.wire.groups import consumer_groups
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets


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
            rest = {name: topic for name, topic in topics.items() if not comes_home(name, flow, flows)}
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
    read = [(one.topic, one.partition) for one in partitions]
    written = [(one.mirror, one.partition) for one in filled]
    committed = flow.reading.committed_only
    starts, ends, mirror_starts, mirror_ends = await asyncio.gather(
        list_offsets(source, there, read, EARLIEST, committed),
        list_offsets(source, there, read, LATEST, committed),
        list_offsets(target, here, written, EARLIEST, False),
        list_offsets(target, here, written, LATEST, False),
    )
    for one in partitions:
        known, place = (one.topic, one.partition), (one.mirror, one.partition)
        offsets = starts[known], ends[known], mirror_starts.get(place, 0), mirror_ends.get(place, 0)
        numbers = [offset for offset in offsets if isinstance(offset, int)]
        if len(numbers) < len(offsets):
            outcome.refused[str(one)] = f"its bounds cannot be read: {next(o for o in offsets if o not in numbers)}"
            continue
        start, end, mirror_start, mirror_end = numbers
        position = positions.get(one)
        if position is None:
            ids = id_text(there[one.topic].id), id_text(here[one.mirror].id) if one.mirror in here else ""
            facts = Facts(start, end, mirror_start, mirror_end, *ids, from_the_end=flow.reading.from_the_end)
            decision = next_position(ledger.of(known, facts.mirror_id), facts, flow.policies)
            if isinstance(decision, NoGo):
                outcome.refused.setdefault(str(one), decision.text)
                continue
            position = decision.position.source
        if end > position:
            outcome.copy[one.topic] = outcome.copy.get(one.topic, 0) + end - position
