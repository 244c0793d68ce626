"""Reading a stretch of one partition as a consumer sees it, outside the copier's own loop: for comparing logs."""

from collections.abc import AsyncIterator

from heliograph.copy.intake import Intake, Rules, take_in
from heliograph.wire.cluster import ClusterClient, Topic
from heliograph.wire.errors import BrokerError
from heliograph.wire.fetch import READ_COMMITTED, READ_UNCOMMITTED, Limits, Wanted, fetch

_CHUNK = 1 << 20


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
