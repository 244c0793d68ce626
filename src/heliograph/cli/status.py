"""`heliograph status`: the state of flows, from their last report on the target clusters or from a REST API."""

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from heliograph.cli.choice import WorkerFile, with_worker
from heliograph.cli.remote import show_connectors
from heliograph.cli.rest_client import DEFAULT, Ca, Cert, Credentials, Key, Rest, RestClient, client
from heliograph.cli.screen import FILES, fail, flow_table, member_lines, number
from heliograph.config import ConfigError, load_all
from heliograph.model.flow import Flow
from heliograph.service.flow_status import FlowStatus, Seen, from_json, last_status, to_json
from heliograph.service.members import known_members
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError

_OLD = 20.0  # a running flow reports every few seconds


def status(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help=f"{FILES} Without FILE: ask --rest.", show_default=False),
    ] = None,
    worker: WorkerFile = None,
    rest: Rest = DEFAULT,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    credentials: Credentials = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show the state of flows: totals, lag, partitions by state, and errors.

    With FILE, reads the status that `heliograph run` writes to the target clusters every five seconds; this works from
    any machine that reaches them. Without FILE, asks a running Heliograph, and shows its connectors, too. The exit
    status is 1 if a flow is not running or has a stopped partition or topic.

    Example: heliograph status mm2.properties

    Example: heliograph status --rest http://127.0.0.1:8083
    """
    if not files:
        _ask(client(rest, ca, cert, key, credentials), as_json)
        return
    try:
        deployment = load_all(with_worker(files, worker))
    except ConfigError as error:
        fail(str(error), 2)
    try:
        seen = asyncio.run(_look(deployment.flows))
        members = asyncio.run(known_members(deployment.all_flows, deployment.membership))
    except WireError as error:
        fail(f"{deployment.file}: {error}", 2)
    if as_json:
        typer.echo(json.dumps([_as_json(flow, last) for flow, last in seen]))
    else:
        _show(seen)
        _show_members(Console(), members)
    if not all(last is not None and last.age < _OLD and not last.status.stopped for _flow, last in seen):
        raise typer.Exit(1)


def _ask(api: RestClient, as_json: bool) -> None:
    flows = api.ask("GET", "/heliograph/v1/flows")
    connectors = api.ask("GET", "/connectors?expand=status")
    members = api.ask("GET", "/heliograph/v1/members")
    copying = [from_json(flow["status"]) for flow in flows if flow["status"] is not None]
    if as_json:
        typer.echo(json.dumps({"flows": flows, "connectors": connectors, "members": members}))
    else:
        console = Console()
        if copying:
            console.print(flow_table(copying, "Flows"))
        show_connectors(connectors, {str(refusal) for flow_status in copying for refusal in flow_status.refusals})
        for flow_status in copying:
            _details(console, flow_status)
        _show_members(console, members)
    if any(flow["trouble"] for flow in flows) or any(flow_status.stopped for flow_status in copying):
        raise typer.Exit(1)


async def _look(flows: tuple[Flow, ...]) -> list[tuple[Flow, Seen | None]]:
    async def last_of(flow: Flow) -> tuple[Flow, Seen | None]:
        client = ClusterClient(flow.target)
        try:
            await client.connect()
            return flow, await last_status(client, flow.source.alias)
        finally:
            client.close()

    return list(await asyncio.gather(*(last_of(flow) for flow in flows)))


def _as_json(flow: Flow, seen: Seen | None) -> dict[str, Any]:
    if seen is None:
        return {"name": flow.name, "running": False}
    return {"running": seen.age < _OLD, "seconds_ago": round(seen.age, 1), **to_json(seen.status)}


def _show(seen: list[tuple[Flow, Seen | None]]) -> None:
    console = Console()
    known = [last.status for _flow, last in seen if last is not None]
    if known:
        console.print(flow_table(known, "Flows"))
    for flow, last in seen:
        if last is None:
            console.print(f"{flow.name}: not running, and has not been for an hour", style="bold red", highlight=False)
            continue
        if last.age >= _OLD:
            text = f"{flow.name}: not running; the above is from {last.age:.0f} s ago"
            console.print(text, style="bold red", highlight=False)
        _details(console, last.status)


def _details(console: Console, flow: FlowStatus) -> None:
    states = ", ".join(f"{count} {name}" for name, count in sorted(flow.states.items()))
    console.print(f"{flow.name}: partitions: {states or 'none'}", highlight=False)
    for other in flow.other_runs:
        console.print(f"{flow.name}: {other}", style="bold red", highlight=False)
    for stalled in flow.stalled:
        console.print(f"{flow.name}: open-transaction: {stalled}", style="yellow", highlight=False)
    for kind, count in sorted(flow.events.items()):
        records = flow.records_of_events.get(kind, 0)
        about = f" ({_counted(records, 'record')})" if records else ""
        console.print(f"{flow.name}: {kind}: {_counted(count, 'time')}{about}", style="yellow", highlight=False)
    for topic, why in flow.failed_topics.items():
        console.print(f"{flow.name}: topic {topic} is not mirrored: {why}", style="bold red", highlight=False)
    for refusal in flow.refusals:
        style = "bold red" if refusal.final else "yellow"
        console.print(f"{flow.name}: {refusal.reason}: {refusal}", style=style, highlight=False)
    for notice in flow.notices[-10:]:
        console.print(f"{flow.name}: {notice.kind}: {notice}", style="yellow", highlight=False)


def _show_members(console: Console, groups: list[dict[str, Any]]) -> None:
    for text, style in member_lines(groups):
        console.print(text, style=style, highlight=False)


def _counted(count: int, what: str) -> str:
    return f"{number(count)} {what}" if count == 1 else f"{number(count)} {what}s"
