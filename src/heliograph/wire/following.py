"""Reading one partition of an internal topic as it is written, whatever becomes of the topic."""

from collections.abc import AsyncIterator, Callable

from heliograph.wire.batches import split
from heliograph.wire.cluster import NO_ID, ClusterClient
from heliograph.wire.errors import OFFSET_OUT_OF_RANGE, UNKNOWN_TOPIC_OR_PARTITION, BrokerError
from heliograph.wire.fetch import READ_UNCOMMITTED, FetchPartition, Limits, fetch
from heliograph.wire.records import Record, bounds, decode, own_topic

_CHUNK = 1 << 20
_WAIT = 5.0


class Follower:
    """Goes on from where it stood. Where that is not there any more, because the topic was created again or has lost
    records, it says so and reads on from the topic's beginning."""

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
        """What is appended, as it comes, without an end. After a WireError ask again.

        On a connection of its own: a broker answers a connection's requests one after the other, and this one waits.
        """
        topic = await own_topic(self._client, self._topic)
        if self._partition not in topic.leaders:
            raise BrokerError(UNKNOWN_TOPIC_OR_PARTITION, f"internal topic {self._topic} has no {self._partition}")
        if self._id not in (NO_ID, topic.id):
            self._begin(0, "was deleted and created again")
        self._id = topic.id
        connection = await self._client.dedicated_connection(topic.leaders.get(self._partition, -1))
        try:
            while True:
                wanted = FetchPartition(topic.name, topic.id, self._partition, self.position, _CHUNK)
                (got,) = await fetch(connection, [wanted], Limits(_CHUNK, max_wait=_WAIT), READ_UNCOMMITTED)
                if got.error == OFFSET_OUT_OF_RANGE:
                    start, end = await bounds(self._client, topic, self._partition, committed=False)
                    if start <= self.position <= end:
                        raise BrokerError(got.error)  # not any more
                    gone = f"begins at offset {start}" if self.position < start else f"ends at offset {end}"
                    self._begin(start, f"{gone}, and was read up to {self.position}")
                    continue
                if got.error:
                    raise BrokerError(got.error)
                records = list(decode(got.data, self.position))
                for batch in split(got.data):
                    self.position = batch.next_offset
                if records:
                    yield records
        finally:
            connection.close()

    def _begin(self, position: int, why: str) -> None:
        self.position = position
        self._lost(f"partition {self._partition} of internal topic {self._topic} {why}: it is read from {position} on")
