"""Up to where a mirror holds what the source holds.

Logs part once, so halving finds a place where they differ quickly. But a place may also be alike by chance, behind the
first difference: a producer has sent the same record again and it has got the same offset, or one side has no record
there any more. So what stands before the place is compared record by record as well, back from it, as much as the bound
for searches allows; and when that shows a difference, halving goes on before it.
"""

from collections.abc import AsyncIterator
from typing import NamedTuple

from heliograph.copy.candidate import Candidate
from heliograph.copy.copied_records import CopiedRecords
from heliograph.copy.log_access import BothLogs
from heliograph.wire.batches import Batch
from heliograph.wire.errors import WireError
from heliograph.wire.recode import DecodedRecord, records_of

_FIRST_STEP = 1000  # records


class _Compared(NamedTuple):
    """The first claim that does not hold, and behind the last one that does before it; None if there is no such."""

    difference: int | None
    sound: int | None
    size: int


async def common_prefix(candidate: Candidate, claims: CopiedRecords, logs: BothLogs, parks: bool) -> int:
    """How many claims hold before the first that does not, up to the last of them for which both logs have a record.

    With `parks` records of the source may have been put aside, so that none of the mirror stands for them.
    """
    cut_at, ends = candidate.truncated_at, candidate.facts.source_end
    high = claims.before_source(ends if cut_at is None else min(ends, cut_at))
    while True:
        high = await _halve(candidate, claims, high, logs)
        compared = await _compare_back(candidate, claims, high, logs, parks)
        if compared.difference is None:
            assert compared.sound is not None
            return compared.sound
        high = compared.difference


async def _halve(candidate: Candidate, claims: CopiedRecords, high: int, logs: BothLogs) -> int:
    low = 0
    while low < high:
        middle = (low + high) // 2
        if await _may_hold(candidate, *claims.at(middle), logs):
            low = middle + 1
        else:
            high = middle
    return low


async def _may_hold(candidate: Candidate, mirror_offset: int, source_offset: int, logs: BothLogs) -> bool:
    """Whether nothing speaks against a record of the mirror being the source's."""
    copies = await logs.copies({candidate.mirror_partition: mirror_offset})
    originals = await logs.originals({candidate.source_partition: source_offset})
    copied, original = copies.get(candidate.mirror_partition), originals.get(candidate.source_partition)
    if not isinstance(copied, Batch) or not isinstance(original, Batch):
        raise WireError(f"mirror offset {mirror_offset} or source offset {source_offset} cannot be read")
    mirrored, there = _record_at(copied, mirror_offset), _record_at(original, source_offset)
    return mirrored is None or there is None or mirrored[1:] == there[1:]


def _record_at(batch: Batch, offset: int) -> DecodedRecord | None:
    return None if batch.control else next((record for record in records_of(batch) if record.offset == offset), None)


async def _compare_back(
    candidate: Candidate, claims: CopiedRecords, end: int, logs: BothLogs, parks: bool
) -> _Compared:
    """Compare what comes before a claim, in growing steps. If nothing differs, `sound` is at least where that began."""
    size, step = 0, _FIRST_STEP
    sound = None
    while end > 0 and size < logs.search_bytes:
        start = max(0, end - step)
        compared = await _compare(candidate, claims, start, end, logs, parks)
        if compared.difference is not None:
            return compared
        sound = compared.sound if sound is None else sound
        size += compared.size
        end, step = start, step * 2
    return _Compared(None, end if sound is None else sound, size)


async def _compare(
    candidate: Candidate, claims: CopiedRecords, start: int, end: int, logs: BothLogs, parks: bool
) -> _Compared:
    mirror_from, source_from = claims.at(start)
    mirror_last, source_last = claims.at(end - 1)
    sound, size = None, 0

    async def copies() -> AsyncIterator[tuple[int, DecodedRecord]]:
        nonlocal size
        async for batch in logs.own_batches(candidate, mirror_from, mirror_last + 1):
            size += batch.size
            for record in records_of(batch):
                number = claims.of_mirror(record.offset)
                if number is not None and start <= number < end:
                    yield number, record

    following = copies()
    copied = await anext(following, None)
    async for original in logs.source_records(candidate, source_from, source_last + 1):
        while copied is not None and claims.at(copied[0])[1] < original.offset:
            copied = await anext(following, None)
        if copied is not None and claims.at(copied[0])[1] == original.offset:
            if copied[1][1:] != original[1:]:
                return _Compared(copied[0], sound, size)
            sound = copied[0] + 1
        elif not parks and not claims.has_source(original.offset):
            return _Compared(claims.before_source(original.offset), sound, size)
    return _Compared(None, sound, size)
