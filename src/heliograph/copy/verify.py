"""A look at the mirror's last batch before copying on: is it ours, in its place, and what the source has there?

Done where the mirror's end is not what this run has seen acknowledged: at a run's start, and after a fault with batches
under way. An error in the books (a wrong interval, two first starts at once), a foreign writer and a source that was
cut back and written anew show here, not in the data.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from heliograph.copy.cursor import Cursor
from heliograph.copy.position import Facts, Go
from heliograph.copy.work import Position
from heliograph.model.flow import CONTINUE, Policies
from heliograph.model.intervals import Interval
from heliograph.wire.batches import BadBatch, Batch, sequence, split
from heliograph.wire.cluster import ClusterClient, Metadata
from heliograph.wire.errors import WireError
from heliograph.wire.fetch import READ_UNCOMMITTED, Limits, Wanted, fetch
from heliograph.wire.recode import records_of
from heliograph.wire.records import read_batches

_LAST_BATCH = 1 << 20
_AT_ONCE = Limits(32 << 20)
_SEQUENCES = 1 << 31
Lost = Callable[[Cursor, str, bool], None]
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Clusters:
    """Both sides, and what their metadata said."""

    source: ClusterClient
    sources: Metadata
    target: ClusterClient
    mirrors: Metadata

    async def originals(self, wanted: dict[Place, int]) -> "dict[Place, Batch | WireError | None]":
        return await _batches(self.source, self.sources, wanted)

    async def copies(self, wanted: dict[Place, int]) -> "dict[Place, Batch | WireError | None]":
        return await _batches(self.target, self.mirrors, wanted)


@dataclass(slots=True, eq=False)
class Resumed:
    """A cursor with the position that was found for it, and what must be put right before it goes on."""

    cursor: Cursor
    facts: Facts
    decision: Go
    epoch: int = -1  # leader epoch of the source's last copied record
    corrections: list[Interval] = field(default_factory=list)

    @property
    def read(self) -> Place:
        return self.cursor.key.topic, self.cursor.key.partition

    @property
    def written(self) -> Place:
        return self.cursor.key.mirror, self.cursor.key.partition

    def source_of(self, mirror_offset: int) -> int | None:
        """The source offset of a copied record; None where the source cannot have it any more."""
        interval = self.cursor.intervals.covering(mirror_offset)
        if interval is None or interval.source_id != self.facts.source_id:
            return None
        source = interval.source_of(mirror_offset)
        return source if source >= self.facts.source_start else None

    @property
    def last_source(self) -> int | None:
        return self.source_of(self.facts.mirror_end - 1)

    @property
    def doubtful(self) -> bool:
        return self.facts.mirror_end > self.facts.mirror_start and (
            self.decision.position != self.cursor.position or self.decision.diverged or self.cursor.cut_at is not None
        )


async def verified(found: Sequence[Resumed], clusters: Clusters, policies: Policies, lost: Lost) -> list[Resumed]:
    """Those that may go on; the others are refused, or put back with `lost`."""
    doubtful = [one for one in found if one.doubtful]
    originals, copies = await asyncio.gather(
        clusters.originals({one.read: last for one in doubtful if (last := one.last_source) is not None}),
        clusters.copies({one.written: one.facts.mirror_end - 1 for one in doubtful}),
    )
    passed = []
    for one in found:
        if not one.doubtful:
            at = one.cursor.position
            one.epoch = at.epoch if at is not None and at == one.decision.position else -1
        elif not await _passes(one, copies.get(one.written), originals.get(one.read), clusters, policies, lost):
            continue
        passed.append(one)
    return passed


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
            return await _go_on_after_others(one, foreign, clusters, policies)
        agree = None if last is None or original is None else same_last_record(copied, original, last)
        if beyond or one.cursor.cut_at is not None or agree is False:
            return await _go_on_after_cut(one, beyond, clusters, policies)
    except (WireError, BadBatch) as error:
        lost(one.cursor, f"the logs cannot be compared: {error}", True)
        return False
    if original is not None and last is not None and original.base_offset <= last:
        one.epoch = original.leader_epoch
    return True


def _foreign(one: Resumed, copied: Batch) -> str | None:
    """Why the mirror's last batch is not what we would have appended there, if it is not."""
    where = f"the last batch of the mirror ({copied.base_offset} to {copied.next_offset - 1})"
    if copied.producer_id != one.cursor.producer_id:
        return f"{where} was not written by this flow: somebody else writes to this mirror"
    interval = one.cursor.intervals.covering(copied.base_offset)
    shift = interval.shift if interval else 0
    if copied.next_offset != one.facts.mirror_end or copied.base_sequence != sequence(copied.base_offset - shift):
        return f"{where} is not where this flow would have put it: somebody else writes to this mirror"
    return None


