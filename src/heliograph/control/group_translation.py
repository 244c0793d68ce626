"""Translates the committed offsets of consumer groups to mirror offsets, exactly.

By the mirror's intervals, a committed source offset becomes the mirror offset of the first record from there on, or the
mirror's end where that is not copied yet; never beyond. Where another tool has copied there are no intervals: then
records are compared (`record_search`).
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from heliograph.control.record_search import Question, RecordSearch
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.model.intervals import Intervals
from heliograph.model.partitions import TopicPartition
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Committed, Offsets
from heliograph.wire.errors import TOPIC_AUTHORIZATION_FAILED, WireError
from heliograph.wire.metadata import Topic, id_text
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets

# Reasons for which there is no mirror offset.
NO_MIRROR, TOPIC_GONE, NO_PERMISSION = "no-mirror", "topic-gone", "no-permission"
NOTHING_COPIED, BEFORE_LEDGER, NO_OFFSET, UNREADABLE = "nothing-copied", "before-ledger", "no-offset", "unreadable"


@dataclass(frozen=True, slots=True)
class NotTranslatable:
    """Why there is no mirror offset: a stable reason, and a sentence."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class TranslatedOffset:
    """An offset that a group has committed on the source, and the mirror offset that belongs to it.

    `why` says why that may be too early, but not too late, where nothing better is known; else it is empty.
    """

    group: str
    topic: str
    partition: int
    committed: Committed
    answer: int | NotTranslatable
    mirror_end: int = 0
    why: str = ""
    mirror_id: str = ""  # topic id of the mirror that `answer` belongs to


class GroupTranslator:
    def __init__(self, flow: Flow, source: ClusterClient, target: ClusterClient, ledger: Ledger) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._ledger = ledger
        self._search = RecordSearch(flow, source, target)

    async def translate(self, wanted: Mapping[str, Offsets]) -> AsyncIterator[list[TranslatedOffset]]:
        """First what the intervals answer, then what needs a comparison of records."""
        snapshot = await self._snapshot({partition for offsets in wanted.values() for partition in offsets})
        by_intervals: list[TranslatedOffset] = []
        by_records: list[tuple[str, _PartitionPair, Committed, Question]] = []
        for group, offsets in wanted.items():
            for partition, committed in offsets.items():
                await asyncio.sleep(0)  # there may be thousands, and pages in memory are unpacked without waiting
                pair = snapshot.pair(partition, committed)
                if isinstance(pair, NotTranslatable):
                    by_intervals.append(TranslatedOffset(group, *partition, committed, pair))
                    continue
                answer = await self._ask(pair, committed)
                if isinstance(answer, Question):
                    by_records.append((group, pair, committed, answer))
                else:
                    by_intervals.append(pair.translated(group, committed, answer))
        yield by_intervals
        if by_records:
            await self._search.run([question for *_, question in by_records])
            yield [
                pair.translated(group, committed, *self._found(pair, question))
                for group, pair, committed, question in by_records
            ]

    async def _snapshot(self, partitions: Collection[TopicPartition]) -> "_Snapshot":
        """Everything that is needed to translate for these source partitions."""
        mirrors = {(self._flow.mirror_name(topic), partition) for topic, partition in partitions}
        source_topics = (await self._source.metadata({topic for topic, _ in partitions})).topics if partitions else {}
        mirror_topics = (await self._target.metadata({topic for topic, _ in mirrors})).topics if mirrors else {}
        source_starts, starts, ends = await asyncio.gather(
            list_offsets(self._source, source_topics, partitions, EARLIEST, False),
            list_offsets(self._target, mirror_topics, mirrors, EARLIEST, False),
            list_offsets(self._target, mirror_topics, mirrors, LATEST, False),
        )
        # After the ends: the copier that appended up to them had written its intervals to the ledger before.
        await self._ledger.catch_up()
        return _Snapshot(self._flow, source_topics, mirror_topics, source_starts, starts, ends)

    async def _ask(self, pair: "_PartitionPair", committed: Committed) -> int | NotTranslatable | Question:
        """The mirror offset by the intervals. One offset at a time: all of them together may need more pages of the
        ledger than are kept."""
        return await self._ledger.ask(pair.source_partition, id_text(pair.mirror.id), partial(pair.answer, committed))

    def _found(self, pair: "_PartitionPair", question: Question) -> tuple[int | NotTranslatable, str]:
        """The mirror offset by comparison, and why it may be too early."""
        found = self._search.answer(question)
        if isinstance(found, str):
            return NotTranslatable(BEFORE_LEDGER, found), ""
        return pair.in_range(found.target), found.why


