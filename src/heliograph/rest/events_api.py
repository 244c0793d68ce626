"""Heliograph's own API for events: what happened lately."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from heliograph.rest.problems import caller_of
from heliograph.service.events import Events


def events_api(events: Events, prefix: str) -> APIRouter:
    router = APIRouter(prefix=prefix, tags=["Heliograph"])

    @router.get("/events")
    async def get_events(
        request: Request,
        flow: str = "",
        level: Annotated[str, Query(description="INFO, WARNING or ERROR.")] = "",
        topic: Annotated[str, Query(description="Only events about this topic of the source.")] = "",
        limit: int = 100,
    ) -> list[dict[str, Any]]:
        """The latest events, the newest last. Heliograph keeps a thousand."""
        caller = caller_of(request)
        return [asdict(event) for event in events.last(limit, flow, level.upper(), topic, caller.may_see)]

    return router
