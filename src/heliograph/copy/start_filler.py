"""Filler: records without content that move a mirror's end to where the source begins, and are cut off then; and
cutting mirrors so that they go on beginning where their sources begin.

A broker appends millions of them in a second. They are cut off as they are written, so that readers of a new mirror see
few of them, if any.
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
from heliograph.wire.append import append, takes_zstd
from heliograph.wire.batches import Batch
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, BrokerError, WireError
from heliograph.wire.offsets import delete_before
from heliograph.wire.recode import GZIP, ZSTD, Builder, DecodedRecord

log = logging.getLogger(__name__)

_AT_ONCE = 100_000
_CUT_AFTER = 10  # batches
_CUT_EVERY = 1.0
_NOTHING = DecodedRecord(0, -1, b"", None, [])  # with a key, or a compacted mirror would not take it
_TOO_LARGE = frozenset({MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE})


class DeleteRecordsRefused(WireError):
    """A mirror that is only compacted, or whose records we may not delete: filler would stay in it."""


async def fill(cursor: Cursor, target: ClusterClient, clock: LeaseClock) -> None:
    """Write filler up to the end of the gap that this cursor stands before, and cut it off. Raises a WireError if
    something comes in between; how far it got is for the next start to see."""
    gap, generation = cursor.gap, cursor.generation
    assert gap is not None
    assert gap.filler
    began, start, end = time.monotonic(), gap.source_offset, gap.source_offset + gap.count
    log.info("%s: %d offsets are filled so that the mirror begins at offset %d", cursor.key, gap.count, end)
    try:
        await cut(target, cursor, cursor.mirror.start)  # changes nothing, and tells whether it is allowed
    except BrokerError as error:
        if error.transient:
            raise
        raise DeleteRecordsRefused(f"nothing may be cut off the mirror ({error.name})") from error
    connection = await target.connection(cursor.mirror.leader)
    codec = ZSTD if takes_zstd(connection) else GZIP
    most, batches = _AT_ONCE, 0
    while cursor.sending.append_at < end:
        if clock.is_expired or cursor.generation != generation:
            raise WireError("the lease has ended")
        batch = _batch(min(most, end - cursor.sending.append_at), codec)
        header = cursor.sending.header(batch, cursor.sending.append_at)
        place = cursor.key.mirror, cursor.key.partition
        (answer,) = await append(connection, [(*place, (header, batch.records))], target.cluster.request_timeout)
        if answer.error in _TOO_LARGE and batch.count > 1:
            most = batch.count // 2
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
        if batches % _CUT_AFTER == 0 or cursor.sending.append_at == end:
            await cut(target, cursor, cursor.sending.append_at)
    log.info("%s: the mirror begins at offset %d, after %.1f s", cursor.key, end, time.monotonic() - began)


async def cut(target: ClusterClient, cursor: Cursor, at: int) -> None:
    """Have the mirror begin at this offset."""
    place = cursor.key.mirror, cursor.key.partition
    error = (await delete_before(target, {place: cursor.mirror.leader}, {place: at}))[place]
    if error is not None:
        raise error
    cursor.mirror.deleted_before(at)


async def keep_mirror_starts(
    cursors: Callable[[], Sequence[Cursor]], target: ClusterClient, ledger: Ledger, notice: Callable[[Notice], None]
) -> None:
    """A mirror with the source's offsets begins where the source begins. For ever."""
    refused: set[Cursor] = set()
    while True:
        await asyncio.sleep(_CUT_EVERY)
        for cursor in [cursor for cursor in cursors() if cursor not in refused]:
            at = 0
            try:
                at = await _beginning(cursor, ledger)
                if at > cursor.mirror.start:
                    await cut(target, cursor, at)
            except WireError as error:
                if isinstance(error, BrokerError) and not error.transient:
                    refused.add(cursor)
                    text = f"the mirror should begin at {at}, as the source does, but cannot be cut: {error}"
                    notice(Notice(cursor.key, "not-cut", 0, at, at, text))


async def _beginning(cursor: Cursor, ledger: Ledger) -> int:
    """Where a mirror may begin now: what is not copied yet must not be cut off."""
    copied = cursor.position.target if cursor.position is not None else 0
    start = cursor.source.start if cursor.mirror.preserves_offsets and cursor.source.start <= copied else 0
    if start > max(cursor.mirror.start, cursor.mirror.filler_end):
        place = cursor.key.topic, cursor.key.partition
        known = await ledger.ask(place, cursor.mirror.topic_id, lambda intervals: intervals.covering(start - 1))
        if known is not None and not known.kept:
            start = 0  # other offsets stand there: what the source has deleted may be something else
    return min(max(start, cursor.mirror.filler_end), copied)


@lru_cache(maxsize=4)
def _batch(count: int, codec: int) -> Batch:
    builder = Builder(codec)
    for _ in range(count):
        builder.add(_NOTHING)
    return builder.build(0, -1)
