"""`heliograph acls`: the ACLs that flows need, and whether their principals have them."""

import asyncio
import json
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from heliograph.cli.acl_formats import as_json, commands, kafka_users
from heliograph.cli.choice import WorkerFile, choose, loaded
from heliograph.cli.screen import FILES, counted, fail
from heliograph.control.principals import Principal
from heliograph.service import acl_report
from heliograph.service.acl_report import CheckedPrincipal
from heliograph.wire.errors import WireError


class AclFormat(StrEnum):
    commands = "commands"
    strimzi = "strimzi"
    json = "json"


def acls(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=FILES, show_default=False)],
    flow: Annotated[str | None, typer.Argument(metavar="FLOW", help="Such as 'A->B', in quotes.")] = None,
    principal: Annotated[
        str | None,
        typer.Option(
            "--principal", metavar="USER", help="Whom to allow, such as User:mirror. Default: who FILE logs in as."
        ),
    ] = None,
    output: Annotated[
        AclFormat, typer.Option("--format", help="Commands for kafka-acls.sh, Strimzi's KafkaUser, or JSON.")
    ] = AclFormat.commands,
    resolve: Annotated[
        bool, typer.Option("--resolve", help="Name the topics and groups that exist now, instead of prefixes.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Connect as FILE says, and show which of the ACLs are there.")
    ] = False,
    worker: WorkerFile = None,
    json_output: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Print the ACLs that each flow of FILE needs on each cluster, for what it is configured to do, and no others.

    Connects to no cluster, unless --resolve or --check is given. ACLs have names and prefixes: where a pattern of
    `topics` or `groups` is neither, what is printed allows more names than match, and a note says so. With --check the
    brokers are asked what they allow; the exit status is 1 if something is missing, and 2 if a cluster cannot be
    reached.

    Example: heliograph acls mm2.properties 'A->B' --principal User:mirror

    Example: heliograph acls mm2.properties --check
    """
    deployment = loaded(file, worker)
    flows, unknown = choose(deployment, flow, None)
    if unknown is not None:
        fail(f"{deployment.file} has no flow {unknown}; there are {', '.join(flow.name for flow in flows)}", 2)
    if flow is None:
        flows += deployment.heartbeat_only_flows
    is_json = json_output or output is AclFormat.json
    if principal is not None and not re.fullmatch(r"\w+:.+", principal):
        fail(f"--principal {principal}: a principal has a type, such as User:{principal}", 2)
    try:
        if check:
            _show(asyncio.run(acl_report.check(flows, principal, deployment.membership)), is_json)
            return
        if resolve:
            required = asyncio.run(acl_report.resolved(flows, principal, deployment.membership))
        else:
            required = acl_report.required(flows, principal, deployment.membership)
    except WireError as error:
        fail(f"{deployment.file}: {error}", 2)
    for pattern in required.wider:
        text = f"no ACL can say {pattern}: more names than match are allowed; --resolve names those that match now"
        typer.echo(f"note: {text}", err=True)
    for stand_in in (found for found in required.principals if not found.is_known):
        who = f"the principal on {stand_in.cluster.alias}, which only its brokers know"
        typer.echo(f"note: {stand_in.name} stands for {who}: replace it, or use --principal", err=True)
    if is_json:
        typer.echo(json.dumps(as_json(required.principals)))
    elif output is AclFormat.strimzi:
        typer.echo(kafka_users(required.principals), nl=False)
    else:
        typer.echo("\n".join(commands(required.principals)), nl=False)


def _show(report: Sequence[CheckedPrincipal], is_json: bool) -> None:
    if is_json:
        typer.echo(json.dumps([row for entry in report for row in _rows(entry)]))
    else:
        console = Console()
        for entry in report:
            console.print(_title(entry.principal), style="bold", highlight=False, soft_wrap=True)
            console.print(_table(entry))
        missing = sum(len(entry.missing_needed) for entry in report)
        text = f"{counted(missing, 'ACL')} missing" if missing else "Nothing is missing."
        console.print(text, style="bold red" if missing else "", highlight=False)
    if any(entry.missing_needed for entry in report):
        raise typer.Exit(1)


def _title(principal: Principal) -> str:
    who = principal.name if principal.is_known else "as FILE logs in"
    return f"cluster {principal.cluster.alias}, {who}, for {', '.join(principal.flows)}"


def _table(entry: CheckedPrincipal) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head in ("operation", "resource", "state", "without it"):
        table.add_column(head, overflow="fold")
    for checked in entry.checked:
        optional = "optional: " if entry.is_optional(checked) else ""
        style = "" if checked.allowed or optional else "bold red" if checked.allowed is False else "yellow"
        lost = "; ".join(entry.lost_without(checked))
        table.add_row(
            checked.grant.operation, str(checked.grant.resource), checked.text, f"{optional}{lost}", style=style
        )
    return table


def _rows(entry: CheckedPrincipal) -> list[dict[str, object]]:
    states = {checked.grant: checked for checked in entry.checked}
    return [
        row | {"allowed": states[grant].allowed, "refused_for": list(states[grant].refused)}
        for row in as_json([entry.principal])
        for grant in states
        if (grant.resource.type, grant.resource.name, grant.resource.pattern, grant.operation)
        == (row["resource_type"], row["name"], row["pattern"], row["operation"])
    ]
