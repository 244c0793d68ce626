"""Resuming: the only way to a position, for a start and after every fault.

Surveys all partitions that need it at once, decides by the cases of `position`, has `verify` look at the mirrors' last
batches, and records the intervals that begin.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from heliograph.copy.callbacks import Callbacks
from heliograph.copy.candidate import Candidate
from heliograph.copy.cursor import Cursor, State
from heliograph.copy.gap_filler import GapFiller
from heliograph.copy.ledger import OVERTAKEN, Ledger
from heliograph.copy.log_access import BothLogs
from heliograph.copy.position import NOT_KEPT, Blocked, PartitionFacts, Resume, next_position
from heliograph.copy.survey import Survey, survey
from heliograph.copy.verify import verified
from heliograph.model.flow import Flow, Policies
from heliograph.model.intervals import Intervals, NotLoaded
from heliograph.model.ledger_records import JournalEntry
from heliograph.model.problems import Notice
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.offsets import log_ends


async def resume(
    cursors: list[Cursor],
    flow: Flow,
    source: ClusterClient,
    target: ClusterClient,
    ledger: Ledger,
    gaps: GapFiller,
    callbacks: Callbacks,
) -> list[Cursor]:
    """Find positions. Returns the cursors that may copy now; the others are refused, or put back with `restart`."""
    cursors = await _end_transactions(cursors, ledger, gaps, callbacks)
    partitions = [cursor.key for cursor in cursors]
    mirror_partitions = [(partition.mirror, partition.partition) for partition in partitions]
    sources, mirrors = await asyncio.gather(
        source.metadata({partition.topic for partition in partitions}),
        target.metadata({partition.mirror for partition in partitions}),
    )
    # Before the high watermarks: they reach what is in the logs now, unless replicas are slow.
    ends = await log_ends(target, mirrors.topics, mirror_partitions)
    surveys = await survey(flow, source, target, ledger, partitions, sources.topics, mirrors.topics)
    seen = ledger.next_offset
    facts: list[tuple[Cursor, PartitionFacts]] = []
    for cursor, surveyed, mirror_partition in zip(cursors, surveys, mirror_partitions, strict=True):
        if why := not_ready(surveyed, ends.get(mirror_partition)):
            callbacks.restart(cursor, why, False)
            continue
        cursor.locate(surveyed)
        facts.append((cursor, _facts_for(cursor, surveyed)))
    candidates = await _decide_all(facts, flow.policies, ledger, seen, callbacks)
    logs = BothLogs(source, sources, target, mirrors, ledger, flow.reading.committed_only, flow.buffer_memory)
    passed = await verified(candidates, logs, flow.policies, callbacks.restart)
    refused = [
        candidate for candidate in candidates if candidate.cursor.refusal is not None
    ]  # their groups are translated all the same
    passed = await _record(passed, refused, ledger, callbacks)
    for candidate in passed:
        _report(candidate, callbacks.notice)
        if candidate.verify_again:
            candidate.cursor.retry.verify_next()
            why = "others have written to the mirror: its own records are compared again"
            callbacks.restart(candidate.cursor, why, False)
        else:
            candidate.cursor.start(candidate.resume_point)
    return [candidate.cursor for candidate in passed if not candidate.verify_again]


def not_ready(surveyed: Survey, log_end: int | WireError | None) -> str | None:
    """Why the end that readers see is not known, or not where the next batch would be appended."""
    error = surveyed.error
    if error is not None or surveyed.mirror_end is None:
        return f"offsets cannot be read: {error or 'no leader'}"
    if isinstance(log_end, WireError):
        return f"the end of the mirror's log cannot be read: {log_end}"
    mirror_end = surveyed.facts.mirror_end
    if log_end is None or mirror_end >= log_end:
        return None
    written = f"offsets {mirror_end} to {log_end - 1} of the mirror are written but not on all in-sync replicas yet"
    return f"{written}; copying continues when they are; check that all replicas of the mirror are up"


def _facts_for(cursor: Cursor, surveyed: Survey) -> PartitionFacts:
    return replace(
        surveyed.facts,
        is_sure=cursor.retry.is_sure,
        last_position=cursor.position,
        most_filler=cursor.gap_fill.max_filler,
    )


async def _end_transactions(
    cursors: list[Cursor], ledger: Ledger, gaps: GapFiller, callbacks: Callbacks
) -> list[Cursor]:
    """End transactions that may be open for gaps: they would still make a mirror longer after its end was read.

    Returns the cursors for which that is certain.
    """
    if any(cursor.gap_fill.settings is not None for cursor in cursors):
        await ledger.catch_up()
    if not ledger.knows_gaps:
        return cursors
    uncertain: dict[Cursor, set[str]] = {}
    for cursor in cursors:
        known = ledger.all_of((cursor.key.topic, cursor.key.partition)).values()
        mirror_offset = -1 if cursor.position is None else cursor.position.target
        if mirror_offset < 0 or any(_continues_after(intervals, mirror_offset) for intervals in known):
            uncertain[cursor] = {intervals.filler for intervals in known if intervals.filler}
    failed = await gaps.fence(uncertain)
    for cursor, why in failed.items():
        callbacks.restart(cursor, f"transactions for gaps cannot be ended: {why}", False)
    return [cursor for cursor in cursors if cursor not in failed]


def _continues_after(intervals: Intervals, mirror_offset: int) -> bool:
    """Whether something is planned after a mirror offset, as far as is known without reading pages."""
    try:
        return intervals.after(mirror_offset) is not None
    except NotLoaded:
        return True


async def _decide_all(
    facts: list[tuple[Cursor, PartitionFacts]], policies: Policies, ledger: Ledger, seen: int, callbacks: Callbacks
) -> list[Candidate]:
    candidates = []
    for cursor, partition_facts in facts:
        partition, mirror_id = (cursor.key.topic, cursor.key.partition), partition_facts.mirror_id
        decision = await ledger.ask(partition, mirror_id, partial(_decide, partition_facts, policies))
        if cursor.state is not State.RESUMING:
            continue  # it was dropped meanwhile
        if not isinstance(decision, Blocked):
            if cursor.retry.must_verify:  # it was reported with the first look
                events = tuple(event for event in decision.events if event[0] != NOT_KEPT)
                decision = replace(decision, events=events)
            candidates.append(Candidate(cursor, partition_facts, decision, ledger.of(partition, mirror_id), seen))
        elif decision.final:
            cursor.give_up(decision.reason, decision.text, decision.source_offset, partition_facts.mirror_end)
        else:
            callbacks.restart(cursor, decision.text, decision.is_suspicious)
    return candidates


def _decide(facts: PartitionFacts, policies: Policies, intervals: Intervals) -> Resume | Blocked:
    """The decision, after a look at all that is needed to verify it: pages that are missing are read before."""
    intervals.covering(intervals.own_end(facts.mirror_end) - 1)
    return next_position(intervals, facts, policies)


async def _record(
    passed: list[Candidate], refused: list[Candidate], ledger: Ledger, callbacks: Callbacks
) -> list[Candidate]:
    """Write corrections and new intervals to the ledger.

    If another process has written about the same mirror partition since the ledger was read, its entry counts, and the
    position must be found again. Returns the others.
    """
    new_intervals = [
        (candidate, correction) for candidate in (*refused, *passed) for correction in candidate.corrections
    ]
    new_intervals += [(candidate, candidate.decision.new) for candidate in passed if candidate.decision.new is not None]
    counts = await ledger.append(
        [
            JournalEntry(candidate.source_partition, candidate.facts.mirror_id, (interval,), seen=candidate.seen)
            for candidate, interval in new_intervals
        ]
    )
    written = zip(new_intervals, counts, strict=True)
    overtaken = {candidate.cursor for (candidate, _interval), is_counted in written if not is_counted}
    for cursor in overtaken:
        callbacks.restart(cursor, OVERTAKEN, False)
    return [
        candidate
        for candidate in passed
        if candidate.cursor.state is State.RESUMING and candidate.cursor not in overtaken
    ]


def _report(candidate: Candidate, notice: Callable[[Notice], None]) -> None:
    """Report what was skipped, or lost by the mirror."""
    cursor, at = candidate.cursor, candidate.decision.position
    mirror_end, before = candidate.facts.mirror_end, cursor.position
    for kind, count, text in candidate.decision.events:
        notice(Notice(cursor.key, kind, count, at.source, at.target, text))
    if not candidate.decision.events and before is not None and mirror_end < before.target:
        lost = before.target - mirror_end
        text = f"the mirror has lost its last {lost} records, from {mirror_end} on; they are copied again"
        notice(Notice(cursor.key, "mirror-truncated", lost, at.source, at.target, text))
