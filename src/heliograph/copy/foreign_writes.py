"""When the mirror's last batch is not ours, or not at its offset: find what is ours, and where to continue.

Batches with our producer id are ours wherever they landed, and their sequence numbers show what they hold: a sequence
counts our own records only. As long as the sequence is unbroken, somebody else has written between ours. Where it is
broken, a batch of ours is missing or appended twice: a broker that has forgotten our producer accepts any sequence
number. Then the records decide, as where logs diverge: copying continues with the first record that is missing.
"""

from bisect import bisect_right
from dataclasses import dataclass, field, replace

from heliograph.copy.candidate import Candidate
from heliograph.copy.copied_records import CopiedRecords
from heliograph.copy.divergence import COPIED_TWICE, correct, search_tail
from heliograph.copy.log_access import BothLogs
from heliograph.copy.position import Event, lost_records, not_kept
from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import NO_END, Interval, Intervals
from heliograph.wire.batches import SEQUENCES, Batch
from heliograph.wire.errors import WireError

OUT_OF_SEQUENCE = "out-of-sequence"
_INTERVALS = 50_000
_ENOUGH = 10  # batches: twice as many as may be in flight


@dataclass(slots=True)
class _Written:
    """What the mirror holds from some offset on. Our own records are numbered from the mirror's first record on."""

    at: int  # the mirror offset up to which it was read
    number: int  # of the record that comes next, as the broker counts
    reached: int  # the mirror holds all records before this number
    foreign: int = 0  # records of others
    ours: list[tuple[Batch, int]] = field(default_factory=list)  # with the number of the first record
    broken_at: int | None = None  # the mirror offset where the sequence is broken
    missing: int = 0
    repeated: int = 0

    def foreign_offsets_at(self, mirror_offset: int) -> int | None:
        """None before the first batch that was read."""
        index = bisect_right(self.ours, mirror_offset, key=lambda own: own[0].base_offset) - 1
        if index < 0:
            return None
        batch, number = self.ours[index]
        return batch.base_offset - number

    def take(self, batch: Batch) -> None:
        """Take the next batch of ours."""
        # Sequences wrap, so it is the nearest number that fits. A batch may begin before the offset that we read from.
        first = self.number + _nearest(batch.base_sequence - self.number)
        removed = batch.base_offset - self.at  # by compaction
        if self.number + min(removed, 0) <= first <= self.number + max(removed, 0):
            self.reached = first if self.reached == self.number else self.reached
            self.number = first
        elif self.broken_at is None:
            self.broken_at = batch.base_offset
        self.missing += max(0, first - self.number)
        self.repeated += max(0, min(self.number - first, batch.last_offset_delta + 1))
        self.ours.append((batch, first))
        self.number = first + batch.last_offset_delta + 1
        if first <= self.reached:
            self.reached = max(self.reached, self.number)


async def continue_after_others(candidate: Candidate, why: str, logs: BothLogs, policies: Policies) -> bool:
    """Continue after what others have written. Returns whether copying continues: by policy, unless readers do not see
    what was written."""
    cursor, facts = candidate.cursor, candidate.facts
    start = await _last_sound_offset(candidate, logs)
    known = await logs.ask(candidate, lambda intervals: intervals.covering(start))
    if known is None:
        raise WireError(f"nothing is known about mirror offset {start}")
    written = await _written_since(candidate, start, start - known.foreign_offsets_before, logs)
    if written.broken_at is not None:
        return await _continue_out_of_sequence(candidate, start, written, logs, policies)
    event = not_kept("transactions have ended where records belong")
    if written.foreign:
        event = _foreign(written)
        if policies.foreign_writer != CONTINUE:
            cursor.give_up("foreign-writer", why, candidate.decision.position.source, facts.mirror_end)
            return False
    # From the sound offset on: before it, numbers may have been used twice.
    since = Intervals(await logs.ask(candidate, lambda intervals: intervals.rows(known.target, NO_END, NO_END)))
    _continue_behind(candidate, written.number, since, event, policies)
    if cursor.refusal is not None:
        return False
    for batch, first in written.ours:
        _correct(candidate, batch, first, since)
    _forget_plans(candidate, start, written)
    return True


