"""Connect's REST API for connectors and their configs: paths, statuses and bodies as Connect 4 has them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from heliograph.model.connect_records import PAUSED, RUNNING, STOPPED
from heliograph.rest.connector_views import connector_info, connector_status
from heliograph.rest.problems import Problem, body_of, caller_of, check_may_post, json_body, table_of, texts_of
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors, invalid

_STATES = (RUNNING, PAUSED, STOPPED)


def connectors_api(connectors: Connectors, states: ConnectorStates) -> APIRouter:
    router = APIRouter(tags=["Kafka Connect"])

    def info(name: str) -> dict[str, Any]:
        return connector_info(connectors, states, name)

    @router.get("/connectors")
    async def list_connectors(request: Request) -> Any:
        expand = request.query_params.getlist("expand")
        caller = caller_of(request)
        names = [name for name in connectors.names() if caller.may_see(connectors.flow_name(name))]
        if not expand:
            return names
        views = {"status": lambda name: connector_status(states, name), "info": info}
        return {name: {kind: views[kind](name) for kind in dict.fromkeys(expand) if kind in views} for name in names}

    @router.post("/connectors", status_code=201, openapi_extra=json_body(is_connector=True))
    async def create(request: Request) -> JSONResponse:
        name, config, state = _new_connector(await table_of(request))
        check_may_post(request, name, config)
        await connectors.create(name, config, state)
        return _created(request, name, info(name))

    @router.get("/connectors/{name}")
    async def get_connector(name: str) -> dict[str, Any]:
        return info(name)

    @router.delete("/connectors/{name}", status_code=204)
    async def delete(name: str) -> Response:
        await connectors.delete(name)
        return Response(status_code=204)

    @router.get("/connectors/{name}/config")
    async def get_config(name: str) -> dict[str, str]:
        return connectors.config(name)

    @router.put("/connectors/{name}/config", openapi_extra=json_body())
    async def put_config(name: str, request: Request) -> JSONResponse:
        config = _settings(await body_of(request))
        check_may_post(request, name, config)
        is_new = await connectors.put(name, config)
        return _created(request, name, info(name)) if is_new else JSONResponse(info(name))

    @router.patch("/connectors/{name}/config", openapi_extra=json_body())
    async def patch_config(name: str, request: Request) -> dict[str, Any]:
        changes = texts_of(await body_of(request))
        config = {**connectors.wanted(name).config, **changes}
        check_may_post(request, name, {key: value for key, value in config.items() if value is not None})
        await connectors.patch(name, changes)
        return info(name)

    return router


def _new_connector(body: dict[str, Any]) -> tuple[str, dict[str, str], str]:
    """Name, config and initial state."""
    for key in body.keys() - {"name", "config", "initial_state"}:
        raise Problem(400, f'Unrecognized field "{key}": known are name, config and initial_state')
    config = _settings(body.get("config"))
    name = str(body.get("name") or config.get("name") or "").strip()
    state = str(body.get("initial_state") or RUNNING).upper()
    if state not in _STATES:
        raise Problem(400, f"initial_state: {state} is not one of {', '.join(_STATES)}")
    return name, config, state


def _settings(config: object) -> dict[str, str]:
    texts = texts_of(config)
    if None in texts.values():
        raise invalid(["Null value can not be supplied as the configuration value."])
    return {key: value for key, value in texts.items() if value is not None}


def _created(request: Request, name: str, body: Mapping[str, Any]) -> JSONResponse:
    location = f"{request.url.scheme}://{request.url.netloc}/connectors/{quote(name, safe='')}"
    return JSONResponse(dict(body), 201, {"Location": location})
