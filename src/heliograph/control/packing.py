"""Packing the ledger: entries of its journal become pages and records of its index; old pages are pruned.

A crash at any point leaves the old form or the new one, and another process that packs at the same time does no harm:
pages are written first, then the index records that name them, then the offset from which to read the journal. Pages
without an index record do not count; of two index records for one mirror partition the one whose author had read
further counts. Pages that are not needed any more are deleted in the next round, when no valid record can name them.
"""

import asyncio
import logging
import random
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy  # noqa: F401  # pages need it; imported with the first of them it would delay a running driver by 0.1 s

from heliograph.copy.ledger import Ledger
from heliograph.copy.ledger_state import LedgerState
from heliograph.model.flow import Flow
from heliograph.model.ledger_records import (
    INDEX,
    JOURNAL,
    PAGES,
    Packed,
    Start,
    page_key,
    page_value,
    to_index,
)
from heliograph.model.pages import IN_INDEX, Page
from heliograph.model.partitions import TopicPartition
from heliograph.model.pruning import past_pages
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError, lacking
from heliograph.wire.metadata import Topic, id_text
from heliograph.wire.offsets import EARLIEST, delete_before, list_offsets
from heliograph.wire.records import Record, append_records, now, write_records

log = logging.getLogger(__name__)

_GONE_AFTER = 3600 * 1000  # ms without an entry: a broker may not know a new topic yet
_ENTRIES = 10_000  # in the journal, which are read within a second
_ENTRIES_EACH = 50  # and of each mirror partition
_INTERVALS = 200_000
_EVERY = 600.0
_PAGES_AT_ONCE = 2000  # dropped from the index: their keys are in one record
# Packed entries stay in the journal for a while: leases that read it need not read the index again.
_TRIM_AFTER = 300.0


_MirrorState = tuple[TopicPartition, str, LedgerState]  # with the mirror's topic id
_Due = tuple[TopicPartition, str, LedgerState, list[Page] | None]


