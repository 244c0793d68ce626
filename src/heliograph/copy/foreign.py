"""When somebody else has written to a mirror: what is theirs, what is ours, and where to go on.

Batches with our producer id are ours wherever they landed, and their sequence numbers tell what they hold: a sequence
counts our own records only.
"""

from heliograph.copy.position import Event, Go, lost_records, not_kept
from heliograph.copy.resumed import Clusters, Resumed
from heliograph.copy.visible import visible
from heliograph.copy.work import Position
from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import Interval
from heliograph.wire.batches import SEQUENCES, Batch
from heliograph.wire.errors import WireError
from heliograph.wire.records import read_batches


async def go_on_after_others(one: Resumed, why: str, clusters: Clusters, policies: Policies) -> bool:
    """Whether copying goes on; by policy, unless readers see nothing of what was written."""
    cursor, facts = one.cursor, one.facts
    start = await _last_sound_place(one, clusters)
    known = cursor.intervals.covering(start)
    if known is None:
        raise WireError(f"nothing is known about mirror offset {start}")
    number = start - known.shift  # of our own records before it
    theirs, topic = 0, clusters.mirrors.topics[cursor.key.mirror]
    visible_from = await _visible(one, start, clusters)
    async for batch in read_batches(clusters.target, topic, cursor.key.partition, start, facts.mirror_end):
        if batch.producer_id == cursor.producer_id:
            # Sequences wrap, so it is the nearest number that fits.
            first = number + _nearest(batch.base_sequence - number)
            _correct(one, batch, first)
            number = max(number, first + batch.last_offset_delta + 1)
        elif batch.base_offset in visible_from:
            theirs += batch.next_offset - max(batch.base_offset, start)
    event = not_kept("transactions have ended where records belong")
    if theirs:
        text = f"somebody else has written {theirs} records to this mirror; copying goes on behind them"
        event = "foreign-writer", theirs, text
        if policies.foreign_writer != CONTINUE:
            cursor.give_up("foreign-writer", why, one.decision.position.source, facts.mirror_end)
            return False
    _go_on_behind(one, number, known, event, policies)
    return cursor.refusal is None


async def _visible(one: Resumed, start: int, clusters: Clusters) -> set[int]:
    """Where batches begin that readers of the mirror see."""
    topic, end = clusters.mirrors.topics[one.cursor.key.mirror], one.facts.mirror_end
    found: set[int] = set()
    async for intake in visible(clusters.target, topic, one.cursor.key.partition, start, end, committed_only=True):
        found.update(parcel.batch.base_offset for parcel in intake.parcels)
    return found


def _correct(one: Resumed, batch: Batch, first: int) -> None:
    """Note where a batch of ours, whose records have the numbers from `first` on, really is."""
    at = batch.base_offset
    for part in one.cursor.intervals.ours(first, batch.last_offset_delta + 1):
        if part.target != at:
            one.corrections.append(Interval(at, part.source, part.count, part.source_id, at - first))
        at, first = at + part.count, first + part.count


def _go_on_behind(one: Resumed, number: int, known: Interval, event: Event, policies: Policies) -> None:
    """What comes next is what comes behind our last record, unless the source has changed too."""
    facts, end = one.facts, one.facts.mirror_end
    before = one.cursor.intervals.ours(number - 1, 1) if number > known.target - known.shift else []
    last = before[0] if before else known
    source = last.source + last.count if before else known.source
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
    one.decision = Go(
        Position(source, end), Interval(end, source, 0, facts.source_id, shift), shift, events=tuple(events)
    )


async def _last_sound_place(one: Resumed, clusters: Clusters) -> int:
    """A mirror offset from which on everything must be looked at: that of a batch of ours in its place.

    Looked for from the end in growing steps, but not before the last change of the shift: what came before that is
    accounted for.
    """
    known = [interval for interval in one.cursor.intervals if interval.target < one.facts.mirror_end]
    first, shift = known[-1].target, known[-1].shift
    for interval in reversed(known):
        if interval.shift != shift:
            break
        first = interval.target
    first = max(first, one.facts.mirror_start)
    at, step = one.facts.mirror_end - 1, 1
    while at > first:
        found = (await clusters.copies({one.written: at})).get(one.written)
        if not isinstance(found, Batch):
            raise WireError(f"mirror offset {at} cannot be read: {found}")
        if one.in_its_place(found, shift):
            return max(first, found.base_offset)
        at, step = max(first, found.base_offset - step), step * 2
    return first


def _nearest(difference: int) -> int:
    """The number next to zero that is the same up to whole rounds of sequence numbers."""
    half = SEQUENCES // 2
    return (difference + half) % SEQUENCES - half
