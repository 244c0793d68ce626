"""Heliograph's own API for groups and offsets: reads both clusters at each call, like the commands of that name."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter

from heliograph.model.flow import Flow
from heliograph.rest.problems import Problem
from heliograph.service.connectors import Connectors
from heliograph.service.group_report import (
    FlowGroups,
    GroupStanding,
    NoAnswer,
    SwitchedOff,
    look_at_groups,
    sync_now,
)
from heliograph.service.offset_report import FlowOffsets, NoSuchTopic, look_at_offsets
from heliograph.wire.errors import BrokerError, WireError


@dataclass(frozen=True, slots=True)
class Error:
    """An error as Connect answers it."""

    error_code: int
    message: str


_ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"model": Error, "description": "There is no such flow, group or topic, or the flow has never run."},
    409: {"model": Error, "description": "The flow is not configured for this, or makes nothing to run."},
    503: {"model": Error, "description": "A cluster does not answer."},
}


def offsets_api(connectors: Connectors, prefix: str) -> APIRouter:
    router = APIRouter(prefix=f"{prefix}/flows/{{flow}}", tags=["Heliograph"], responses=_ERRORS)

    def flow_of(name: str) -> Flow:
        connectors.of_flow(name)
        deployed = connectors.deployed(name)
        if deployed is None or deployed.wanted is None:
            raise Problem(409, f"{name} does not run: no flow can be made of its connectors")
        return deployed.wanted

    async def one_group(flow: Flow, group: str) -> GroupStanding:
        (standing,) = (await look_at_groups(flow, group)).groups
        return standing

    @router.get("/groups")
    async def groups(flow: str) -> FlowGroups:
        """All consumer groups of the source: committed offsets, their position in the mirrors, the offsets on the
        target, and for a group that is not synced the reason and the remedy."""
        with _errors_as_problems():
            return await look_at_groups(flow_of(flow))

    @router.post("/groups/sync")
    async def sync_groups(flow: str) -> FlowGroups:
        """Translate and sync all groups once, now, and return them. Never a group in use, never backwards."""
        with _errors_as_problems():
            await sync_now(flow_of(flow))
            return await look_at_groups(flow_of(flow))

    @router.post("/groups/{group:path}/sync")
    async def sync_group(flow: str, group: str) -> GroupStanding:
        """Translate and sync one group once, now, and return it."""
        with _errors_as_problems():
            await sync_now(flow_of(flow), group)
            return await one_group(flow_of(flow), group)

    @router.get("/groups/{group:path}")
    async def get_group(flow: str, group: str) -> GroupStanding:
        """One group, with every partition."""
        with _errors_as_problems():
            return await one_group(flow_of(flow), group)

    @router.get("/offsets")
    async def offsets(flow: str) -> FlowOffsets:
        """Start and end of every partition on source and mirror, and how far the mirror is behind."""
        with _errors_as_problems():
            return await look_at_offsets(flow_of(flow), connectors.copying())

    @router.get("/offsets/{topic}")
    async def offsets_of_topic(flow: str, topic: str) -> FlowOffsets:
        """The same for one topic, by its name or its mirror's."""
        with _errors_as_problems():
            return await look_at_offsets(flow_of(flow), connectors.copying(), topic)

    return router


@contextmanager
def _errors_as_problems() -> Iterator[None]:
    """Turns errors into answers."""
    try:
        yield
    except SwitchedOff as error:
        raise Problem(409, str(error)) from error
    except (NoAnswer, NoSuchTopic) as error:
        raise Problem(404, str(error)) from error
    except WireError as error:
        refused = isinstance(error, BrokerError) and not error.transient
        raise Problem(500 if refused else 503, str(error)) from error
