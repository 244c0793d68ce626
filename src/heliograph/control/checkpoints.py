"""Checkpoints: where each consumer group of the source would go on in the mirrors, exactly.

For every group and partition the committed source offset is translated by the intervals of its mirror: to the first
record from there on, or to the mirror's end where that is not copied yet; never beyond. Where another tool has copied
before us there are no intervals: records are compared (`record_search`), after all else is written.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from heliograph.control.record_search import Question, RecordSearch
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.model.intervals import Intervals
from heliograph.model.mm2_records import Checkpoint
from heliograph.model.policy import checkpoint_topic
from heliograph.wire.cluster import ClusterClient, Topic, id_text
from heliograph.wire.errors import TOPIC_AUTHORIZATION_FAILED, WireError
from heliograph.wire.groups import Committed, Offsets, committed_offsets, consumer_groups
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets
from heliograph.wire.records import Record, now, own_topic, read_kind, write_records

Place = tuple[str, str, int]  # group, topic as the target calls it, partition

# Why there is no mirror offset, in a word.
NO_MIRROR, TOPIC_GONE, NO_PERMISSION = "no-mirror", "topic-gone", "no-permission"
NOTHING_COPIED, BEFORE_LEDGER, NO_OFFSET, UNREADABLE = "nothing-copied", "before-ledger", "no-offset", "unreadable"


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why there is no mirror offset: a short stable word, and a sentence."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Translated:
    """What a group has committed for a partition of the source, and the mirror offset that belongs to it. `why` that is
    rather too early than too late, where that is all that is known; else empty."""

    group: str
    topic: str
    partition: int
    committed: Committed
    answer: int | Unknown
    mirror_end: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Untranslated:
    """Why a group has no checkpoint for a partition."""

    group: str
    topic: str
    partition: int
    why: str


@dataclass(slots=True)
class Round:
    """What one look at all groups gave."""

    emitted: list[Checkpoint] = field(default_factory=list)
    unchanged: int = 0
    missing: list[Untranslated] = field(default_factory=list)
    early: list[Untranslated] = field(default_factory=list)  # have a checkpoint, and would read some records again


class Checkpoints:
    def __init__(self, flow: Flow, source: ClusterClient, target: ClusterClient, ledger: Ledger) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._ledger = ledger
        self._search = RecordSearch(flow, source, target)
        self._topic = flow.policy.checkpoints_topic(flow.source.alias)
        self.groups: tuple[str, ...] = ()
        self.latest: dict[Place, Checkpoint] = {}

    async def load(self) -> None:
        """Those that were written before, by us or by MM2."""
        topic = await own_topic(self._target, self._topic)
        async for checkpoint in read_kind(self._target, topic, Checkpoint.from_record):
            self._note(checkpoint)

    async def refresh_groups(self) -> None:
        """The groups to look at: those that the file asks for and that have read something that is mirrored."""
        wanted = [name for name in await consumer_groups(self._source) if self._flow.groups.names.matches(name)]
        offsets = await committed_offsets(self._source, wanted)
        known = set(self.groups)
        self.groups = tuple(
            group
            for group in wanted
            if (
                any(self._flow.selects(topic) for topic, _partition in found)
                if isinstance(found := offsets.get(group), dict)
                else group in known  # its coordinator may be back the next time
            )
        )

    async def run(self) -> Round:
        """Look at all groups once, and write down what is new."""
        outcome = Round()
        moment = now()
        offsets = await committed_offsets(self._source, self.groups)
        wanted: dict[str, Offsets] = {}
        for group, found in offsets.items():
            if isinstance(found, WireError):
                outcome.missing.append(Untranslated(group, "", -1, f"its offsets cannot be read: {found}"))
            else:
                wanted[group] = {place: one for place, one in found.items() if self._flow.selects(place[0])}
        async for some in self._translate(wanted):
            await self._write(self._news(some, outcome), moment)
        return outcome

    async def translate(self, wanted: Mapping[str, Offsets]) -> list[Translated]:
        """Where groups go on in the mirrors, for all that they have committed. Writes nothing."""
        return [one async for some in self._translate(wanted) for one in some]

    async def _translate(self, wanted: Mapping[str, Offsets]) -> AsyncIterator[list[Translated]]:
        """First what intervals tell, then what must be looked for among records."""
        translate = await self._translator({place for found in wanted.values() for place in found})
        await self._load_pages(translate, wanted)
        at_once: list[Translated] = []
        later: list[tuple[str, tuple[str, int], Committed]] = []
        questions: list[Question] = []
        for group, found in wanted.items():
            for place, committed in found.items():
                spot = translate.spot(place, committed)
                question = None if isinstance(spot, Unknown) else spot.question(committed)
                if question is None:
                    at_once.append(translate(group, place, committed))
                else:
                    later.append((group, place, committed))
                    questions.append(question)
        yield at_once
        if questions:
            await self._search.run(questions)
            yield [translate(*one) for one in later]

    def _news(self, translated: Iterable[Translated], outcome: Round) -> list[Checkpoint]:
        """What is to be written down about these."""
        news = []
        for one in translated:
            if isinstance(one.answer, Unknown):
                outcome.missing.append(Untranslated(one.group, one.topic, one.partition, one.answer.text))
                continue
            if one.why:
                outcome.early.append(Untranslated(one.group, one.topic, one.partition, one.why))
            name = checkpoint_topic(self._flow.policy, self._flow.source.alias, self._flow.target.alias, one.topic)
            at = one.partition, one.committed.offset, one.answer, one.committed.metadata
            new = Checkpoint(one.group, name, *at)
            if is_news(self.latest.get((one.group, name, one.partition)), new, one.mirror_end, not one.why):
                news.append(new)
            else:
                outcome.unchanged += 1
        outcome.emitted += news
        return news

    async def _load_pages(self, translate: "_Translator", wanted: Mapping[str, Offsets]) -> None:
        """Have those pages of the ledger in memory that it takes to translate all of this."""
        for found in wanted.values():
            for place, committed in found.items():
                spot = translate.spot(place, committed)
                if isinstance(spot, _Spot):
                    await self._ledger.ask(place, id_text(spot.mirror.id), partial(spot.look_up, committed))

    async def _write(self, news: list[Checkpoint], moment: int) -> None:
        if not news:
            return
        records = (Record(0, moment, *one.to_record()) for one in news)
        await write_records(self._target, await own_topic(self._target, self._topic), 0, records)
        for checkpoint in news:
            self._note(checkpoint)

    def _note(self, checkpoint: Checkpoint) -> None:
        self.latest[checkpoint.group, checkpoint.topic, checkpoint.partition] = checkpoint

    async def _translator(self, places: Collection[tuple[str, int]]) -> "_Translator":
        """All that is needed to translate for these source partitions, asked for at once."""
        mirrors = {(self._flow.mirror_name(topic), partition) for topic, partition in places}
        source_topics = (await self._source.metadata({topic for topic, _ in places})).topics if places else {}
        mirror_topics = (await self._target.metadata({topic for topic, _ in mirrors})).topics if mirrors else {}
        source_starts, starts, ends = await asyncio.gather(
            list_offsets(self._source, source_topics, places, EARLIEST, False),
            list_offsets(self._target, mirror_topics, mirrors, EARLIEST, False),
            list_offsets(self._target, mirror_topics, mirrors, LATEST, False),
        )
        # After the ends: whoever appended up to there had written down its intervals before.
        await self._ledger.catch_up()
        return _Translator(
            self._flow, self._ledger, self._search, source_topics, mirror_topics, source_starts, starts, ends
        )


@dataclass(frozen=True, slots=True)
class _Spot:
    """All about one source partition and its mirror."""

    topic: Topic
    mirror: Topic
    partition: int
    source_id: str
    source_start: int
    start: int
    end: int
    intervals: Intervals

    def position(self, committed: Committed) -> int:
        """What retention has taken from the source nobody reads any more."""
        return max(committed.offset, self.source_start)

    def known(self, committed: Committed) -> int | None:
        """What the intervals say."""
        return self.intervals.target_of(self.position(committed), self.source_id, self.end)

    def question(self, committed: Committed) -> Question | None:
        """What is to be looked for among records that we have not copied, if the position lies there."""
        at = self.position(committed)
        others = self.intervals.of_others(at, self.source_id, self.end)
        return None if others is None else Question(self.topic, self.mirror, self.partition, at, others)

    def look_up(self, committed: Committed, intervals: Intervals) -> None:
        """All that is asked of the intervals about a position. Raises NotLoaded where a page is missing."""
        at = self.position(committed)
        intervals.target_of(at, self.source_id, self.end)
        intervals.of_others(at, self.source_id, self.end)

    def there(self, offset: int) -> int:
        """Nor what it has taken from the mirror: a reader would be out of range, and sent who knows where."""
        return max(offset, self.start)


@dataclass(frozen=True, slots=True)
class _Translator:
    flow: Flow
    ledger: Ledger
    search: RecordSearch
    sources: Mapping[str, Topic]
    mirrors: Mapping[str, Topic]
    source_starts: Mapping[tuple[str, int], int | WireError]
    starts: Mapping[tuple[str, int], int | WireError]
    ends: Mapping[tuple[str, int], int | WireError]
    spots: dict[tuple[str, int], _Spot | Unknown] = field(default_factory=dict)

    def __call__(self, group: str, place: tuple[str, int], committed: Committed) -> Translated:
        answer, why = self._answer(place, committed)
        return Translated(group, *place, committed, answer, self._end(place), why)

    def _answer(self, place: tuple[str, int], committed: Committed) -> tuple[int | Unknown, str]:
        """The mirror offset, or why there is none; and why it is early, if it is."""
        spot = self.spot(place, committed)
        if isinstance(spot, Unknown):
            return spot, ""
        if (question := spot.question(committed)) is not None:
            found = self.search.answer(question)
            return (
                (Unknown(BEFORE_LEDGER, found), "") if isinstance(found, str) else (spot.there(found.target), found.why)
            )
        known = spot.known(committed)
        if known is not None:
            return spot.there(known), ""
        if any(begins.source_id == spot.source_id for begins in spot.intervals.stretches()):
            return Unknown(BEFORE_LEDGER, "it lies before the first record that Heliograph has copied"), ""
        return Unknown(NOTHING_COPIED, "nothing was copied yet"), ""

    def spot(self, place: tuple[str, int], committed: Committed) -> _Spot | Unknown:
        """What is known about the partition of a position, or why it cannot be translated."""
        if committed.offset < 0:
            return Unknown(NO_OFFSET, "the group has committed no offset")
        if place not in self.spots:
            self.spots[place] = self._spot(*place)
        return self.spots[place]

    def _end(self, place: tuple[str, int]) -> int:
        spot = self.spots.get(place)
        return spot.end if isinstance(spot, _Spot) else 0

    def _spot(self, topic: str, partition: int) -> _Spot | Unknown:
        mirror = self.flow.mirror_name(topic)
        for name, cluster, topics in (
            (topic, self.flow.source, self.sources),
            (mirror, self.flow.target, self.mirrors),
        ):
            if name in topics and topics[name].error == TOPIC_AUTHORIZATION_FAILED:
                return Unknown(NO_PERMISSION, f"{cluster.alias} says TOPIC_AUTHORIZATION_FAILED of topic {name}")
        if topic not in self.sources or self.sources[topic].error:
            return Unknown(TOPIC_GONE, "the topic is gone from the source")
        if mirror not in self.mirrors or self.mirrors[mirror].error or partition not in self.mirrors[mirror].leaders:
            return Unknown(NO_MIRROR, f"there is no mirror {mirror}-{partition}")
        end = self.ends.get((mirror, partition))
        if not isinstance(end, int):
            return Unknown(UNREADABLE, f"the mirror's end is not known: {end}")
        source_start, start = self.source_starts.get((topic, partition)), self.starts.get((mirror, partition))
        return _Spot(
            self.sources[topic],
            self.mirrors[mirror],
            partition,
            id_text(self.sources[topic].id),
            source_start if isinstance(source_start, int) else 0,
            start if isinstance(start, int) else 0,
            end,
            self.ledger.of((topic, partition), id_text(self.mirrors[mirror].id)),
        )


def is_news(before: Checkpoint | None, new: Checkpoint, mirror_end: int, exact: bool = True) -> bool:
    """MM2's rule: a group that went back on the source goes back, otherwise a checkpoint only goes forward; and one
    that lies beyond the mirror's end counts no more. Nor does one that lies beyond where the group exactly belongs:
    the mirror must have been made anew since."""
    return (
        before is None
        or new.upstream < before.upstream
        or new.downstream > before.downstream
        or before.downstream > mirror_end
        or (exact and new.downstream < before.downstream)
    )
