"""The REST application: all APIs behind one address, and the gate before them; and the one for Prometheus alone."""

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from heliograph import __version__
from heliograph.metrics.collector import Collector
from heliograph.metrics.naming import Names
from heliograph.model.flow import Cluster
from heliograph.model.rest_settings import RestSettings
from heliograph.rest.authentication import Authenticator
from heliograph.rest.connector_offsets_api import connector_offsets_api
from heliograph.rest.connector_states_api import connector_states_api
from heliograph.rest.connectors_api import connectors_api
from heliograph.rest.events_api import events_api
from heliograph.rest.flows_api import flows_api, mirrors_api
from heliograph.rest.gate import App, Gate
from heliograph.rest.health import Health
from heliograph.rest.loggers_api import loggers_api
from heliograph.rest.members_api import members_api
from heliograph.rest.metrics_api import metrics_api
from heliograph.rest.offsets_api import offsets_api
from heliograph.rest.plugins_api import plugins_api
from heliograph.rest.problems import answer_problems
from heliograph.rest.worker_api import health_api, worker_api
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors
from heliograph.service.events import Events
from heliograph.service.members import Members

_PREFIX = "/heliograph/v1"


def make_app(
    connectors: Connectors,
    states: ConnectorStates,
    events: Events,
    cluster: Cluster,
    health: Health,
    settings: RestSettings = RestSettings(),  # noqa: B008
    members: Members | None = None,
) -> App:
    """`cluster` is the one that a Connect worker would belong to; `members` share the flows. Raises ValueError if a
    file of the settings cannot be used."""

    def flow_of_connector(name: str) -> str | None:
        return connectors.flow_name(name) if name in connectors.names() else None

    app = _application(connectors, states, events, cluster, health, members)
    gate: App = Gate(app, settings, Authenticator(settings), flow_of_connector)
    if not settings.allow_origin:
        return gate
    # Outside the gate: a browser sends no login with the request by which it asks.
    origins = settings.allow_origin.replace(" ", "").split(",")
    methods = settings.allow_methods or ("GET", "POST", "HEAD")
    return CORSMiddleware(gate, allow_origins=origins, allow_methods=methods, allow_headers=["*"])


def _application(
    connectors: Connectors,
    states: ConnectorStates,
    events: Events,
    cluster: Cluster,
    health: Health,
    members: Members | None,
) -> FastAPI:
    app = FastAPI(
        title="Heliograph",
        version=__version__,
        description="Kafka Connect's REST API for mirroring, and Heliograph's own.",
        docs_url=f"{_PREFIX}/docs",
        redoc_url=None,
        openapi_url=f"{_PREFIX}/openapi.json",
    )
    for router in (
        worker_api(cluster),
        health_api(health),
        connectors_api(connectors, states),
        connector_states_api(connectors, states),
        connector_offsets_api(connectors, states),
        plugins_api(connectors),
        loggers_api(),
        flows_api(connectors, states, _PREFIX),
        mirrors_api(connectors, _PREFIX),
        events_api(events, _PREFIX),
        members_api(members, _PREFIX),
        offsets_api(connectors, _PREFIX),
        metrics_api(Collector(connectors, states, events)),
    ):
        app.include_router(router)
    answer_problems(app)
    return app


def make_metrics_app(
    connectors: Connectors, states: ConnectorStates, events: Events, health: Health, default_names: Names
) -> App:
    """`/metrics` and `/health` for everyone, and nothing else. `default_names` is a scheme of `metrics/naming`."""
    app = FastAPI(title="Heliograph's metrics", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(metrics_api(Collector(connectors, states, events), default_names))
    app.include_router(health_api(health))
    answer_problems(app)
    settings = RestSettings()
    return Gate(app, settings, Authenticator(settings), lambda _connector: None)
