"""Whether a flow has copied everything up to a moment: for `--until-caught-up`."""

import logging
from collections.abc import Collection

from heliograph.model.partitions import MirrorPartition
from heliograph.service.flow_context import FlowContext
from heliograph.service.mirror_check import MirrorChecker
from heliograph.wire.errors import WireError
from heliograph.wire.offsets import LATEST, list_offsets

log = logging.getLogger(__name__)


class CatchUpGoals:
    def __init__(self, context: FlowContext) -> None:
        self._context = context
        self._offsets: dict[MirrorPartition, int] | None = None

    async def set(self, partitions: Collection[MirrorPartition]) -> None:
        """The goal of each partition is where the source ends now."""
        source = self._context.source
        source_partitions = [(partition.topic, partition.partition) for partition in partitions]
        topics = (await source.metadata({topic for topic, _partition in source_partitions})).topics
        ends = await list_offsets(source, topics, source_partitions, LATEST, True)
        goals: dict[MirrorPartition, int] = {}
        for partition in partitions:
            end = ends[partition.topic, partition.partition]
            if isinstance(end, WireError):
                raise end
            goals[partition] = end
        self._offsets = goals

    def retain(self, partitions: Collection[MirrorPartition]) -> None:
        """Forgets the goals of all others."""
        if self._offsets is not None:
            kept = set(partitions)
            self._offsets = {partition: goal for partition, goal in self._offsets.items() if partition in kept}

    def behind(self) -> list[MirrorPartition]:
        """Partitions that have not reached their goal."""
        progress = self._context.stats.progress
        return [
            partition
            for partition, goal in (self._offsets or {}).items()
            if (at := progress.get(partition)) is None or at.position.source < goal
        ]

    async def reached(self, checker: MirrorChecker) -> bool:
        """Whether every partition has reached its goal or is stopped, and the mirrors hold what was copied."""
        if self._offsets is None or not set(self.behind()) <= self._context.stats.stopped():
            return False
        try:
            return await checker.check()
        except WireError as error:
            log.debug("%s: mirrors cannot be checked: %s", self._context.name, error)
            return False
