"""Whether mirrors hold what leases say that they have copied to them: while the source is quiet, nothing else tells."""

from collections.abc import Mapping

from heliograph.model.partitions import MirrorPartition, Position
from heliograph.wire.cluster import ClusterClient, Topic, are_different, id_text
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, WireError
from heliograph.wire.offsets import LATEST, list_offsets

MISSING, RECREATED, TRUNCATED = "missing", "recreated", "truncated"


async def look_at_mirrors(
    target: ClusterClient, positions: Mapping[MirrorPartition, Position]
) -> dict[MirrorPartition, str]:
    """Those whose mirror contradicts the position, and how. One request, and one per leader.

    The positions must be from before the call: a mirror that only grows cannot end before them then.
    """
    if not positions:
        return {}
    topics = (await target.metadata({one.mirror for one in positions})).topics
    places = [
        (one.mirror, one.partition)
        for one in positions
        if one.mirror in topics and one.partition in topics[one.mirror].leaders
    ]
    return contradicted(positions, topics, await list_offsets(target, topics, places, LATEST, False))


def contradicted(
    positions: Mapping[MirrorPartition, Position],
    topics: Mapping[str, Topic],
    ends: Mapping[tuple[str, int], int | WireError],
) -> dict[MirrorPartition, str]:
    """What could not be read contradicts nothing."""
    found = {}
    for one, at in positions.items():
        mirror, end = topics.get(one.mirror), ends.get((one.mirror, one.partition))
        if mirror is None or mirror.error == UNKNOWN_TOPIC_OR_PARTITION:
            found[one] = MISSING
        elif are_different(at.mirror_id, id_text(mirror.id)):
            found[one] = RECREATED
        elif isinstance(end, int) and end < at.target:
            found[one] = TRUNCATED
    return found
