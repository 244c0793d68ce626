"""Connect's REST API for the topics and offsets of a connector."""

from typing import Any

from fastapi import APIRouter, Request, Response

from heliograph.model.flow import SOURCE
from heliograph.rest.offset_bodies import check_entries, entries_of, offsets_body, wanted_offsets
from heliograph.rest.problems import table_of
from heliograph.service.connector_offsets import ConnectorOffsets
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors


def connector_offsets_api(connectors: Connectors, states: ConnectorStates) -> APIRouter:
    router = APIRouter(prefix="/connectors/{name}", tags=["Kafka Connect"])
    offsets = ConnectorOffsets(connectors, states)

    @router.get("/topics")
    async def get_topics(name: str) -> dict[str, Any]:
        return {name: {"topics": states.topics(name)}}

    @router.put("/topics/reset", status_code=202)
    async def reset_topics(name: str) -> Response:
        states.reset_topics(name)
        return Response(status_code=202)

    @router.get("/offsets")
    async def get_offsets(name: str) -> dict[str, Any]:
        known = await states.offsets(name)
        return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in known]}

    @router.patch("/offsets", openapi_extra=offsets_body())
    async def alter_offsets(name: str, request: Request) -> dict[str, str]:
        entries = entries_of(await table_of(request, with_numbers=True))
        offsets.check_stopped(name)
        part = connectors.part(name)
        check_entries(part, entries)
        cluster, _, _target = connectors.flow_name(name).partition("->")
        await offsets.alter(name, wanted_offsets(cluster, entries) if part == SOURCE else {})
        return {"message": "The offsets for this connector have been altered successfully"}

    @router.delete("/offsets")
    async def reset_offsets(name: str) -> dict[str, str]:
        await offsets.reset(name)
        return {"message": "The offsets for this connector have been reset successfully"}

    return router
