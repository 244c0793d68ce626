"""Heartbeats: records that show by arriving that every flow on their way runs.

Each flow writes its own to the topic `heartbeats` of its target. A flow from there copies them on, so at the end of a
chain the topic's name has the clusters before it, and the record its age.
"""

from heliograph.model.flow import Flow
from heliograph.model.mm2_records import Heartbeat
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import Record, now, own_topic, write_records


async def write_heartbeat(flow: Flow, target: ClusterClient) -> None:
    """Appends one heartbeat; the record has its timestamp."""
    moment = now()
    key, value = Heartbeat(*flow.aliases, moment).to_record()
    topic = await own_topic(target, flow.policy.heartbeats_topic())
    await write_records(target, topic, 0, [Record(0, moment, key, value)])
