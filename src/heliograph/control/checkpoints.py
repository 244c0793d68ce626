"""Checkpoints: where each consumer group of the source would go on in the mirrors, exactly.

For every group and partition the committed source offset is translated by the intervals of its mirror: to the first
record from there on, or to the mirror's end where that is not copied yet; never beyond.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.model.intervals import Intervals
from heliograph.model.mm2_records import Checkpoint
from heliograph.model.policy import checkpoint_topic
from heliograph.wire.cluster import ClusterClient, Topic, id_text
from heliograph.wire.errors import TOPIC_AUTHORIZATION_FAILED, WireError
from heliograph.wire.groups import Committed, Offsets, committed_offsets, consumer_groups
from heliograph.wire.offsets import LATEST, list_offsets
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
    """What a group has committed for a partition of the source, and the mirror offset that belongs to it."""

    group: str
    topic: str
    partition: int
    committed: Committed
    answer: int | Unknown
    mirror_end: int


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


class Checkpoints:
    def __init__(self, flow: Flow, source: ClusterClient, target: ClusterClient, ledger: Ledger) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._ledger = ledger
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
        for one in await self.translate(wanted):
            if isinstance(one.answer, Unknown):
                outcome.missing.append(Untranslated(one.group, one.topic, one.partition, one.answer.text))
                continue
            name = checkpoint_topic(self._flow.policy, self._flow.source.alias, self._flow.target.alias, one.topic)
            at = one.partition, one.committed.offset, one.answer, one.committed.metadata
            new = Checkpoint(one.group, name, *at)
            if is_news(self.latest.get((one.group, name, one.partition)), new, one.mirror_end):
                outcome.emitted.append(new)
            else:
                outcome.unchanged += 1
        if outcome.emitted:
            records = (Record(0, moment, *one.to_record()) for one in outcome.emitted)
            await write_records(self._target, await own_topic(self._target, self._topic), 0, records)
        for checkpoint in outcome.emitted:
            self._note(checkpoint)
        return outcome

    async def translate(self, wanted: Mapping[str, Offsets]) -> list[Translated]:
        """Where groups go on in the mirrors, for all that they have committed. Writes nothing."""
        translate = await self._translator({place for found in wanted.values() for place in found})
        forgotten = {
            place for found in wanted.values() for place, one in found.items() if translate.has_forgotten(*place, one)
        }
        if forgotten:
            await self._ledger.recall(forgotten)
        return [
            Translated(group, *place, one, translate(*place, one), translate.end(*place))
            for group, found in wanted.items()
            for place, one in found.items()
        ]

    def _note(self, checkpoint: Checkpoint) -> None:
        self.latest[checkpoint.group, checkpoint.topic, checkpoint.partition] = checkpoint

    async def _translator(self, places: Iterable[tuple[str, int]]) -> "_Translator":
        """All that is needed to translate for these source partitions, asked for at once."""
        places = set(places)
        mirrors = {(self._flow.mirror_name(topic), partition) for topic, partition in places}
        source_topics = (await self._source.metadata({topic for topic, _ in places})).topics if places else {}
        mirror_topics = (await self._target.metadata({topic for topic, _ in mirrors})).topics if mirrors else {}
        ends = await list_offsets(self._target, mirror_topics, mirrors, LATEST, False)
        # After the ends: whoever appended up to there had written down its intervals before.
        await self._ledger.catch_up()
        return _Translator(self._flow, self._ledger, source_topics, mirror_topics, ends)


@dataclass(frozen=True, slots=True)
class _Translator:
    flow: Flow
    ledger: Ledger
    sources: Mapping[str, Topic]
    mirrors: Mapping[str, Topic]
    ends: Mapping[tuple[str, int], int | WireError]

    def __call__(self, topic: str, partition: int, committed: Committed) -> int | Unknown:
        """The mirror offset, or why there is none."""
        if committed.offset < 0:
            return Unknown(NO_OFFSET, "the group has committed no offset")
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
        known, source_id = self._intervals(topic, partition), id_text(self.sources[topic].id)
        found = known.target_of(committed.offset, source_id, end)
        if found is not None:
            return found
        if not any(one.source_id == source_id for one in known):
            return Unknown(NOTHING_COPIED, "nothing was copied yet")
        return Unknown(BEFORE_LEDGER, "it lies before the first record that Heliograph has copied")

    def has_forgotten(self, topic: str, partition: int, committed: Committed) -> bool:
        """Whether the answer lies further back than what is kept in memory."""
        forgets = self._intervals(topic, partition).forgotten_before > 0
        return forgets and isinstance(self(topic, partition, committed), Unknown)

    def end(self, topic: str, partition: int) -> int:
        end = self.ends.get((self.flow.mirror_name(topic), partition))
        return end if isinstance(end, int) else 0

    def _intervals(self, topic: str, partition: int) -> Intervals:
        mirror = self.mirrors.get(self.flow.mirror_name(topic))
        return self.ledger.of((topic, partition), id_text(mirror.id) if mirror is not None else "")


def is_news(before: Checkpoint | None, new: Checkpoint, mirror_end: int) -> bool:
    """MM2's rule: a group that went back on the source goes back, otherwise a checkpoint only goes forward; and one
    that lies beyond the mirror's end, which must have been made anew, counts no more."""
    return (
        before is None
        or new.upstream < before.upstream
        or new.downstream > before.downstream
        or before.downstream > mirror_end
    )
