"""Resuming: the one way from "I do not know where I am" to a position, for a start and after every fault.

Asks both clusters about all partitions that need it at once, applies the rule of `position`, has `verify` look at the
mirrors' last batches, and writes down the intervals that begin.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from heliograph.copy.cursor import Cursor, State
from heliograph.copy.gaps import Gaps
from heliograph.copy.ledger import Ledger
from heliograph.copy.position import NOT_KEPT, Blocked, PartitionFacts, Resume, next_position
from heliograph.copy.resumed import Clusters, Resumed
from heliograph.copy.verify import verified
from heliograph.model.flow import Policies, Reading
from heliograph.model.intervals import Intervals, NotLoaded
from heliograph.model.ledger_records import JournalEntry
from heliograph.model.problems import Notice
from heliograph.wire.cluster import ClusterClient, id_text
from heliograph.wire.errors import WireError
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets, log_ends

# A source that seems to end before what was copied is believed after so many looks.
_SURE_AFTER = 3


async def resume(
    cursors: list[Cursor],
    source: ClusterClient,
    target: ClusterClient,
    ledger: Ledger,
    policies: Policies,
    reading: Reading,
    gaps: Gaps,
    search_bytes: int,
    *,
    lost: Callable[[Cursor, str, bool], None],
    notice: Callable[[Notice], None],
) -> list[Cursor]:
    """Find positions; those that may copy now are returned, the others were refused, or put back with `lost`."""
    cursors = await _end_transactions(cursors, ledger, gaps, lost)
    read = [(cursor.key.topic, cursor.key.partition) for cursor in cursors]
    written = [(cursor.key.mirror, cursor.key.partition) for cursor in cursors]
    sources, mirrors = await asyncio.gather(
        source.metadata({topic for topic, _partition in read}),
        target.metadata({topic for topic, _partition in written}),
    )
    # Before the high watermarks: they reach what is in the logs now, unless replicas are slow.
    appended = await log_ends(target, mirrors.topics, written)
    source_starts, source_ends, mirror_starts, mirror_ends = await asyncio.gather(
        list_offsets(source, sources.topics, read, EARLIEST, reading.committed_only),
        list_offsets(source, sources.topics, read, LATEST, reading.committed_only),
        list_offsets(target, mirrors.topics, written, EARLIEST, False),
        list_offsets(target, mirrors.topics, written, LATEST, False),
    )
    # After the offsets: whoever began this mirror before us then read an earlier start than we did, and wrote it down.
    await ledger.catch_up()
    seen = ledger.next_offset
    facts: list[tuple[Cursor, PartitionFacts]] = []
    for cursor, here, there in zip(cursors, read, written, strict=True):
        offsets = source_starts[here], source_ends[here], mirror_starts[there], mirror_ends[there]
        known = [one for one in offsets if not isinstance(one, WireError)]
        if len(known) < len(offsets):
            said = next(one for one in offsets if isinstance(one, WireError))
            lost(cursor, f"offsets cannot be read: {said}", False)
            continue
        if why := _not_final(known[3], appended.get(there)):
            lost(cursor, why, False)
            continue
        cursor.source_leader = sources.topics[cursor.key.topic].leaders[cursor.key.partition]
        cursor.target_leader = mirrors.topics[cursor.key.mirror].leaders[cursor.key.partition]
        cursor.source_id = sources.topics[cursor.key.topic].id
        cursor.source_end = known[1]
        cursor.mirror_id = id_text(mirrors.topics[cursor.key.mirror].id)
        if cursor.position is not None and cursor.position.mirror_id != cursor.mirror_id:
            cursor.position = None  # of a mirror that is gone
        others = any(one != cursor.mirror_id for one in ledger.all_of(here))
        sure = cursor.suspicions >= _SURE_AFTER
        start, end, mirror_start, mirror_end = known
        ids = cursor.source_id_hex, cursor.mirror_id
        bounds = start, end, mirror_start, mirror_end
        most = None if cursor.kept_offsets is None else cursor.kept_offsets.most_filler if cursor.fillable else 0
        facts.append((cursor, PartitionFacts(*bounds, *ids, others, sure, cursor.position, reading.from_the_end, most)))
    found = []
    for cursor, one in facts:
        place = cursor.key.topic, cursor.key.partition
        decision = await ledger.ask(place, cursor.mirror_id, partial(_decide, one, policies))
        if cursor.state is not State.RESUMING:
            continue  # it was dropped meanwhile
        cursor.intervals = ledger.of(place, cursor.mirror_id)
        if not isinstance(decision, Blocked):
            if cursor.unsure:  # it was told with the first look
                decision = replace(decision, events=tuple(told for told in decision.events if told[0] != NOT_KEPT))
            found.append(Resumed(cursor, one, decision))
        elif decision.final:
            cursor.give_up(decision.reason, decision.text, decision.source_offset, one.mirror_end)
        else:
            lost(cursor, decision.text, decision.suspicious)
    clusters = Clusters(source, sources, target, mirrors, ledger, reading.committed_only, search_bytes)
    passed = await verified(found, clusters, policies, lost)
    refused = [each for each in found if each.cursor.refusal is not None]  # groups are translated all the same
    passed = await _write_down(passed, refused, ledger, seen, lost)
    for each in passed:
        _tell(each, notice)
        if each.again:
            each.cursor.unsure = True
            lost(each.cursor, "others have written to the mirror: what is ours is compared once more", False)
        else:
            _start(each)
    return [each.cursor for each in passed if not each.again]


def _not_final(mirror_end: int, log_end: int | WireError | None) -> str | None:
    """Why the end that readers see is not where the next batch would be appended: an earlier lease's is on its way."""
    if isinstance(log_end, WireError):
        return f"the end of the mirror's log cannot be read: {log_end}"
    if log_end is None or mirror_end >= log_end:
        return None
    written = f"offsets {mirror_end} to {log_end - 1} of the mirror are written but not on all in-sync replicas yet"
    return f"{written}; copying goes on when they are: see that the replicas of the mirror are up"


