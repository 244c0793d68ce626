"""When mirror and source do not agree at the mirror's end: find out where they part, and go on from there.

The source may have lost its end and got another (unclean election), be another topic (without topic ids only the
records tell), or the intervals may be wrong (two copiers at once, with compaction or retention between their reads). In
all cases the records decide: up to some place both logs agree; what the mirror holds behind it is looked for in the
source, in order, and copying goes on behind the last record that is found.
"""

from collections import defaultdict
from collections.abc import Hashable

from heliograph.copy.position import Event, Go, not_kept
from heliograph.copy.resumed import Clusters, Resumed
from heliograph.copy.visible import records_in, visible
from heliograph.copy.work import Position
from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import Interval
from heliograph.model.pages import NOT_HERE
from heliograph.wire.batches import Batch
from heliograph.wire.errors import WireError
from heliograph.wire.recode import Plain, records_of
from heliograph.wire.records import read_batches

# More than a lease can have under way; what is longer is not looked for.
_MOST = 500_000


def go_on_without_records(one: Resumed, policies: Policies) -> bool:
    """The source was cut back, and the mirror has no record left to compare."""
    facts, at = one.facts, one.decision.position
    cut = min(facts.source_end if one.cursor.cut_at is None else one.cursor.cut_at, at.source)
    text = f"the source was cut back to offset {cut} from {at.source}"
    if policies.data_loss != CONTINUE:
        one.cursor.give_up("source-truncated", text, at.source, at.target)
        return False
    _go_on_from(one, max(cut, facts.source_start), ("source-truncated", 0, text))
    return True


async def go_on_after_cut(one: Resumed, cut: bool, clusters: Clusters, policies: Policies) -> bool:
    """Whether copying goes on; by policy."""
    cursor, facts, at = one.cursor, one.facts, one.decision.position
    keeps, at_end = one.decision.keeps, one.decision.shift
    await _remember_all(one, clusters)
    common = await _common_end(one, clusters)
    first = next(iter(cursor.intervals), None)
    taken_over = first if first is not None and first.target > max(common, facts.mirror_start) else None
    if taken_over is not None:  # what another tool has copied before is not ours to judge
        common = taken_over.target
    if not facts.source_id and common == facts.mirror_start:
        reason = "recreated-topic"
        text = "the source topic is another one than the mirror was copied from"
    elif cut:
        ends = facts.source_end if cursor.cut_at is None else cursor.cut_at
        reason = "source-truncated"
        text = f"the source was cut back to offset {ends} (an unclean leader election does that)"
    else:
        reason = "not-a-copy"
        text = (
            f"the mirror's last records are not what the source holds before offset {at.source}: it may have been cut "
            "back and written anew (an unclean leader election does that)"
        )
    if (policies.recreated_topic if reason == "recreated-topic" else policies.data_loss) != CONTINUE:
        cursor.give_up(reason, text, at.source, facts.mirror_end)
        return False
    before = one.source_of(common - 1) if common > facts.mirror_start else None
    source = facts.source_start if before is None else before + 1
    if taken_over is not None:
        source = max(facts.source_start, min(taken_over.source, facts.source_end))
    found = await _find_again(one, common, source, clusters)
    if reason == "not-a-copy" and common == facts.mirror_start and not found:
        cursor.give_up(reason, text, at.source, facts.mirror_end)
        return False
    one.corrections += found
    gaps = at_end - cursor.intervals.shift_at(common) if keeps else 0
    extra = facts.mirror_end - common - gaps - sum(interval.count for interval in found)
    if found:
        source = found[-1].source + found[-1].count
    said = f"{text}; {extra} records of the mirror, from mirror offset {common} on, are not in the source"
    kind = "source-truncated" if reason == "not-a-copy" else reason
    event = (kind, extra, f"{said}; copying goes on with source offset {source}")
    _go_on_from(one, source, *((event,) if extra or cut else ()))
    return True


def _go_on_from(one: Resumed, source: int, *events: Event) -> None:
    end, shift = one.facts.mirror_end, one.decision.shift
    if one.decision.keeps and source != end:
        events = (*events, not_kept("the source was cut back"))
    new = Interval(end, source, 0, one.facts.source_id, shift)
    one.decision = Go(Position(source, end), new, shift, events=events)


async def _remember_all(one: Resumed, clusters: Clusters) -> None:
    """Halving needs the intervals of the whole mirror, not only the last ones."""
    if any(page.location == NOT_HERE for page in one.cursor.intervals.pages):
        await clusters.ledger.recall({one.read})
        one.cursor.intervals = clusters.ledger.of(one.read, one.facts.mirror_id)


