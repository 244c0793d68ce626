"""Connect's REST API for log levels, on Python's loggers. Names of Connect's loggers are aliases of ours."""

import logging
import time
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from heliograph.rest.problems import Problem, json_body, table_of

_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
_NAMES = {level: name for name, level in reversed(_LEVELS.items())} | {logging.DEBUG: "DEBUG"}
# Connect's logger to ours; longer prefixes come first.
_OURS = {
    "org.apache.kafka.clients": "heliograph.wire",
    "org.apache.kafka.connect.mirror": "heliograph",
    "org.apache.kafka.connect.runtime.rest": "heliograph.rest",
    "org.apache.kafka.connect": "heliograph",
    "org.apache.kafka": "heliograph",
    "org.apache.spark": "heliograph.spark",
    "org.reflections": "heliograph",
}
_changed: dict[str, int] = {}  # our logger to the time of the last change, in milliseconds


def loggers_api() -> APIRouter:
    router = APIRouter(prefix="/admin/loggers", tags=["Kafka Connect"])

    @router.get("")
    async def loggers() -> dict[str, Any]:
        names = [name for name, logger_ in _known().items() if logger_.level != logging.NOTSET]
        return {name: _level_view(name) for name in sorted([*names, "root"])}

    @router.get("/{name}")
    async def logger(name: str) -> dict[str, Any]:
        ours = _ours(name)
        if ours != "root" and ours not in _known():
            raise Problem(404, f"Logger {name} not found.")
        return _level_view(ours)

    @router.put("/{name}", openapi_extra=json_body())
    async def set_level(name: str, request: Request) -> Response:
        level = (await table_of(request)).get("level")
        if level is None:
            raise Problem(400, "Desired 'level' parameter was not specified in request.")
        number = _LEVELS.get(str(level).upper())
        if number is None:
            raise Problem(404, f"invalid log level '{level}'.")
        affected = _set(_ours(name), number)
        if request.query_params.get("scope", "").lower() == "cluster":
            return Response(status_code=204)
        return JSONResponse([name if affected_name == _ours(name) else affected_name for affected_name in affected])

    return router


def _known() -> dict[str, logging.Logger]:
    loggers = logging.Logger.manager.loggerDict
    return {name: logger for name, logger in loggers.items() if isinstance(logger, logging.Logger)}


def _ours(name: str) -> str:
    for beginning, ours in _OURS.items():
        if name == beginning or name.startswith(f"{beginning}."):
            return ours
    return name


def _level_view(name: str) -> dict[str, Any]:
    level = logging.getLogger(None if name == "root" else name).getEffectiveLevel()
    return {"level": _NAMES.get(level, logging.getLevelName(level)), "last_modified": _changed.get(name)}


def _set(name: str, level: int) -> list[str]:
    """Sets a level for a logger and those below it. Returns the loggers whose level changed."""
    own = logging.getLogger(None if name == "root" else name)
    below = {other: logger for other, logger in _known().items() if other.startswith(f"{name}.") and logger.level}
    affected = sorted({other: logger for other, logger in {name: own, **below}.items() if logger.level != level})
    for other in affected:
        logging.getLogger(None if other == "root" else other).setLevel(level)
        _changed[other] = int(time.time() * 1000)
    return affected
