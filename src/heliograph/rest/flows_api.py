"""Heliograph's own API for flows: their state, their mirrors, single topics."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request

from heliograph.model.connect_records import PAUSED, RUNNING
from heliograph.rest.problems import caller_of
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors

_MAX_PROBLEMS = 200  # refusals and notices of a flow in one answer


def flows_api(connectors: Connectors, states: ConnectorStates, prefix: str) -> APIRouter:
    router = APIRouter(prefix=prefix, tags=["Heliograph"])

    def flow_status(flow: str) -> dict[str, Any]:
        return _flow_status(connectors, states, flow)

    async def set_states(flow: str, state: str) -> dict[str, Any]:
        for name in connectors.of_flow(flow):
            await connectors.set_state(name, state)
        return flow_status(flow)

    @router.get("/flows")
    async def flows(request: Request) -> list[dict[str, Any]]:
        """All flows: the states of their connectors, and the progress of copying."""
        return [flow_status(flow) for flow in connectors.flow_names() if caller_of(request).may_see(flow)]

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

    @router.post("/flows/{flow}/restart", status_code=202)
    async def restart(flow: str) -> dict[str, Any]:
        """Restart all connectors of a flow, and its leases one after the other."""
        for name in connectors.of_flow(flow):
            _status, tasks = states.status(name)
            connectors.restart(name, True, [task.id for task in tasks])
        return flow_status(flow)

    return router


def mirrors_api(connectors: Connectors, prefix: str) -> APIRouter:
    router = APIRouter(prefix=f"{prefix}/flows/{{flow}}", tags=["Heliograph"])

    @router.get("/mirrors")
    async def mirrors(
        flow: str,
        topic: Annotated[str, Query(description="Only the mirror of this topic.")] = "",
        state: Annotated[str, Query(description="Only mirrors with a partition in this state.")] = "",
        limit: Annotated[int, Query(description="At most so many mirrors.")] = 1000,
        order: Annotated[Literal["lag", "rate"], Query(description="Which mirrors come first.")] = "lag",
    ) -> list[dict[str, Any]]:
        """The mirrors of a flow: partitions by state, lag, rates, and why a partition is not copied."""
        connectors.of_flow(flow)
        deployed = connectors.deployed(flow)
        every = deployed.runner.view.mirrors() if deployed is not None and deployed.runner is not None else []
        chosen = [mirror for mirror in every if topic in ("", mirror.topic) and (not state or state in mirror.states)]
        chosen.sort(
            key=lambda mirror: (-((mirror.lag or 0) if order == "lag" else mirror.records_per_second), mirror.topic)
        )
        return [asdict(mirror) for mirror in chosen[: max(0, limit)]]

    @router.put("/topics/{topic}/pause", status_code=202)
    async def pause_topic(flow: str, topic: str) -> dict[str, Any]:
        """Pause copying of one topic."""
        return {"paused": await connectors.pause_topics(flow, [topic], True)}

    @router.put("/topics/{topic}/resume", status_code=202)
    async def resume_topic(flow: str, topic: str) -> dict[str, Any]:
        """Resume copying of one topic."""
        return {"paused": await connectors.pause_topics(flow, [topic], False)}

    return router


def _flow_status(connectors: Connectors, states: ConnectorStates, flow: str) -> dict[str, Any]:
    names = connectors.of_flow(flow)
    deployed = connectors.deployed(flow)
    status = (
        deployed.runner.view.status(_MAX_PROBLEMS) if deployed is not None and deployed.runner is not None else None
    )
    return {
        "name": flow,
        "connectors": {name: states.status(name)[0].state for name in names},
        "trouble": deployed.trouble if deployed is not None else "",
        "status": asdict(status) if status is not None else None,
    }
