"""Tailing one partition of an internal topic, even when the topic is truncated or recreated."""

from collections.abc import AsyncIterator, Callable

from heliograph.wire.batches import split
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, BrokerError, missing_right
from heliograph.wire.fetch import READ_UNCOMMITTED, FetchPartition, Limits, fetch
from heliograph.wire.metadata import NO_ID
from heliograph.wire.records import Record, bounds, decode, own_topic

_CHUNK = 1 << 20
_WAIT = 5.0


class Follower:
    """Reads from a position on. Where that does not exist any more, because the topic was recreated or lost records, it
    reports that with `lost` and reads from the beginning."""

    def __init__(
        self, client: ClusterClient, topic: str, partition: int, position: int, lost: Callable[[str], None]
    ) -> None:
        self._client = client
        self._topic = topic
        self._partition = partition
        self.position = position
        self._lost = lost
        self._id = NO_ID

    async def records(self) -> AsyncIterator[list[Record]]:
        """Yields records as they are appended, without an end. After a WireError, call it again.

        On a connection of its own: a broker answers the requests of a connection in order, and this one is a long poll.
        """
        topic = await own_topic(self._client, self._topic)
        if self._partition not in topic.leaders:
            raise BrokerError(
                UNKNOWN_TOPIC_OR_PARTITION, f"internal topic {self._topic} has no partition {self._partition}"
            )
        if self._id not in (NO_ID, topic.id):
            self._restart(0, "was deleted and created again")
        self._id = topic.id
        connection = await self._client.dedicated_connection(topic.leaders.get(self._partition, -1))
        try:
            while True:
                wanted = FetchPartition(topic.name, topic.id, self._partition, self.position, _CHUNK)
                (fetched,) = await fetch(connection, [wanted], Limits(_CHUNK, max_wait=_WAIT), READ_UNCOMMITTED)
                if fetched.error == OFFSET_OUT_OF_RANGE:
                    start, end = await bounds(self._client, topic, self._partition, committed=False)
                    if start <= self.position <= end:
                        raise BrokerError(fetched.error)  # the bounds have changed since
                    bound = f"begins at offset {start}" if self.position < start else f"ends at offset {end}"
                    self._restart(start, f"{bound}, and was read up to {self.position}")
                    continue
                if fetched.error:
                    raise BrokerError(fetched.error, missing_right(fetched.error, "Read", f"topic {topic.name}"))
                records = list(decode(fetched.data, self.position))
                for batch in split(fetched.data):
                    self.position = batch.next_offset
                if records:
                    yield records
        finally:
            connection.close()

    def _restart(self, position: int, why: str) -> None:
        self.position = position
        self._lost(
            f"partition {self._partition} of internal topic {self._topic} {why}: reading it from offset {position} on"
        )
