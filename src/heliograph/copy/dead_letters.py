"""Parks records that a mirror refuses in a topic on the target, with headers that name their origin.

They are written before the copier continues without them. After a crash in between, a record may be parked twice.
"""

from collections.abc import Sequence

from heliograph.copy.classified import LeftOut
from heliograph.model.flow import Flow
from heliograph.model.internal_topics import dead_letters_topic
from heliograph.model.partitions import MirrorPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import Record, now, own_topic, write_records


async def park(target: ClusterClient, flow: Flow, partition: MirrorPartition, left_out: Sequence[LeftOut]) -> None:
    """Returns when all in-sync replicas have the records."""
    topic = await own_topic(target, dead_letters_topic(flow.source.alias))
    for refused in left_out:  # one by one: each of them may be huge
        await write_records(target, topic, 0, [_letter(flow, partition, refused)])


def _letter(flow: Flow, partition: MirrorPartition, refused: LeftOut) -> Record:
    origin = {
        "heliograph.flow": flow.name,
        "heliograph.topic": partition.topic,
        "heliograph.partition": str(partition.partition),
        "heliograph.offset": str(refused.record.offset),
        "heliograph.mirror": partition.mirror,
        "heliograph.timestamp": str(refused.record.timestamp),
        "heliograph.reason": refused.why,
    }
    headers = (*((name, text.encode()) for name, text in origin.items()), *refused.record.headers)
    # Its own timestamp may be what the target refuses; it is in a header.
    return Record(0, now(), refused.record.key, refused.record.value, headers)
