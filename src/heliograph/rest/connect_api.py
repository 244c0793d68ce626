"""Kafka Connect's REST API for connectors: paths, statuses and bodies as Connect 4 has them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from heliograph import __version__
from heliograph.model.connect_records import PAUSED, RUNNING, STOPPED, Status
from heliograph.model.flow import SOURCE, Cluster
from heliograph.rest.problems import Problem, body_of, table_of, texts_of
from heliograph.service.connector_states import FAILED, RESTARTING, ConnectorStates, TaskStatus
from heliograph.service.connectors import Connectors, NotFound, invalid
from heliograph.wire.cluster import ClusterClient

_STATES = (RUNNING, PAUSED, STOPPED)
_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the specified "
    "connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
)
_LOG_IS_STATE = (
    "The offsets of {name} cannot be changed: how far a mirror has got is read from the mirror itself, and records "
    "that are there already would be appended a second time. To copy a topic anew, stop the connector, delete its "
    "mirror and resume"
)


def connect_api(connectors: Connectors, states: ConnectorStates, cluster: Cluster) -> APIRouter:
    router = APIRouter(tags=["Kafka Connect"])

    def info(name: str) -> dict[str, Any]:
        _status, tasks = states.status(name)
        return {
            "name": name,
            "config": connectors.config(name),
            "tasks": [{"connector": name, "task": task.id} for task in tasks],
            "type": "source",
        }

    def status(name: str) -> dict[str, Any]:
        try:
            own, tasks = states.status(name)
        except NotFound:
            raise Problem(404, f"No status found for connector {name}") from None
        return _state_info(name, own, tasks)

    def task_of(name: str, task: int) -> TaskStatus | None:
        try:
            _own, tasks = states.status(name)
        except NotFound:
            return None
        return next((one for one in tasks if one.id == task), None)

    @router.get("/")
    async def root() -> dict[str, str]:
        client = ClusterClient(cluster)
        try:
            cluster_id = (await client.metadata([])).cluster_id
        finally:
            client.close()
        return {"version": __version__, "commit": "heliograph", "kafka_cluster_id": cluster_id}

    @router.get("/health")
    async def health() -> dict[str, str]:
        message = "Worker has completed startup and is ready to handle requests."
        return {"status": "healthy", "message": message}

    @router.get("/connectors")
    async def list_connectors(request: Request) -> Any:
        expand = request.query_params.getlist("expand")
        if not expand:
            return connectors.names()
        kinds = {"status": status, "info": info}
        return {
            name: {kind: kinds[kind](name) for kind in dict.fromkeys(expand) if kind in kinds}
            for name in connectors.names()
        }

    @router.post("/connectors", status_code=201)
    async def create(request: Request) -> JSONResponse:
        given = await table_of(request)
        for key in given.keys() - {"name", "config", "initial_state"}:
            raise Problem(400, f'Unrecognized field "{key}": known are name, config and initial_state')
        config = _settings(given.get("config"))
        name = str(given.get("name") or config.get("name") or "").strip()
        state = str(given.get("initial_state") or RUNNING).upper()
        if state not in _STATES:
            raise Problem(400, f"initial_state: {state} is not one of {', '.join(_STATES)}")
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

    @router.put("/connectors/{name}/config")
    async def put_config(name: str, request: Request) -> JSONResponse:
        new = await connectors.put(name, _settings(await body_of(request)))
        return _created(request, name, info(name)) if new else JSONResponse(info(name))

    @router.patch("/connectors/{name}/config")
    async def patch_config(name: str, request: Request) -> dict[str, Any]:
        await connectors.patch(name, texts_of(await body_of(request)))
        return info(name)

    @router.get("/connectors/{name}/status")
    async def get_status(name: str) -> dict[str, Any]:
        return status(name)

    @router.get("/connectors/{name}/tasks")
    async def get_tasks(name: str) -> list[dict[str, Any]]:
        configs = states.task_configs(name)
        return [{"id": {"connector": name, "task": number}, "config": config} for number, config in enumerate(configs)]

    @router.get("/connectors/{name}/tasks/{task:int}/status")
    async def get_task(name: str, task: int) -> dict[str, Any]:
        found = task_of(name, task)
        if found is None:
            raise Problem(404, f"No status found for task {name}-{task}")
        return {"id": task} | _state(found.status)

    @router.post("/connectors/{name}/tasks/{task:int}/restart", status_code=204)
    async def restart_task(name: str, task: int) -> Response:
        _known(connectors, name)
        if task_of(name, task) is None:
            raise Problem(404, f"Unknown task: {name}-{task}")
        connectors.restart(name, False, [task])
        return Response(status_code=204)

    @router.post("/connectors/{name}/restart")
    async def restart(name: str, request: Request) -> Response:
        with_tasks, only_failed = (_flag(request, flag) for flag in ("includeTasks", "onlyFailed"))
        _known(connectors, name)
        own, tasks = states.status(name)
        itself = not only_failed or own.state == FAILED
        again = [one.id for one in tasks if with_tasks and (not only_failed or one.status.state == FAILED)]
        connectors.restart(name, itself, again)
        if not with_tasks and not only_failed:
            return Response(status_code=204)
        shown = [_restarting(one) if one.id in again else one for one in tasks]
        return JSONResponse(_state_info(name, _again(own) if itself else own, shown), 202)

    @router.put("/connectors/{name}/pause", status_code=202)
    async def pause(name: str) -> Response:
        await connectors.set_state(name, PAUSED)
        return Response(status_code=202)

    @router.put("/connectors/{name}/resume", status_code=202)
    async def resume(name: str) -> Response:
        await connectors.set_state(name, RUNNING)
        return Response(status_code=202)

    @router.put("/connectors/{name}/stop", status_code=204)
    async def stop(name: str) -> Response:
        await connectors.set_state(name, STOPPED)
        return Response(status_code=204)

    @router.get("/connectors/{name}/topics")
    async def get_topics(name: str) -> dict[str, Any]:
        return {name: {"topics": states.topics(name)}}

    @router.put("/connectors/{name}/topics/reset", status_code=202)
    async def reset_topics(name: str) -> Response:
        states.reset_topics(name)
        return Response(status_code=202)

    @router.get("/connectors/{name}/offsets")
    async def get_offsets(name: str) -> dict[str, Any]:
        found = await states.offsets(name)
        return {"offsets": [{"partition": partition, "offset": offset} for partition, offset in found]}

    @router.patch("/connectors/{name}/offsets")
    async def alter_offsets(name: str, request: Request) -> dict[str, str]:
        if not (await table_of(request)).get("offsets"):
            raise Problem(400, "Partitions / offsets need to be provided for an alter offsets request")
        _may_change_offsets(connectors, states, name)
        return {"message": "The offsets for this connector have been altered successfully"}

    @router.delete("/connectors/{name}/offsets")
    async def reset_offsets(name: str) -> dict[str, str]:
        _may_change_offsets(connectors, states, name)
        return {"message": "The offsets for this connector have been reset successfully"}

    return router


def _may_change_offsets(connectors: Connectors, states: ConnectorStates, name: str) -> None:
    """Checkpoints and heartbeats have none that mean anything: MirrorMaker 2 takes changes of them, to no effect."""
    if connectors.wanted(name).state != STOPPED or states.status(name)[0].state != STOPPED:
        raise Problem(400, _NOT_STOPPED.format(name=name))
    if connectors.part(name) == SOURCE:
        raise Problem(400, _LOG_IS_STATE.format(name=name))


def _settings(config: object) -> dict[str, str]:
    texts = texts_of(config)
    if None in texts.values():
        raise invalid(["Null value can not be supplied as the configuration value."])
    return {key: value for key, value in texts.items() if value is not None}


def _known(connectors: Connectors, name: str) -> None:
    if name not in connectors.names():
        raise Problem(404, f"Unknown connector: {name}")


def _created(request: Request, name: str, body: Mapping[str, Any]) -> JSONResponse:
    where = f"{request.url.scheme}://{request.url.netloc}/connectors/{quote(name, safe='')}"
    return JSONResponse(dict(body), 201, {"Location": where})


def _flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() == "true"


def _state(status: Status) -> dict[str, Any]:
    told: dict[str, Any] = {"state": status.state, "worker_id": status.worker, "version": status.version}
    return told | ({"trace": status.trace} if status.trace else {})


def _state_info(name: str, own: Status, tasks: list[TaskStatus]) -> dict[str, Any]:
    return {
        "name": name,
        "connector": _state(own),
        "tasks": [{"id": task.id} | _state(task.status) for task in tasks],
        "type": "source",
    }


def _again(status: Status) -> Status:
    return Status(RESTARTING, status.worker, status.version)


def _restarting(task: TaskStatus) -> TaskStatus:
    return TaskStatus(task.id, _again(task.status))
