"""All of it together: which API answers where."""

from fastapi import FastAPI

from heliograph import __version__
from heliograph.metrics.collector import Collector
from heliograph.model.flow import Cluster
from heliograph.rest.connect_api import connect_api
from heliograph.rest.loggers_api import loggers_api
from heliograph.rest.metrics_api import metrics_api
from heliograph.rest.offsets_api import standing_api
from heliograph.rest.own_api import PREFIX, own_api
from heliograph.rest.plugins_api import plugins_api
from heliograph.rest.problems import answer_problems
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors
from heliograph.service.events import Events


def make_app(connectors: Connectors, states: ConnectorStates, events: Events, cluster: Cluster) -> FastAPI:
    """`cluster` is the one that a Connect worker would belong to."""
    app = FastAPI(
        title="Heliograph",
        version=__version__,
        description="Kafka Connect's REST API for mirroring, and Heliograph's own.",
        docs_url=f"{PREFIX}/docs",
        redoc_url=None,
        openapi_url=f"{PREFIX}/openapi.json",
    )
    for router in (
        connect_api(connectors, states, cluster),
        plugins_api(),
        loggers_api(),
        own_api(connectors, states, events),
        standing_api(connectors, PREFIX),
        metrics_api(Collector(connectors, states, events)),
    ):
        app.include_router(router)
    answer_problems(app)
    return app
