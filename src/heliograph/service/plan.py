"""What a run would do, without doing anything: for `heliograph run --plan`."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from heliograph.control.acls import mirror_acls
from heliograph.control.configs import config_changes
from heliograph.control.internal_topics import internal_topics
from heliograph.control.takeover import take_over
from heliograph.control.topics import plan, wanted_partitions
from heliograph.copy.ledger import Ledger
from heliograph.copy.work import MirrorPartition
from heliograph.model.flow import CHECKPOINT, HEARTBEAT, SOURCE, Flow
from heliograph.service.cycles import comes_home
from heliograph.wire.acls import topic_acls
from heliograph.wire.cluster import ClusterClient, Topic, id_text
from heliograph.wire.errors import WireError
from heliograph.wire.groups import consumer_groups
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets
from heliograph.wire.topics import describe_configs

Places = Mapping[tuple[str, int], int | WireError]


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
        await target.connect()
        if flow.parts != {HEARTBEAT}:
            await source.connect()
        outcome = FlowPlan(flow.name)
        await _internal(flow, source, target, outcome)
        if SOURCE in flow.parts:
            there = (await source.metadata(None)).topics
            rest = {name: topic for name, topic in there.items() if not comes_home(name, flow, flows)}
            await _mirrors(flow, source, target, rest, outcome)
        if CHECKPOINT in flow.parts and flow.groups.checkpoints_every is not None:
            outcome.groups = sum(map(flow.groups.names.matches, await consumer_groups(source)))
        return outcome
    finally:
        source.close()
        target.close()


async def _internal(flow: Flow, source: ClusterClient, target: ClusterClient, outcome: FlowPlan) -> None:
    for one in internal_topics(flow, len(source.brokers), len(target.brokers)):
        client = source if one.on_source else target
        if (await client.metadata([one.topic.name])).topics[one.topic.name].error:
            outcome.internal.append(f"{one.topic.name} on {client.cluster.alias}")


async def _mirrors(
    flow: Flow, source: ClusterClient, target: ClusterClient, there: Mapping[str, Topic], outcome: FlowPlan
) -> None:
    here = (await target.metadata(None)).topics
    todo = plan(flow, there, here)
    outcome.create = {flow.mirror_name(name): wanted_partitions(flow, there[name]) for name in todo.create}
    outcome.grow = dict(todo.grow)
    existing = [name for name in todo.mirrored if name not in todo.create]
    if flow.topic_sync.configs_every is not None:
        originals = await describe_configs(source, existing)
        copies = await describe_configs(target, [flow.mirror_name(name) for name in existing])
        for name in existing:
            original, mirror = originals.get(name), copies.get(flow.mirror_name(name))
            if isinstance(original, dict) and isinstance(mirror, dict):
                changes = config_changes(flow.topic_sync, original, mirror, flow.may_raise_limits)
                if changes:
                    outcome.settings[flow.mirror_name(name)] = changes
    if flow.topic_sync.acls_every is not None:
        rules = await topic_acls(source)
        wanted = mirror_acls(rules or (), flow.selects, flow.mirror_name).wanted
        outcome.access_rules = len(wanted - (await topic_acls(target) or set())) if wanted else 0
    ledger = Ledger(target, flow.source.alias)
    if ledger.topic in here:
        await ledger.catch_up()
    partitions = tuple(
        MirrorPartition(name, flow.mirror_name(name), number)
        for name in todo.mirrored
        for number in there[name].leaders
    )
    kept = tuple(one for one in partitions if one.mirror in here and one.partition in here[one.mirror].leaders)
    taken = await take_over(flow, source, target, ledger, kept, dry=True)
    outcome.taken_over = [
        f"{one.partition}: mirror offset {one.mirror_end}, source offset {one.source}" for one in taken.taken
    ]
    outcome.refused = {str(one): why for one, why in taken.refused.items()}
    known = {one.partition: one.source for one in taken.taken}
    await _to_copy(flow, (source, target), (there, here), partitions, known, ledger, outcome)


async def _to_copy(
    flow: Flow,
    clients: tuple[ClusterClient, ClusterClient],
    topics: tuple[Mapping[str, Topic], Mapping[str, Topic]],
    partitions: Iterable[MirrorPartition],
    known: Mapping[MirrorPartition, int],
    ledger: Ledger,
    outcome: FlowPlan,
) -> None:
    (source, target), (there, here) = clients, topics
    read = [(one.topic, one.partition) for one in partitions]
    written = [
        (one.mirror, one.partition)
        for one in partitions
        if one.mirror in here and one.partition in here[one.mirror].leaders
    ]
    committed = flow.reading.committed_only
    starts, ends, mirror_ends = await asyncio.gather(
        list_offsets(source, there, read, EARLIEST, committed),
        list_offsets(source, there, read, LATEST, committed),
        list_offsets(target, here, written, LATEST, False),
    )
    for one in partitions:
        start, end = starts[one.topic, one.partition], ends[one.topic, one.partition]
        if not isinstance(start, int) or not isinstance(end, int):
            outcome.refused[str(one)] = (
                f"the source's bounds cannot be read: {end if isinstance(start, int) else start}"
            )
            continue
        position = known.get(one, start)
        mirror_end = mirror_ends.get((one.mirror, one.partition), 0)
        if one not in known and isinstance(mirror_end, int) and mirror_end > 0:
            intervals = ledger.of((one.topic, one.partition), id_text(here[one.mirror].id))
            interval = intervals.covering(mirror_end - 1) or intervals.beginning(mirror_end)
            if interval is None:
                outcome.refused.setdefault(str(one), "the mirror holds records of unknown origin")
                continue
            position = max(start, interval.source_of(mirror_end))
        if end > position:
            outcome.copy[one.topic] = outcome.copy.get(one.topic, 0) + end - position
