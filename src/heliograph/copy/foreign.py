"""When somebody else has written to a mirror: what is theirs, what is ours, and where to go on.

Batches with our producer id are ours wherever they landed, and their sequence numbers tell what they hold: a sequence
counts our own records only.
"""

from heliograph.copy.position import Event, Go, lost_records, not_kept
from heliograph.copy.resumed import Clusters, Resumed
from heliograph.copy.work import Position
from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import Interval
from heliograph.wire.batches import SEQUENCES, Batch
from heliograph.wire.errors import WireError
from heliograph.wire.records import read_batches


async def go_on_after_others(one: Resumed, why: str, clusters: Clusters, policies: Policies) -> bool:
    """Whether copying goes on; by policy."""
    cursor, end = one.cursor, one.facts.mirror_end
    start = await _last_sound_place(one, clusters)
    known = cursor.intervals.covering(start)
    if known is None:
        raise WireError(f"nothing is known about mirror offset {start}")
    shift, planned, foreign, markers = known.shift, start, 0, 0
    topic = clusters.mirrors.topics[cursor.key.mirror]
    async for batch in read_batches(clusters.target, topic, cursor.key.partition, start, end):
        if batch.producer_id != cursor.producer_id:
            count = batch.next_offset - max(batch.base_offset, start)
            foreign, markers = (foreign, markers + count) if batch.control else (foreign + count, markers)
            continue
        # The mirror offset that this batch was meant for: sequences wrap, so it is the nearest that fits.
        intended = planned + _nearest(batch.base_sequence + shift - planned)
        moved = batch.base_offset - intended
        if moved:
            one.corrections += [
                Interval(part.target + moved, part.source, part.count, part.source_id, shift + moved)
                for part in cursor.intervals.within(intended, intended + batch.last_offset_delta + 1)
            ]
        planned = max(planned, intended + batch.last_offset_delta + 1)
    last = (cursor.intervals.covering(planned - 1) if planned > start else None) or known
    event = (
        "foreign-writer",
        foreign,
        f"somebody else has written {foreign} records to this mirror; copying goes on behind them",
    )
    if not foreign and last.kept:
        event = not_kept(f"{markers} transactions have ended where records belong")
    elif policies.foreign_writer != CONTINUE:
        cursor.give_up("foreign-writer", why, one.decision.position.source, end)
        return False
    _go_on_behind(one, last, planned, shift + end - planned, event, policies)
    return one.cursor.refusal is None


def _go_on_behind(one: Resumed, last: Interval, planned: int, shift: int, event: Event, policies: Policies) -> None:
    """What comes next is what would have come at `planned`, unless the source has changed too."""
    facts, end = one.facts, one.facts.mirror_end
    source = last.source_of(planned)
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
    new = Interval(end, source, 0, facts.source_id, shift)
    one.decision = Go(Position(source, end), new, shift, events=tuple(events))


async def _last_sound_place(one: Resumed, clusters: Clusters) -> int:
    """A mirror offset from which on everything must be looked at: that of a batch of ours in its place.

    Looked for from the end in growing steps, but not before the last change of the shift: what came before that is
    accounted for.
    """
    known = list(one.cursor.intervals)
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
