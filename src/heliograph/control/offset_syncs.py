"""Offset syncs: pairs of a source offset and the mirror offset of the same record, for MM2's own tools.

Heliograph does not need them: intervals say the same exactly. They are written so that MM2's checkpoint connector can
translate offsets of our mirrors, and MM2 can be put back. They are never ahead of the mirror's end.
"""

from collections.abc import Iterable, Mapping

from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow, OffsetSyncs
from heliograph.model.mm2_records import OffsetSync
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.records import own_topic, write


class SyncWriter:
    """Remembers the last offset sync of each partition."""

    def __init__(self, flow: Flow, ledger: Ledger) -> None:
        self._flow = flow
        self._ledger = ledger
        self._written: dict[tuple[str, int], OffsetSync] = {}

    async def run(
        self,
        positions: Mapping[MirrorPartition, Position],
        mirror_ids: Mapping[str, str],
        client: ClusterClient,
        *,
        flush: bool,
    ) -> set[MirrorPartition]:
        """Writes the offset syncs that are due; with `flush` also those that have moved less than offset.lag.max.

        Returns the partitions whose last record is known, or that have none: after a flush nothing is left to write.
        """
        await self._ledger.catch_up()
        due = []
        settled = set()
        for partition, position in positions.items():
            sync = await self._last_pair(partition, position, mirror_ids.get(partition.mirror))
            if sync is not None or position.target == 0:
                settled.add(partition)
            if sync is not None:
                before = self._written.get((sync.topic, sync.partition))
                due += [sync] if is_due(before, sync, self._flow.offset_syncs, flush) else []
        if due:
            await write(
                client, await own_topic(client, self._flow.offset_syncs_topic), 0, (sync.to_record() for sync in due)
            )
            self._written.update({(sync.topic, sync.partition): sync for sync in due})
        return settled

    def forget(self, but: Iterable[MirrorPartition]) -> None:
        kept = {(mirrored.topic, mirrored.partition) for mirrored in but}
        for partition in self._written.keys() - kept:
            del self._written[partition]

    async def _last_pair(self, partition: MirrorPartition, at: Position, mirror_id: str | None) -> OffsetSync | None:
        """Both offsets of the last record that was copied."""
        if mirror_id is None or at.target == 0:
            return None
        interval, beginning = await self._ledger.ask(
            (partition.topic, partition.partition),
            mirror_id,
            lambda intervals: (intervals.covering(at.target - 1), intervals.beginning(at.target)),
        )
        if interval is None or beginning is not None:
            return None  # the last record may not be ours
        return OffsetSync(partition.topic, partition.partition, interval.source_of(at.target - 1), at.target - 1)


def is_due(before: OffsetSync | None, now: OffsetSync, syncs: OffsetSyncs, flush: bool) -> bool:
    """MM2's rule: the first since the start, one that is far enough after the last, one after a gap or a step back."""
    return (
        before is None
        or now.downstream - (before.downstream + 1) >= syncs.lag_max
        or now.upstream - now.downstream != before.upstream - before.downstream
        or now.downstream < before.downstream
        or (flush and now != before)
    )
