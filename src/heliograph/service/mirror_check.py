"""Whether mirrors hold what leases have copied to them: while the source is quiet, no lease would notice."""

import asyncio
import logging
import time
from collections.abc import Mapping

from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service.events import FlowEvent, emit
from heliograph.service.flow_context import FlowContext
from heliograph.service.lease_pool import LeasePool
from heliograph.service.task_groups import raise_if_cancelled
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, WireError
from heliograph.wire.metadata import Topic, are_different, id_text
from heliograph.wire.offsets import LATEST, list_offsets

log = logging.getLogger(__name__)

MISSING, RECREATED, TRUNCATED = "missing", "recreated", "truncated"
_CHECK_EVERY = 5.0
_NAMED = 5  # partitions in a message
_COST = 50  # the pause is this many times as long as a check, up to:
_LONGEST_PAUSE = 60.0


class MirrorChecker:
    def __init__(self, context: FlowContext, pool: LeasePool) -> None:
        self._context = context
        self._pool = pool

    async def run(self) -> None:
        """Without an end."""
        pause = _CHECK_EVERY
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            try:
                await self.check()
            except WireError as error:
                log.debug("%s: mirrors cannot be checked: %s", self._context.name, error)
            except Exception:  # copying continues
                log.exception("%s: mirrors cannot be checked", self._context.name)
            raise_if_cancelled()
            pause = min(max(_CHECK_EVERY, _COST * (time.monotonic() - began)), _LONGEST_PAUSE)

    async def check(self) -> bool:
        """Whether all mirrors hold what was copied to them. The others are copied again."""
        stats = self._context.stats
        before = stats.positions()
        contradicted = await check_mirrors(self._context.target, before)
        # Where the position has changed meanwhile, a lease has noticed it itself.
        lost = {
            partition: why
            for partition, why in contradicted.items()
            if (now := stats.progress.get(partition)) is not None and now.position is before[partition]
        }
        if not lost:
            return not contradicted
        stats.forget_positions(lost)
        if MISSING in lost.values():
            self._context.refresh_needed.set()  # which creates the mirror again
        named = [f"{partition} (mirror {why})" for partition, why in sorted(lost.items())[:_NAMED]]
        more = f" and {len(lost) - len(named)} more" if len(lost) > len(named) else ""
        text = f"copied again, as their mirrors do not hold what was copied: {', '.join(named)}{more}"
        emit(log, FlowEvent(self._context.name, text))
        await self._pool.copy_again(lost)
        return False


async def check_mirrors(
    target: ClusterClient, positions: Mapping[MirrorPartition, Position]
) -> dict[MirrorPartition, str]:
    """Returns the partitions whose mirror contradicts the position, and how. One request, and one per leader.

    The positions must be from before the call: a mirror that only grows cannot end before them then.
    """
    if not positions:
        return {}
    topics = (await target.metadata({partition.mirror for partition in positions})).topics
    partitions = [(partition.mirror, partition.partition) for partition in positions]
    return contradictions(positions, topics, await list_offsets(target, topics, partitions, LATEST, False))


def contradictions(
    positions: Mapping[MirrorPartition, Position],
    topics: Mapping[str, Topic],
    ends: Mapping[tuple[str, int], int | WireError],
) -> dict[MirrorPartition, str]:
    """What could not be read contradicts nothing."""
    ids = {name: id_text(topic.id) for name, topic in topics.items() if topic.error != UNKNOWN_TOPIC_OR_PARTITION}
    contradicted = {}
    for partition, position in positions.items():
        mirror_id, end = ids.get(partition.mirror), ends.get((partition.mirror, partition.partition))
        if mirror_id is None:
            contradicted[partition] = MISSING
        elif are_different(position.mirror_id, mirror_id):
            contradicted[partition] = RECREATED
        elif isinstance(end, int) and end < position.target:
            contradicted[partition] = TRUNCATED
    return contradicted
