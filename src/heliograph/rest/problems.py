"""Requests' bodies, and errors as Connect answers them: a status, and a body with status and message."""

import json
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from heliograph.config.messages import ConfigError, one_line
from heliograph.rest.gate import CALLER
from heliograph.rest.roles import ALL_FLOWS, Caller
from heliograph.service.connector_flows import cluster_pair
from heliograph.service.connectors import AlreadyExists, Invalid, NotFound
from heliograph.service.offset_changes import Busy
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)


class Problem(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def answer_problems(app: FastAPI) -> None:
    statuses: dict[type[Exception], int] = {
        NotFound: 404,
        AlreadyExists: 409,
        Busy: 409,
        Invalid: 400,
        WireError: 500,
    }

    async def known(_request: Request, error: Exception) -> JSONResponse:
        return _answer(next(status for kind, status in statuses.items() if isinstance(error, kind)), str(error))

    for kind in statuses:
        app.add_exception_handler(kind, known)
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(Exception, _unexpected)


def _answer(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error_code": status, "message": message}, status)


async def _problem(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return _answer(error.status, str(error))


async def _plain(_request: Request, error: Exception) -> JSONResponse:
    """A request that no route matches."""
    assert isinstance(error, HTTPException)
    return _answer(error.status_code, f"HTTP {error.status_code} {HTTPStatus(error.status_code).phrase}")


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s failed", request.method, one_line(request.scope["path"]), exc_info=error)
    return _answer(500, "Internal error: the log of Heliograph has the reason")


def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope["state"][CALLER]  # without it, no answer: every request passes the gate
    return caller


def check_may_post(request: Request, name: str, config: Mapping[str, str]) -> None:
    """Raises a Problem if the caller is no operator of the flow that a posted config is for."""
    caller = caller_of(request)
    if caller.may_operate(ALL_FLOWS):
        return
    try:
        flow = "->".join(cluster_pair(name, config))
    except ConfigError as error:
        raise Problem(400, str(error)) from None
    if not caller.may_operate(flow):
        raise Problem(403, f"{caller.name} is no operator of {flow}")


def json_body(*, is_connector: bool = False) -> dict[str, Any]:
    """The description of a request's body: a config, or a new connector with its name."""
    values = {"anyOf": [{"type": kind} for kind in ("string", "boolean", "number", "null")]}
    config: dict[str, Any] = {"type": "object", "additionalProperties": values}
    states = {"type": "string", "enum": ["RUNNING", "PAUSED", "STOPPED"]}
    connector = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "config": config, "initial_state": states},
        "required": ["name", "config"],
    }
    content = {"application/json": {"schema": connector if is_connector else config}}
    return {"requestBody": {"required": True, "content": content}}


async def body_of(request: Request) -> Any:
    """The decoded JSON of a request. Numbers become strings, as settings are."""
    return await _decoded(request, str)


async def _decoded(request: Request, number: Callable[[str], Any] | None = None) -> Any:
    """`number` makes a value of a number's text."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "HTTP 415 Unsupported Media Type")
    try:
        return json.loads(await request.body(), parse_int=number, parse_float=number, parse_constant=number)
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"The body is not JSON: {error}") from None


async def table_of(request: Request, *, with_numbers: bool = False) -> dict[str, Any]:
    """The JSON object of a request; its numbers are strings, unless asked for otherwise."""
    body = await (_decoded(request) if with_numbers else body_of(request))
    if not isinstance(body, dict):
        raise Problem(400, "The body must be a JSON object")
    return body


def texts_of(config: object) -> dict[str, str | None]:
    """Settings as strings, booleans included."""
    if not isinstance(config, Mapping):
        raise Problem(400, "A config must be a JSON object of settings")
    for key, value in config.items():
        if isinstance(value, dict | list):
            raise Problem(400, f"{key}: a setting must be a string, not a list or an object")
    return {key: ("true" if value else "false") if isinstance(value, bool) else value for key, value in config.items()}
