"""Reading a stretch of one partition as a consumer sees it, outside the copier's own loop: for comparing logs."""

from collections.abc import AsyncIterator, Iterator

from heliograph.copy.intake import Intake, Parcel, Rules, take_in
from heliograph.wire.cluster import ClusterClient, Topic
from heliograph.wire.errors import BrokerError, WireError
from heliograph.wire.fetch import READ_COMMITTED, READ_UNCOMMITTED, Limits, Wanted, fetch
from heliograph.wire.recode import Plain, records_of

_CHUNK = 1 << 20


def records_in(parcel: Parcel) -> Iterator[Plain]:
    """Its records with the offsets that they have in the log that they come from."""
    offsets = (first + number for first, count in parcel.runs for number in range(count))
    for record, offset in zip(records_of(parcel.batch), offsets, strict=True):
        yield record._replace(offset=offset)


async def visible_records(
    client: ClusterClient, topic: Topic, partition: int, start: int, end: int, committed_only: bool
) -> AsyncIterator[Plain]:
    """Every record between two offsets. Raises a WireError if they cannot all be had."""
    reached = start
    async for intake in visible(client, topic, partition, start, end, committed_only):
        if intake.problem is not None:
            raise WireError(f"{topic.name}-{partition} at {reached}: {intake.problem[1]}")
        for parcel in intake.parcels:
            for record in records_in(parcel):
                if start <= record.offset < end:
                    yield record
        reached = intake.next_source
    if reached < end:
        raise WireError(f"{topic.name}-{partition} gives no data at {reached}, though it ends at {end}")


async def visible(
    client: ClusterClient, topic: Topic, partition: int, start: int, end: int, committed_only: bool
) -> AsyncIterator[Intake]:
    """What lies between two offsets, batches as they are. Ends early behind an answer that has a problem or brings no
    progress; its `next_source` tells how far it got."""
    connection = await client.to(topic.leaders[partition])
    rules = Rules(committed_only, join_up_to=0)
    isolation = READ_COMMITTED if committed_only else READ_UNCOMMITTED
    while start < end:
        wanted = Wanted(topic.name, topic.id, partition, start, _CHUNK)
        (got,) = await fetch(connection, [wanted], Limits(_CHUNK, max_wait=1.0), isolation)
        if got.error:
            raise BrokerError(got.error)
        intake = take_in(got.data, start, -1, rules, got.aborted)
        yield intake
        if intake.problem is not None or intake.next_source == start:
            return
        start = intake.next_source
