"""MM2's source offsets in Kafka Connect's topic: read to take over from MM2, written so that MM2 can be put back.

Each is the source offset of the last record that MM2 knows to be copied. MM2 commits them once a minute, so a mirror
usually has more. Heliograph goes by the mirror; it writes them for MM2 only, and only if that topic exists.
"""

from collections.abc import AsyncIterator, Mapping

from heliograph.copy.consumer_view import visible_records
from heliograph.model.connect_offsets import SourceKey, from_value, to_value
from heliograph.model.flow import Flow
from heliograph.model.partitions import MirrorPartition, Position, TopicPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError, missing_right
from heliograph.wire.metadata import Topic
from heliograph.wire.recode import DecodedRecord
from heliograph.wire.records import bounds, partition_for, write


def offsets_topic(flow: Flow) -> str:
    return flow.connect_offsets.topic or f"mm2-offsets.{flow.source.alias}.internal"


async def mm2_was_here(flow: Flow, target: ClusterClient) -> bool:
    return await _topic(flow, target) is not None


async def mm2_offsets(flow: Flow, target: ClusterClient) -> dict[tuple[str, int], int]:
    """By source topic and partition, the last record that MM2 knows to be copied; empty where MM2 never ran."""
    topic = await _topic(flow, target)
    if topic is None:
        return {}
    offsets: dict[tuple[str, int], int] = {}
    for partition in topic.leaders:
        async for record in _committed(target, topic, partition):
            key = SourceKey.from_bytes(record.key) if record.key is not None else None
            if key is None or (key.connector, key.cluster) != (flow.connect_offsets.connector, flow.aliases[0]):
                continue
            last = from_value(record.value) if record.value is not None else None
            if last is None:
                offsets.pop((key.topic, key.partition), None)
            else:
                offsets[key.topic, key.partition] = last
    return offsets


async def _committed(target: ClusterClient, topic: Topic, partition: int) -> AsyncIterator[DecodedRecord]:
    """Without aborted records: with exactly-once support, MM2 writes offsets in the transactions of its records."""
    start, end = await bounds(target, topic, partition)
    async for record in visible_records(target, topic, partition, start, end, committed_only=True):
        yield record


class OffsetsForMm2:
    """Writes positions in MM2's form, so that MM2 can resume from them. Remembers what it has written."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._written: dict[tuple[str, int], int] = {}

    async def run(self, positions: Mapping[MirrorPartition, Position], target: ClusterClient) -> None:
        news = {
            (partition.topic, partition.partition): position.source - 1
            for partition, position in positions.items()
            if position.source > 0 and self._written.get((partition.topic, partition.partition)) != position.source - 1
        }
        if await write_mm2_offsets(self._flow, target, news):
            self._written.update(news)


async def write_mm2_offsets(flow: Flow, target: ClusterClient, offsets: Mapping[TopicPartition, int | None]) -> bool:
    """Writes the last copied source offsets of source partitions; None deletes one. Returns False if MM2's topic does
    not exist, or there is nothing to write."""
    topic = await _topic(flow, target) if offsets else None
    if topic is None:
        return False
    by_partition: dict[int, list[tuple[bytes, bytes | None]]] = {}
    for partition, last in offsets.items():
        key = SourceKey(flow.connect_offsets.connector, flow.aliases[0], *partition).to_bytes()
        value = None if last is None else to_value(last)
        by_partition.setdefault(partition_for(key, len(topic.leaders)), []).append((key, value))
    for number, pairs in by_partition.items():
        await write(target, topic, number, pairs)
    return True


async def _topic(flow: Flow, target: ClusterClient) -> Topic | None:
    name = offsets_topic(flow)
    topic = (await target.metadata([name])).topics[name]
    if topic.error == UNKNOWN_TOPIC_OR_PARTITION:
        return None
    if topic.error:
        raise BrokerError(topic.error, missing_right(topic.error, "Describe", f"topic {name}") or f"topic {name}")
    return topic
