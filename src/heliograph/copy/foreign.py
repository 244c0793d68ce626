"""When the mirror's last batch is not what belongs there: what is theirs, what is ours, and where to go on.

Batches with our producer id are ours wherever they landed, and their sequence numbers tell what they hold: a sequence
counts our own records only. As long as these run on, somebody else has written between ours. Where they do not, a batch
of ours is missing or there twice: a broker that has forgotten our producer takes any number. Then the records decide,
as they do where logs diverge: copying goes on with the first record that is missing.
"""

from bisect import bisect_right
from dataclasses import dataclass, field, replace

from heliograph.copy.claims import Claims
from heliograph.copy.divergence import COPIED_TWICE, correct, find_again
from heliograph.copy.position import Event, Resume, lost_records, not_kept
from heliograph.copy.resumed import Clusters, Resumed
from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import NO_END, Interval, Intervals
from heliograph.model.partitions import Position
from heliograph.wire.batches import SEQUENCES, Batch
from heliograph.wire.errors import WireError

OUT_OF_SEQUENCE = "out-of-sequence"
_INTERVALS = 50_000
_ENOUGH = 10  # batches: twice as many as are in flight


@dataclass(slots=True)
class _Written:
    """What the mirror holds from some offset on. Our own records are numbered from the mirror's first one on."""

    at: int  # the mirror offset up to which it was looked at
    number: int  # of the record that would come next, as the broker counts
    reached: int  # all before it are there
    theirs: int = 0
    ours: list[tuple[Batch, int]] = field(default_factory=list)  # with the number of the first record
    broken_at: int | None = None  # the mirror offset where numbers do not run on
    missing: int = 0
    repeated: int = 0

    def foreign_offsets_at(self, mirror_offset: int) -> int:
        batch, number = self.ours[bisect_right(self.ours, mirror_offset, key=lambda one: one[0].base_offset) - 1]
        return batch.base_offset - number

    def take(self, batch: Batch) -> None:
        """The next batch of ours."""
        # Sequences wrap, so it is the nearest number that fits. A batch may have begun before we look.
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


async def go_on_after_others(one: Resumed, why: str, clusters: Clusters, policies: Policies) -> bool:
    """Whether copying goes on; by policy, unless readers see nothing of what was written."""
    cursor, facts = one.cursor, one.facts
    start = await _last_sound_place(one, clusters)
    known = await clusters.ask(one, lambda intervals: intervals.covering(start))
    if known is None:
        raise WireError(f"nothing is known about mirror offset {start}")
    written = await _written_since(one, start, start - known.foreign_offsets_before, clusters)
    if written.broken_at is not None:
        return await _go_on_out_of_sequence(one, start, written, clusters, policies)
    event = not_kept("transactions have ended where records belong")
    if written.theirs:
        event = _foreign(written)
        if policies.foreign_writer != CONTINUE:
            cursor.give_up("foreign-writer", why, one.decision.position.source, facts.mirror_end)
            return False
    # Those from the sound place on: before, numbers may have been there twice.
    since = Intervals(await clusters.ask(one, lambda intervals: intervals.rows(known.target, NO_END, NO_END)))
    _go_on_behind(one, written.number, since, event, policies)
    if cursor.refusal is not None:
        return False
    for batch, first in written.ours:
        _correct(one, batch, first, since)
    _forget_plans(one, start, written)
    return True


def _foreign(written: _Written) -> Event:
    text = f"somebody else has written {written.theirs} records to this mirror; copying goes on behind them"
    return "foreign-writer", written.theirs, text


async def _written_since(one: Resumed, start: int, number: int, clusters: Clusters) -> _Written:
    written = _Written(start, number, number)
    visible_from = await clusters.visible_in_mirror(one, start, one.facts.mirror_end)
    async for batch in clusters.mirror_batches(one, start, one.facts.mirror_end):
        if batch.producer_id == one.cursor.producer_id:
            written.take(batch)
        elif batch.base_offset in visible_from:
            written.theirs += batch.next_offset - max(batch.base_offset, start)
        written.at = batch.next_offset
    return written


