"""Heartbeats: small records that show by arriving that everything on their way is alive.

Each flow writes its own to the topic `heartbeats` of its target. A flow from there copies them on, so that what arrives
at the end of a chain tells which clusters lie before it (by the topic's name) and how old the news is.
"""

from heliograph.model.flow import Flow
from heliograph.model.mm2_records import Heartbeat
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import Record, now, own_topic, write_records


async def beat(flow: Flow, target: ClusterClient) -> None:
    """Write one; its record has the time that it tells."""
    moment = now()
    key, value = Heartbeat(flow.source.alias, flow.target.alias, moment).to_record()
    topic = await own_topic(target, flow.policy.heartbeats_topic())
    await write_records(target, topic, 0, [Record(0, moment, key, value)])
