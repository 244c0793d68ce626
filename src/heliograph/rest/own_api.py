"""Heliograph's own API: flows as wholes, their mirrors, single topics, and what has happened."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from heliograph.model.connect_records import PAUSED, RUNNING
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors
from heliograph.service.events import Events

PREFIX = "/heliograph/v1"
_SHOWN = 200  # refusals and notices of a flow


def own_api(connectors: Connectors, states: ConnectorStates, events: Events) -> APIRouter:
    router = APIRouter(prefix=PREFIX, tags=["Heliograph"])

    def flow_status(flow: str) -> dict[str, Any]:
        names = connectors.of_flow(flow)
        deployed = connectors.deployed(flow)
        copies = deployed.runner.view.status(_SHOWN) if deployed is not None and deployed.runner is not None else None
        return {
            "name": flow,
            "connectors": {name: states.status(name)[0].state for name in names},
            "trouble": deployed.trouble if deployed is not None else "",
            "status": asdict(copies) if copies is not None else None,
        }

    @router.get("/flows")
    async def flows() -> list[dict[str, Any]]:
        """All flows: the states of their connectors, and how copying is doing."""
        return [flow_status(flow) for flow in connectors.flow_names()]

    @router.get("/flows/{flow}")
    async def get_flow(flow: str) -> dict[str, Any]:
        """One flow, named as in `A->B`."""
        return flow_status(flow)

    @router.put("/flows/{flow}/pause", status_code=202)
    async def pause(flow: str) -> dict[str, Any]:
        """Pause all connectors of a flow."""
        return await set_states(flow, PAUSED)

    @router.put("/flows/{flow}/resume", status_code=202)
    async def resume(flow: str) -> dict[str, Any]:
        """Resume all connectors of a flow."""
        return await set_states(flow, RUNNING)

    async def set_states(flow: str, state: str) -> dict[str, Any]:
        for name in connectors.of_flow(flow):
            await connectors.set_state(name, state)
        return flow_status(flow)

    @router.post("/flows/{flow}/restart", status_code=202)
    async def restart(flow: str) -> dict[str, Any]:
        """Look at everything anew, and have all leases begin again, one after the other."""
        for name in connectors.of_flow(flow):
            _own, tasks = states.status(name)
            connectors.restart(name, True, [task.id for task in tasks])
        return flow_status(flow)

    @router.get("/flows/{flow}/mirrors")
    async def mirrors(
        flow: str,
        topic: Annotated[str, Query(description="Only the mirror of this topic.")] = "",
        state: Annotated[str, Query(description="Only mirrors with a partition in this state.")] = "",
        limit: Annotated[int, Query(description="At most so many.")] = 1000,
        order: Annotated[Literal["lag", "rate"], Query(description="Which come first.")] = "lag",
    ) -> list[dict[str, Any]]:
        """The mirrors of a flow: partitions by state, lag, rates, and why something is not copied."""
        connectors.of_flow(flow)
        deployed = connectors.deployed(flow)
        found = deployed.runner.view.mirrors() if deployed is not None and deployed.runner is not None else []
        wanted = [one for one in found if topic in ("", one.topic) and (not state or state in one.states)]
        wanted.sort(key=lambda one: (-((one.lag or 0) if order == "lag" else one.records_per_second), one.topic))
        return [asdict(one) for one in wanted[: max(0, limit)]]

    @router.put("/flows/{flow}/topics/{topic}/pause", status_code=202)
    async def pause_topic(flow: str, topic: str) -> dict[str, Any]:
        """Have one topic not be copied for now."""
        return {"paused": await connectors.pause_topics(flow, [topic], True)}

    @router.put("/flows/{flow}/topics/{topic}/resume", status_code=202)
    async def resume_topic(flow: str, topic: str) -> dict[str, Any]:
        """Have it be copied again."""
        return {"paused": await connectors.pause_topics(flow, [topic], False)}

    @router.get("/events")
    async def get_events(
        flow: str = "",
        level: Annotated[str, Query(description="INFO, WARNING or ERROR.")] = "",
        topic: Annotated[str, Query(description="Only what is about this topic of the source.")] = "",
        limit: int = 100,
    ) -> list[dict[str, Any]]:
        """What has happened lately, the newest last: at most the last thousand things."""
        return [asdict(one) for one in events.last(limit, flow, level.upper(), topic)]

    return router
