"""Which partitions a flow has to copy: follows the source's topics, and has their mirrors ready."""

import logging
from collections.abc import Collection, Mapping

from heliograph.control.mm2_workers import StillRunning
from heliograph.control.preserve_check import why_not_preserved
from heliograph.control.takeover import log_take_over, take_over
from heliograph.control.topic_sync import TopicSyncResult, sync_topics
from heliograph.model.acl import single_names
from heliograph.model.flow import Flow
from heliograph.model.partitions import MirrorPartition
from heliograph.service.cycles import cycle_of
from heliograph.service.events import FlowEvent, TopicEvent, emit
from heliograph.service.flow_context import FlowContext
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import TOPIC_AUTHORIZATION_FAILED, BrokerError
from heliograph.wire.metadata import Topic

log = logging.getLogger(__name__)


class Mirrors:
    """`have_ids`: whether all topics have an id; brokers before 2.8 give them none."""

    def __init__(self, context: FlowContext, flows: tuple[Flow, ...]) -> None:
        self._context = context
        self._flows = flows  # all that copy: together they may form a cycle
        self._shape: dict[str, tuple[str, int]] = {}
        self._taken_over: set[MirrorPartition] = set()  # checked whether MM2 has copied them before
        self._preservable: set[str] = set()  # topics whose mirrors are allowed to preserve offsets
        self._hidden: frozenset[str] = frozenset()  # topics that the source does not list, as we may not describe them
        self.synced = TopicSyncResult({}, {})
        self.partitions: tuple[MirrorPartition, ...] = ()
        self.have_ids = False

    def use_flows(self, flows: tuple[Flow, ...]) -> None:
        if self._flows != flows:
            self._flows = flows
            self._context.refresh_needed.set()

    def have_changed(self, topics: Mapping[str, Topic]) -> bool:
        """Whether the source's topics are not those of the last refresh."""
        return self._shape_of(topics) != self._shape

    async def refresh(self, topics: Mapping[str, Topic] | None = None) -> bool:
        """Creates and grows mirrors for the source's topics. False if the list of topics is ignored."""
        flow, source, target = self._context.flow, self._context.source, self._context.target
        if topics is None:
            topics = (await source.metadata(None)).topics
        hidden = await self._not_described(flow, topics)
        if not topics and self.partitions and not hidden:
            text = f"cluster {source.cluster.alias} returned an empty topic list; ignored"
            emit(log, FlowEvent(flow.name, text, logging.WARNING))
            return False
        cycles = {topic: _cycle(path) for topic in topics if (path := cycle_of(topic, flow, self._flows))}
        rest = {name: topic for name, topic in topics.items() if name not in cycles}
        synced = await sync_topics(flow, source, target, rest)
        synced.failed.update(cycles)
        synced.failed.update(hidden)
        await self._leave_out_unpreserved(flow, synced)
        self._log_changes(flow, synced)
        self.synced = synced
        self._shape = self._shape_of(topics)
        self.have_ids = all(topics[name].id.int for name in self._shape)
        self.partitions = tuple(
            MirrorPartition(topic, flow.mirror_name(topic), partition)
            for topic, count in synced.partitions.items()
            for partition in range(count)
        )
        self._taken_over.intersection_update(self.partitions)
        return True

    async def _not_described(self, flow: Flow, topics: Mapping[str, Topic]) -> dict[str, str]:
        """Why topics are missing that were there before, or that the filter names. A broker does not list what a client
        may not describe."""
        known = {*self.synced.partitions, *self._hidden, *single_names(flow.topics)} - topics.keys()
        missing = [topic for topic in known if flow.selects(topic)]
        named = (await self._context.source.metadata(missing)).topics if missing else {}
        self._hidden = frozenset(name for name in missing if named[name].error == TOPIC_AUTHORIZATION_FAILED)
        alias = self._context.source.cluster.alias
        why = f"it cannot be described on {alias}: TOPIC_AUTHORIZATION_FAILED (the right Describe is missing)"
        return dict.fromkeys(self._hidden, why)

    async def _leave_out_unpreserved(self, flow: Flow, synced: TopicSyncResult) -> None:
        """Topics whose offsets must be preserved and cannot be: other offsets could never be corrected."""
        preserved = {topic for topic in synced.partitions if flow.keeps_offsets(topic)}
        self._preservable &= preserved
        unchecked = {flow.mirror_name(topic): topic for topic in sorted(preserved - self._preservable)}
        client = ClusterClient(flow.writer) if flow.writer is not None else self._context.target
        try:
            problems = await why_not_preserved(flow, client, unchecked.keys())
        finally:
            if client is not self._context.target:
                client.close()
        for mirror, topic in unchecked.items():
            if mirror in problems:
                synced.failed[topic] = problems[mirror]
                del synced.partitions[topic]
            else:
                self._preservable.add(topic)

    def _log_changes(self, flow: Flow, synced: TopicSyncResult) -> None:
        for topic, error in synced.failed.items():
            if self.synced.failed.get(topic) != error:
                emit(log, TopicEvent(flow.name, topic, f"topic {topic} is not mirrored: {error}", logging.ERROR))
        for topic, count in synced.too_wide.items():
            if self.synced.too_wide.get(topic) != count:
                mirror, wanted = flow.mirror_name(topic), synced.partitions[topic]
                text = f"mirror {mirror} has {count} partitions and its topic {wanted}"
                emit(log, TopicEvent(flow.name, topic, text, logging.WARNING))
        for topic in self.synced.partitions.keys() - synced.partitions.keys() - synced.failed.keys():
            if flow.selects(topic):
                text = f"topic {topic} no longer exists on the source; its mirror stays as it is"
                emit(log, TopicEvent(flow.name, topic, text, logging.WARNING))
            else:
                text = f"topic {topic} is no longer selected; its mirror stays as it is"
                emit(log, TopicEvent(flow.name, topic, text))

    async def take_over(self, again: Collection[MirrorPartition], *, at_start: bool) -> None:
        """Takes over from MM2 what is new, and what is to be tried again. A running MM2 keeps a flow from starting."""
        context = self._context
        fresh = [partition for partition in self.partitions if partition not in self._taken_over or partition in again]
        try:
            outcome = await take_over(context.flow, context.source, context.target, context.ledger, fresh)
        except StillRunning as running:
            if at_start:
                raise
            emit(log, FlowEvent(context.name, str(running), logging.ERROR))
            return
        except BrokerError as error:
            if not error.forbidden:
                raise
            if context.errors.is_new("take-over", str(error)):
                text = f"mirrors of MirrorMaker 2, if there are any, are not taken over: {error}"
                emit(log, FlowEvent(context.name, text, logging.WARNING))
            return
        context.errors.recovered("take-over")
        log_take_over(context.flow, outcome)
        self._taken_over.update(set(fresh) - outcome.refused.keys())

    def _shape_of(self, topics: Mapping[str, Topic]) -> dict[str, tuple[str, int]]:
        """What decides which mirrors there must be."""
        return {
            name: (topic.id.hex, len(topic.leaders))
            for name, topic in topics.items()
            if not topic.internal and not topic.error and self._context.flow.selects(name)
        }


def _cycle(path: tuple[str, ...]) -> str:
    return f"{' and '.join(path)} would copy it in a cycle; exclude it from `topics` of one of them"
