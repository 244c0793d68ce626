"""Aliases of connectors that are not the names of the clusters: in records and topics as MM2 writes them."""

import asyncio
from dataclasses import replace

from copying.lease import copy, only
from heliograph.control.heartbeats import write_heartbeat
from heliograph.control.mm2_offsets import OffsetsForMm2, mm2_offsets
from heliograph.model.connect_offsets import SourceKey
from heliograph.model.flow import ConnectOffsets, Flow, Groups
from heliograph.model.mm2_records import Checkpoint, Heartbeat
from heliograph.model.names import NameFilter
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.policy import DefaultReplicationPolicy
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.cluster import ClusterClient
from logs import Pair, on, some_records

ALIASES = ("dawn", "dusk")


def test_heartbeats_have_the_aliases_of_the_connector(pair: Pair) -> None:
    if not pair.b.exists("heartbeats"):
        pair.b.create("heartbeats")
    flow = replace(pair.flow(), connector_aliases=ALIASES)
    on(pair.b, lambda client: write_heartbeat(flow, client))
    beats = [
        Heartbeat.from_record(seen.key, seen.value) for seen in pair.b.read("heartbeats") if seen.key and seen.value
    ]
    assert ALIASES in {(beat.source, beat.target) for beat in beats}


def test_stored_offsets_are_found_and_written_by_the_alias_of_the_source(pair: Pair, topic: str) -> None:
    stored = f"{topic}-offsets"
    pair.b.create(stored, cleanup_policy="compact")
    flow = replace(pair.flow(), connector_aliases=ALIASES, connect_offsets=ConnectOffsets(stored))
    positions = {MirrorPartition(topic, f"dawn.{topic}", 0): Position(5, 5)}

    async def written(client: ClusterClient) -> dict[tuple[str, int], int]:
        await OffsetsForMm2(flow).run(positions, client)
        return await mm2_offsets(flow, client)

    assert on(pair.b, written) == {(topic, 0): 4}
    keys = [SourceKey.from_bytes(seen.key) for seen in pair.b.read(stored) if seen.key]
    assert keys == [SourceKey("MirrorSourceConnector", "dawn", topic, 0)]
    assert on(pair.b, lambda client: mm2_offsets(replace(flow, connector_aliases=None), client)) == {}


def test_checkpoints_are_named_by_the_alias_and_the_policy_of_the_checkpoint_connector(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    group = f"{topic}-group"
    flow = replace(
        only(pair.flow(), topic),
        connector_aliases=ALIASES,
        policy=DefaultReplicationPolicy("_"),
        checkpoint_policy=DefaultReplicationPolicy("-"),
        groups=Groups(NameFilter((group,))),
    )
    copy(flow)
    assert pair.b.bounds(f"dawn_{topic}") == (0, 10)
    pair.a.commit(group, topic, 7)
    asyncio.run(_translate(flow))
    found = [Checkpoint.from_record(*record) for record in pair.b.pairs("dawn-checkpoints-internal")]
    assert Checkpoint(group, f"dawn-{topic}", 0, 7, 7, "") in found
    assert pair.a.exists("mm2-offset-syncs_dusk_internal")


async def _translate(flow: Flow) -> None:
    syncers = FlowSyncers(flow, dict)
    try:
        await syncers.prepare()
        await syncers.translate_once()
    finally:
        syncers.close()
