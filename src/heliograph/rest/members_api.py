"""Heliograph's own API for members: the processes that share the flows, and who drives what."""

from typing import Any

from fastapi import APIRouter, Request

from heliograph.rest.problems import caller_of
from heliograph.service.members import Members


def members_api(members: Members | None, prefix: str) -> APIRouter:
    router = APIRouter(prefix=prefix, tags=["Heliograph"])

    @router.get("/members")
    async def get_members(request: Request) -> list[dict[str, Any]]:
        """The groups of this process, one for each target cluster, and their members. Empty without membership."""
        groups = members.view() if members is not None else []
        for member in (member for group in groups for member in group["members"]):
            for flows in ("flows", "coming"):
                member[flows] = [flow for flow in member[flows] if caller_of(request).may_see(flow)]
        return groups

    return router
