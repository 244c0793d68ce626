"""A look at the mirror's last batch before copying on: is it ours, in its place, and what the source has there?

Done where the mirror's end is not what this run has seen acknowledged: at a run's start, and after a fault with batches
under way. An error in the books (a wrong interval, two first starts at once) shows here, not in the data.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heliograph.copy.cursor import Cursor
from heliograph.copy.position import Facts
from heliograph.copy.work import Position
from heliograph.model.intervals import Interval
from heliograph.wire.batches import Batch, sequence, split
from heliograph.wire.cluster import ClusterClient, Metadata
from heliograph.wire.errors import WireError
from heliograph.wire.fetch import Wanted, fetch

_LAST_BATCH = 1 << 20
_AT_ONCE = 32 << 20
Lost = Callable[[Cursor, str, bool], None]
Place = tuple[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Resumed:
    """A cursor with the position that was found for it."""

    cursor: Cursor
    facts: Facts
    position: Position
    new: Interval | None

    @property
    def read(self) -> Place:
        return self.cursor.key.topic, self.cursor.key.partition

    @property
    def written(self) -> Place:
        return self.cursor.key.mirror, self.cursor.key.partition


async def verified(
    found: Sequence[Resumed],
    source: ClusterClient,
    sources: Metadata,
    target: ClusterClient,
    mirrors: Metadata,
    lost: Lost,
) -> list[tuple[Resumed, int]]:
    """Those that may go on, with the leader epoch of the source's last copied record; the others are refused, or put
    back with `lost`."""
    doubtful = [
        one for one in found if one.position != one.cursor.position and one.facts.mirror_end > one.facts.mirror_start
    ]
    originals, copies = await asyncio.gather(
        # What retention has taken from the source since cannot be compared.
        _batches(source, sources, {one.read: one.position.source - 1 for one in doubtful if _still_there(one)}),
        _batches(target, mirrors, {one.written: one.facts.mirror_end - 1 for one in doubtful}),
    )
    stopped = set()
    for one in doubtful:
        copied, original = copies.get(one.written), originals.get(one.read)
        if not isinstance(copied, Batch) or (_still_there(one) and not isinstance(original, Batch)):
            problem = copied if not isinstance(copied, Batch) else original
            lost(one.cursor, f"the last batch cannot be read: {problem}", False)
            stopped.add(one)
            continue
        objection = _objection(one, copied, original if isinstance(original, Batch) else None)
        if objection is not None:
            one.cursor.give_up(*objection, one.position.source, one.facts.mirror_end)
            stopped.add(one)
    return [(one, _epoch(one, originals.get(one.read))) for one in found if one not in stopped]


def _epoch(one: Resumed, original: Batch | WireError | None) -> int:
    if isinstance(original, Batch) and original.base_offset < one.position.source:
        return original.leader_epoch
    return one.cursor.position.epoch if one.position == one.cursor.position else -1


def _still_there(one: Resumed) -> bool:
    return one.position.source > one.facts.source_start


def _objection(one: Resumed, copied: Batch, original: Batch | None) -> tuple[str, str] | None:
    where = f"the last batch of the mirror ({copied.base_offset} to {copied.next_offset - 1})"
    if copied.producer_id != one.cursor.producer_id:
        return "foreign-writer", f"{where} was not written by this flow: somebody else writes to this mirror"
    if copied.next_offset != one.facts.mirror_end or copied.base_sequence != sequence(copied.base_offset):
        return (
            "foreign-writer",
            f"{where} is not where this flow would have put it: somebody else writes to this mirror",
        )
    # A batch that compaction has thinned out or taken away since, on either side, is no evidence against the other;
    # nor is one that the target has compressed in its own way.
    if (
        original is not None
        and original.magic == 2
        and original.base_offset < one.position.source
        and original.dense
        and copied.dense
        and original.codec == copied.codec
        and (original.next_offset != one.position.source or not copied.same_records(original))
    ):
        return "not-a-copy", f"{where} is not what the source holds before offset {one.position.source}"
    return None


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
                answers = await fetch(connection, asks, max_bytes=_AT_ONCE, min_bytes=1, max_wait=0.5)
                got = {(one.topic, one.partition): _first_alone(one.data) for one in answers if one.data}
                # A broker gives a batch beyond the size limits only to the first partition of a request, so ask
                # again with another one in front; when none came at all, none will.
                if not any(got.values()):
                    return
                found.update({place: batch for place, batch in got.items() if batch is not None})
                asks = [one for one in asks if (one.topic, one.partition) not in found]
        except WireError as error:
            found.update({(one.topic, one.partition): error for one in asks})

    await asyncio.gather(*(ask(leader, asks) for leader, asks in by_leader.items()))
    return found


def _first_alone(data: bytes) -> Batch | None:
    """The first batch, without the rest of the chunk in memory behind it."""
    first = next(split(data), None)
    return None if first is None else replace(first, data=memoryview(bytes(first.data)))
