"""`heliograph run`: mirrors the flows of a file until stopped."""

import asyncio
import dataclasses
import json
import logging
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from heliograph.cli.choice import WorkerFile, with_worker
from heliograph.cli.clusters_option import Clusters, ClustersCommand, aliases
from heliograph.cli.json_log import LogFormat
from heliograph.cli.metrics_port import (
    LOOPBACK,
    MetricsAddress,
    MetricsListener,
    MetricsNames,
    MetricsPort,
    open_metrics_port,
)
from heliograph.cli.plan import show_plan
from heliograph.cli.screen import FILES, fail, log_console, set_up_logging
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
from heliograph.config import ConfigError, Deployment
from heliograph.config.declare.supported import SPARK_SECURE, SPARK_WARM
from heliograph.config.messages import shown_notes
from heliograph.config.read.formats import read_all
from heliograph.config.read.rest_settings import read_rest_settings
from heliograph.config.read.settings import Settings
from heliograph.config.resolve.deployment import assemble
from heliograph.config.resolve.targets import into
from heliograph.control.mm2_workers import StillRunning
from heliograph.copy.tracing import FILE_VARIABLE
from heliograph.metrics.naming import Names
from heliograph.model.flow import SOURCE
from heliograph.model.rest_settings import RestOptions, RestSettings
from heliograph.rest.health import Health, Storage
from heliograph.rest.server import OpenListener, RestServer
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors, Worker
from heliograph.service.events import Events
from heliograph.service.file_flows import FileFlows, flow_names, keep_refreshing
from heliograph.service.flow_status import FlowStatus
from heliograph.service.flow_supervisor import EXPECTED
from heliograph.service.members import Members
from heliograph.service.membership import MembershipFailed
from heliograph.service.supervisor import SparkDied, Supervisor, UnreachableCluster
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)

_PORT = 8083
_STARTS_SPARK_AFTER = 0.3  # seconds, if it is not known by then whether there are other members
COMMAND_CLASS = ClustersCommand

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help=FILES, show_default=False)]
UntilCaughtUp = Annotated[
    bool, typer.Option("--until-caught-up", help="End when every mirror has reached the source's end as of the start.")
]
Plan = Annotated[bool, typer.Option("--plan", help="Print what would be created, changed and copied; change nothing.")]
Rest = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Serve the REST API here; also https://HOST:PORT.",
        show_default="the file's listeners; else 127.0.0.1:8083 or the next",
    ),
]
NoRest = Annotated[bool, typer.Option("--no-rest", help="Serve no REST API.")]
Trace = Annotated[
    Path | None,
    typer.Option(
        help="Write a trace of fetches, appends, stalls and leases, for https://ui.perfetto.dev. It grows by some "
        "megabytes a minute.",
        metavar="FILE",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="At the end, print the result as one JSON line.")]


def run(
    files: Files,
    worker: WorkerFile = None,
    clusters: Clusters = None,
    until_caught_up: UntilCaughtUp = False,
    plan: Plan = False,
    rest: Rest = None,
    no_rest: NoRest = False,
    rest_cert: RestCert = None,
    rest_key: RestKey = None,
    rest_client_ca: RestClientCa = None,
    rest_users: RestUsers = None,
    metrics_port: MetricsPort = None,
    metrics_address: MetricsAddress = LOOPBACK,
    metrics_names: MetricsNames = Names.HELIOGRAPH,
    master: Master = None,
    conf: Conf = None,
    trace: Trace = None,
    as_json: AsJson = False,
    log_format: Logs = LogFormat.TEXT,
    verbose: Verbose = False,
) -> None:
    """Mirror every enabled flow of FILE until stopped with Ctrl-C or SIGTERM. SIGHUP reloads FILE.

    The REST API is Kafka Connect's. It needs no login unless FILE or --rest-users says so. With --until-caught-up it is
    served only if --rest is given.

    Example: heliograph run mm2.properties --until-caught-up
    """
    console = log_console(log_format)
    set_up_logging(console, verbose, log_format)
    settings = spark_settings(conf or [])
    if trace is not None:
        settings |= {f"spark.executorEnv.{FILE_VARIABLE}": str(_new_trace(trace))}
    options = rest_options(rest, rest_cert, rest_key, rest_client_ca, rest_users)
    files = with_worker(files, worker)
    targets = aliases(clusters)
    document, deployment = _load(files, targets, verbose)
    if plan:
        try:
            show_plan(deployment, as_json)
        except (StillRunning, WireError) as error:
            fail(f"{deployment.file}: {error}", 1)
        return
    if deployment.stopped and not deployment.running_flows:
        fail(f"{deployment.file}: nothing is to run: spec.replicas is 0", 2)
    if no_rest or (until_caught_up and rest is None):
        options = dataclasses.replace(options, addresses=())
    rest_settings, is_default = _rest(document, options)
    serving = open_listeners(rest_settings, search=is_default)
    metrics = open_metrics_port(metrics_port, metrics_address, metrics_names)
    try:
        with gathered_events(deployment.webhook) as events:
            flows, behind = asyncio.run(
                _main(
                    files,
                    targets,
                    document,
                    deployment,
                    until_caught_up,
                    master,
                    settings,
                    rest_settings,
                    serving,
                    metrics,
                    events,
                    console,
                )
            )
    except UnreachableCluster as error:
        fail(f"{deployment.file}: {error.cluster.alias}.bootstrap.servers: {error}", 2)
    except MembershipFailed as error:
        fail(f"{deployment.file}: {error}", 2)
    except (*EXPECTED, SparkDied) as error:
        fail(f"{deployment.file}: {error}", 1)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(flow) for flow in flows]))
    _report(flows, behind, until_caught_up)


