"""Mirrors that begin where their sources begin.

A new mirror is filled up to the source's first offset with empty records, which are then deleted (DeleteRecords). A
broker appends millions of them in a second. They are deleted while more are written, so that readers of a new mirror
see few of them, if any. Later, records that the source has deleted are deleted from the mirror, too.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

from heliograph.copy.cursor import Cursor
from heliograph.copy.lease_clock import LeaseClock
from heliograph.copy.ledger import Ledger
from heliograph.copy.work import ALIGNING
from heliograph.model.problems import Notice, Refusal
from heliograph.wire.append import PartitionBatch, append, takes_zstd
from heliograph.wire.batches import Batch
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, BrokerError, WireError
from heliograph.wire.offsets import delete_before
from heliograph.wire.recode import GZIP, ZSTD, Builder, DecodedRecord

log = logging.getLogger(__name__)

_BATCH_RECORDS = 100_000
_DELETE_AFTER = 10  # batches
_CHECK_EVERY = 1.0
_FILLER = DecodedRecord(0, -1, b"", None, [])  # with a key: a compacted mirror refuses records without
_TOO_LARGE = frozenset({MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE})


class DeleteRecordsRefused(WireError):
    """The mirror is compacted only, or we may not delete its records: filler would stay in it."""


async def fill(cursor: Cursor, target: ClusterClient, clock: LeaseClock) -> None:
    """Write filler up to the end of the cursor's next gap, and delete it. Raises a WireError if that fails; the next
    start sees how far it got."""
    gap, generation = cursor.gap, cursor.generation
    assert gap is not None
    assert gap.filler
    began, start, end = time.monotonic(), gap.source_offset, gap.source_offset + gap.count
    log.info("%s: filling %d offsets, so that the mirror begins at offset %d", cursor.key, gap.count, end)
    try:
        await delete_before_start(target, cursor, cursor.mirror.start)  # changes nothing: is it allowed?
    except BrokerError as error:
        if error.transient:
            raise
        raise DeleteRecordsRefused(f"records of the mirror cannot be deleted ({error.name})") from error
    connection = await target.connection(cursor.mirror.leader)
    codec = ZSTD if takes_zstd(connection) else GZIP
    max_records, batches = _BATCH_RECORDS, 0
    while cursor.sending.append_at < end:
        if clock.is_expired or cursor.generation != generation:
            raise WireError("the lease has ended")
        batch = _batch(min(max_records, end - cursor.sending.append_at), codec)
        header = cursor.sending.header(batch, cursor.sending.append_at)
        pieces = header, batch.records
        filler = PartitionBatch(cursor.key.mirror, cursor.key.partition, pieces, cursor.mirror.topic_id)
        (answer,) = await append(connection, [filler], target.cluster.request_timeout)
        if answer.error in _TOO_LARGE and batch.count > 1:
            max_records = batch.count // 2
            continue
        if answer.error:
            raise BrokerError(answer.error, answer.message)
        if answer.base_offset != cursor.sending.append_at:
            cursor.forget_position()
            raise WireError(f"filler was appended at {answer.base_offset} instead of {cursor.sending.append_at}")
        cursor.sending.filler_appended(batch.count)
        batches += 1
        done = f"{cursor.sending.append_at - start} of {gap.count} offsets are filled"
        cursor.retry.report(Refusal(cursor.key, ALIGNING, start, cursor.sending.append_at, done, final=False))
        if batches % _DELETE_AFTER == 0 or cursor.sending.append_at == end:
            await delete_before_start(target, cursor, cursor.sending.append_at)
    log.info("%s: the mirror begins at offset %d, after %.1f s", cursor.key, end, time.monotonic() - began)


async def delete_before_start(target: ClusterClient, cursor: Cursor, start: int) -> None:
    """Delete the mirror's records before this offset."""
    partition = cursor.key.mirror, cursor.key.partition
    error = (await delete_before(target, {partition: cursor.mirror.leader}, {partition: start}))[partition]
    if error is not None:
        raise error
    cursor.mirror.deleted_before(start)


async def keep_mirror_starts(
    cursors: Callable[[], Sequence[Cursor]], target: ClusterClient, ledger: Ledger, notice: Callable[[Notice], None]
) -> None:
    """Delete from mirrors with the source's offsets what the sources have deleted. Never returns."""
    refused: set[Cursor] = set()
    while True:
        await asyncio.sleep(_CHECK_EVERY)
        for cursor in [cursor for cursor in cursors() if cursor not in refused]:
            start = 0
            try:
                start = await _wanted_start(cursor, ledger)
                if start > cursor.mirror.start:
                    await delete_before_start(target, cursor, start)
            except WireError as error:
                if isinstance(error, BrokerError) and not error.transient:
                    refused.add(cursor)
                    text = f"the mirror should begin at {start}, as the source does, but DeleteRecords fails: {error}"
                    notice(Notice(cursor.key, "not-cut", 0, start, start, text))


async def _wanted_start(cursor: Cursor, ledger: Ledger) -> int:
    """Where a mirror should begin now: what is not copied yet must not be deleted."""
    copied = cursor.position.target if cursor.position is not None else 0
    start = cursor.source.start if cursor.mirror.preserves_offsets and cursor.source.start <= copied else 0
    if start > max(cursor.mirror.start, cursor.mirror.filler_end):
        partition = cursor.key.topic, cursor.key.partition
        known = await ledger.ask(partition, cursor.mirror.topic_id, lambda intervals: intervals.covering(start - 1))
        if known is not None and not known.kept:
            start = 0  # other offsets are there: what the source has deleted may be something else
    return min(max(start, cursor.mirror.filler_end), copied)


@lru_cache(maxsize=4)
def _batch(count: int, codec: int) -> Batch:
    builder = Builder(codec)
    for _ in range(count):
        builder.add(_FILLER)
    return builder.build(0, -1)
