"""Checkpoints: where each consumer group of the source would go on in the mirrors, exactly.

For every group and partition the committed source offset is translated by the intervals of its mirror: to the first
record from there on, or to the mirror's end where that is not copied yet; never beyond. Where another tool has copied
before us there are no intervals: records are compared (`record_search`), after all else is written.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from heliograph.control.record_search import Question, RecordSearch
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.model.intervals import Intervals
from heliograph.model.mm2_records import Checkpoint
from heliograph.model.policy import checkpoint_topic
from heliograph.wire.cluster import ClusterClient, Topic, are_different, id_text
from heliograph.wire.errors import TOPIC_AUTHORIZATION_FAILED, WireError
from heliograph.wire.groups import Committed, Offsets, committed_offsets, list_groups
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets
from heliograph.wire.records import Record, now, own_topic, read_kind, write_records

T = TypeVar("T")
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
    mirror_id: str = ""  # of the mirror that it was looked for in


@dataclass(frozen=True, slots=True)
class Untranslated:
    """Why a group has no checkpoint for a partition."""

    group: str
    topic: str
    partition: int
    why: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A checkpoint, and the topic id of the mirror that it is true for; empty where brokers have no ids."""

    checkpoint: Checkpoint
    mirror_id: str


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
        self.share_groups: tuple[str, ...] = ()  # that would be wanted, and have no offsets
        self.latest: dict[Place, Checkpoint] = {}  # that are written down
        # Those that were computed since the start, or written before and found again: of others nobody knows for which
        # mirror they were.
        self.placed: dict[Place, Placed] = {}
        self.deleted: dict[str, dict[tuple[str, int], int]] = {}  # groups on the source, with the last mirror offsets

    async def load(self) -> None:
        """Those that were written before, by us or by MM2."""
        topic = await own_topic(self._target, self._topic)
        async for checkpoint in read_kind(self._target, topic, Checkpoint.from_record):
            self._note(checkpoint)

    async def refresh_groups(self) -> None:
        """The groups to look at: those that the file asks for and that have read something that is mirrored."""
        listed = await list_groups(self._source)
        matches = self._flow.groups.names.matches
        wanted = [group for group in sorted(listed) if listed[group].has_offsets and matches(group)]
        self.share_groups = tuple(name for name, one in listed.items() if one.is_share_group and matches(name))
        known = set(self.groups)
        # Those of a coordinator that is down are not listed. Only who has their offsets can tell that they are gone.
        unlisted = [group for group in {*known, *(place[0] for place in self.latest)} - listed.keys() if matches(group)]
        offsets = await committed_offsets(self._source, [*wanted, *unlisted])
        self._forget([group for group in unlisted if offsets.get(group) == {}], is_certain=bool(listed))
        for group in wanted:
            self.deleted.pop(group, None)
        self.groups = tuple(
            group
            for group in (*wanted, *unlisted)
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
        self._leave_what_is_gone(wanted)
        async for some in self._translate(wanted):
            await self._write(self._news(some, outcome), moment)
        return outcome

    async def translate(self, wanted: Mapping[str, Offsets]) -> list[Translated]:
        """Where groups go on in the mirrors, for all that they have committed. Writes nothing."""
        return [one async for some in self._translate(wanted) for one in some]

    async def _translate(self, wanted: Mapping[str, Offsets]) -> AsyncIterator[list[Translated]]:
        """First what intervals tell, then what must be looked for among records."""
        translate = await self._translator({place for found in wanted.values() for place in found})
        at_once: list[Translated] = []
        later: list[tuple[str, tuple[str, int], Committed]] = []
        questions: list[Question] = []
        for group, found in wanted.items():
            for place, committed in found.items():
                question = await self._ask(translate, place, committed, partial(translate.question, place, committed))
                if question is None:
                    at_once.append(
                        await self._ask(translate, place, committed, partial(translate, group, place, committed))
                    )
                else:
                    later.append((group, place, committed))
                    questions.append(question)
        yield at_once
        if questions:
            await self._search.run(questions)
            yield [await self._ask(translate, *one[1:], partial(translate, *one)) for one in later]

    async def mirrors_are_others(self) -> bool:
        """Whether some were deleted and created again since checkpoints were computed for them. One request."""
        known = {(one.checkpoint.topic, one.mirror_id) for one in self.placed.values() if one.mirror_id}
        if not known:
            return False
        topics = (await self._target.metadata({topic for topic, _mirror_id in known})).topics
        return any(are_different(mirror_id, id_text(topics[topic].id)) for topic, mirror_id in known if topic in topics)

    def _news(self, translated: Iterable[Translated], outcome: Round) -> list[Placed]:
        """What is to be written down about these."""
        news = []
        for one in translated:
            name = self._name_on_target(one.topic)
            place = one.group, name, one.partition
            before, placed = self.latest.get(place), self.placed.get(place)
            if isinstance(one.answer, Unknown):
                outcome.missing.append(Untranslated(one.group, one.topic, one.partition, one.answer.text))
                if one.answer.reason in (TOPIC_GONE, BEFORE_LEDGER):
                    self.placed.pop(place, None)
                continue
            if one.why:
                outcome.early.append(Untranslated(one.group, one.topic, one.partition, one.why))
            at = one.partition, one.committed.offset, one.answer, one.committed.metadata
            new = Checkpoint(one.group, name, *at)
            is_other_mirror = placed is not None and are_different(placed.mirror_id, one.mirror_id)
            if before is None or is_other_mirror or is_news(before, new, one.mirror_end, not one.why):
                news.append(Placed(new, one.mirror_id))
                continue
            outcome.unchanged += 1
            # One that was written before this start may be for an earlier mirror, unless it says the same.
            is_ours = placed is not None and placed.checkpoint == before
            is_true = is_ours or before.downstream == new.downstream
            self.placed[place] = Placed(before if is_true else new, one.mirror_id)
        outcome.emitted += [one.checkpoint for one in news]
        return news

    def _name_on_target(self, topic: str) -> str:
        return checkpoint_topic(self._flow.policy, self._flow.source.alias, self._flow.target.alias, topic)

    def _forget(self, groups: Collection[str], is_certain: bool) -> None:
        """They are not on the source any more. A source that has no group at all is not believed: it may be another."""
        gone = set(groups)
        if is_certain and self._flow.groups.deletes:
            for (group, topic, partition), one in self.latest.items():
                if group in gone:
                    self.deleted.setdefault(group, {})[topic, partition] = one.downstream
        self.latest = {place: one for place, one in self.latest.items() if place[0] not in gone}
        self.placed = {place: one for place, one in self.placed.items() if place[0] not in gone}

    def _leave_what_is_gone(self, committed: Mapping[str, Offsets]) -> None:
        """What the source does not have any more of a group is not brought to the target again."""
        topics = {topic for found in committed.values() for topic, _partition in found}
        names = {topic: self._name_on_target(topic) for topic in topics}
        there = {(group, names[topic], number) for group, found in committed.items() for topic, number in found}
        self.placed = {place: one for place, one in self.placed.items() if place in there or place[0] not in committed}

    async def _ask(
        self, translate: "_Translator", place: tuple[str, int], committed: Committed, question: Callable[[], T]
    ) -> T:
        """What the ledger says about a position, with the pages that it takes: one position after the other, as all of
        them may take more pages than are kept."""
        await asyncio.sleep(0)  # there may be thousands, and pages that are in memory are unpacked at once
        spot = translate.spot(place, committed)
        if isinstance(spot, Unknown):
            return question()
        return await self._ledger.ask(place, id_text(spot.mirror.id), lambda _intervals: question())

    async def _write(self, news: list[Placed], moment: int) -> None:
        if not news:
            return
        records = (Record(0, moment, *one.checkpoint.to_record()) for one in news)
        await write_records(self._target, await own_topic(self._target, self._topic), 0, records)
        for one in news:
            self._note(one.checkpoint)
            self.placed[one.checkpoint.group, one.checkpoint.topic, one.checkpoint.partition] = one

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
        spot = self.spots.get(place)
        end, mirror_id = (spot.end, id_text(spot.mirror.id)) if isinstance(spot, _Spot) else (0, "")
        return Translated(group, *place, committed, answer, end, why, mirror_id)

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

    def question(self, place: tuple[str, int], committed: Committed) -> Question | None:
        spot = self.spot(place, committed)
        return None if isinstance(spot, Unknown) else spot.question(committed)

    def spot(self, place: tuple[str, int], committed: Committed) -> _Spot | Unknown:
        """What is known about the partition of a position, or why it cannot be translated."""
        if committed.offset < 0:
            return Unknown(NO_OFFSET, "the group has committed no offset")
        if place not in self.spots:
            self.spots[place] = self._spot(*place)
        return self.spots[place]

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


def is_news(before: Checkpoint, new: Checkpoint, mirror_end: int, exact: bool = True) -> bool:
    """MM2's rule: a group that went back on the source goes back, otherwise a checkpoint only goes forward; and one
    that lies beyond the mirror's end counts no more. Nor does one that lies beyond where the group exactly belongs:
    the mirror must have been made anew since."""
    return (
        new.upstream < before.upstream
        or new.downstream > before.downstream
        or before.downstream > mirror_end
        or (exact and new.downstream < before.downstream)
    )
