"""Our own topics on the target: created if they are missing, never changed."""

import asyncio
import time

from heliograph.model.internal_topics import STATUS, dead_letters_topic, intervals_topic, signals_topic
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import TOPIC_ALREADY_EXISTS, BrokerError, WireError
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.topics import NewTopic, create_topics

_HOUR = str(3600 * 1000)
# Whatever the broker's default: not every installation can read every codec.
_PLAIN = (("compression.type", "uncompressed"),)


async def ensure_internal_topics(source_alias: str, target: ClusterClient, dead_letters: bool = False) -> None:
    """The intervals (kept for good, compacted), the signals (kept for an hour) and, where wanted, the records that the
    target refused (kept for good) of one flow."""
    replicas = min(3, len(target.brokers))
    wanted = [
        NewTopic(intervals_topic(source_alias), 1, replicas, (*_PLAIN, ("cleanup.policy", "compact"))),
        NewTopic(
            signals_topic(source_alias),
            STATUS + 1,
            replicas,
            (*_PLAIN, ("cleanup.policy", "delete"), ("retention.ms", _HOUR), ("segment.ms", _HOUR)),
        ),
    ]
    if dead_letters:
        keep = (*_PLAIN, ("cleanup.policy", "delete"), ("retention.ms", "-1"), ("max.message.bytes", str(1 << 30)))
        wanted.append(NewTopic(dead_letters_topic(source_alias), 1, replicas, keep))
    there = (await target.metadata([topic.name for topic in wanted])).topics
    missing = [topic for topic in wanted if there[topic.name].error]
    for name, error in (await create_topics(target, missing)).items():
        if error is not None and error.code != TOPIC_ALREADY_EXISTS:
            raise BrokerError(error.code, f"internal topic {name} on {target.cluster.alias}: {error.detail}")
    await _until_usable(target, [(topic.name, partition) for topic in wanted for partition in range(topic.partitions)])


async def _until_usable(target: ClusterClient, places: list[tuple[str, int]]) -> None:
    """Brokers learn of a new topic, and who leads it, some moments after it was created."""
    deadline = time.monotonic() + target.cluster.request_timeout
    while True:
        topics = (await target.metadata({name for name, _partition in places})).topics
        found = await list_offsets(target, topics, places, LATEST, False)
        problem = next((one for one in found.values() if isinstance(one, WireError)), None)
        if problem is None:
            return
        if time.monotonic() > deadline:
            raise problem
        await asyncio.sleep(0.05)
