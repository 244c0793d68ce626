"""A look at the mirror's last batch before copying: is it ours, at its offset, and what the source has there?

Done where the mirror's end is not what this run has seen acknowledged: at a run's start, and after a fault with batches
in flight. A wrong interval, two copiers at once, a foreign writer and a source that was truncated and written again
show here, not in the data. How copying continues then is in `divergence` and `foreign_writes`.
"""

import asyncio
from collections.abc import Callable, Sequence

from heliograph.copy.candidate import Candidate
from heliograph.copy.cursor import Cursor
from heliograph.copy.divergence import continue_after_truncation, continue_without_records, same_before_last_batch
from heliograph.copy.foreign_writes import continue_after_others
from heliograph.copy.log_access import BothLogs
from heliograph.model.flow import Policies
from heliograph.model.intervals import NotLoaded
from heliograph.wire.batches import BadBatch, Batch
from heliograph.wire.errors import WireError
from heliograph.wire.recode import records_of

Restart = Callable[[Cursor, str, bool], None]
LastBatch = Batch | WireError | None


async def verified(
    candidates: Sequence[Candidate], logs: BothLogs, policies: Policies, restart: Restart
) -> list[Candidate]:
    """Those that may be copied; the others are refused, or put back with `restart`."""
    to_compare = [candidate for candidate in candidates if candidate.needs_verification and not candidate.is_empty]
    originals, copies = await asyncio.gather(
        logs.originals(
            {
                candidate.source_partition: last
                for candidate in to_compare
                if (last := candidate.last_source) is not None
            }
        ),
        logs.copies({candidate.mirror_partition: candidate.own_end - 1 for candidate in to_compare}),
    )
    passed = []
    for candidate in candidates:
        if not candidate.needs_verification:
            at = candidate.cursor.position
            candidate.verified(at.epoch if at is not None and at == candidate.decision.position else -1)
        elif candidate.is_empty:
            if not continue_without_records(candidate, policies):
                continue
        else:
            copied, original = copies.get(candidate.mirror_partition), originals.get(candidate.source_partition)
            if not await _passes_with_pages(candidate, copied, original, logs, policies, restart):
                continue
        passed.append(candidate)
    return passed


async def _passes_with_pages(
    candidate: Candidate,
    copied: LastBatch,
    original: LastBatch,
    logs: BothLogs,
    policies: Policies,
    restart: Restart,
) -> bool:
    """Whether it passes. Reads the pages of the ledger that are needed for that."""
    while True:
        try:
            return await _passes(candidate, copied, original, logs, policies, restart)
        except NotLoaded as missing:
            await logs.ledger.load(candidate.source_partition, candidate.facts.mirror_id, missing.page)
            candidate.reload(logs.ledger.of(candidate.source_partition, candidate.facts.mirror_id))


async def _passes(
    candidate: Candidate,
    copied: LastBatch,
    original: LastBatch,
    logs: BothLogs,
    policies: Policies,
    restart: Restart,
) -> bool:
    last = candidate.last_source
    is_beyond = last is not None and last >= candidate.facts.source_end
    is_expected = last is not None and not is_beyond
    if not isinstance(copied, Batch) or isinstance(original, WireError) or (is_expected and original is None):
        problem = copied if not isinstance(copied, Batch) else original
        restart(candidate.cursor, f"the last batch cannot be read: {problem}", False)
        return False
    is_truncated = is_beyond or candidate.truncated_at is not None
    try:
        if foreign := _foreign(candidate, copied):
            return await continue_after_others(candidate, foreign, logs, policies)
        is_same = None if last is None or original is None else same_records(candidate, copied, original)
        if is_same is None and last is not None and not is_truncated:
            is_same = await same_before_last_batch(candidate, logs)
        if is_truncated or is_same is False:
            return await continue_after_truncation(candidate, is_truncated, logs, policies)
    except (WireError, BadBatch) as error:
        restart(candidate.cursor, f"the logs cannot be compared: {error}", True)
        return False
    if original is not None and last is not None and original.base_offset <= last:
        candidate.verified(original.leader_epoch)
    return True


def _foreign(candidate: Candidate, copied: Batch) -> str | None:
    """Why the mirror's last batch is not what we would have appended there, if it is not."""
    if copied.base_offset >= candidate.own_end:
        return None  # compaction has removed our last record, and only gaps are left after it
    where = f"the last batch of the mirror ({copied.base_offset} to {copied.next_offset - 1})"
    if copied.producer_id != candidate.producer_id:
        return f"{where} was not written by this flow: another producer writes to this mirror"
    interval = candidate.intervals.covering(copied.next_offset - 1)
    foreign_offsets = interval.foreign_offsets_before if interval else 0
    is_at_end = copied.next_offset == candidate.own_end
    if not is_at_end or not candidate.has_expected_sequence(copied, foreign_offsets):
        return f"{where} is not where this flow would have put it: another producer writes to this mirror"
    return None


def same_records(candidate: Candidate, copied: Batch, original: Batch) -> bool | None:
    """Whether the mirror's last batch holds what the source has at the same offsets; None where nothing is left to
    compare: a record that compaction has removed since, on either side, is not evidence."""
    last = candidate.last_source
    ends_at_last = last is not None and original.next_offset == last + 1 and copied.magic == original.magic
    if ends_at_last and copied.same_records(original):
        return True
    originals = {record.offset: record[1:] for record in records_of(original)}
    compared = [
        record[1:] == originals[source]
        for record in records_of(copied)
        if (source := candidate.source_of(record.offset)) is not None and source in originals
    ]
    return all(compared) if compared else None
