"""Which partitions a flow has to copy: follows the source's topics, and has their mirrors ready."""

import logging
from collections.abc import Collection, Mapping

from heliograph.control.takeover import StillRunning, log_take_over, take_over
from heliograph.control.topic_sync import TopicSyncResult, sync_topics
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.model.partitions import MirrorPartition
from heliograph.service.cycles import comes_home
from heliograph.wire.cluster import ClusterClient, Topic

log = logging.getLogger(__name__)


class Mirrors:
    def __init__(
        self, flow: Flow, flows: tuple[Flow, ...], source: ClusterClient, target: ClusterClient, ledger: Ledger
    ) -> None:
        self.flow = flow
        self.flows = flows  # all that copy: some may make a circle
        self._source = source
        self._target = target
        self._ledger = ledger
        self._shape: dict[str, tuple[str, int]] = {}
        self._looked_at: set[MirrorPartition] = set()  # whether they are to be taken over from MM2
        self.synced = TopicSyncResult({}, {})
        self.partitions: tuple[MirrorPartition, ...] = ()
        self.have_ids = False  # all topics; brokers before 2.8 give them none

    def are_others(self, topics: Mapping[str, Topic]) -> bool:
        """Whether the source's topics are not those of the last refresh."""
        return self._shape_of(topics) != self._shape

    async def refresh(self, topics: Mapping[str, Topic] | None = None) -> bool:
        """Create and grow mirrors for the source's topics. Whether that was to be believed."""
        if topics is None:
            topics = (await self._source.metadata(None)).topics
        if not topics and self.partitions:
            log.warning("%s: the source lists no topic at all, which is not believed", self.flow.name)
            return False
        circles = {name: _circle(path) for name in topics if (path := comes_home(name, self.flow, self.flows))}
        rest = {name: topic for name, topic in topics.items() if name not in circles}
        synced = await sync_topics(self.flow, self._source, self._target, rest)
        synced.failed.update(circles)
        for name, why in synced.failed.items():
            if self.synced.failed.get(name) != why:
                log.error("%s: topic %s is not mirrored: %s", self.flow.name, name, why, extra={"topic": name})
        for name, count in synced.too_wide.items():
            if self.synced.too_wide.get(name) != count:
                mirror, wanted = self.flow.mirror_name(name), synced.partitions[name]
                words = "%s: mirror %s has %d partitions and its topic %d"
                log.warning(words, self.flow.name, mirror, count, wanted, extra={"topic": name})
        for name in self.synced.partitions.keys() - synced.partitions.keys() - synced.failed.keys():
            told, about = (self.flow.name, name), {"topic": name}
            if self.flow.selects(name):
                log.warning("%s: topic %s is gone from the source; its mirror stays as it is", *told, extra=about)
            else:
                log.info("%s: topic %s is not wanted any more; its mirror stays as it is", *told, extra=about)
        self.synced = synced
        self._shape = self._shape_of(topics)
        self.have_ids = all(topics[name].id.int for name in self._shape)
        self.partitions = tuple(
            MirrorPartition(name, self.flow.mirror_name(name), partition)
            for name, count in synced.partitions.items()
            for partition in range(count)
        )
        self._looked_at.intersection_update(self.partitions)
        return True

    async def take_over(self, again: Collection[MirrorPartition], *, at_start: bool) -> None:
        """From MM2, what is new to us and what is to be tried again. A running MM2 keeps us from starting."""
        fresh = [one for one in self.partitions if one not in self._looked_at or one in again]
        try:
            outcome = await take_over(self.flow, self._source, self._target, self._ledger, fresh)
        except StillRunning as running:
            if at_start:
                raise
            log.error("%s: %s", self.flow.name, running)
            return
        log_take_over(self.flow, outcome)
        self._looked_at.update(set(fresh) - outcome.refused.keys())

    def _shape_of(self, topics: Mapping[str, Topic]) -> dict[str, tuple[str, int]]:
        """What decides which mirrors there must be."""
        return {
            name: (topic.id.hex, len(topic.leaders))
            for name, topic in topics.items()
            if not topic.internal and not topic.error and self.flow.selects(name)
        }


def _circle(path: tuple[str, ...]) -> str:
    return f"{' and '.join(path)} would copy it in a circle onto itself; let `topics` of one of them leave it out"
