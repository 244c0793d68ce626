"""When somebody else has written to a mirror: what is theirs, what is ours, and where to go on.

Batches with our producer id are ours wherever they landed, and their sequence numbers tell what they hold: a sequence
counts our own records only.
"""

from heliograph.copy.position import Go
from heliograph.copy.resumed import Clusters, Resumed
from heliograph.copy.work import Position
from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import Interval
from heliograph.wire.batches import SEQUENCES, Batch, sequence
from heliograph.wire.errors import WireError
from heliograph.wire.records import read_batches


async def go_on_after_others(one: Resumed, why: str, clusters: Clusters, policies: Policies) -> bool:
    """Whether copying goes on; by policy."""
    cursor, end = one.cursor, one.facts.mirror_end
    if policies.foreign_writer != CONTINUE:
        cursor.give_up("foreign-writer", why, one.decision.position.source, end)
        return False
    start = await _last_sound_place(one, clusters)
    known = cursor.intervals.covering(start)
    if known is None:
        cursor.give_up("foreign-writer", why, one.decision.position.source, end)
        return False
    shift, planned, foreign = known.shift, start, 0
    topic = clusters.mirrors.topics[cursor.key.mirror]
    async for batch in read_batches(clusters.target, topic, cursor.key.partition, start, end):
        if batch.producer_id != cursor.producer_id:
            foreign += batch.next_offset - max(batch.base_offset, start)
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
    last = cursor.intervals.covering(max(planned - 1, 0)) or known
    source, new_shift = last.source_of(planned), shift + end - planned
    text = f"somebody else has written {foreign} records to this mirror; copying goes on behind them"
    new = Interval(end, source, 0, one.facts.source_id, new_shift)
    one.decision = Go(Position(source, end), new, new_shift, event=("foreign-writer", foreign, text))
    return True


async def _last_sound_place(one: Resumed, clusters: Clusters) -> int:
    """The beginning of the last interval that really begins with a batch of ours in its place.

    What was only planned may lie behind, and what others wrote before it must be found too.
    """
    intervals, first = one.cursor.intervals, one.facts.mirror_start
    at = one.facts.mirror_end - 1
    if one.cursor.acknowledged is not None:
        at = min(at, one.cursor.acknowledged)
    while at > first:
        known = intervals.covering(at)
        at = max(first, known.target if known else first)
        found = (await clusters.copies({one.written: at})).get(one.written)
        if not isinstance(found, Batch):
            raise WireError(f"mirror offset {at} cannot be read: {found}")
        if known is None or _in_its_place(one, found, known.shift):
            return at
        at = found.base_offset - 1
    return first


def _in_its_place(one: Resumed, batch: Batch, shift: int) -> bool:
    mine = batch.producer_id == one.cursor.producer_id
    return mine and batch.base_sequence == sequence(batch.base_offset - shift)


def _nearest(difference: int) -> int:
    """The number next to zero that is the same up to whole rounds of sequence numbers."""
    half = SEQUENCES // 2
    return (difference + half) % SEQUENCES - half
