"""Requests' bodies, and errors as Connect answers them: a status, and a body with status and message."""

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from heliograph.service.connectors import AlreadyExists, Invalid, NotFound
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)


class Problem(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def answer_problems(app: FastAPI) -> None:
    statuses: dict[type[Exception], int] = {NotFound: 404, AlreadyExists: 409, Invalid: 400, WireError: 500}

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
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _answer(500, repr(error))


async def body_of(request: Request) -> Any:
    """The decoded JSON of a request. Numbers become strings, as settings are."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "HTTP 415 Unsupported Media Type")
    try:
        return json.loads(await request.body(), parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"The body is not JSON: {error}") from None


async def table_of(request: Request) -> dict[str, Any]:
    body = await body_of(request)
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
