"""Resuming: the one way from "I do not know where I am" to a position, for a start and after every fault.

Asks both clusters about all partitions that need it at once, applies the rule of `position`, has `verify` look at the
mirrors' last batches, and writes down the interval of a mirror that begins.
"""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

from heliograph.copy.cursor import Cursor
from heliograph.copy.ledger import Ledger
from heliograph.copy.position import Facts, NoGo, next_position
from heliograph.copy.verify import Resumed, verified
from heliograph.wire.cluster import ClusterClient, Metadata
from heliograph.wire.offsets import EARLIEST, LATEST, list_offsets


async def resume(
    cursors: Sequence[Cursor],
    source: ClusterClient,
    target: ClusterClient,
    ledger: Ledger,
    lost: Callable[[Cursor, str, bool], None],
) -> list[Cursor]:
    """Give each cursor its position, refuse it, or put it back with `lost`; answers with those that may copy."""
    read = [(cursor.key.topic, cursor.key.partition) for cursor in cursors]
    written = [(cursor.key.mirror, cursor.key.partition) for cursor in cursors]
    sources, mirrors = await asyncio.gather(
        source.metadata({topic for topic, _partition in read}),
        target.metadata({topic for topic, _partition in written}),
    )
    source_starts, source_ends, mirror_starts, mirror_ends = await asyncio.gather(
        list_offsets(source, sources.topics, read, EARLIEST, True),
        list_offsets(source, sources.topics, read, LATEST, True),
        list_offsets(target, mirrors.topics, written, EARLIEST, False),
        list_offsets(target, mirrors.topics, written, LATEST, False),
    )
    # After the offsets: whoever began this mirror before us then read an earlier start than we did, and wrote it down.
    await ledger.catch_up()
    found: list[Resumed] = []
    for cursor, here, there in zip(cursors, read, written, strict=True):
        first, end = source_starts[here], source_ends[here]
        mirror_first, mirror_end = mirror_starts[there], mirror_ends[there]
        ids = _id(sources, cursor.key.topic), _id(mirrors, cursor.key.mirror)
        if (
            isinstance(first, int)
            and isinstance(end, int)
            and isinstance(mirror_first, int)
            and isinstance(mirror_end, int)
        ):
            facts = Facts(first, end, mirror_first, mirror_end, *ids)
        else:
            said = next(one for one in (first, end, mirror_first, mirror_end) if not isinstance(one, int))
            lost(cursor, f"offsets cannot be read: {said}", False)
            continue
        decision = next_position(ledger.of((cursor.key.topic, cursor.key.partition)), facts)
        if isinstance(decision, NoGo):
            if decision.final:
                cursor.give_up(decision.reason, decision.text, decision.source_offset, facts.mirror_end)
            else:
                lost(cursor, decision.text, True)
            continue
        cursor.source_leader = sources.topics[cursor.key.topic].leaders[cursor.key.partition]
        cursor.target_leader = mirrors.topics[cursor.key.mirror].leaders[cursor.key.partition]
        cursor.source_id = sources.topics[cursor.key.topic].id
        cursor.source_end = facts.source_end
        found.append(Resumed(cursor, facts, decision.position, decision.new))
    passed = await verified(found, source, sources, target, mirrors, lost)
    await ledger.write([((one.cursor.key.topic, one.cursor.key.partition), one.new) for one, _ in passed if one.new])
    for one, epoch in passed:
        one.cursor.start(replace(one.position, epoch=epoch))
    return [one.cursor for one, _epoch in passed]


def _id(metadata: Metadata, topic: str) -> str:
    found: uuid.UUID = metadata.topics[topic].id
    return found.hex if found.int else ""
