"""A source and a mirror in memory, to try recovery on logs that no broker can be made to have."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from heliograph.copy.candidate import Candidate
from heliograph.copy.classified import Rules
from heliograph.copy.classify import classify
from heliograph.copy.consumer_view import records_in
from heliograph.copy.cursor import Cursor
from heliograph.copy.log_access import Batches, BothLogs
from heliograph.copy.position import PartitionFacts, Resume, next_position
from heliograph.copy.verify import verified
from heliograph.model.flow import CONTINUE, MIB, Policies
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.partitions import MirrorPartition, Position, TopicPartition, producer_id
from heliograph.model.problems import Refusal
from heliograph.wire.batches import Batch, mirror_header, one_batch, sequence
from heliograph.wire.metadata import NO_ID, Metadata, Topic
from heliograph.wire.recode import Builder, DecodedRecord

T = TypeVar("T")
KEY = MirrorPartition("t", "A.t", 0)
OURS = producer_id("A->B", KEY)
LENIENT = Policies(CONTINUE, CONTINUE, CONTINUE, "fail")
_CONTROL = 0x20
_TOPIC = Topic("t", NO_ID, False, {0: 0})


def batch(values: Sequence[bytes], offset: int, producer: int = 7, number: int = 0) -> Batch:
    builder = Builder(0)
    for value in values:
        builder.add(DecodedRecord(0, 1000, b"key", value, []))
    made = builder.build(offset, 0)
    data = bytearray(mirror_header(made, producer, sequence(number)) + bytes(made.records))
    data[:8] = offset.to_bytes(8, "big")
    return one_batch(memoryview(bytes(data)))


def marker(offset: int) -> Batch:
    """An offset that holds no record for a reader."""
    return batch([b""], offset)._replace(attributes=_CONTROL)


def values_of(log: Sequence[Batch]) -> Iterator[tuple[int, bytes]]:
    """Each record's offset and value."""
    for batch in log:
        if not batch.control:
            for record in records_in(
                classify(bytes(batch.data), batch.base_offset, -1, Rules(join_up_to=0)).outgoing[0]
            ):
                yield record.offset, record.value or b""


@dataclass
class Recovered:
    position: Position | None
    refusal: Refusal | None
    counts: dict[str, int]
    texts: list[str]


