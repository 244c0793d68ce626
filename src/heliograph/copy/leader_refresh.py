"""Asks regularly which brokers lead the partitions of a lease.

A leader that hands over says so itself. One that is cut off from its cluster does not know, and answers as if nothing
had happened.
"""

import asyncio
from collections.abc import Callable, Sequence

from heliograph.copy.callbacks import Callbacks
from heliograph.copy.counts import SOURCE
from heliograph.copy.cursor import Cursor, State
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.metadata import Topic

_SHORTEST = 1.0  # seconds between two requests


async def refresh_leaders(
    client: ClusterClient, side: str, cursors: Callable[[], Sequence[Cursor]], callbacks: Callbacks
) -> None:
    """Restarts the cursors whose leader on this side (SOURCE or TARGET) is another one by now. Never returns."""
    while True:
        await asyncio.sleep(max(client.cluster.connecting.metadata_max_age, _SHORTEST))
        copying = {cursor: cursor.generation for cursor in cursors() if cursor.state is State.COPYING}
        if not copying:
            continue
        try:
            topics = (await client.metadata({_topic_of(cursor, side) for cursor in copying})).topics
        except WireError:
            continue  # whoever needs the cluster now reports that
        for cursor, generation in copying.items():
            known, current = _leader_of(cursor, side), _current_leader(cursor, topics.get(_topic_of(cursor, side)))
            if cursor.generation == generation and current not in (-1, known):
                callbacks.restart(cursor, f"{side}: the leader is broker {current} now, not {known}", False)


def _topic_of(cursor: Cursor, side: str) -> str:
    return cursor.key.topic if side == SOURCE else cursor.key.mirror


def _leader_of(cursor: Cursor, side: str) -> int:
    return cursor.source.leader if side == SOURCE else cursor.mirror.leader


def _current_leader(cursor: Cursor, topic: Topic | None) -> int:
    return -1 if topic is None else topic.leaders.get(cursor.key.partition, -1)
