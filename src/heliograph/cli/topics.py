"""`heliograph topics`: the internal topics of flows."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from heliograph.cli.choice import WorkerFile, with_worker
from heliograph.cli.screen import FILES, fail
from heliograph.config import ConfigError, Deployment, load_all
from heliograph.control.internal_topic_setup import InternalTopic, look_up
from heliograph.model.flow import Flow
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError


def topics(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help=FILES, show_default=False)],
    worker: WorkerFile = None,
    commands: Annotated[
        bool,
        typer.Option("--commands", help="Print the commands that create the missing topics, for an administrator."),
    ] = False,
) -> None:
    """List the internal topics of every flow of FILE, and whether they exist.

    If Heliograph is not allowed to create topics, an administrator can run the output of --commands.

    Example: heliograph topics mm2.properties --commands
    """
    try:
        deployment = load_all(with_worker(files, worker))
    except ConfigError as error:
        fail(str(error), 2)
    try:
        internal_topics = asyncio.run(_look(deployment))
    except WireError as error:
        fail(f"{deployment.file}: {error}", 1)
    for flow, topic, exists in internal_topics:
        cluster = flow.source if topic.on_source else flow.target
        if commands:
            if not exists:
                typer.echo(topic.command(cluster.bootstrap_servers))
        else:
            state = "there" if exists else "missing"
            typer.echo(f"{flow.name:<12} {cluster.alias:<10} {topic.topic.name:<50} {state}")


async def _look(deployment: Deployment) -> list[tuple[Flow, InternalTopic, bool]]:
    internal_topics: list[tuple[Flow, InternalTopic, bool]] = []
    for flow in (*deployment.flows, *deployment.heartbeat_only_flows):
        source, target = ClusterClient(flow.source), ClusterClient(flow.target)
        try:
            answers = await look_up(flow, source, target)
            internal_topics += [(flow, topic, not metadata.error) for topic, metadata in answers]
        finally:
            source.close()
            target.close()
    return internal_topics
