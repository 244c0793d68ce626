"""When mirror and source differ at the mirror's end: find where they diverge, and continue from there.

The source may have lost its end and got another (unclean election), be another topic (without topic ids only the
records show it), or the intervals may be wrong (two copiers at once, with compaction or retention between their reads).
In all cases the records decide: up to some offset both logs agree (`common_prefix`); what the mirror holds after it is
searched in the source, in order (`tail_match`), and copying continues with the first record of the source that the
mirror does not have. So none is left out; those after it that the mirror has already are copied again, and counted.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from heliograph.copy.candidate import Candidate
from heliograph.copy.common_prefix import common_prefix, same_at_end
from heliograph.copy.copied_records import CopiedRecords
from heliograph.copy.log_access import BothLogs
from heliograph.copy.position import Event, lost_records, not_kept
from heliograph.copy.tail_match import RECORD_COST, MirrorTail, content_of
from heliograph.model.flow import CONTINUE, Policies
from heliograph.wire.recode import records_of

COPIED_TWICE = "copied-twice"
_FEW_INTERVALS, _INTERVALS = 1_000, 50_000  # at the mirror's end, which are searched first


def continue_without_records(candidate: Candidate, policies: Policies) -> bool:
    """The source was truncated, and the mirror has no record left to compare. Returns whether copying continues."""
    facts, at = candidate.facts, candidate.decision.position
    end = min(facts.source_end if candidate.truncated_at is None else candidate.truncated_at, at.source)
    text = f"the source was truncated from offset {at.source} to {end}"
    if policies.data_loss != CONTINUE:
        candidate.cursor.give_up("source-truncated", text, at.source, at.target)
        return False
    _continue_from(candidate, max(end, facts.source_start), ("source-truncated", 0, text))
    return True


async def same_before_last_batch(candidate: Candidate, logs: BothLogs) -> bool | None:
    """Whether the mirror is a copy of the source, where compaction has left nothing to compare its last batch with;
    None if nothing else is left either."""
    for most in (_FEW_INTERVALS, _INTERVALS):
        known = await logs.known(candidate, candidate.facts.mirror_start, most)
        is_same = await same_at_end(candidate, CopiedRecords(*known, candidate.facts), logs)
        if is_same is not None or len(known[0]) < most:
            return is_same
    return None


async def continue_after_truncation(
    candidate: Candidate, is_truncated: bool, logs: BothLogs, policies: Policies
) -> bool:
    """Find where both logs agree and continue after it. Returns whether copying continues, by policy."""
    cursor, facts, at = candidate.cursor, candidate.facts, candidate.decision.position
    common, source = await _common_end(candidate, logs, policies)
    if not facts.source_id and common == facts.mirror_start:
        reason = "recreated-topic"
        text = "the source topic is not the one that the mirror was copied from"
    elif is_truncated:
        ends = facts.source_end if candidate.truncated_at is None else candidate.truncated_at
        reason = "source-truncated"
        text = f"the source was truncated to offset {ends} (an unclean leader election does that)"
    else:
        reason = "not-a-copy"
        text = (
            f"the mirror's last records are not what the source holds before offset {at.source}: it may have been "
            "truncated and written again (an unclean leader election does that)"
        )
    if (policies.recreated_topic if reason == "recreated-topic" else policies.data_loss) != CONTINUE:
        cursor.give_up(reason, text, at.source, facts.mirror_end)
        return False
    tail = await search_tail(candidate, common, source, logs)
    if reason == "not-a-copy" and common == facts.mirror_start and (tail is None or not tail.matched):
        cursor.give_up(reason, text, at.source, facts.mirror_end)
        return False
    kind = "source-truncated" if reason == "not-a-copy" else reason
    if tail is None:
        _continue_from(candidate, source, (kind, 0, text), _too_many_to_search(candidate, common, source, logs))
        return True
    correct(candidate, tail)
    events = list(_copied_twice(tail, facts.mirror_end))
    if tail.only_in_mirror or is_truncated:
        where = "" if tail.searched_to is None else f" before offset {tail.searched_to}, up to which it was searched"
        count = tail.only_in_mirror
        missing = f"{count} records of the mirror, from mirror offset {common} on, are not in the source{where}"
        events.insert(0, (kind, count, f"{text}; {missing}; copying continues with source offset {tail.source}"))
    _continue_from(candidate, tail.source, *events)
    return True


async def search_tail(
    candidate: Candidate, common: int, source: int, logs: BothLogs, skips: bool = False
) -> MirrorTail | None:
    """Search the mirror's records from `common` on in the source from `source` on, in order. Returns None if there are
    too many of them for the memory."""
    records: list[tuple[int, bytes]] = []
    async for batch in logs.own_batches(candidate, common, candidate.facts.mirror_end):
        records += [(record.offset, content_of(record)) for record in records_of(batch) if record.offset >= common]
        if len(records) * RECORD_COST > logs.search_bytes:
            return None
    tail = MirrorTail(records, source, skips)
    searched = 0
    async for record in logs.source_records(candidate, source, candidate.facts.source_end):
        before = tail.matched
        if not tail.match(record.offset, content_of(record)):
            break
        searched += len(record.key or b"") + len(record.value or b"") if tail.matched == before else 0
        if searched > logs.search_bytes:
            tail.searched_to = record.offset + 1
            break
    tail.end_matching()
    return tail


def correct(candidate: Candidate, tail: MirrorTail, written_at: Callable[[int], int | None] | None = None) -> None:
    """Correct the ledger if it does not say what the mirror's end really holds. `written_at` gives the foreign offsets
    before a mirror offset as the batches there show them, where they were read."""
    known = candidate.intervals

    def foreign_offsets_at(mirror_offset: int) -> int:
        written = None if written_at is None else written_at(mirror_offset)
        if written is not None:
            return written
        interval = known.covering(mirror_offset)
        return candidate.decision.foreign_offsets_before if interval is None else interval.foreign_offsets_before

    actual = tail.intervals(candidate.facts.source_id, foreign_offsets_at)
    if not known.agree(actual):
        candidate.corrections += actual


def _copied_twice(tail: MirrorTail, mirror_end: int) -> Iterator[Event]:
    if tail.twice:
        text = (
            f"{tail.twice} records before mirror offset {mirror_end} are in the mirror more than once, as the source "
            "does not hold them in the order in which they were copied; copying continues with source offset "
            f"{tail.source}, the first that was not copied"
        )
        yield COPIED_TWICE, tail.twice, text


def _too_many_to_search(candidate: Candidate, common: int, source: int, logs: BothLogs) -> Event:
    shift_at, end = candidate.intervals.foreign_offsets_at, candidate.facts.mirror_end
    count = (end - shift_at(end)) - (common - shift_at(common))
    text = (
        f"{count} records of the mirror, from mirror offset {common} on, are too many to be searched in the source "
        f"with {logs.search_bytes} bytes of memory (heliograph.buffer.memory); copying continues with source offset "
        f"{source}, and those that the source still has are copied a second time"
    )
    return COPIED_TWICE, count, text


def _continue_from(candidate: Candidate, source: int, *events: Event) -> None:
    events = (*_earlier_events(candidate), *events)
    if candidate.decision.preserves_offsets and source != candidate.facts.mirror_end:
        events = (*events, not_kept("the source was truncated"))
    own_end = candidate.own_end
    decided = candidate.intervals.beginning(own_end)
    if own_end < candidate.facts.mirror_end and decided is not None and decided.source != source:
        # Others have written since, and copying does not continue as decided: no group may be translated by that.
        candidate.corrections.append(replace(decided, source=source))
    candidate.continue_at(source, candidate.decision.foreign_offsets_before, events)


def _earlier_events(candidate: Candidate) -> Iterator[Event]:
    """The events of the decision so far: how much retention has deleted depends on where the source was truncated."""
    truncated_at, facts = candidate.truncated_at, candidate.facts
    for event in candidate.decision.events:
        copied = candidate.intervals.covering(candidate.own_end - 1)
        if event[0] == "data-loss" and truncated_at is not None and copied is not None:
            yield lost_records(min(truncated_at, copied.source_of(candidate.own_end)), facts)
        else:
            yield event


async def _common_end(candidate: Candidate, logs: BothLogs, policies: Policies) -> tuple[int, int]:
    """The mirror offset up to which the mirror holds what the source holds, and the source offset that comes next."""
    facts, most = candidate.facts, _INTERVALS
    while True:
        known = await logs.known(candidate, facts.mirror_start, most)
        copied = CopiedRecords(*known, facts)
        count = await common_prefix(candidate, copied, logs, policies.refused_record == CONTINUE)
        if count > 0:
            mirror_offset, source_offset = copied.at(count - 1)
            return mirror_offset + 1, source_offset + 1
        if len(known[0]) < most:
            break
        most *= 8  # they differ further back
    common = copied.at(0)[0] if len(copied) else candidate.own_end
    first = candidate.intervals.first()
    if first is not None and max(common, facts.mirror_start) <= first.target and first.target > facts.mirror_start:
        # What another tool has copied before is not compared.
        return first.target, max(facts.source_start, min(first.source, facts.source_end))
    return common, facts.source_start
