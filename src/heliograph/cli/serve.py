"""`heliograph serve`: replaces a Connect worker and runs the connectors that are posted to it."""

import asyncio
import logging
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from heliograph.cli.json_log import LogFormat
from heliograph.cli.metrics_port import (
    LOOPBACK,
    MetricsAddress,
    MetricsListener,
    MetricsNames,
    MetricsPort,
    open_metrics_port,
)
from heliograph.cli.screen import fail, log_console, set_up_logging
from heliograph.cli.service import (
    Conf,
    Logs,
    Master,
    RestCert,
    RestClientCa,
    RestKey,
    RestUsers,
    Verbose,
    gathered_events,
    open_listeners,
    rest_options,
    run_until_stopped,
    spark_settings,
)
from heliograph.config import ConfigError
from heliograph.config.resolve.worker_file import StorageTopic, WorkerFile, load_worker
from heliograph.control.connect_store import ConnectStore
from heliograph.metrics.naming import Names
from heliograph.rest.app import make_app
from heliograph.rest.health import Health, Storage
from heliograph.rest.server import OpenListener, RestServer
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors, Worker
from heliograph.service.events import Events
from heliograph.service.file_flows import keep_refreshing
from heliograph.service.flow_supervisor import EXPECTED
from heliograph.service.supervisor import SparkDied, Supervisor
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import Unreachable

log = logging.getLogger(__name__)


def serve(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A Connect worker's connect-distributed.properties.", show_default=False),
    ],
    rest: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve the REST API here; also https://HOST:PORT.",
            show_default="the file's listeners",
        ),
    ] = None,
    rest_cert: RestCert = None,
    rest_key: RestKey = None,
    rest_client_ca: RestClientCa = None,
    rest_users: RestUsers = None,
    metrics_port: MetricsPort = None,
    metrics_address: MetricsAddress = LOOPBACK,
    metrics_names: MetricsNames = Names.HELIOGRAPH,
    master: Master = None,
    conf: Conf = None,
    log_format: Logs = LogFormat.TEXT,
    verbose: Verbose = False,
) -> None:
    """Replace a Kafka Connect worker: run the MirrorMaker 2 connectors that are posted to the REST API.

    Connectors and their target states are stored where Connect stores them, in the topics that FILE names; connectors
    that Connect has stored there are run. Stop all Connect workers of the same group first. The REST API needs no login
    unless FILE or --rest-users says so: anyone who reaches the address can then change everything.

    Example: heliograph serve connect-distributed.properties
    """
    console = log_console(log_format)
    set_up_logging(console, verbose, log_format)
    settings = spark_settings(conf or [])
    try:
        worker = load_worker(file, rest_options(rest, rest_cert, rest_key, rest_client_ca, rest_users))
    except ConfigError as error:
        fail(str(error), 2)
    for warning in worker.warnings:
        log.warning("%s", warning)
    serving = open_listeners(worker.rest)
    metrics = open_metrics_port(metrics_port, metrics_address, metrics_names)
    try:
        with gathered_events(worker.webhook) as events:
            asyncio.run(_main(worker, serving, metrics, bool(rest), master, settings, events, console))
    except Unreachable as error:
        fail(f"{file}: bootstrap.servers: the cluster cannot be reached: {error}", 2)
    except (*EXPECTED, SparkDied) as error:
        fail(f"{file}: {error}", 1)


async def _main(
    file: WorkerFile,
    serving: list[OpenListener],
    metrics: MetricsListener | None,
    elsewhere: bool,
    master: str | None,
    conf: dict[str, str],
    events: Events,
    console: Console,
) -> None:
    client = ClusterClient(file.cluster)
    try:
        store = ConnectStore(client, file.group, file.configs.name, file.status.name)
        topics = dict(map(_topic, (file.configs, file.offsets, file.status)))
        stored = await store.open(topics)
        running = Supervisor((), master=master, conf=conf, secure_spark=file.spark_secure, stays=True)
        id_ = serving[0].address if elsewhere else file.advertised
        worker = Worker(id_, file.settings, file.offsets.name, file.group)
        connectors = Connectors(running, worker, store, file.rest.allowed)
        connectors.restore(stored)
        log.info("%d connectors found in %s; starting Spark", len(connectors.names()), file.configs.name)
        states = ConnectorStates(connectors)
        tasks = (
            asyncio.create_task(states.keep_writing(store)),
            asyncio.create_task(keep_refreshing(file.secrets_refresh, connectors.refresh)),
        )
        try:
            health = Health(running, lambda: [Storage(file.cluster, tuple(topics))])
            servers = [RestServer(make_app(connectors, states, events, file.cluster, health, file.rest), serving)]
            if metrics is not None:
                servers.append(metrics.server(connectors, states, events, health))
            await run_until_stopped(running, console, servers)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        client.close()


def _topic(topic: StorageTopic) -> tuple[str, tuple[int, int]]:
    return topic.name, (topic.partitions, topic.replication_factor)
