"""`/metrics`, for Prometheus."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from heliograph.metrics.collector import Collector
from heliograph.metrics.naming import Names
from heliograph.wire.background import in_thread


def metrics_api(collector: Collector, default_names: Names = Names.HELIOGRAPH) -> APIRouter:
    router = APIRouter(tags=["Heliograph"])

    @router.get("/metrics", response_class=Response)
    async def metrics(
        detail: Annotated[
            Literal["", "flow", "topic", "partition"],
            Query(description="Level of detail; by default as much as the bounds allow."),
        ] = "",
        names: Annotated[
            Names,
            Query(description="How MirrorMaker 2's and Connect's metrics are named: as that exporter names them."),
        ] = default_names,
    ) -> Response:
        """All metrics in Prometheus' text format."""
        sheet = collector.collect(detail, names)
        return Response(await in_thread(sheet.to_text), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router
