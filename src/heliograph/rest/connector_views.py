"""Connectors and tasks as Connect's REST API shows them."""

from typing import Any

from heliograph.model.connect_records import Status
from heliograph.rest.problems import Problem
from heliograph.service.connector_states import ConnectorStates, TaskStatus
from heliograph.service.connectors import Connectors, NotFound


def connector_info(connectors: Connectors, states: ConnectorStates, name: str) -> dict[str, Any]:
    _status, tasks = states.status(name)
    return {
        "name": name,
        "config": connectors.config(name),
        "tasks": [{"connector": name, "task": task.id} for task in tasks],
        "type": "source",
    }


def connector_status(states: ConnectorStates, name: str) -> dict[str, Any]:
    try:
        status, tasks = states.status(name)
    except NotFound:
        raise Problem(404, f"No status found for connector {name}") from None
    return status_view(name, status, tasks)


def status_view(name: str, status: Status, tasks: list[TaskStatus]) -> dict[str, Any]:
    return {
        "name": name,
        "connector": state_view(status),
        "tasks": [{"id": task.id} | state_view(task.status) for task in tasks],
        "type": "source",
    }


def state_view(status: Status) -> dict[str, Any]:
    view: dict[str, Any] = {"state": status.state, "worker_id": status.worker, "version": status.version}
    return view | ({"trace": status.trace} if status.trace else {})
