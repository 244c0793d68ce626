"""Translates the committed offsets of consumer groups to mirror offsets, exactly.

By the mirror's intervals, a committed source offset becomes the mirror offset of the first record from there on, or the
mirror's end where that is not copied yet; never beyond. Where another tool has copied there are no intervals: then
records are compared (`record_search`).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from heliograph.control.record_search import Question, RecordSearch
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.model.intervals import Intervals
from heliograph.model.partitions import TopicPartition
from heliograph.wire.cluster import ClusterClient, Topic, id_text
from heliograph.wire.consumer_groups import Committed, Offsets
from heliograph.wire.errors import TOPIC_AUTHORIZATION_FAILED, WireError
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets

T = TypeVar("T")
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
    mirror_end: int
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
        survey = await self._survey({place for offsets in wanted.values() for place in offsets})
        at_once: list[TranslatedOffset] = []
        later: list[tuple[str, TopicPartition, Committed]] = []
        questions: list[Question] = []
        for group, offsets in wanted.items():
            for place, committed in offsets.items():
                question = await self._ask(survey, place, committed, partial(survey.question, place, committed))
                if question is None:
                    answer = partial(survey.translate, group, place, committed)
                    at_once.append(await self._ask(survey, place, committed, answer))
                else:
                    later.append((group, place, committed))
                    questions.append(question)
        yield at_once
        if questions:
            await self._search.run(questions)
            yield [
                await self._ask(survey, place, committed, partial(survey.translate, group, place, committed))
                for group, place, committed in later
            ]

    async def _survey(self, places: Collection[TopicPartition]) -> "_Survey":
        """Everything that is needed to translate for these source partitions."""
        mirrors = {(self._flow.mirror_name(topic), partition) for topic, partition in places}
        source_topics = (await self._source.metadata({topic for topic, _ in places})).topics if places else {}
        mirror_topics = (await self._target.metadata({topic for topic, _ in mirrors})).topics if mirrors else {}
        source_starts, starts, ends = await asyncio.gather(
            list_offsets(self._source, source_topics, places, EARLIEST, False),
            list_offsets(self._target, mirror_topics, mirrors, EARLIEST, False),
            list_offsets(self._target, mirror_topics, mirrors, LATEST, False),
        )
        # After the ends: the copier that appended up to them had written its intervals to the ledger before.
        await self._ledger.catch_up()
        return _Survey(
            self._flow, self._ledger, self._search, source_topics, mirror_topics, source_starts, starts, ends
        )

    async def _ask(
        self, survey: "_Survey", place: TopicPartition, committed: Committed, question: Callable[[], T]
    ) -> T:
        """Answers a question about one committed offset, and loads the pages of the ledger for it. One offset at a
        time: all of them together may need more pages than are kept."""
        await asyncio.sleep(0)  # there may be thousands, and pages in memory are unpacked without waiting
        pair = survey.pair(place, committed)
        if isinstance(pair, NotTranslatable):
            return question()
        return await self._ledger.ask(place, id_text(pair.mirror.id), lambda _intervals: question())


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
    intervals: Intervals

    def position(self, committed: Committed) -> int:
        """Records before the source's start are gone: the group resumes at the start."""
        return max(committed.offset, self.source_start)

    def by_intervals(self, committed: Committed) -> int | None:
        return self.intervals.target_of(self.position(committed), self.source_id, self.end)

    def question(self, committed: Committed) -> Question | None:
        """What to look for among records that another tool has copied, if the position is there."""
        source = self.position(committed)
        foreign = self.intervals.foreign_range(source, self.source_id, self.end)
        return None if foreign is None else Question(self.topic, self.mirror, self.partition, source, foreign)

    def in_range(self, offset: int) -> int:
        """Not before the mirror's start: a consumer would be out of range and go where auto.offset.reset says."""
        return max(offset, self.start)


@dataclass(frozen=True, slots=True)
class _Survey:
    """Source partitions and mirrors as of one moment, by which offsets are translated."""

    flow: Flow
    ledger: Ledger
    search: RecordSearch
    sources: Mapping[str, Topic]
    mirrors: Mapping[str, Topic]
    source_starts: Mapping[TopicPartition, int | WireError]
    starts: Mapping[TopicPartition, int | WireError]
    ends: Mapping[TopicPartition, int | WireError]
    pairs: dict[TopicPartition, _PartitionPair | NotTranslatable] = field(default_factory=dict)

    def translate(self, group: str, place: TopicPartition, committed: Committed) -> TranslatedOffset:
        answer, why = self._answer(place, committed)
        pair = self.pairs.get(place)
        end, mirror_id = (pair.end, id_text(pair.mirror.id)) if isinstance(pair, _PartitionPair) else (0, "")
        return TranslatedOffset(group, *place, committed, answer, end, why, mirror_id)

    def _answer(self, place: TopicPartition, committed: Committed) -> tuple[int | NotTranslatable, str]:
        """The mirror offset, or why there is none; and why it may be too early."""
        pair = self.pair(place, committed)
        if isinstance(pair, NotTranslatable):
            return pair, ""
        if (question := pair.question(committed)) is not None:
            answer = self.search.answer(question)
            if isinstance(answer, str):
                return NotTranslatable(BEFORE_LEDGER, answer), ""
            return pair.in_range(answer.target), answer.why
        target = pair.by_intervals(committed)
        if target is not None:
            return pair.in_range(target), ""
        if any(begins.source_id == pair.source_id for begins in pair.intervals.stretches()):
            return NotTranslatable(BEFORE_LEDGER, "it lies before the first record that Heliograph has copied"), ""
        return NotTranslatable(NOTHING_COPIED, "nothing was copied yet"), ""

    def question(self, place: TopicPartition, committed: Committed) -> Question | None:
        pair = self.pair(place, committed)
        return None if isinstance(pair, NotTranslatable) else pair.question(committed)

    def pair(self, place: TopicPartition, committed: Committed) -> _PartitionPair | NotTranslatable:
        """What is known about a partition, or why its offsets cannot be translated."""
        if committed.offset < 0:
            return NotTranslatable(NO_OFFSET, "the group has committed no offset")
        if place not in self.pairs:
            self.pairs[place] = self._pair(*place)
        return self.pairs[place]

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
        return _PartitionPair(
            self.sources[topic],
            self.mirrors[mirror],
            partition,
            id_text(self.sources[topic].id),
            source_start if isinstance(source_start, int) else 0,
            start if isinstance(start, int) else 0,
            end,
            self.ledger.of((topic, partition), id_text(self.mirrors[mirror].id)),
        )