class Packer:
    """Packs the ledger of one flow now and then."""

    def __init__(self, flow: Flow, source: ClusterClient, target: ClusterClient, ledger: Ledger) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._ledger = ledger
        self._packed = time.monotonic()
        self._not_due_at = (-1, 0)  # what was read of the journal when nothing was to be packed yet
        self._is_behind = False  # whether something was to be packed later
        self._trims: list[tuple[float, int]] = []  # time, and journal offset that was packed up to
        self._warned_of_trimming = False

    async def pack_if_due(self) -> int:
        """Packs if the journal is long, or was not packed for long; returns the number of mirror partitions packed."""
        ledger = self._ledger
        await ledger.catch_up()
        waited = time.monotonic() - self._packed >= _EVERY
        read = (ledger.next_offset, ledger.truncations)
        if read == self._not_due_at and not (waited and self._is_behind):
            return 0  # nothing new: to look at thousands of partitions takes its time
        behind = [state for _partition, _mirror_id, state in _all(ledger) if _is_behind(state)]
        unread = ledger.next_offset - ledger.index.start.journal
        unpacked = sum(page.size for state in behind for page in state.intervals.pages if page.location == IN_INDEX)
        # The cost of packing grows with the partitions, the cost of reading the journal with its entries.
        is_long = unread >= _ENTRIES + _ENTRIES_EACH * len(behind)
        lost = any(state.era > (state.packed.era if state.packed is not None else 0) for state in behind)
        if lost or not ledger.is_converted or is_long or unpacked >= _INTERVALS or (behind and waited):
            return await self.pack()
        self._not_due_at, self._is_behind = read, bool(behind)
        return 0

    async def pack(self) -> int:
        """Packs the journal; returns the number of mirror partitions packed."""
        ledger = self._ledger
        async with ledger.reading:
            topic = await ledger.catch_up_locked()
            due = [row for row in _all(ledger) if _is_behind(row[2]) or not ledger.is_converted]
            await self._write(topic, [(partition, mirror_id, state, None) for partition, mirror_id, state in due])
            start = Start(ledger.next_offset, max(ledger.earlier_end, ledger.index.start.converted))
            if start != ledger.index.start:
                await write_records(self._target, topic, INDEX, [Record(0, now(), *start.to_record())])
                ledger.index.start, ledger.is_converted = start, True
            self._packed = time.monotonic()
            self._trims.append((self._packed, start.journal))
        await self._trim(topic)
        return len(due)

    async def prune(self) -> int:
        """Drops intervals that neither source nor mirror need any more; returns the number of mirror partitions."""
        ledger = self._ledger
        async with ledger.reading:
            topic = await ledger.catch_up_locked()
            cuts, gone = await self._past(_all(ledger))
            await self._write(topic, cuts)
            await self._forget(topic, gone)
            return len(cuts) + len(gone)

    # --- pruning --------------------------------------------------------------------------------------------------

    async def _past(self, states: Sequence[_MirrorState]) -> tuple[list[_Due], list[_MirrorState]]:
        """Mirror partitions that need fewer pages, with these; and mirrors that were replaced."""
        partitions = {partition for partition, _mirror_id, _state in states}
        if not partitions:
            return [], []
        mirror_of = {partition: (self._flow.mirror_name(partition[0]), partition[1]) for partition in partitions}
        sources, mirrors = await asyncio.gather(
            self._source.metadata({topic for topic, _partition in partitions}),
            self._target.metadata({mirror for mirror, _partition in mirror_of.values()}),
        )
        source_starts, mirror_starts = await asyncio.gather(
            list_offsets(self._source, sources.topics, partitions, EARLIEST, False),
            list_offsets(self._target, mirrors.topics, mirror_of.values(), EARLIEST, False),
        )
        gone_before = now() - _GONE_AFTER
        cuts: list[_Due] = []
        gone: list[_MirrorState] = []
        for partition, mirror_id, state in states:
            topic, mirror = sources.topics[partition[0]], mirrors.topics[mirror_of[partition][0]]
            pages = state.intervals.packed()
            await asyncio.sleep(0)  # there may be thousands
            if topic.error == mirror.error == UNKNOWN_TOPIC_OR_PARTITION and state.time < gone_before:
                if len(pages) > 1:
                    cuts.append((partition, mirror_id, state, pages[min(len(pages) - 1, _PAGES_AT_ONCE) :]))
                continue
            if topic.error or mirror.error:
                continue
            present = self._ledger.states[partition].get(id_text(mirror.id))
            if mirror_id != id_text(mirror.id):
                # Not one that was written to since the present mirror began: then our metadata may be out of date.
                if present is not None and (present.era, present.since) > (state.era, state.written):
                    gone.append((partition, mirror_id, state))
                continue
            source_start, mirror_start = source_starts[partition], mirror_starts[mirror_of[partition]]
            if isinstance(source_start, int) and isinstance(mirror_start, int):
                past = past_pages(pages, mirror_start, source_start, id_text(topic.id))
                if past:
                    cuts.append((partition, mirror_id, state, pages[min(past, _PAGES_AT_ONCE) :]))
        return cuts, gone

    # --- writing --------------------------------------------------------------------------------------------------

    async def _write(self, topic: Topic, due: Sequence[_Due]) -> None:
        """Writes pages and index records of these mirror partitions, with other pages where some are given."""
        laid_out = []
        for partition, mirror_id, state, pages in due:
            laid_out.append((partition, mirror_id, state, state.intervals.packed() if pages is None else pages))
            await asyncio.sleep(0)  # there may be thousands
        to_store = [
            (number, at)
            for number, (_partition, _mirror_id, state, pages) in enumerate(laid_out)
            for at in _pages_to_store(pages, state.intervals.page_size)
        ]
        stored = []
        for number, at in to_store:
            partition, mirror_id, _state, pages = laid_out[number]
            pages[at] = replace(pages[at], tag=random.getrandbits(31))
            key = page_key(partition, mirror_id, pages[at])
            stored.append(Record(0, now(), key.encode(), page_value(pages[at])))
        offsets = await append_records(self._target, topic, PAGES, stored)
        for (number, at), offset in zip(to_store, offsets, strict=True):
            pages = laid_out[number][3]
            pages[at] = replace(pages[at], location=offset, data=b"")
        before = [state.packed for _partition, _mirror_id, state, _pages in laid_out if state.packed is not None]
        await self._delete(topic, PAGES, [key.encode() for packed in before for key in packed.unused])
        packed = [_packed(*row) for row in laid_out]
        records = [Record(0, now(), entry.key, to_index(entry)) for entry in packed]
        await write_records(self._target, topic, INDEX, records)
        for new, (_partition, _mirror_id, state, pages) in zip(packed, laid_out, strict=True):
            state.packed = new
            state.intervals.use_pages(pages)
        await self._delete(topic, INDEX, [*(entry.key for entry in before), *self._ledger.index.beaten])
        self._ledger.index.beaten.clear()

    async def _forget(self, topic: Topic, gone: Sequence[_MirrorState]) -> None:
        keys = [state.packed.key for _partition, _mirror_id, state in gone if state.packed is not None]
        await self._delete(topic, INDEX, keys)
        pages = [
            page_key(partition, mirror_id, page).encode()
            for partition, mirror_id, state in gone
            for page in state.intervals.pages
            if page.location >= 0
        ]
        await self._delete(topic, PAGES, pages)
        for partition, mirror_id, _state in gone:
            del self._ledger.states[partition][mirror_id]

    async def _delete(self, topic: Topic, partition: int, keys: Sequence[bytes]) -> None:
        await write_records(self._target, topic, partition, [Record(0, now(), key, None) for key in keys])

    async def _trim(self, topic: Topic) -> None:
        """Deletes the packed part of the journal, where that is allowed: nobody reads it."""
        old = [at for when, at in self._trims if time.monotonic() - when >= _TRIM_AFTER]
        if not old:
            return
        self._trims = [(when, at) for when, at in self._trims if time.monotonic() - when < _TRIM_AFTER]
        journal = topic.name, JOURNAL
        error = (await delete_before(self._target, {journal: topic.leaders[JOURNAL]}, {journal: old[-1]}))[journal]
        if error is not None:
            is_lasting = isinstance(error, BrokerError) and not error.transient
            level = logging.WARNING if is_lasting and not self._warned_of_trimming else logging.DEBUG
            self._warned_of_trimming |= is_lasting
            message = "%s: the journal of %s cannot be trimmed and keeps packed entries: %s%s"
            right = lacking(error.code, "Delete") if isinstance(error, BrokerError) else ""
            log.log(level, message, self._flow.name, topic.name, error, right)