@dataclass(frozen=True, slots=True)
class _PartitionPair:
    """A source partition and its mirror."""

    topic: Topic
    mirror: Topic
    partition: int
    source_id: str
    source_start: int
    start: int
    end: int

    @property
    def source_partition(self) -> TopicPartition:
        return self.topic.name, self.partition

    def answer(self, committed: Committed, intervals: Intervals) -> int | NotTranslatable | Question:
        """The mirror offset; or what to look for among records that another tool has copied, if it is there."""
        source = max(committed.offset, self.source_start)  # records before the start are gone: the group resumes there
        foreign = intervals.foreign_range(source, self.source_id, self.end)
        if foreign is not None:
            return Question(self.topic, self.mirror, self.partition, source, foreign)
        target = intervals.target_of(source, self.source_id, self.end)
        if target is not None:
            return self.in_range(target)
        if any(begins.source_id == self.source_id for begins in intervals.stretches()):
            return NotTranslatable(BEFORE_LEDGER, "it lies before the first record that Heliograph has copied")
        return NotTranslatable(NOTHING_COPIED, "nothing was copied yet")

    def in_range(self, offset: int) -> int:
        """Not before the mirror's start: a consumer would be out of range and go where auto.offset.reset says."""
        return max(offset, self.start)

    def translated(
        self, group: str, committed: Committed, answer: int | NotTranslatable, why: str = ""
    ) -> TranslatedOffset:
        return TranslatedOffset(
            group, *self.source_partition, committed, answer, self.end, why, id_text(self.mirror.id)
        )


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """Source partitions and mirrors as of one moment, by which offsets are translated."""

    flow: Flow
    sources: Mapping[str, Topic]
    mirrors: Mapping[str, Topic]
    source_starts: Mapping[TopicPartition, int | WireError]
    starts: Mapping[TopicPartition, int | WireError]
    ends: Mapping[TopicPartition, int | WireError]
    pairs: dict[TopicPartition, _PartitionPair | NotTranslatable] = field(default_factory=dict)

    def pair(self, partition: TopicPartition, committed: Committed) -> _PartitionPair | NotTranslatable:
        """What is known about a partition, or why its offsets cannot be translated."""
        if committed.offset < 0:
            return NotTranslatable(NO_OFFSET, "the group has committed no offset")
        if partition not in self.pairs:
            self.pairs[partition] = self._pair(*partition)
        return self.pairs[partition]

    def _pair(self, topic: str, partition: int) -> _PartitionPair | NotTranslatable:
        mirror = self.flow.mirror_name(topic)
        for name, cluster, topics in (
            (topic, self.flow.source, self.sources),
            (mirror, self.flow.target, self.mirrors),
        ):
            if name in topics and topics[name].error == TOPIC_AUTHORIZATION_FAILED:
                text = f"{cluster.alias} says TOPIC_AUTHORIZATION_FAILED of topic {name}"
                return NotTranslatable(NO_PERMISSION, text)
        if topic not in self.sources or self.sources[topic].error:
            return NotTranslatable(TOPIC_GONE, "the topic is gone from the source")
        if mirror not in self.mirrors or self.mirrors[mirror].error or partition not in self.mirrors[mirror].leaders:
            return NotTranslatable(NO_MIRROR, f"there is no mirror {mirror}-{partition}")
        end = self.ends.get((mirror, partition))
        if not isinstance(end, int):
            return NotTranslatable(UNREADABLE, f"the mirror's end is not known: {end}")
        source_start, start = self.source_starts.get((topic, partition)), self.starts.get((mirror, partition))
        if not isinstance(start, int):
            return NotTranslatable(UNREADABLE, f"the mirror's start is not known: {start}")
        return _PartitionPair(
            self.sources[topic],
            self.mirrors[mirror],
            partition,
            id_text(self.sources[topic].id),
            source_start if isinstance(source_start, int) else 0,
            start,
            end,
        )
