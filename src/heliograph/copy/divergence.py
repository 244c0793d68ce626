"""When mirror and source do not agree at the mirror's end: find out where they part, and go on from there.

The source may have lost its end and got another (unclean election), be another topic (without topic ids only the
records tell), or the intervals may be wrong (two copiers at once, with compaction or retention between their reads). In
all cases the records decide: up to some place both logs agree (`agreement`); what the mirror holds behind it is looked
for in the source, in order (`matching`), and copying goes on with the first record of the source that is not found. So
none is left out; those behind it that the mirror holds already are copied once more, and counted.
"""

from collections.abc import Callable, Iterator

from heliograph.copy.agreement import agreed
from heliograph.copy.claims import Claims
from heliograph.copy.matching import RECORD_COST, Tail, content_of
from heliograph.copy.position import Event, Resume, lost_records, not_kept
from heliograph.copy.resumed import Clusters, Resumed
from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import Interval
from heliograph.model.partitions import Position
from heliograph.wire.recode import records_of

COPIED_TWICE = "copied-twice"
_INTERVALS = 50_000  # at the mirror's end are looked at first, for where logs part


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
    common, source = await _common_end(one, clusters, policies)
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
    tail = await find_again(one, common, source, clusters)
    if reason == "not-a-copy" and common == facts.mirror_start and (tail is None or not tail.matched):
        cursor.give_up(reason, text, at.source, facts.mirror_end)
        return False
    kind = "source-truncated" if reason == "not-a-copy" else reason
    if tail is None:
        _go_on_from(one, source, (kind, 0, text), _not_searched(one, common, source, clusters))
        return True
    correct(one, tail)
    events = list(_copied_twice(tail, facts.mirror_end))
    if tail.only_here or cut:
        where = "" if tail.searched_to is None else f" before offset {tail.searched_to}, up to which it was searched"
        said = f"{tail.only_here} records of the mirror, from mirror offset {common} on, are not in the source{where}"
        events.insert(0, (kind, tail.only_here, f"{text}; {said}; copying goes on with source offset {tail.source}"))
    _go_on_from(one, tail.source, *events)
    return True


async def find_again(one: Resumed, common: int, source: int, clusters: Clusters, skips: bool = False) -> Tail | None:
    """Look for the mirror's records from `common` on in the source from `source` on, in order; None if there are too
    many of them for the memory."""
    records: list[tuple[int, bytes]] = []
    async for batch in clusters.own_batches(one, common, one.facts.mirror_end):
        records += [(record.offset, content_of(record)) for record in records_of(batch) if record.offset >= common]
        if len(records) * RECORD_COST > clusters.search_bytes:
            return None
    tail = Tail(records, source, skips)
    counted = 0
    async for record in clusters.source_records(one, source, one.facts.source_end):
        before = tail.matched
        if not tail.match(record.offset, content_of(record)):
            break
        counted += len(record.key or b"") + len(record.value or b"") if tail.matched == before else 0
        if counted > clusters.search_bytes:
            tail.searched_to = record.offset + 1
            break
    tail.end_matching()
    return tail


def correct(one: Resumed, tail: Tail, shift_at: Callable[[int], int] | None = None) -> None:
    """Have written down what the mirror's end is, if something else is."""
    known = one.cursor.intervals

    def known_shift(mirror_offset: int) -> int:
        interval = known.covering(mirror_offset)
        return one.decision.foreign_offsets_before if interval is None else interval.foreign_offsets_before

    found = tail.intervals(one.facts.source_id, shift_at or known_shift)
    if not known.agree(found):
        one.corrections += found


def _copied_twice(tail: Tail, mirror_end: int) -> Iterator[Event]:
    if tail.twice:
        text = (
            f"{tail.twice} records before mirror offset {mirror_end} are in the mirror more than once, as the source "
            "does not hold them in the order in which they were copied; copying goes on with source offset "
            f"{tail.source}, the first that was not copied"
        )
        yield COPIED_TWICE, tail.twice, text


def _not_searched(one: Resumed, common: int, source: int, clusters: Clusters) -> Event:
    shift_at, end = one.cursor.intervals.foreign_offsets_at, one.facts.mirror_end
    count = (end - shift_at(end)) - (common - shift_at(common))
    text = (
        f"{count} records of the mirror, from mirror offset {common} on, are too many to be looked for in the source "
        f"with {clusters.search_bytes} bytes of memory (heliograph.buffer.memory); copying goes on with source offset "
        f"{source}, and those that the source still has are copied a second time"
    )
    return COPIED_TWICE, count, text


def _go_on_from(one: Resumed, source: int, *events: Event) -> None:
    end, shift = one.facts.mirror_end, one.decision.foreign_offsets_before
    events = (*_also(one), *events)
    if one.decision.keeps and source != end:
        events = (*events, not_kept("the source was cut back"))
    new = Interval(end, source, 0, one.facts.source_id, shift)
    one.decision = Resume(Position(source, end), new, shift, events=events)


def _also(one: Resumed) -> Iterator[Event]:
    """What was passed over besides: how much retention has taken depends on where the source was cut back."""
    cut_at, facts = one.cursor.cut_at, one.facts
    for event in one.decision.events:
        copied = one.cursor.intervals.covering(one.own_end - 1)
        if event[0] == "data-loss" and cut_at is not None and copied is not None:
            yield lost_records(min(cut_at, copied.source_of(one.own_end)), facts)
        else:
            yield event


async def _common_end(one: Resumed, clusters: Clusters, policies: Policies) -> tuple[int, int]:
    """The mirror offset up to which the mirror holds what the source holds, and the source offset that comes next."""
    facts, most = one.facts, _INTERVALS
    while True:
        known = await clusters.known(one, facts.mirror_start, most)
        claims = Claims(*known, facts)
        count = await agreed(one, claims, clusters, policies.refused_record == CONTINUE)
        if count > 0:
            mirror_offset, source_offset = claims.at(count - 1)
            return mirror_offset + 1, source_offset + 1
        if len(known[0]) < most:
            break
        most *= 8  # they differ further back
    common = claims.at(0)[0] if len(claims) else one.own_end
    first = one.cursor.intervals.first()
    if first is not None and max(common, facts.mirror_start) <= first.target and first.target > facts.mirror_start:
        # What another tool has copied before is not ours to judge.
        return first.target, max(facts.source_start, min(first.source, facts.source_end))
    return common, facts.source_start
