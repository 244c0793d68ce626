"""Connect's REST API for the states of connectors and tasks: status, restart, pause, resume, stop."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from heliograph.model.connect_records import PAUSED, RUNNING, STOPPED, Status
from heliograph.rest.connector_views import connector_status, state_view, status_view
from heliograph.rest.problems import Problem
from heliograph.service.connector_states import FAILED, RESTARTING, ConnectorStates, TaskStatus
from heliograph.service.connectors import Connectors, NotFound


def connector_states_api(connectors: Connectors, states: ConnectorStates) -> APIRouter:
    router = APIRouter(prefix="/connectors/{name}", tags=["Kafka Connect"])

    @router.get("/status")
    async def get_status(name: str) -> dict[str, Any]:
        return connector_status(states, name)

    @router.get("/tasks")
    async def get_tasks(name: str) -> list[dict[str, Any]]:
        configs = states.task_configs(name)
        return [{"id": {"connector": name, "task": number}, "config": config} for number, config in enumerate(configs)]

    @router.get("/tasks/{task:int}/status")
    async def get_task(name: str, task: int) -> dict[str, Any]:
        task_status = _task(states, name, task)
        if task_status is None:
            raise Problem(404, f"No status found for task {name}-{task}")
        return {"id": task} | state_view(task_status.status)

    @router.post("/tasks/{task:int}/restart", status_code=204)
    async def restart_task(name: str, task: int) -> Response:
        _check_exists(connectors, name)
        if _task(states, name, task) is None:
            raise Problem(404, f"Unknown task: {name}-{task}")
        connectors.restart(name, False, [task])
        return Response(status_code=204)

    @router.post("/restart")
    async def restart(name: str, request: Request) -> Response:
        include_tasks, only_failed = (_flag(request, flag) for flag in ("includeTasks", "onlyFailed"))
        _check_exists(connectors, name)
        return _restart(connectors, states, name, include_tasks, only_failed)

    @router.put("/pause", status_code=202)
    async def pause(name: str) -> Response:
        await connectors.set_state(name, PAUSED)
        return Response(status_code=202)

    @router.put("/resume", status_code=202)
    async def resume(name: str) -> Response:
        await connectors.set_state(name, RUNNING)
        return Response(status_code=202)

    @router.put("/stop", status_code=204)
    async def stop(name: str) -> Response:
        await connectors.set_state(name, STOPPED)
        return Response(status_code=204)

    return router


def _restart(
    connectors: Connectors, states: ConnectorStates, name: str, include_tasks: bool, only_failed: bool
) -> Response:
    status, tasks = states.status(name)
    with_connector = not only_failed or status.state == FAILED
    restarted = [task.id for task in tasks if include_tasks and (not only_failed or task.status.state == FAILED)]
    connectors.restart(name, with_connector, restarted)
    if not include_tasks and not only_failed:
        return Response(status_code=204)
    shown = [TaskStatus(task.id, _restarting(task.status)) if task.id in restarted else task for task in tasks]
    return JSONResponse(status_view(name, _restarting(status) if with_connector else status, shown), 202)


def _restarting(status: Status) -> Status:
    return Status(RESTARTING, status.worker, status.version)


def _task(states: ConnectorStates, name: str, number: int) -> TaskStatus | None:
    try:
        _status, tasks = states.status(name)
    except NotFound:
        return None
    return next((task for task in tasks if task.id == number), None)


def _check_exists(connectors: Connectors, name: str) -> None:
    if name not in connectors.names():
        raise Problem(404, f"Unknown connector: {name}")


def _flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() == "true"
