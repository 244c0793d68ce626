"""Who coordinates a group or a transactional id."""

import asyncio
from collections.abc import Collection
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import COORDINATOR_MOVES, BrokerError, WireError

GROUP, TRANSACTION = 0, 1
_FIND_COORDINATOR = 10
TRIES, PAUSE = 25, 0.2


async def coordinators(client: ClusterClient, names: Collection[str], kind: int) -> dict[str, int | WireError]:
    """The broker for each. The first question on a new cluster makes it create the topic for the answers."""
    found: dict[str, int | WireError] = {}
    for _ in range(TRIES):
        open_ones = [name for name in names if not isinstance(found.get(name), int)]
        found.update(await _ask(client, open_ones, kind))
        if not any(isinstance(one, BrokerError) and one.code in COORDINATOR_MOVES for one in found.values()):
            break
        await asyncio.sleep(PAUSE)
    return found


async def _ask(client: ClusterClient, names: Collection[str], kind: int) -> dict[str, int | WireError]:
    if not names:
        return {}
    await client.metadata([])  # knows every broker that may be named
    connection = await client.connection(next(iter(client.brokers)))
    if connection.version(_FIND_COORDINATOR, 4) >= 4:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(names))
        answer = await connection.request(request, newest=4)
        return {one.key: _node(one, kind) for one in answer.coordinators}
    found: dict[str, int | WireError] = {}
    for name in names:
        answer = await connection.request(FindCoordinatorRequest(key=name, key_type=kind), newest=3)
        found[name] = _node(answer, kind)
    return found


def _node(answer: Any, kind: int) -> int | WireError:
    what = "transaction coordinator" if kind == TRANSACTION else "group coordinator"
    return BrokerError(answer.error_code, what) if answer.error_code else int(answer.node_id)
