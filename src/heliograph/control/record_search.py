"""Positions among what another tool has copied: found by comparing records, for there are no intervals.

The records that a group would read next on the source are looked for in the mirror, between the nearest pairs of
offsets that MM2 has noted. A run of them must agree, so that the same record twice does not mislead. Where records do
not tell, the answer is rather too early than too late, and says so.

Answers are kept in memory only: in the ledger, recovery would take them for what we have copied ourselves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from heliograph.control.offset_syncs import syncs_topic
from heliograph.copy.resumed import batches_at
from heliograph.copy.visible import visible_records
from heliograph.model.flow import Flow
from heliograph.model.intervals import ForeignRange
from heliograph.model.mm2_records import OffsetSync
from heliograph.model.partitions import TopicPartition
from heliograph.wire.batches import Batch
from heliograph.wire.cluster import ClusterClient, Metadata, Topic, id_text
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, WireError
from heliograph.wire.offsets import EARLIEST, one_offset
from heliograph.wire.recode import DecodedRecord
from heliograph.wire.records import read_kind

_RUN = 100  # so many of the next records are looked for
_ENOUGH = 20  # so many of them in a row must do, where a restart of MM2 or compaction has come between
_NEAR = 10_000  # offsets between a noted pair and a position, up to which records are counted
_BYTES = 256 << 20  # read in one round; the search goes on in the next
_FETCH = 1 << 20
_A_RECORD = 100  # bytes beside key and value

Content = tuple[object, ...]
Key = tuple[str, int, str, str, int]


@dataclass(frozen=True, slots=True)
class Question:
    """Where in the mirror does a reader go on that has come to this source offset?"""

    topic: Topic
    mirror: Topic
    partition: int
    source: int
    others: ForeignRange

    @property
    def place(self) -> TopicPartition:
        return self.topic.name, self.partition

    @property
    def key(self) -> Key:
        return (*self.place, id_text(self.topic.id), id_text(self.mirror.id), self.source)


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """`why` the place is rather too early than too late, where that is all that is known."""

    target: int
    why: str = ""


class Matcher:
    """Follows a log record by record, and looks for the place where a run of records begins."""

    def __init__(self, run: Sequence[Content], whole: bool) -> None:
        """`whole`: the run is all that there is, so that the log must end with it."""
        self._run = run
        self._whole = whole
        self._under_way: list[tuple[int, int]] = []  # where a run may have begun, how much of it has come
        self._longest = (0, -1)  # how much, and where
        self._seen: dict[Content, list[int]] = {one: [] for one in set(run)}

    @property
    def busy(self) -> bool:
        return bool(self._under_way)

    def next(self, offset: int, record: Content, last: bool) -> int | None:
        """Take the next record; the place, once the whole run has come."""
        if record in self._seen and len(self._seen[record]) < 2:
            self._seen[record].append(offset)
        going_on = []
        for start, count in [*self._under_way, (offset, 0)]:
            if count == len(self._run) or self._run[count] != record:
                self._longest = max(self._longest, (count, -start))
                continue
            if count + 1 == len(self._run) and (last or not self._whole):
                return start
            going_on.append((start, count + 1))
        self._under_way = going_on
        return None

    def best(self) -> FoundOffset | None:
        """What can be said when the whole run has not come in one piece."""
        count, start = max(self._longest, *((count, -start) for start, count in self._under_way), (0, 0))
        if count >= _ENOUGH:
            return FoundOffset(-start)
        there = [(number, self._seen[one]) for number, one in enumerate(self._run) if self._seen[one]]
        if not there:
            return None
        # The first of them that is there tells it alone, if nothing else looks like it, and enough others come behind.
        number, places = there[0]
        earliest = min(some[0] for _number, some in there)
        alone = len(places) == 1 and self._run.count(self._run[number]) == 1
        enough = len(there) >= min(_ENOUGH, len(self._run) // 2 + 1)
        sure = alone and enough and places[0] == earliest
        return FoundOffset(earliest, "" if sure else "the mirror's records are not told apart well enough")


@dataclass(slots=True)
class _Search:
    """One that is under way: where it goes on, up to where the place may lie, and what it has come to if it fails."""

    at: int
    latest: int
    timeless: bool
    matchers: list[Matcher]
    safe: int


@dataclass(slots=True)
class _Budget:
    left: int = field(default=_BYTES)

    def spend(self, record: DecodedRecord) -> bool:
        """Whether something is left."""
        self.left -= _A_RECORD + len(record.key or b"") + len(record.value or b"")
        return self.left > 0


class RecordSearch:
    def __init__(self, flow: Flow, source: ClusterClient, target: ClusterClient) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._syncs: dict[TopicPartition, list[OffsetSync]] = {}
        self._searches: dict[Key, _Search] = {}
        self._found: dict[Key, FoundOffset] = {}
        self._failed: dict[Key, str] = {}

    def answer(self, question: Question) -> FoundOffset | str:
        """What was found, or why nothing was yet."""
        under_way = "its place among what another tool has copied is still being looked for"
        return self._found.get(question.key) or self._failed.get(question.key, under_way)

    async def run(self, questions: Iterable[Question]) -> None:
        """Look for what has no answer yet, for a while. What is not asked for any more is forgotten."""
        asked = {one.key: one for one in questions}
        self._found = {key: one for key, one in self._found.items() if key in asked}
        self._searches = {key: one for key, one in self._searches.items() if key in asked}
        self._failed = {}
        wanted = sorted(asked.keys() - self._found.keys())
        if wanted:
            await self._know_syncs({one.place for one in asked.values()})
        budget = _Budget()
        for key in wanted:
            if budget.left <= 0:
                break
            try:
                found = await self._look(asked[key], budget)
            except WireError as error:
                self._failed[key] = f"its records cannot be compared with those of the mirror: {error}"
                self._searches.pop(key, None)
                continue
            if found is not None:
                self._found[key] = found
                self._searches.pop(key, None)

    async def _look(self, question: Question, budget: _Budget) -> FoundOffset | None:
        """One position; None if there is more to read than this round may."""
        search = self._searches.get(question.key)
        if search is None:
            begun = await self._begin(question, budget)
            if isinstance(begun, FoundOffset):
                return begun
            self._searches[question.key] = search = begun
        end = question.others.end
        records = visible_records(
            self._target, question.mirror, question.partition, search.at, end, committed_only=True
        )
        async for record in records:
            if record.offset > search.latest + _RUN and not any(matcher.busy for matcher in search.matchers):
                break
            for matcher in search.matchers:
                found = matcher.next(record.offset, _content(record, search.timeless), record.offset == end - 1)
                if found is not None:
                    return FoundOffset(found)
            search.at = record.offset + 1
            if not budget.spend(record):
                return None
        best = [one for matcher in search.matchers if (one := matcher.best()) is not None]
        sure = [one for one in best if not one.why]
        if sure:
            return min(sure, key=_place)
        return min(best, key=_place, default=FoundOffset(search.safe, "the next record is not found in the mirror"))

    async def _begin(self, one: Question, budget: _Budget) -> _Search | FoundOffset:
        start = await one_offset(self._target, one.mirror, one.partition, EARLIEST, False)
        committed = await self._run_from(one, one.source, True, budget)
        if not committed or start >= one.others.end:
            return FoundOffset(one.others.end)
        # MM2 copies records of aborted transactions of the source, too, unless it was told not to.
        everything = await self._run_from(one, committed[0].offset, False, budget)
        safe, latest = await self._between(one, committed[0].offset, budget)
        at = max(start, safe)
        timeless = await self._is_timeless(one, at)
        if not timeless:
            since = min(record.timestamp for record in committed)
            at = max(at, await one_offset(self._target, one.mirror, one.partition, since, False) if since >= 0 else at)
        if at > latest:  # so these hints cannot all be right
            at, latest = max(start, one.others.start), one.others.end
        runs = [committed] if committed == everything else [committed, everything]
        matchers = [Matcher([_content(each, timeless) for each in run], len(run) < _RUN) for run in runs]
        return _Search(at, latest, timeless, matchers, max(start, safe))

    async def _run_from(self, one: Question, source: int, committed_only: bool, budget: _Budget) -> list[DecodedRecord]:
        found: list[DecodedRecord] = []
        end = one.others.source_end
        async for record in visible_records(self._source, one.topic, one.partition, source, end, committed_only):
            found.append(record)
            if len(found) == _RUN:
                break
        budget.left -= _FETCH
        return found

    async def _between(self, one: Question, source: int, budget: _Budget) -> tuple[int, int]:
        """Mirror offsets between which the copy of a source record must lie, by the pairs that MM2 has noted.

        Behind a pair there are at least as many records in the mirror as the source still has.
        """
        safe, latest = one.others.start, one.others.end
        pairs = [each for each in self._syncs[one.place] if one.others.start <= each.downstream < one.others.end]
        before = [each for each in pairs if each.upstream <= source]
        if before:
            safe = before[-1].downstream
            if source - before[-1].upstream <= _NEAR:
                since = max(
                    before[-1].upstream, await one_offset(self._source, one.topic, one.partition, EARLIEST, True)
                )
                async for record in visible_records(self._source, one.topic, one.partition, since, source, True):
                    safe += 1
                    budget.spend(record)
        behind = [each.downstream for each in pairs if each.upstream >= source]
        return safe, min(behind, default=latest)

    async def _is_timeless(self, one: Question, offset: int) -> bool:
        """Whether the mirror's broker has set times of its own."""
        place = (one.mirror.name, one.partition)
        metadata = Metadata(topics={one.mirror.name: one.mirror})
        batch = (await batches_at(self._target, metadata, {place: offset})).get(place)
        if not isinstance(batch, Batch):
            raise WireError(f"mirror offset {offset} cannot be read: {batch}")
        return batch.log_append_time

    async def _know_syncs(self, places: set[TopicPartition]) -> None:
        """The pairs of these partitions, those since the last step back: the others may be about an earlier topic of
        this name."""
        if places <= self._syncs.keys():
            return
        syncs: dict[TopicPartition, list[OffsetSync]] = {place: [] for place in places}
        client = self._target if self._flow.offset_syncs.on_target else self._source
        name = syncs_topic(self._flow)
        topic = (await client.metadata([name])).topics[name]
        if topic.error != UNKNOWN_TOPIC_OR_PARTITION:
            async for sync in read_kind(client, topic, OffsetSync.from_record):
                known = syncs.get((sync.topic, sync.partition))
                if known is None:
                    continue
                if known and (sync.upstream < known[-1].upstream or sync.downstream < known[-1].downstream):
                    known.clear()
                known.append(sync)
        self._syncs = syncs


def _content(record: DecodedRecord, timeless: bool) -> Content:
    """What must be the same; not the time, if the mirror's broker has set its own."""
    return None if timeless else record.timestamp, record.key, record.value, tuple(record.headers)


def _place(found: FoundOffset) -> int:
    return found.target