def _foreign(written: _Written) -> Event:
    text = f"another producer has written {written.foreign} records to this mirror; copying continues after them"
    return "foreign-writer", written.foreign, text


async def _written_since(candidate: Candidate, start: int, number: int, logs: BothLogs) -> _Written:
    written = _Written(start, number, number)
    visible_from = await logs.visible_in_mirror(candidate, start, candidate.facts.mirror_end)
    async for batch in logs.mirror_batches(candidate, start, candidate.facts.mirror_end):
        if batch.producer_id == candidate.producer_id:
            written.take(batch)
        elif batch.base_offset in visible_from:
            written.foreign += batch.next_offset - max(batch.base_offset, start)
        written.at = batch.next_offset
    return written


async def _continue_out_of_sequence(
    candidate: Candidate, start: int, written: _Written, logs: BothLogs, policies: Policies
) -> bool:
    """Batches of our own are missing or repeated after `start`. The policy for foreign writers decides, as the mirror
    is not a copy any more."""
    cursor, facts, end = candidate.cursor, candidate.facts, candidate.facts.mirror_end
    text = (
        f"from mirror offset {written.broken_at} on the mirror does not hold what this flow has sent in that order: "
        f"{written.missing} records are missing, {written.repeated} are duplicated; the broker had forgotten the "
        "flow's producer (producer.id.expiration.ms) when it refused a batch, or got one twice"
    )
    known = await logs.ask(candidate, lambda intervals: intervals.covering(start))
    assert known is not None
    copied = await _copied_around(candidate, start, logs)
    common, before = copied.behind(start) or (start, known.source_of(start))
    reached, missing_from = copied.behind(written.reached + known.foreign_offsets_before) or (common, before)
    if gone := copied.before_source(facts.source_start):  # from the source, but they were copied
        common = max(common, min(copied.at(gone - 1)[0] + 1, reached))
    continues = policies.foreign_writer == CONTINUE
    tail, source = None, candidate.decision.position.source
    if known.source_id == facts.source_id:  # else the topic was recreated, and a policy allows that
        source = max(before, facts.source_start)
        tail = await search_tail(candidate, common, source, logs, skips=not continues)
    if not continues:
        if tail is not None:
            correct(candidate, tail)  # or groups would be translated to an offset after what is missing
        cursor.give_up(OUT_OF_SEQUENCE, text, missing_from, end)
        return False
    events: list[Event] = [_foreign(written)] if written.foreign else []
    if known.source_id != facts.source_id:
        events += candidate.decision.events
    elif missing_from < facts.source_start:
        events.append(lost_records(missing_from, facts))
        if policies.data_loss != CONTINUE:
            cursor.give_up("data-loss", events[-1][2], missing_from, end)
            return False
    if tail is None:
        more = sum(batch.last_offset_delta + 1 for batch, _number in written.ours)
        where = f"{text}; copying continues with source offset {source}, and up to {more} records before"
    else:
        correct(candidate, tail, written.foreign_offsets_at)
        source, more = tail.source, tail.twice + tail.only_in_mirror
        where = f"{text}; copying continues with source offset {source}, the first missing one; {more} records before"
    events.append((COPIED_TWICE, more, f"{where} mirror offset {end} are in the mirror more than once then"))
    if candidate.decision.preserves_offsets:
        events.append(not_kept("the mirror does not hold what this flow has sent"))
    candidate.continue_at(source, end - written.number, events, verify_again=candidate.truncated_at is not None)
    _forget_plans(candidate, start, written)
    return True


