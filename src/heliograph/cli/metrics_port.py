"""`--metrics-port` of `heliograph run` and `heliograph serve`: a port for Prometheus alone."""

import logging
from dataclasses import dataclass
from typing import Annotated

import typer

from heliograph.cli.screen import fail
from heliograph.metrics.naming import Names
from heliograph.model.rest_settings import Listener
from heliograph.rest.health import Health
from heliograph.rest.server import AddressTaken, OpenListener, RestServer, open_listener
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors
from heliograph.service.events import Events

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"

MetricsPort = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        min=1,
        max=65535,
        help="Also serve /metrics and /health here, and nothing else, e.g. 9404. No login, no TLS.",
        show_default=False,
    ),
]
MetricsAddress = Annotated[
    str, typer.Option(metavar="HOST", help="The address of --metrics-port; 0.0.0.0 for all interfaces.")
]
MetricsNames = Annotated[
    Names, typer.Option(help="The default of names= on --metrics-port: which exporter's names the metrics have.")
]


@dataclass(frozen=True, slots=True)
class MetricsListener:
    listener: OpenListener
    names: Names

    def server(self, connectors: Connectors, states: ConnectorStates, events: Events, health: Health) -> RestServer:
        from heliograph.rest.app import make_metrics_app  # while Spark starts, as in `run`

        app = make_metrics_app(connectors, states, events, health, self.names)
        return RestServer(app, [self.listener], "metrics are")


def open_metrics_port(port: int | None, address: str, names: Names) -> MetricsListener | None:
    """None without a port. Warns if others than this machine can read the metrics."""
    if port is None:
        if address != LOOPBACK or names != Names.HELIOGRAPH:
            fail("--metrics-address and --metrics-names need --metrics-port: a port to listen on, e.g. 9404", 2)
        return None
    listener = Listener(address, port)
    if not listener.is_loopback:
        log.warning(
            "metrics are served on %s, port %d, without authentication: anyone who reaches it can read the names of "
            "topics and groups. Restrict it by a firewall, or listen on 127.0.0.1",
            address,
            port,
        )
    try:
        return MetricsListener(open_listener(listener), names)
    except (AddressTaken, ValueError) as error:
        fail(f"--metrics-port {port}: {error}", 2)
