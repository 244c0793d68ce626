"""`/metrics`, for Prometheus."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from heliograph.metrics.collector import Collector
from heliograph.wire.background import in_thread


def metrics_api(collector: Collector) -> APIRouter:
    router = APIRouter(tags=["Heliograph"])

    @router.get("/metrics", response_class=Response)
    async def metrics(
        detail: Annotated[
            Literal["", "flow", "topic", "partition"],
            Query(description="Level of detail; by default as much as the bounds allow."),
        ] = "",
    ) -> Response:
        """All metrics in Prometheus' text format."""
        sheet = collector.collect(detail)
        return Response(await in_thread(sheet.to_text), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router