async def _copied_around(candidate: Candidate, start: int, logs: BothLogs) -> CopiedRecords:
    """The copied records before `start` and after it. Where copying went back, those that count may be well before."""
    most = _INTERVALS
    while True:
        known, following = await logs.known(candidate, 0, most)
        if len(known) < most or known[most // 2].target <= start:
            return CopiedRecords(known, following, replace(candidate.facts, source_start=0))
        most *= 8


def _forget_plans(candidate: Candidate, start: int, written: _Written) -> None:
    """Correct the ledger where others have written instead of us."""
    behind = written.ours[-1][0].next_offset if written.ours else start
    if behind < candidate.facts.mirror_end:
        source, source_id = candidate.decision.position.source, candidate.facts.source_id
        candidate.corrections.append(Interval(behind, source, 0, source_id, behind - written.number))


def _correct(candidate: Candidate, batch: Batch, first: int, since: Intervals) -> None:
    """Correct the ledger for a batch of ours whose records have the numbers from `first` on."""
    at = batch.base_offset
    for part in since.ours(first, batch.last_offset_delta + 1):
        if part.target != at:
            candidate.corrections.append(Interval(at, part.source, part.count, part.source_id, at - first))
        at, first = at + part.count, first + part.count


def _continue_behind(candidate: Candidate, number: int, since: Intervals, event: Event, policies: Policies) -> None:
    """Continue after our last record, unless the source has changed, too."""
    facts, end = candidate.facts, candidate.facts.mirror_end
    before = since.ours(number - 1, 1)
    last = before[0] if before else next(iter(since))
    source = last.source + last.count if before else last.source
    planned = since.ours(number, 1)
    is_decided = bool(planned) and planned[0].decided >= 0 and planned[0].decided != source  # and not done yet
    source = planned[0].decided if is_decided else source
    # Whether the source still has our last records was not verified, unless that decision was just made.
    is_verified = candidate.cursor.retry.must_verify or is_decided
    verify_again = candidate.truncated_at is not None or not is_verified
    events = [event]
    if last.source_id != facts.source_id:  # it was recreated, and a policy allows that
        source = candidate.decision.position.source
        events += candidate.decision.events
    elif source < facts.source_start:
        events.append(lost_records(source, facts))
        if policies.data_loss != CONTINUE:
            candidate.cursor.give_up("data-loss", events[-1][2], source, end)
            return
        source = facts.source_start
    candidate.continue_at(source, end - number, events, verify_again)


async def _last_sound_offset(candidate: Candidate, logs: BothLogs) -> int:
    """The mirror offset from which on everything must be read: that of a batch of ours at its offset, as are a
    few after it. A single one may be by chance, if one is missing before it and another is there twice.

    Searched from the end in growing steps, but not before the last change of `foreign_offsets_before`: what comes
    before that is accounted for.
    """
    end = candidate.facts.mirror_end
    known = await logs.ask(candidate, lambda intervals: intervals.foreign_offsets_constant_since(end))
    if known is None:
        raise WireError(f"nothing is known about the mirror before offset {end}")
    first, foreign_offsets = max(known.target, candidate.facts.mirror_start), known.foreign_offsets_before
    at, step, sound = candidate.facts.mirror_end - 1, 1, 0
    while at > first:
        batch = (await logs.copies({candidate.mirror_partition: at})).get(candidate.mirror_partition)
        if not isinstance(batch, Batch):
            raise WireError(f"mirror offset {at} cannot be read: {batch}")
        if candidate.has_expected_sequence(batch, foreign_offsets):
            at, step, sound = batch.base_offset - 1, 1, sound + 1
            if sound == _ENOUGH:
                return max(first, batch.base_offset)
        else:
            at, step, sound = max(first, batch.base_offset - step), step * 2, 0
    return first


def _nearest(difference: int) -> int:
    """The number nearest to zero that is the same modulo the number of sequences."""
    half = SEQUENCES // 2
    return (difference + half) % SEQUENCES - half
