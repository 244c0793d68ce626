"""Mirror offsets among records that another tool has copied: found by comparing records, as there are no intervals.

The records that a group would read next on the source are looked for in the mirror, between the nearest offset syncs of
MM2. A run of them must match, so that a repeated record does not mislead. Where the records do not decide, the answer
is too early rather than too late, and says so.

Answers are kept in memory only: in the ledger, recovery would take them for intervals of our own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from heliograph.copy.consumer_view import visible_records
from heliograph.copy.log_access import batches_at
from heliograph.model.flow import Flow
from heliograph.model.intervals import ForeignRange
from heliograph.model.mm2_records import OffsetSync
from heliograph.model.partitions import TopicPartition
from heliograph.wire.batches import Batch
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, WireError
from heliograph.wire.metadata import Metadata, Topic, id_text
from heliograph.wire.offsets import EARLIEST, one_offset
from heliograph.wire.recode import DecodedRecord
from heliograph.wire.records import read_kind

_RUN = 100  # how many of the next records are looked for
_ENOUGH = 20  # in a row, where a restart of MM2 or compaction leaves no longer run
_NEAR = 10_000  # offsets between an offset sync and a position, up to which records are counted
_BYTES = 256 << 20  # per round; the search continues in the next one
_FETCH = 1 << 20
_RECORD_OVERHEAD = 100  # bytes beside key and value

Content = tuple[object, ...]
Key = tuple[str, int, str, str, int]


@dataclass(frozen=True, slots=True)
class Question:
    """Where in the mirror does a reader at this source offset resume? It falls into a range that others have copied."""

    topic: Topic
    mirror: Topic
    partition: int
    source: int
    foreign: ForeignRange

    @property
    def source_partition(self) -> TopicPartition:
        return self.topic.name, self.partition

    @property
    def key(self) -> Key:
        return (*self.source_partition, id_text(self.topic.id), id_text(self.mirror.id), self.source)


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """`why` says why the offset may be too early; empty if it is exact."""

    target: int
    why: str = ""


class Matcher:
    """Reads a log record by record, and finds the offset at which a run of records begins."""

    def __init__(self, run: Sequence[Content], whole: bool) -> None:
        """`whole`: the run is everything up to the source's end, so the log must end with it."""
        self._run = run
        self._whole = whole
        self._matching: list[tuple[int, int]] = []  # start and length of partial matches
        self._longest = (0, -1)  # length, and minus the start
        self._seen: dict[Content, list[int]] = {content: [] for content in set(run)}

    @property
    def busy(self) -> bool:
        return bool(self._matching)

    def next(self, offset: int, record: Content, last: bool) -> int | None:
        """Adds the next record; returns the start once the whole run has matched."""
        if record in self._seen and len(self._seen[record]) < 2:
            self._seen[record].append(offset)
        going_on = []
        for start, count in [*self._matching, (offset, 0)]:
            if count == len(self._run) or self._run[count] != record:
                self._longest = max(self._longest, (count, -start))
                continue
            if count + 1 == len(self._run) and (last or not self._whole):
                return start
            going_on.append((start, count + 1))
        self._matching = going_on
        return None

    def best(self) -> FoundOffset | None:
        """The best answer when the run has not matched as a whole."""
        count, start = max(self._longest, *((count, -start) for start, count in self._matching), (0, 0))
        if count >= _ENOUGH:
            return FoundOffset(-start)
        seen = [(number, self._seen[content]) for number, content in enumerate(self._run) if self._seen[content]]
        if not seen:
            return None
        # The first record of the run that was seen decides, if it is unique and enough others come after it.
        number, offsets = seen[0]
        earliest = min(first for _number, (first, *_) in seen)
        is_unique = len(offsets) == 1 and self._run.count(self._run[number]) == 1
        are_enough = len(seen) >= min(_ENOUGH, len(self._run) // 2 + 1)
        is_exact = is_unique and are_enough and offsets[0] == earliest
        return FoundOffset(earliest, "" if is_exact else "the mirror's records are not different enough")


@dataclass(slots=True)
class _Search:
    """A search in progress: the next offset, the last possible one, and the answer if it fails."""

    at: int
    latest: int
    ignore_time: bool
    matchers: list[Matcher]
    safe: int


@dataclass(slots=True)
class _Budget:
    left: int = field(default=_BYTES)

    def spend(self, record: DecodedRecord) -> bool:
        """Whether anything is left."""
        self.left -= _RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"")
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
        """The offset, or why there is none yet."""
        in_progress = "its offset among the records that another tool has copied is still being searched for"
        return self._found.get(question.key) or self._failed.get(question.key, in_progress)

    async def run(self, questions: Iterable[Question]) -> None:
        """Searches for what has no answer yet, within a budget. Forgets answers that are not asked for any more."""
        asked = {question.key: question for question in questions}
        self._found = {key: offset for key, offset in self._found.items() if key in asked}
        self._searches = {key: search for key, search in self._searches.items() if key in asked}
        self._failed = {}
        wanted = sorted(asked.keys() - self._found.keys())
        if wanted:
            await self._load_syncs({question.source_partition for question in asked.values()})
        budget = _Budget()
        for key in wanted:
            if budget.left <= 0:
                break
            try:
                offset = await self._search(asked[key], budget)
            except WireError as error:
                self._failed[key] = f"its records cannot be compared with those of the mirror: {error}"
                self._searches.pop(key, None)
                continue
            if offset is not None:
                self._found[key] = offset
                self._searches.pop(key, None)

    async def _search(self, question: Question, budget: _Budget) -> FoundOffset | None:
        """Answers one question; None if the budget is spent first."""
        search = self._searches.get(question.key)
        if search is None:
            begun = await self._begin(question, budget)
            if isinstance(begun, FoundOffset):
                return begun
            self._searches[question.key] = search = begun
        end = question.foreign.end
        records = visible_records(
            self._target, question.mirror, question.partition, search.at, end, committed_only=True
        )
        async for record in records:
            if record.offset > search.latest + _RUN and not any(matcher.busy for matcher in search.matchers):
                break
            for matcher in search.matchers:
                start = matcher.next(record.offset, _content(record, search.ignore_time), record.offset == end - 1)
                if start is not None:
                    return FoundOffset(start)
            search.at = record.offset + 1
            if not budget.spend(record):
                return None
        best = [offset for matcher in search.matchers if (offset := matcher.best()) is not None]
        exact = [offset for offset in best if not offset.why]
        if exact:
            return min(exact, key=_target)
        return min(best, key=_target, default=FoundOffset(search.safe, "the next record is not found in the mirror"))

    async def _begin(self, question: Question, budget: _Budget) -> _Search | FoundOffset:
        start = await one_offset(self._target, question.mirror, question.partition, EARLIEST, False)
        committed = await self._run_from(question, question.source, True, budget)
        if not committed or start >= question.foreign.end:
            return FoundOffset(question.foreign.end)
        # MM2 also copies aborted records of the source, unless its consumer has isolation.level = read_committed.
        everything = await self._run_from(question, committed[0].offset, False, budget)
        safe, latest = await self._between(question, committed[0].offset, budget)
        at = max(start, safe)
        ignore_time = await self._has_log_append_time(question, at)
        if not ignore_time:
            since = min(record.timestamp for record in committed)
            at = max(
                at,
                await one_offset(self._target, question.mirror, question.partition, since, False) if since >= 0 else at,
            )
        if at > latest:  # the hints contradict each other
            at, latest = max(start, question.foreign.start), question.foreign.end
        runs = [committed] if committed == everything else [committed, everything]
        matchers = [Matcher([_content(record, ignore_time) for record in run], len(run) < _RUN) for run in runs]
        return _Search(at, latest, ignore_time, matchers, max(start, safe))

    async def _run_from(
        self, question: Question, source: int, committed_only: bool, budget: _Budget
    ) -> list[DecodedRecord]:
        run: list[DecodedRecord] = []
        end = question.foreign.source_end
        async for record in visible_records(
            self._source, question.topic, question.partition, source, end, committed_only
        ):
            run.append(record)
            if len(run) == _RUN:
                break
        budget.left -= _FETCH
        return run

    async def _between(self, question: Question, source: int, budget: _Budget) -> tuple[int, int]:
        """Mirror offsets between which the copy of a source record must be, by MM2's offset syncs.

        After a sync the mirror has at least as many records as the source still has.
        """
        safe, latest = question.foreign.start, question.foreign.end
        syncs = [
            sync
            for sync in self._syncs[question.source_partition]
            if question.foreign.start <= sync.downstream < question.foreign.end
        ]
        before = [sync for sync in syncs if sync.upstream <= source]
        if before:
            safe = before[-1].downstream
            if source - before[-1].upstream <= _NEAR:
                since = max(
                    before[-1].upstream,
                    await one_offset(self._source, question.topic, question.partition, EARLIEST, True),
                )
                async for record in visible_records(
                    self._source, question.topic, question.partition, since, source, True
                ):
                    safe += 1
                    budget.spend(record)
        behind = [sync.downstream for sync in syncs if sync.upstream >= source]
        return safe, min(behind, default=latest)

    async def _has_log_append_time(self, question: Question, offset: int) -> bool:
        """Whether the mirror's broker has set the timestamps."""
        partition = (question.mirror.name, question.partition)
        metadata = Metadata(topics={question.mirror.name: question.mirror})
        batch = (await batches_at(self._target, metadata, {partition: offset})).get(partition)
        if not isinstance(batch, Batch):
            raise WireError(f"mirror offset {offset} cannot be read: {batch}")
        return batch.log_append_time

    async def _load_syncs(self, partitions: set[TopicPartition]) -> None:
        """Reads the offset syncs of these partitions, from the last step back on: earlier ones may be about an earlier
        topic of this name."""
        if partitions <= self._syncs.keys():
            return
        syncs: dict[TopicPartition, list[OffsetSync]] = {partition: [] for partition in partitions}
        client = self._target if self._flow.offset_syncs.on_target else self._source
        name = self._flow.offset_syncs_topic
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


def _content(record: DecodedRecord, ignore_time: bool) -> Content:
    """What must be equal; not the timestamp if the mirror has LogAppendTime."""
    return None if ignore_time else record.timestamp, record.key, record.value, tuple(record.headers)


def _target(offset: FoundOffset) -> int:
    return offset.target
