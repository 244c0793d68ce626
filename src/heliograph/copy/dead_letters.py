"""Records that a mirror cannot take, put aside in a topic on the target with word of where they come from.

Written before the copier goes on without them. After a crash in between, a record may be put aside a second time.
"""

from collections.abc import Sequence

from heliograph.copy.classify import LeftOut
from heliograph.model.flow import Flow
from heliograph.model.internal_topics import dead_letters_topic
from heliograph.model.partitions import MirrorPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import Record, now, own_topic, write_records


async def park(target: ClusterClient, flow: Flow, partition: MirrorPartition, left_out: Sequence[LeftOut]) -> None:
    """Returns when all in-sync replicas have them."""
    topic = await own_topic(target, dead_letters_topic(flow.source.alias))
    for one in left_out:  # one by one: each of them may be huge
        await write_records(target, topic, 0, [_letter(flow, partition, one)])


def _letter(flow: Flow, partition: MirrorPartition, one: LeftOut) -> Record:
    origin = {
        "heliograph.flow": flow.name,
        "heliograph.topic": partition.topic,
        "heliograph.partition": str(partition.partition),
        "heliograph.offset": str(one.record.offset),
        "heliograph.mirror": partition.mirror,
        "heliograph.timestamp": str(one.record.timestamp),
        "heliograph.reason": one.why,
    }
    headers = (*((name, text.encode()) for name, text in origin.items()), *one.record.headers)
    # Its own time may be what the target does not take; it is in a header.
    return Record(0, now(), one.record.key, one.record.value, headers)
