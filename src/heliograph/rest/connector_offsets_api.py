"""Connect's REST API for the topics and offsets of a connector."""

from typing import Any

from fastapi import APIRouter, Request, Response

from heliograph.model.connect_records import STOPPED
from heliograph.model.flow import SOURCE
from heliograph.rest.problems import Problem, json_body, table_of
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors

_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
    "connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
)
_LOG_IS_STATE = (
    "The offsets of {name} cannot be changed: Heliograph reads its position from the mirror itself, and records that "
    "the mirror already holds would be appended a second time. To copy a topic again from the beginning, stop the "
    "connector, delete the mirror and resume the connector"
)


def connector_offsets_api(connectors: Connectors, states: ConnectorStates) -> APIRouter:
    router = APIRouter(prefix="/connectors/{name}", tags=["Kafka Connect"])

    @router.get("/topics")
    async def get_topics(name: str) -> dict[str, Any]:
        return {name: {"topics": states.topics(name)}}

    @router.put("/topics/reset", status_code=202)
    async def reset_topics(name: str) -> Response:
        states.reset_topics(name)
        return Response(status_code=202)

    @router.get("/offsets")
    async def get_offsets(name: str) -> dict[str, Any]:
        offsets = await states.offsets(name)
        return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in offsets]}

    @router.patch("/offsets", openapi_extra=json_body())
    async def alter_offsets(name: str, request: Request) -> dict[str, str]:
        if not (await table_of(request)).get("offsets"):
            raise Problem(400, "Partitions / offsets need to be provided for an alter offsets request")
        _check_offsets_can_change(connectors, states, name)
        return {"message": "The offsets for this connector have been altered successfully"}

    @router.delete("/offsets")
    async def reset_offsets(name: str) -> dict[str, str]:
        _check_offsets_can_change(connectors, states, name)
        return {"message": "The offsets for this connector have been reset successfully"}

    return router


def _check_offsets_can_change(connectors: Connectors, states: ConnectorStates, name: str) -> None:
    """Offsets of checkpoint and heartbeat connectors mean nothing: like MirrorMaker 2, accepts changes and ignores
    them."""
    if connectors.wanted(name).state != STOPPED or states.status(name)[0].state != STOPPED:
        raise Problem(400, _NOT_STOPPED.format(name=name))
    if connectors.part(name) == SOURCE:
        raise Problem(400, _LOG_IS_STATE.format(name=name))
