"""Finds the coordinators of groups and transactional ids."""

import asyncio
from collections.abc import Collection
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest

from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.errors import COORDINATOR_MOVES, BrokerError, WireError, missing_right

GROUP, TRANSACTION = 0, 1
_FIND_COORDINATOR = 10
TRIES, PAUSE = 25, 0.2  # a coordinator that loads or moves is found within seconds


async def coordinators(client: ClusterClient, names: Collection[str], kind: int) -> dict[str, int | WireError]:
    """The broker of each name. The first request on a new cluster makes it create the topic of the coordinators."""
    nodes: dict[str, int | WireError] = {}
    for _ in range(TRIES):
        unknown = [name for name in names if not isinstance(nodes.get(name), int)]
        nodes.update(await _ask(client, unknown, kind))
        if not any(isinstance(node, BrokerError) and node.code in COORDINATOR_MOVES for node in nodes.values()):
            break
        await asyncio.sleep(PAUSE)
    return nodes


async def _ask(client: ClusterClient, names: Collection[str], kind: int) -> dict[str, int | WireError]:
    if not names:
        return {}
    await client.metadata([])  # the answer may name a broker that is new

    async def find(connection: Connection) -> dict[str, int | WireError]:
        if connection.version(_FIND_COORDINATOR, 4) >= 4:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(names))
            answer = await connection.request(request, newest=4)
            return {coordinator.key: _node(coordinator, kind, coordinator.key) for coordinator in answer.coordinators}
        nodes: dict[str, int | WireError] = {}
        for name in names:
            answer = await connection.request(FindCoordinatorRequest(key=name, key_type=kind), newest=3)
            nodes[name] = _node(answer, kind, name)
        return nodes

    return await client.ask_any(find)


def _node(answer: Any, kind: int, name: str) -> int | WireError:
    if not answer.error_code:
        return int(answer.node_id)
    what = "transaction coordinator" if kind == TRANSACTION else "group coordinator"
    resource = f"transactional id {name}" if kind == TRANSACTION else f"group {name}"
    return BrokerError(answer.error_code, missing_right(answer.error_code, "Describe", resource) or what)