def same_last_record(copied: Batch, original: Batch, source_offset: int) -> bool | None:
    """Whether the last record of `copied` is the one at this source offset; None where one of them is gone."""
    if original.next_offset == source_offset + 1 and copied.magic == original.magic and copied.same_records(original):
        return True
    mirrored = [one for one in records_of(copied) if one.offset == copied.next_offset - 1]
    source = [one for one in records_of(original) if one.offset == source_offset]
    if not mirrored or not source:
        return None  # a record that compaction has taken away since, on either side, is no evidence
    return mirrored[0][1:] == source[0][1:]


# --- somebody else has written to the mirror ---------------------------------------------------------------------


async def _go_on_after_others(one: Resumed, why: str, clusters: Clusters, policies: Policies) -> bool:
    """Go through what was appended since the last known place: batches with our producer id are ours, wherever they
    landed, and their sequence numbers tell what they hold."""
    cursor, end = one.cursor, one.facts.mirror_end
    if policies.foreign_writer != CONTINUE:
        cursor.give_up("foreign-writer", why, one.decision.position.source, end)
        return False
    known = cursor.intervals.covering(end)
    start = max(known.target if known else 0, one.facts.mirror_start)
    shift = known.shift if known else 0
    planned = start  # where our next batch should have landed
    foreign = 0
    topic = clusters.mirrors.topics[cursor.key.mirror]
    async for batch in read_batches(clusters.target, topic, cursor.key.partition, start, end):
        if batch.producer_id != cursor.producer_id:
            foreign += batch.next_offset - max(batch.base_offset, start)
            continue
        intended = batch.base_sequence + shift
        intended += -(-(planned - intended) // _SEQUENCES) * _SEQUENCES if intended < planned else 0
        for part in cursor.intervals.within(intended, intended + batch.last_offset_delta + 1):
            moved = batch.base_offset - intended
            if moved:
                one.corrections.append(
                    Interval(part.target + moved, part.source, part.count, part.source_id, shift + moved)
                )
        planned = intended + batch.last_offset_delta + 1
    following = cursor.intervals.covering(planned)
    if following is None:
        cursor.give_up("foreign-writer", why, one.decision.position.source, end)
        return False
    new_shift = shift + end - planned
    source = following.source_of(planned)
    new = Interval(end, source, 0, one.facts.source_id, new_shift)
    text = f"somebody else has written {foreign} records to this mirror; copying goes on behind them"
    one.decision = Go(Position(source, end), new, new_shift, event=("foreign-writer", foreign, text))
    return True


# --- the source has lost its end, and perhaps got another ----------------------------------------------------------


async def _go_on_after_cut(one: Resumed, beyond: bool, clusters: Clusters, policies: Policies) -> bool:
    """Find the place up to which both logs hold the same, and go on from there."""
    cursor, facts = one.cursor, one.facts
    at = one.decision.position
    cut = beyond or cursor.cut_at is not None
    if cut:
        ends = facts.source_end if cursor.cut_at is None else cursor.cut_at
        reason = "source-truncated"
        text = f"the source was cut back to offset {ends}; the mirror holds records that the source has lost"
    elif facts.source_id:
        reason = "not-a-copy"
        text = f"the mirror's last record is not what the source holds before offset {at.source}"
    else:
        reason = "recreated-topic"
        text = "the source topic is another one than the mirror was copied from"
    if (policies.recreated_topic if reason == "recreated-topic" else policies.data_loss) != CONTINUE:
        cursor.give_up(reason, text, at.source, facts.mirror_end)
        return False
    common = await _common_end(one, clusters)
    if common > facts.mirror_start:
        last = one.source_of(common - 1)
        source = facts.source_start if last is None else last + 1
    elif reason == "not-a-copy":
        cursor.give_up(reason, text, at.source, facts.mirror_end)
        return False
    else:
        source = facts.source_start
    extra = facts.mirror_end - common
    new = Interval(facts.mirror_end, source, 0, facts.source_id, one.decision.shift)
    said = f"{text}; {extra} records in the mirror, from {common} on, are not in the source; goes on from {source}"
    event = ("source-truncated" if reason == "not-a-copy" else reason, extra, said)
    one.decision = Go(Position(source, facts.mirror_end), new, one.decision.shift, event=event)
    return True


async def _common_end(one: Resumed, clusters: Clusters) -> int:
    """The mirror offset up to which the mirror holds what the source holds: logs part once, so halving finds it."""
    low, high = one.facts.mirror_start, one.facts.mirror_end
    while low < high:
        middle = (low + high) // 2
        source = one.source_of(middle)
        if source is None:
            low = middle + 1  # older than anything the source still has
            continue
        if source >= one.facts.source_end:
            high = middle
            continue
        copies = await clusters.copies({one.written: middle})
        originals = await clusters.originals({one.read: source})
        copied, original = copies.get(one.written), originals.get(one.read)
        if not isinstance(copied, Batch) or not isinstance(original, Batch):
            raise WireError(f"mirror offset {middle} or source offset {source} cannot be read")
        mirrored = [record[1:] for record in records_of(copied) if record.offset == middle]
        there = [record[1:] for record in records_of(original) if record.offset == source]
        if mirrored and there and mirrored != there:
            high = middle
        else:
            low = middle + 1
    return low


# --- reading single batches ----------------------------------------------------------------------------------------


async def _batches(
    client: ClusterClient, metadata: Metadata, wanted: dict[Place, int]
) -> dict[Place, Batch | WireError | None]:
    """The batches that hold the given offsets; None or an error where a leader does not give one."""
    by_leader: dict[int, list[Wanted]] = {}
    for (topic, partition), offset in wanted.items():
        known = metadata.topics[topic]
        by_leader.setdefault(known.leaders[partition], []).append(
            Wanted(topic, known.id, partition, offset, _LAST_BATCH)
        )
    found: dict[Place, Batch | WireError | None] = {}

    async def ask(leader: int, asks: list[Wanted]) -> None:
        try:
            connection = await client.to(leader)
            while asks:
                answers = await fetch(connection, asks, _AT_ONCE, READ_UNCOMMITTED)
                got = {
                    (one.topic, one.partition): _holding(one.data, wanted[one.topic, one.partition])
                    for one in answers
                    if one.data
                }
                # A broker gives a batch beyond the size limits only to the first partition of a request, so ask
                # again with another one in front; when none came at all, none will.
                if not any(got.values()):
                    return
                found.update({place: batch for place, batch in got.items() if batch is not None})
                asks = [one for one in asks if one.place not in found]
        except WireError as error:
            found.update({one.place: error for one in asks})

    await asyncio.gather(*(ask(leader, asks) for leader, asks in by_leader.items()))
    return found


def _holding(data: bytes, offset: int) -> Batch | None:
    """The first batch that does not end before an offset, without the rest of the chunk in memory behind it."""
    for batch in split(data):
        if batch.next_offset > offset:
            return batch._replace(data=memoryview(bytes(batch.data)))
    return None
