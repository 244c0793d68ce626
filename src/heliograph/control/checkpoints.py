"""Checkpoints: where each consumer group of the source would resume in the mirrors, written to MM2's topic."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from heliograph.control.group_translation import (
    BEFORE_LEDGER,
    TOPIC_GONE,
    GroupTranslator,
    NotTranslatable,
    TranslatedOffset,
)
from heliograph.copy.ledger import Ledger
from heliograph.model.flow import Flow
from heliograph.model.mm2_records import Checkpoint
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import Offsets, committed_offsets, list_groups
from heliograph.wire.errors import WireError
from heliograph.wire.metadata import are_different, id_text
from heliograph.wire.records import Record, now, own_topic, read_kind, write_records

GroupTopicPartition = tuple[str, str, int]  # group, topic as the target calls it, partition


@dataclass(frozen=True, slots=True)
class CheckpointIssue:
    """Why a group has no checkpoint for a partition, or an early one."""

    group: str
    topic: str
    partition: int
    why: str

    @property
    def is_about_group(self) -> bool:
        """Whether it is about all partitions of the group."""
        return not self.topic


@dataclass(frozen=True, slots=True)
class MirrorCheckpoint:
    """A checkpoint, and the topic id of the mirror that it is valid for; empty where brokers have no ids."""

    checkpoint: Checkpoint
    mirror_id: str


@dataclass(slots=True)
class CheckpointRound:
    """The outcome of one look at all groups."""

    emitted: list[Checkpoint] = field(default_factory=list)
    missing: list[CheckpointIssue] = field(default_factory=list)
    early: list[CheckpointIssue] = field(default_factory=list)  # have a checkpoint, and would read some records again


class Checkpoints:
    def __init__(self, flow: Flow, source: ClusterClient, target: ClusterClient, ledger: Ledger) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._translator = GroupTranslator(flow, source, target, ledger)
        self._topic = flow.checkpoints_topic
        self.groups: tuple[str, ...] = ()
        self.share_groups: tuple[str, ...] = ()  # that match the filter, and have no offsets
        self.latest: dict[GroupTopicPartition, Checkpoint] = {}  # as written to the topic
        # Those that were computed since the start, or were written before and are still valid. Of others it is not
        # known which mirror they are for.
        self.mirror_checkpoints: dict[GroupTopicPartition, MirrorCheckpoint] = {}
        # Groups that were deleted on the source, with the last mirror offsets.
        self.deleted: dict[str, dict[tuple[str, int], int]] = {}

    async def load(self) -> None:
        """Reads the checkpoints that were written before, by us or by MM2."""
        topic = await own_topic(self._target, self._topic)
        async for checkpoint in read_kind(self._target, topic, Checkpoint.from_record):
            self._note(checkpoint)

    async def refresh_groups(self) -> None:
        """Finds the groups to checkpoint: those that match the filter and have committed offsets of mirrored topics."""
        listed = await list_groups(self._source)
        matches = self._flow.groups.names.matches
        wanted = [group for group in sorted(listed) if listed[group].has_offsets and matches(group)]
        self.share_groups = tuple(name for name, listing in listed.items() if listing.is_share_group and matches(name))
        known = set(self.groups)
        # Groups of a coordinator that is down are not listed. Only OffsetFetch shows whether they are gone.
        unlisted = [group for group in {*known, *(key[0] for key in self.latest)} - listed.keys() if matches(group)]
        offsets = await committed_offsets(self._source, [*wanted, *unlisted])
        self._forget([group for group in unlisted if offsets.get(group) == {}], is_certain=bool(listed))
        for group in wanted:
            self.deleted.pop(group, None)
        self.groups = tuple(
            group
            for group in (*wanted, *unlisted)
            if (
                any(self._flow.selects(topic) for topic, _partition in committed)
                if isinstance(committed := offsets.get(group), dict)
                else group in known  # its coordinator may be back the next time
            )
        )

    async def run(self) -> CheckpointRound:
        """Translates the offsets of all groups, and writes checkpoints that are new."""
        outcome = CheckpointRound()
        moment = now()
        offsets = await committed_offsets(self._source, self.groups)
        wanted: dict[str, Offsets] = {}
        for group, committed in offsets.items():
            if isinstance(committed, WireError):
                outcome.missing.append(CheckpointIssue(group, "", -1, f"its offsets cannot be read: {committed}"))
            else:
                wanted[group] = {key: at for key, at in committed.items() if self._flow.selects(key[0])}
        self._drop_uncommitted(wanted)
        async for translated in self._translator.translate(wanted):
            await self._write(self._news(translated, outcome), moment)
        return outcome

    async def translate(self, wanted: Mapping[str, Offsets]) -> list[TranslatedOffset]:
        """Where groups would resume in the mirrors, for these committed offsets. Writes nothing."""
        return [offset async for offsets in self._translator.translate(wanted) for offset in offsets]

    async def mirrors_are_others(self) -> bool:
        """Whether mirrors were deleted and recreated since checkpoints were computed for them. One request."""
        known = {
            (entry.checkpoint.topic, entry.mirror_id) for entry in self.mirror_checkpoints.values() if entry.mirror_id
        }
        if not known:
            return False
        topics = (await self._target.metadata({topic for topic, _mirror_id in known})).topics
        return any(are_different(mirror_id, id_text(topics[topic].id)) for topic, mirror_id in known if topic in topics)

    def _news(self, translated: Iterable[TranslatedOffset], outcome: CheckpointRound) -> list[MirrorCheckpoint]:
        """The checkpoints to write for these offsets."""
        news = []
        for offset in translated:
            name = self._flow.name_in_checkpoints(offset.topic)
            key = offset.group, name, offset.partition
            before, known = self.latest.get(key), self.mirror_checkpoints.get(key)
            if isinstance(offset.answer, NotTranslatable):
                issue = CheckpointIssue(offset.group, offset.topic, offset.partition, offset.answer.text)
                outcome.missing.append(issue)
                if offset.answer.reason in (TOPIC_GONE, BEFORE_LEDGER):
                    self.mirror_checkpoints.pop(key, None)
                continue
            if offset.why:
                outcome.early.append(CheckpointIssue(offset.group, offset.topic, offset.partition, offset.why))
            fields = offset.partition, offset.committed.offset, offset.answer, offset.committed.metadata
            new = Checkpoint(offset.group, name, *fields)
            is_other_mirror = known is not None and are_different(known.mirror_id, offset.mirror_id)
            if before is None or is_other_mirror or is_news(before, new, offset.mirror_end, not offset.why):
                news.append(MirrorCheckpoint(new, offset.mirror_id))
                continue
            # One that was written before this start may be for an earlier mirror, unless it says the same.
            is_ours = known is not None and known.checkpoint == before
            is_valid = is_ours or before.downstream == new.downstream
            self.mirror_checkpoints[key] = MirrorCheckpoint(before if is_valid else new, offset.mirror_id)
        outcome.emitted += [entry.checkpoint for entry in news]
        return news

    def _forget(self, groups: Collection[str], is_certain: bool) -> None:
        """Drops groups that are gone from the source. A source without any group is not proof that they were deleted:
        it may be another cluster."""
        gone = set(groups)
        if is_certain and self._flow.groups.deletes:
            for (group, topic, partition), checkpoint in self.latest.items():
                if group in gone:
                    self.deleted.setdefault(group, {})[topic, partition] = checkpoint.downstream
        self.latest = {key: checkpoint for key, checkpoint in self.latest.items() if key[0] not in gone}
        self.mirror_checkpoints = {key: entry for key, entry in self.mirror_checkpoints.items() if key[0] not in gone}

    def _drop_uncommitted(self, committed: Mapping[str, Offsets]) -> None:
        """Drops checkpoints for which the group has no committed offset on the source any more, so that they are not
        written to the target again."""
        topics = {topic for offsets in committed.values() for topic, _partition in offsets}
        names = {topic: self._flow.name_in_checkpoints(topic) for topic in topics}
        still_committed = {
            (group, names[topic], partition) for group, offsets in committed.items() for topic, partition in offsets
        }
        self.mirror_checkpoints = {
            key: entry
            for key, entry in self.mirror_checkpoints.items()
            if key in still_committed or key[0] not in committed
        }

    async def _write(self, news: list[MirrorCheckpoint], moment: int) -> None:
        if not news:
            return
        records = (Record(0, moment, *entry.checkpoint.to_record()) for entry in news)
        await write_records(self._target, await own_topic(self._target, self._topic), 0, records)
        for entry in news:
            checkpoint = entry.checkpoint
            self._note(checkpoint)
            self.mirror_checkpoints[checkpoint.group, checkpoint.topic, checkpoint.partition] = entry

    def _note(self, checkpoint: Checkpoint) -> None:
        self.latest[checkpoint.group, checkpoint.topic, checkpoint.partition] = checkpoint


def is_news(before: Checkpoint, new: Checkpoint, mirror_end: int, exact: bool = True) -> bool:
    """MM2's rule: a group that went back on the source goes back, otherwise a checkpoint only goes forward. One beyond
    the mirror's end, or beyond where the group exactly belongs, is replaced: the mirror was recreated since."""
    return (
        new.upstream < before.upstream
        or new.downstream > before.downstream
        or before.downstream > mirror_end
        or (exact and new.downstream < before.downstream)
    )
