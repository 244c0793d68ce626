"""Whether MirrorMaker 2 runs: its workers are a group on the target, and a Connect cluster stores the states of its
connectors in a topic.

In dedicated mode a group with members is MM2. The workers of a Connect cluster may run other connectors, and MM2's may
be stopped while they run.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from heliograph.model.connect_records import PAUSED, STOPPED, connector_states
from heliograph.model.flow import Flow
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.consumer_groups import DEAD, EMPTY, group_states
from heliograph.wire.coordinators import GROUP, coordinators
from heliograph.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, BrokerError
from heliograph.wire.records import own_topic, read_all

log = logging.getLogger(__name__)

_SESSION_TIMEOUT = 30.0  # of a Connect worker: 10 s by default


class StillRunning(Exception):
    """MirrorMaker 2, or a Connect worker, is running for the same flow."""


def workers_group(flow: Flow) -> str:
    """The group of MM2's workers on the target."""
    return flow.connect_offsets.group or f"{flow.source.alias}-mm2"


async def wait_for_mm2_to_stop(flow: Flow, target: ClusterClient) -> None:
    """A worker that was killed stays in its group until its session times out. Raises StillRunning if MM2 runs on."""
    group, connector = workers_group(flow), flow.connect_offsets.connector
    # Without Describe on it, a group is not listed, as if MM2 did not run.
    coordinator = (await coordinators(target, [group], GROUP))[group]
    if isinstance(coordinator, BrokerError) and coordinator.forbidden:
        raise coordinator
    if found := await _until_empty(lambda: _running(flow, target), f"{flow.name}: waiting for MirrorMaker 2 to stop"):
        running = f"MirrorMaker 2 is still running for {flow.name} ({found})"
        stop = "stop its processes first"
        if flow.connect_offsets.status_topic:
            stop = (
                f"stop the connector first: PUT /connectors/{connector}/stop on its Connect cluster, or with Strimzi "
                "'state: stopped' of the connector or 'replicas: 0' of the resource"
            )
        raise StillRunning(f"{running}: two cannot write to the same mirrors, so {stop}")


async def _running(flow: Flow, target: ClusterClient) -> str:
    """What runs; empty if nothing of MM2 does."""
    group = workers_group(flow)
    state = (await group_states(target, [group]))[group]
    if state in (EMPTY, DEAD):
        return ""
    workers = f"its group {group} on {flow.target.alias}"
    if not flow.connect_offsets.status_topic:
        return f"{workers} is in state {state}"
    connector = flow.connect_offsets.connector
    own, tasks = await _connector_states(target, flow.connect_offsets.status_topic, connector)
    if own not in ("", PAUSED, STOPPED):
        return f"{workers} runs the connector {connector}, which is {own}"
    # A stopped connector may keep statuses of tasks that it no longer has, such as UNASSIGNED.
    if busy := sorted({"RUNNING", "RESTARTING"} & tasks):
        return f"{workers} runs tasks of the connector {connector}, which are {busy[0]}"
    return ""


async def _connector_states(client: ClusterClient, name: str, connector: str) -> tuple[str, set[str]]:
    """The state of a connector, empty if it has none, and those of its tasks."""
    try:
        topic = await own_topic(client, name)
    except BrokerError as error:
        if error.code == UNKNOWN_TOPIC_OR_PARTITION:
            return "", set()
        raise
    latest: dict[bytes, bytes | None] = {}
    for partition in topic.leaders:
        async for record in read_all(client, topic, partition):
            if record.key is not None:
                latest[record.key] = record.value
    return connector_states(latest, connector)


async def until_empty(client: ClusterClient, group: str, waiting: str) -> str:
    """Waits until a group has no members, for as long as killed members stay in it. Returns its state if it still has
    some, else an empty string."""

    async def state() -> str:
        found = (await group_states(client, [group]))[group]
        return "" if found in (EMPTY, DEAD) else found

    return await _until_empty(state, waiting)


async def _until_empty(state: Callable[[], Awaitable[str]], waiting: str) -> str:
    """The last result of `state`, which is empty unless killed workers would be gone by now."""
    deadline = time.monotonic() + _SESSION_TIMEOUT
    waited = False
    while (found := await state()) and time.monotonic() <= deadline:
        if not waited:
            log.info("%s (%s)", waiting, found)
            waited = True
        await asyncio.sleep(0.5)
    return found