def _all(ledger: Ledger) -> list[_MirrorState]:
    return [
        (partition, mirror_id, state)
        for partition, states in ledger.states.items()
        for mirror_id, state in states.items()
        if len(state.intervals)
    ]


def _is_behind(state: LedgerState) -> bool:
    """Whether the index lacks something that is known."""
    return state.packed is None or (state.packed.era, state.packed.written) < (state.era, state.written)


def _packed(partition: TopicPartition, mirror_id: str, state: LedgerState, pages: Sequence[Page]) -> Packed:
    before = state.packed
    used = {page.location for page in pages}
    unused = [
        page_key(partition, mirror_id, page)
        for page in (before.pages if before is not None else ())
        if page.location >= 0 and page.location not in used
    ]
    same = before is not None and (before.era, before.written) == (state.era, state.written)
    number = before.number + 1 if before is not None and same else 0
    fields = state.written, state.since, state.time, state.era, number, state.intervals.filler, tuple(unused)
    return Packed(partition, mirror_id, tuple(pages), *fields, state.author, state.written_by_others)


def _pages_to_store(pages: Sequence[Page], most: int) -> list[int]:
    """The pages that are moved out of the index: the first ones, until no more than a full page is left."""
    held = [at for at, page in enumerate(pages) if page.location == IN_INDEX]
    total, moved = sum(pages[at].size for at in held), []
    for at in held:
        if total <= most:
            break
        total -= pages[at].size
        moved.append(at)
    return moved
