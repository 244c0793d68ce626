"""A look at the mirror's last batch before copying on: is it ours, in its place, and what the source has there?

Done where the mirror's end is not what this run has seen acknowledged: at a run's start, and after a fault with batches
under way. An error in the books (a wrong interval, two copiers at once), a foreign writer and a source that was cut
back and written anew show here, not in the data. How to go on from there is in `divergence` and `foreign`.
"""

import asyncio
from collections.abc import Callable, Sequence

from heliograph.copy.cursor import Cursor
from heliograph.copy.divergence import go_on_after_cut, go_on_without_records
from heliograph.copy.foreign import go_on_after_others
from heliograph.copy.resumed import Clusters, Resumed
from heliograph.model.flow import Policies
from heliograph.model.intervals import NotLoaded
from heliograph.wire.batches import BadBatch, Batch
from heliograph.wire.errors import WireError
from heliograph.wire.recode import records_of

Lost = Callable[[Cursor, str, bool], None]


async def verified(found: Sequence[Resumed], clusters: Clusters, policies: Policies, lost: Lost) -> list[Resumed]:
    """Those that may go on; the others are refused, or put back with `lost`."""
    doubtful = [one for one in found if one.doubtful and not one.empty]
    originals, copies = await asyncio.gather(
        clusters.originals({one.read: last for one in doubtful if (last := one.last_source) is not None}),
        clusters.copies({one.written: one.own_end - 1 for one in doubtful}),
    )
    passed = []
    for one in found:
        if not one.doubtful:
            at = one.cursor.position
            one.epoch = at.epoch if at is not None and at == one.decision.position else -1
        elif one.empty:
            if not go_on_without_records(one, policies):
                continue
        elif not await _looked_up(one, copies.get(one.written), originals.get(one.read), clusters, policies, lost):
            continue
        passed.append(one)
    return passed


async def _looked_up(
    one: Resumed,
    copied: Batch | WireError | None,
    original: Batch | WireError | None,
    clusters: Clusters,
    policies: Policies,
    lost: Lost,
) -> bool:
    """Whether it passes, with all pages of intervals that it takes to tell."""
    while True:
        try:
            return await _passes(one, copied, original, clusters, policies, lost)
        except NotLoaded as missing:
            one.corrections.clear()
            await clusters.ledger.load(one.read, one.facts.mirror_id, missing.page)
            one.cursor.intervals = clusters.ledger.of(one.read, one.facts.mirror_id)


async def _passes(
    one: Resumed,
    copied: Batch | WireError | None,
    original: Batch | WireError | None,
    clusters: Clusters,
    policies: Policies,
    lost: Lost,
) -> bool:
    last = one.last_source
    beyond = last is not None and last >= one.facts.source_end
    expected = last is not None and not beyond
    if not isinstance(copied, Batch) or isinstance(original, WireError) or (expected and original is None):
        problem = copied if not isinstance(copied, Batch) else original
        lost(one.cursor, f"the last batch cannot be read: {problem}", False)
        return False
    try:
        if foreign := _foreign(one, copied):
            return await go_on_after_others(one, foreign, clusters, policies)
        same = None if last is None or original is None else same_records(one, copied, original)
        if beyond or one.cursor.cut_at is not None or same is False:
            return await go_on_after_cut(one, beyond or one.cursor.cut_at is not None, clusters, policies)
    except (WireError, BadBatch) as error:
        lost(one.cursor, f"the logs cannot be compared: {error}", True)
        return False
    if original is not None and last is not None and original.base_offset <= last:
        one.epoch = original.leader_epoch
    return True


def _foreign(one: Resumed, copied: Batch) -> str | None:
    """Why the mirror's last batch is not what we would have appended there, if it is not."""
    if copied.base_offset >= one.own_end:
        return None  # compaction has taken our last record, and only gaps are left behind it
    where = f"the last batch of the mirror ({copied.base_offset} to {copied.next_offset - 1})"
    if copied.producer_id != one.cursor.producer_id:
        return f"{where} was not written by this flow: somebody else writes to this mirror"
    interval = one.cursor.intervals.covering(copied.next_offset - 1)
    shift = interval.foreign_offsets_before if interval else 0
    if copied.next_offset != one.own_end or not one.in_its_place(copied, shift):
        return f"{where} is not where this flow would have put it: somebody else writes to this mirror"
    return None


def same_records(one: Resumed, copied: Batch, original: Batch) -> bool | None:
    """Whether the mirror's last batch holds what the source has at the same places; None where nothing is left to
    compare: a record that compaction has taken away since, on either side, is no evidence."""
    last = one.last_source
    ends_there = last is not None and original.next_offset == last + 1 and copied.magic == original.magic
    if ends_there and copied.same_records(original):
        return True
    there = {record.offset: record[1:] for record in records_of(original)}
    compared = [
        record[1:] == there[source]
        for record in records_of(copied)
        if (source := one.source_of(record.offset)) is not None and source in there
    ]
    return all(compared) if compared else None