async def _common_end(one: Resumed, clusters: Clusters) -> int:
    """The mirror offset up to which the mirror holds what the source holds.

    Where copying has gone on without a break, logs part once, so halving finds the place. Behind an earlier cut the
    mirror holds records that the source has lost: only what was copied since counts, if that agrees at its beginning.
    """
    high = one.facts.mirror_end
    for low in reversed(_stretches(one)):
        if low < high and await _agree(one, low, clusters):
            common = await _halve(one, low, high, clusters)
            # Gaps agree with anything: what counts is the last record.
            return max(low, one.cursor.intervals.own_end(common)) if one.decision.keeps else common
        high = min(high, low)
    return one.facts.mirror_start


def _stretches(one: Resumed) -> list[int]:
    """The mirror offsets from which on copying went forward in the source."""
    starts, last = [one.facts.mirror_start], None
    for interval in one.cursor.intervals:
        if interval.target >= one.facts.mirror_end:
            break
        if last is not None:
            back = interval.source < last.source_of(interval.target)
            if back or interval.source_id != last.source_id:
                starts.append(interval.target)
        last = interval
    return [start for start in starts if start >= one.facts.mirror_start]


async def _halve(one: Resumed, low: int, high: int, clusters: Clusters) -> int:
    while low < high:
        middle = (low + high) // 2
        if await _agree(one, middle, clusters):
            low = middle + 1
        else:
            high = middle
    return low


async def _agree(one: Resumed, mirror_offset: int, clusters: Clusters) -> bool:
    """Whether nothing speaks against a record of the mirror being the source's."""
    source = one.source_of(mirror_offset)
    if source is None:
        return True  # older than anything the source still has
    if source >= one.facts.source_end:
        return False
    copies = await clusters.copies({one.written: mirror_offset})
    originals = await clusters.originals({one.read: source})
    copied, original = copies.get(one.written), originals.get(one.read)
    if not isinstance(copied, Batch) or not isinstance(original, Batch):
        raise WireError(f"mirror offset {mirror_offset} or source offset {source} cannot be read")
    mirrored = [] if copied.control else [one[1:] for one in records_of(copied) if one.offset == mirror_offset]
    there = [] if original.control else [one[1:] for one in records_of(original) if one.offset == source]
    return not mirrored or not there or mirrored == there


async def _find_again(one: Resumed, common: int, source: int, clusters: Clusters) -> list[Interval]:
    """Look for the mirror's records from `common` on in the source from `source` on, in order."""
    facts, cursor = one.facts, one.cursor
    if facts.mirror_end - common > _MOST:
        return []
    places: dict[Hashable, list[int]] = defaultdict(list)
    mirror = clusters.mirrors.topics[cursor.key.mirror]
    async for batch in read_batches(clusters.target, mirror, cursor.key.partition, common, facts.mirror_end):
        for record in () if batch.control else records_of(batch):
            if record.offset >= common:
                places[_content(record)].append(record.offset)
    # Compaction and retention only take away: what was planned never lies before where it was copied from.
    claimed = one.source_of(facts.mirror_end - 1)
    until = min(facts.source_end, facts.source_end if claimed is None else claimed + 1)
    found: list[Interval] = []
    following = common
    for record in await _originals(one, source, until, clusters):
        match = next((place for place in places.get(_content(record), ()) if place >= following), None)
        if match is None:
            continue
        last = found[-1] if found else None
        if last is not None and (last.end, last.source + last.count) == (match, record.offset):
            found[-1] = Interval(last.target, last.source, last.count + 1, last.source_id, last.shift)
        else:
            known = cursor.intervals.covering(match)
            shift = one.decision.shift if known is None else known.shift
            found.append(Interval(match, record.offset, 1, facts.source_id, shift))
        following = match + 1
    return found


async def _originals(one: Resumed, start: int, until: int, clusters: Clusters) -> list[Plain]:
    """The source's records between two offsets, without markers; of aborted ones a few may be among them, which do no
    harm: the mirror does not hold them."""
    topic = clusters.sources.topics[one.cursor.key.topic]
    found: list[Plain] = []
    async for intake in visible(clusters.source, topic, one.cursor.key.partition, start, until, committed_only=False):
        for parcel in intake.parcels:
            found += [record for record in records_in(parcel) if record.offset < until]
    return found


def _content(record: Plain) -> Hashable:
    return record.timestamp, record.key, record.value, tuple(record.headers)