def _new_trace(file: Path) -> Path:
    """Leases append to it, on this machine."""
    try:
        file.write_text("[\n")
    except OSError as error:
        fail(f"--trace: {error}", 2)
    return file.resolve()


def _load(files: list[Path], targets: tuple[str, ...], verbose: bool) -> tuple[Settings, Deployment]:
    """Logs what there is to say about the settings. Exits if nothing can be run."""
    try:
        document = read_all(files)
        deployment = into(assemble(document), targets)
    except ConfigError as error:
        for warning in error.warnings:
            log.warning("%s", warning)
        fail(str(error), 2)
    for warning in deployment.warnings:
        log.warning("%s", warning)
    for note in shown_notes(deployment.notes, verbose):
        log.info("%s", note)
    return document, deployment


def _rest(document: Settings, options: RestOptions) -> tuple[RestSettings, bool]:
    """Whether it is the default address, because neither the command nor the file has one."""
    default = dataclasses.replace(options, addresses=(("http", "127.0.0.1", _PORT),))
    try:
        given = read_rest_settings(document, options)
        if given.listeners or options.addresses is not None:
            return given, False
        return read_rest_settings(document, default), True
    except ConfigError as error:
        fail(str(error), 2)


def _report(flows: list[FlowStatus], behind: list[str], until_caught_up: bool) -> None:
    for flow in flows:
        log.info(
            "%s: %d records, %d bytes copied to %d mirrors",
            flow.name,
            flow.records,
            flow.size,
            flow.mirrors,
            extra={"flow": flow.name},
        )
    failed = {topic for flow in flows for topic in flow.failed_topics}
    if until_caught_up and (behind or failed):
        names = ", ".join([*sorted(failed), *behind])
        fail(f"not caught up: {names}; the log above gives the reasons", 1)
    if stopped := sum(flow.stopped for flow in flows):
        log.warning("%d partitions or topics are stopped; the log above gives the reasons", stopped)


async def _main(
    files: list[Path],
    targets: tuple[str, ...],
    document: Settings,
    deployment: Deployment,
    until_caught_up: bool,
    master: str | None,
    conf: dict[str, str],
    rest: RestSettings,
    serving: list[OpenListener],
    metrics: MetricsListener | None,
    events: Events,
    console: Console,
) -> tuple[list[FlowStatus], list[str]]:
    is_shared = bool(deployment.membership) and not until_caught_up
    id_ = serving[0].address if serving else "heliograph"
    members = Members(deployment.all_flows, deployment.membership, id_) if is_shared else None
    running = Supervisor(
        deployment.all_flows,
        elsewhere=deployment.flows_elsewhere,
        master=master,
        conf=conf,
        secure_spark=document.get(SPARK_SECURE, "", ""),
        until_caught_up=until_caught_up,
        members=members,
    )
    without_flows = document.get(SPARK_WARM, "", "")
    if members is not None:
        members.start(running)
        without_flows = not await members.wait_for_first_look(_STARTS_SPARK_AFTER) or without_flows
    running.start_spark(without_flows)
    from heliograph.rest.app import make_app  # FastAPI: takes a quarter of a second, while Spark's JVM starts

    worker = Worker(id_)
    connectors = Connectors(running, worker, allowed=rest.allowed)
    of_files = FileFlows(files, document, deployment, connectors, targets, members)
    copying = [flow.name for flow in running.copying()]
    log.info("mirroring %s%s", flow_names(deployment), "; starting Spark" if copying else "")
    states, health = ConnectorStates(connectors, members), Health(running, lambda: _targets(running))
    servers = [] if metrics is None else [metrics.server(connectors, states, events, health)]
    if serving:
        target = deployment.all_flows[0].target
        servers.append(RestServer(make_app(connectors, states, events, target, health, rest, members), serving))
    refreshing = asyncio.create_task(keep_refreshing(of_files.refresh_seconds, of_files.refresh))
    try:
        await run_until_stopped(running, console, servers, of_files.reload)
    finally:
        refreshing.cancel()
        await asyncio.gather(refreshing, return_exceptions=True)
    behind = [f"{flow} {partition}" for flow, partition in running.behind()]
    behind += [f"{flow.name}, which is paused" for flow in deployment.flows if SOURCE in deployment.paused_parts(flow)]
    return running.status(), behind


def _targets(running: Supervisor) -> list[Storage]:
    """Ledgers and signals are on the targets."""
    return [Storage(target) for target in {flow.target.alias: flow.target for flow in running.copying()}.values()]
