"""Connect's REST API about the worker itself: its version and its health."""

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from heliograph import __version__
from heliograph.model.flow import Cluster
from heliograph.rest.health import Health
from heliograph.wire.cluster import ClusterClient


def worker_api(cluster: Cluster) -> APIRouter:
    router = APIRouter(tags=["Kafka Connect"])

    @router.get("/")
    async def root() -> dict[str, str]:
        client = ClusterClient(cluster)
        try:
            cluster_id = (await client.metadata([])).cluster_id
        finally:
            client.close()
        return {"version": __version__, "commit": "heliograph", "kafka_cluster_id": cluster_id}

    return router


def health_api(health: Health) -> APIRouter:
    router = APIRouter(tags=["Kafka Connect"])

    @router.get("/health")
    async def get_health() -> JSONResponse:
        health_status = await health.check()
        return JSONResponse({"status": health_status.status, "message": health_status.message}, health_status.code)

    return router