async def _end_transactions(
    cursors: list[Cursor], ledger: Ledger, gaps: Gaps, lost: Callable[[Cursor, str, bool], None]
) -> list[Cursor]:
    """Before looking at where mirrors end: nothing may be under way that would still make them longer. Those of which
    that is certain are returned."""
    if any(cursor.kept_offsets is not None for cursor in cursors):
        await ledger.catch_up()
    if not ledger.knows_gaps:
        return cursors
    doubtful: dict[Cursor, set[str]] = {}
    for cursor in cursors:
        known = ledger.all_of((cursor.key.topic, cursor.key.partition)).values()
        seen = -1 if cursor.position is None else cursor.position.target
        if seen < 0 or any(_goes_on(intervals, seen) for intervals in known):
            doubtful[cursor] = {one.filler for one in known if one.filler}
    failed = await gaps.fence(doubtful)
    for cursor, why in failed.items():
        lost(cursor, f"transactions for gaps cannot be ended: {why}", False)
    return [cursor for cursor in cursors if cursor not in failed]


def _goes_on(intervals: Intervals, target: int) -> bool:
    """Whether something is planned behind a mirror offset, as far as is known without reading on."""
    try:
        return intervals.after(target) is not None
    except NotLoaded:
        return True


def _start(one: Resumed) -> None:
    cursor, decision, facts = one.cursor, one.decision, one.facts
    new = decision.new
    cursor.source_start, cursor.mirror_start = facts.source_start, facts.mirror_start
    cursor.cut_before = max(cursor.intervals.filled_before, new.target if new is not None and new.fill else 0)
    cursor.bare = facts.mirror_start == facts.mirror_end or (new is not None and new.fill)
    cursor.start(replace(decision.position, epoch=one.epoch), decision.foreign_offsets_before, decision.keeps)


def _decide(facts: PartitionFacts, policies: Policies, intervals: Intervals) -> Resume | Blocked:
    """The rule, and a look at all that is needed to verify what it says."""
    intervals.covering(intervals.own_end(facts.mirror_end) - 1)
    return next_position(intervals, facts, policies)


async def _write_down(
    passed: list[Resumed],
    refused: list[Resumed],
    ledger: Ledger,
    seen: int,
    lost: Callable[[Cursor, str, bool], None],
) -> list[Resumed]:
    """What was found out about mirrors, and how to go on. If another process has written about one of them meanwhile,
    its word counts: then all is to be looked at again."""
    found = [(each, new) for each in (*refused, *passed) for new in each.corrections]
    found += [(each, each.decision.new) for each in passed if each.decision.new is not None]
    entries = [(JournalEntry(each.read, each.facts.mirror_id, (new,)), each) for each, new in found]
    await ledger.write([entry for entry, _each in entries if entry.intervals[0].count > 0])
    decided = {entry: each for entry, each in entries if entry.intervals[0].count == 0}
    overtaken = {decided[entry].cursor for entry in await ledger.decide(list(decided), seen)}
    for cursor in overtaken:
        lost(cursor, "another process has written to the ledger about this mirror partition", False)
    return [each for each in passed if each.cursor.state is State.RESUMING and each.cursor not in overtaken]


def _tell(one: Resumed, notice: Callable[[Notice], None]) -> None:
    """What happened while we were not looking."""
    cursor, at = one.cursor, one.decision.position
    before = cursor.position
    for kind, count, text in one.decision.events:
        notice(Notice(cursor.key, kind, count, at.source, at.target, text))
    if not one.decision.events and before is not None and one.facts.mirror_end < before.target:
        lost = before.target - one.facts.mirror_end
        text = f"the mirror has lost its last {lost} records, from {one.facts.mirror_end} on; they are copied again"
        notice(Notice(cursor.key, "mirror-truncated", lost, at.source, at.target, text))
