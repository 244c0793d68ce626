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
from heliograph.wire.errors import WireError
from heliograph.wire.groups import Committed, Offsets, committed_offsets, consumer_groups
from heliograph.wire.offsets import LATEST, list_offsets
from heliograph.wire.records import Record, now, own_topic, read_kind, write_records

Place = tuple[str, str, int]  # group, topic as the target calls it, partition


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
        translate = await self._translator({place for found in wanted.values() for place in found})
        forgotten = {
            place for found in wanted.values() for place, one in found.items() if translate.has_forgotten(*place, one)
        }
        if forgotten:
            await self._ledger.recall(forgotten)
        for group, found in wanted.items():
            for (topic, partition), committed in found.items():
                answer = translate(topic, partition, committed)
                if isinstance(answer, str):
                    outcome.missing.append(Untranslated(group, topic, partition, answer))
                    continue
                name = checkpoint_topic(self._flow.policy, self._flow.source.alias, self._flow.target.alias, topic)
                new = Checkpoint(group, name, partition, committed.offset, answer, committed.metadata)
                if is_news(self.latest.get((group, name, partition)), new, translate.end(topic, partition)):
                    outcome.emitted.append(new)
                else:
                    outcome.unchanged += 1
        if outcome.emitted:
            records = (Record(0, moment, *one.to_record()) for one in outcome.emitted)
            await write_records(self._target, await own_topic(self._target, self._topic), 0, records)
        for checkpoint in outcome.emitted:
            self._note(checkpoint)
        return outcome

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

    def __call__(self, topic: str, partition: int, committed: Committed) -> int | str:
        """The mirror offset, or why there is none."""
        if committed.offset < 0:
            return "the group has committed no offset"
        mirror = self.flow.mirror_name(topic)
        if mirror not in self.mirrors or self.mirrors[mirror].error:
            return f"there is no mirror {mirror}"
        if topic not in self.sources or self.sources[topic].error:
            return "the topic is gone from the source"
        end = self.ends.get((mirror, partition))
        if not isinstance(end, int):
            return f"the mirror's end is not known: {end}"
        found = self._intervals(topic, partition).target_of(committed.offset, id_text(self.sources[topic].id), end)
        return "nothing was copied yet" if found is None else found

    def has_forgotten(self, topic: str, partition: int, committed: Committed) -> bool:
        """Whether the answer lies further back than what is kept in memory."""
        forgets = self._intervals(topic, partition).forgotten_before > 0
        return forgets and isinstance(self(topic, partition, committed), str)

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
