"""How far a mirror holds what the source holds.

Logs diverge once, so a binary search finds an offset where they differ quickly. But an offset may also be alike by
chance, after the first difference: a producer has sent the same record again and it has got the same offset, or one
side has no record there any more. So the records before the offset are compared as well, back from it, as far as
`search_bytes` allows; when that shows a difference, the binary search continues before it.
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
    """The number of the first copied record that differs, and the number after the last one before it that is the
    same; None if there is no such record."""

    difference: int | None
    same: int | None
    size: int


async def common_prefix(candidate: Candidate, copied: CopiedRecords, logs: BothLogs, parks: bool) -> int:
    """How many copied records are the same as in the source, up to the last one that both logs still have.

    With `parks` records of the source may have been parked, so that the mirror does not have them.
    """
    truncated_at, end = candidate.truncated_at, candidate.facts.source_end
    high = copied.before_source(end if truncated_at is None else min(end, truncated_at))
    while True:
        high = await _binary_search(candidate, copied, high, logs)
        compared = await _compare_back(candidate, copied, high, logs, parks)
        if compared.difference is None:
            assert compared.same is not None
            return compared.same
        high = compared.difference


async def same_at_end(candidate: Candidate, copied: CopiedRecords, logs: BothLogs) -> bool | None:
    """Whether the last records that both logs still have are the same; None if there are none within `search_bytes`.
    Records that only the source has are not looked at."""
    end, size, step = copied.before_source(candidate.facts.source_end), 0, _FIRST_STEP
    while end > 0 and size < logs.search_bytes:
        start = max(0, end - step)
        compared = await _compare(candidate, copied, start, end, logs, parks=True)
        if compared.difference is not None or compared.same is not None:
            return compared.difference is None
        size += compared.size
        end, step = start, step * 2
    return None


async def _binary_search(candidate: Candidate, copied: CopiedRecords, high: int, logs: BothLogs) -> int:
    low = 0
    while low < high:
        middle = (low + high) // 2
        if await _may_be_same(candidate, *copied.at(middle), logs):
            low = middle + 1
        else:
            high = middle
    return low


async def _may_be_same(candidate: Candidate, mirror_offset: int, source_offset: int, logs: BothLogs) -> bool:
    """Whether a record of the mirror may be the source's: it is the same, or one of them is gone."""
    copies = await logs.copies({candidate.mirror_partition: mirror_offset})
    originals = await logs.originals({candidate.source_partition: source_offset})
    copy, original = copies.get(candidate.mirror_partition), originals.get(candidate.source_partition)
    if not isinstance(copy, Batch) or not isinstance(original, Batch):
        raise WireError(f"mirror offset {mirror_offset} or source offset {source_offset} cannot be read")
    mirrored, source_record = _record_at(copy, mirror_offset), _record_at(original, source_offset)
    return mirrored is None or source_record is None or mirrored[1:] == source_record[1:]


def _record_at(batch: Batch, offset: int) -> DecodedRecord | None:
    return None if batch.control else next((record for record in records_of(batch) if record.offset == offset), None)


async def _compare_back(
    candidate: Candidate, copied: CopiedRecords, end: int, logs: BothLogs, parks: bool
) -> _Compared:
    """Compare the records before number `end`, in growing steps. If nothing differs, `same` is not before its start."""
    size, step = 0, _FIRST_STEP
    same = None
    while end > 0 and size < logs.search_bytes:
        start = max(0, end - step)
        compared = await _compare(candidate, copied, start, end, logs, parks)
        if compared.difference is not None:
            return compared
        same = compared.same if same is None else same
        size += compared.size
        end, step = start, step * 2
    return _Compared(None, end if same is None else same, size)


async def _compare(
    candidate: Candidate, copied: CopiedRecords, start: int, end: int, logs: BothLogs, parks: bool
) -> _Compared:
    mirror_from, source_from = copied.at(start)
    mirror_last, source_last = copied.at(end - 1)
    same, size = None, 0

    async def copies() -> AsyncIterator[tuple[int, DecodedRecord]]:
        nonlocal size
        async for batch in logs.own_batches(candidate, mirror_from, mirror_last + 1):
            size += batch.size
            for record in records_of(batch):
                number = copied.of_mirror(record.offset)
                if number is not None and start <= number < end:
                    yield number, record

    following = copies()
    copy = await anext(following, None)
    async for original in logs.source_records(candidate, source_from, source_last + 1):
        while copy is not None and copied.at(copy[0])[1] < original.offset:
            copy = await anext(following, None)
        if copy is not None and copied.at(copy[0])[1] == original.offset:
            if copy[1][1:] != original[1:]:
                return _Compared(copy[0], same, size)
            same = copy[0] + 1
        elif not parks and copied.lacks_source(original.offset):
            return _Compared(copied.before_source(original.offset), same, size)
    return _Compared(None, same, size)