async def _go_on_out_of_sequence(
    one: Resumed, start: int, written: _Written, clusters: Clusters, policies: Policies
) -> bool:
    """Batches of our own are missing or repeated behind `start`. By the policy for foreign writers, as the mirror is
    not a copy any more."""
    cursor, facts, end = one.cursor, one.facts, one.facts.mirror_end
    text = (
        f"from mirror offset {written.broken_at} on the mirror does not hold what this flow has sent in that order: "
        f"{written.missing} records are missing, {written.repeated} are there twice; the broker had forgotten the "
        "flow's producer (producer.id.expiration.ms) when it refused a batch, or got one twice"
    )
    known = await clusters.ask(one, lambda intervals: intervals.covering(start))
    assert known is not None
    claims = await _claims(one, start, clusters)
    common, before = claims.behind(start) or (start, known.source_of(start))
    reached, missing_from = claims.behind(written.reached + known.foreign_offsets_before) or (common, before)
    if gone := claims.before_source(facts.source_start):  # from the source, but they were copied
        common = max(common, min(claims.at(gone - 1)[0] + 1, reached))
    goes_on = policies.foreign_writer == CONTINUE
    tail, source = None, one.decision.position.source
    if known.source_id == facts.source_id:  # else the topic was made again, and a policy has let it pass
        source = max(before, facts.source_start)
        tail = await find_again(one, common, source, clusters, skips=not goes_on)
    if not goes_on:
        if tail is not None:
            correct(one, tail)  # or groups would be sent behind what is missing; what is wrong still shows
        cursor.give_up(OUT_OF_SEQUENCE, text, missing_from, end)
        return False
    events: list[Event] = [_foreign(written)] if written.theirs else []
    if known.source_id != facts.source_id:
        events += one.decision.events
    elif missing_from < facts.source_start:
        events.append(lost_records(missing_from, facts))
        if policies.data_loss != CONTINUE:
            cursor.give_up("data-loss", events[-1][2], missing_from, end)
            return False
    if tail is None:
        more = sum(batch.last_offset_delta + 1 for batch, _number in written.ours)
        said = f"{text}; copying goes on with source offset {source}, and up to {more} records before"
    else:
        correct(one, tail, written.foreign_offsets_at)
        source, more = tail.source, tail.twice + tail.only_here
        said = f"{text}; copying goes on with source offset {source}, the first that is missing; {more} records before"
    events.append((COPIED_TWICE, more, f"{said} mirror offset {end} are in the mirror more than once then"))
    shift = end - written.number
    if one.decision.keeps:
        events.append(not_kept("the mirror does not hold what this flow has sent"))
    new = Interval(end, source, 0, facts.source_id, shift)
    one.decision = Resume(Position(source, end), new, shift, events=tuple(events))
    one.again = cursor.cut_at is not None
    _forget_plans(one, start, written)
    return True


async def _claims(one: Resumed, start: int, clusters: Clusters) -> Claims:
    """Of what stands before `start` and behind it. Where copying went back, what counts may stand well before it."""
    most = _INTERVALS
    while True:
        known, following = await clusters.known(one, 0, most)
        if len(known) < most or known[most // 2].target <= start:
            return Claims(known, following, replace(one.facts, source_start=0))
        most *= 8


def _forget_plans(one: Resumed, start: int, written: _Written) -> None:
    """What was planned for where others have written is not there."""
    behind = written.ours[-1][0].next_offset if written.ours else start
    if behind < one.facts.mirror_end:
        source, source_id = one.decision.position.source, one.facts.source_id
        one.corrections.append(Interval(behind, source, 0, source_id, behind - written.number))


def _correct(one: Resumed, batch: Batch, first: int, since: Intervals) -> None:
    """Note where a batch of ours, whose records have the numbers from `first` on, really is."""
    at = batch.base_offset
    for part in since.ours(first, batch.last_offset_delta + 1):
        if part.target != at:
            one.corrections.append(Interval(at, part.source, part.count, part.source_id, at - first))
        at, first = at + part.count, first + part.count


def _go_on_behind(one: Resumed, number: int, since: Intervals, event: Event, policies: Policies) -> None:
    """What comes next is what comes behind our last record, unless the source has changed too."""
    facts, end = one.facts, one.facts.mirror_end
    before = since.ours(number - 1, 1)
    last = before[0] if before else next(iter(since))
    source = last.source + last.count if before else last.source
    planned = since.ours(number, 1)
    goes_back = bool(planned) and 0 <= planned[0].decided < source  # and that is not done yet
    source = planned[0].decided if goes_back else source
    # Whether the source still has what is ours was not looked at, unless that decision was just made.
    one.again = one.cursor.cut_at is not None or not (one.cursor.unsure or goes_back)
    events = [event]
    if last.source_id != facts.source_id:  # made again, and a policy has let it pass
        source = one.decision.position.source
        events += one.decision.events
    elif source < facts.source_start:
        events.append(lost_records(source, facts))
        if policies.data_loss != CONTINUE:
            one.cursor.give_up("data-loss", events[-1][2], source, end)
            return
        source = facts.source_start
    shift = end - number
    one.decision = Resume(
        Position(source, end), Interval(end, source, 0, facts.source_id, shift), shift, events=tuple(events)
    )


async def _last_sound_place(one: Resumed, clusters: Clusters) -> int:
    """A mirror offset from which on everything must be looked at: that of a batch of ours in its place, as are some
    behind it: a single one may be so by chance, if one is missing before it and another there twice.

    Looked for from the end in growing steps, but not before the last change of the shift: what came before that is
    accounted for.
    """
    end = one.facts.mirror_end
    known = await clusters.ask(one, lambda intervals: intervals.foreign_offsets_constant_since(end))
    if known is None:
        raise WireError(f"nothing is known about the mirror before offset {end}")
    first, shift = max(known.target, one.facts.mirror_start), known.foreign_offsets_before
    at, step, sound = one.facts.mirror_end - 1, 1, 0
    while at > first:
        found = (await clusters.copies({one.written: at})).get(one.written)
        if not isinstance(found, Batch):
            raise WireError(f"mirror offset {at} cannot be read: {found}")
        if one.in_its_place(found, shift):
            at, step, sound = found.base_offset - 1, 1, sound + 1
            if sound == _ENOUGH:
                return max(first, found.base_offset)
        else:
            at, step, sound = max(first, found.base_offset - step), step * 2, 0
    return first


def _nearest(difference: int) -> int:
    """The number next to zero that is the same up to whole rounds of sequence numbers."""
    half = SEQUENCES // 2
    return (difference + half) % SEQUENCES - half