@dataclass
class Logs:
    """One partition and its mirror. In the source None is a marker."""

    source: list[Batch] = field(default_factory=list)
    mirror: list[Batch] = field(default_factory=list)
    intervals: Intervals = field(default_factory=lambda: Intervals([Interval(0, 0, 0, "id")]))
    position: Position = field(default_factory=lambda: Position(0, 0))
    foreign_offsets_before: int = 0
    source_start: int = 0

    @property
    def source_end(self) -> int:
        return self.source[-1].next_offset if self.source else 0

    @property
    def mirror_end(self) -> int:
        return self.mirror[-1].next_offset if self.mirror else 0

    def write(self, *values: bytes | None) -> None:
        """Append to the source, each record in a batch of its own."""
        for value in values:
            at = self.source_end
            self.source.append(marker(at) if value is None else batch([value], at))

    def cut(self, offset: int) -> None:
        """The source loses what it has from an offset on."""
        self.source = [batch for batch in self.source if batch.next_offset <= offset]

    def compact(self, start: int, end: int) -> None:
        """The source loses the records from offset `start` to `end`."""
        self.source = [batch for batch in self.source if not start <= batch.base_offset < end]

    def plan(self) -> list[tuple[Interval, list[bytes]]]:
        """What is to be copied next, and where to, one run of source offsets after the other."""
        runs: list[tuple[int, list[bytes]]] = []
        for offset, value in values_of(self.source):
            if offset >= self.position.source:
                if runs and runs[-1][0] + len(runs[-1][1]) == offset:
                    runs[-1][1].append(value)
                else:
                    runs.append((offset, [value]))
        planned, at = [], self.position.target
        for first, values in runs:
            planned.append((Interval(at, first, len(values), "id", self.foreign_offsets_before), values))
            at += len(values)
        return planned

    def record(self, planned: Sequence[Interval]) -> None:
        """Write down ahead, as a copier does."""
        if planned and not self.intervals.agree(planned):
            self.intervals.put(planned)

    def copy(self) -> None:
        """Copy all that the source has."""
        planned = self.plan()
        self.record([interval for interval, _values in planned])
        for interval, values in planned:
            self.append(values, interval.target - self.foreign_offsets_before)
        self.position = Position(self.source_end, self.mirror_end)

    def append(self, values: Sequence[bytes], number: int, producer: int = OURS) -> None:
        """A batch lands at the mirror's end, whatever number its first record has among our own."""
        self.mirror.append(batch(values, self.mirror_end, producer, number))

    def recover(
        self, policies: Policies = LENIENT, cut_at: int | None = None, search_bytes: int = 64 * MIB
    ) -> Recovered:
        """Find the position, and record what that brings."""
        cursor = Cursor(KEY, OURS)
        cursor.mirror.locate(0, "m")
        if cut_at is not None:
            cursor.source.truncated(cut_at)
        counts: dict[str, int] = {}
        texts: list[str] = []
        looks = 1
        while self._recover(cursor, policies, search_bytes, counts, texts):
            cursor.retry.verify_next()
            looks += 1
            assert looks < 5
        return Recovered(None if cursor.refusal else self.position, cursor.refusal, counts, texts)

    def _recover(
        self, cursor: Cursor, policies: Policies, search_bytes: int, counts: dict[str, int], texts: list[str]
    ) -> bool:
        """Try once. Returns whether it must be verified again."""
        facts = PartitionFacts(self.source_start, self.source_end, 0, self.mirror_end, "id", "m", is_sure=True)
        decision = next_position(self.intervals, facts, policies)
        assert isinstance(decision, Resume), decision
        candidate = Candidate(cursor, facts, decision, self.intervals, 0)
        lost: list[str] = []
        clusters = Simulated(self, search_bytes)
        passed = asyncio.run(
            verified([candidate], clusters, policies, lambda _cursor, why, _suspicious: lost.append(why))
        )
        assert not lost, lost
        for correction in candidate.corrections:
            self.intervals.put([correction])
        if not passed:
            return False
        if candidate.decision.new is not None:
            self.intervals.put([candidate.decision.new])
        self.position, self.foreign_offsets_before = (
            candidate.decision.position,
            candidate.decision.foreign_offsets_before,
        )
        for kind, count, text in candidate.decision.events:
            counts[kind] = counts.get(kind, 0) + count
            texts.append(text)
        return candidate.verify_again


class Simulated(BothLogs):
    def __init__(self, logs: Logs, search_bytes: int) -> None:
        nobody: Any = None
        topics = Metadata(topics={"t": _TOPIC, "A.t": _TOPIC})
        super().__init__(nobody, topics, nobody, topics, nobody, True, search_bytes)
        object.__setattr__(self, "logs", logs)

    logs: Logs

    async def ask(self, _candidate: Candidate, question: Callable[[Intervals], T]) -> T:
        return question(self.logs.intervals)

    async def originals(self, wanted: dict[TopicPartition, int]) -> Batches:
        return {place: _holding(self.logs.source, offset) for place, offset in wanted.items()}

    async def copies(self, wanted: dict[TopicPartition, int]) -> Batches:
        return {place: _holding(self.logs.mirror, offset) for place, offset in wanted.items()}

    async def source_records(self, _candidate: Candidate, start: int, end: int) -> AsyncIterator[DecodedRecord]:
        for offset, value in values_of(self.logs.source):
            if start <= offset < end:
                yield DecodedRecord(offset, 1000, b"key", value, [])

    async def visible_in_mirror(self, _candidate: Candidate, start: int, end: int) -> set[int]:
        return {
            batch.base_offset for batch in self.logs.mirror if start < batch.next_offset and batch.base_offset < end
        }

    async def mirror_batches(self, _candidate: Candidate, start: int, end: int) -> AsyncIterator[Batch]:
        for batch in self.logs.mirror:
            if batch.next_offset > start and batch.base_offset < end:
                yield batch


def _holding(log: Sequence[Batch], offset: int) -> Batch | None:
    return next((batch for batch in log if batch.next_offset > offset), None)


def check_translation(logs: Logs) -> None:
    """A consumer that resumes from a translated offset reads every record that it has not read, in order."""
    copies = dict(values_of(logs.mirror))
    originals = list(values_of(logs.source))
    for offset in range(logs.source_end + 1):
        target = logs.intervals.target_of(offset, "id", logs.mirror_end)
        assert target is not None
        rest = iter([value for at, value in sorted(copies.items()) if at >= target])
        missing = [value for at, value in originals if at >= offset and value not in rest]
        assert not missing, f"source offset {offset} becomes {target}, which is too late for {missing}"
