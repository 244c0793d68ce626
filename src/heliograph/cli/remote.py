"""The commands that use the REST API of a running Heliograph: connectors, pause, resume, restart, logs."""

import json
from collections.abc import Callable, Collection
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heliograph.cli.rest_client import DEFAULT, Ca, Cert, Credentials, Key, Rest, RestClient, client
from heliograph.cli.screen import fail

_OWN = "/heliograph/v1"
_STYLES = {"RUNNING": "green", "FAILED": "bold red"}

AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
Names = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...", help="Connectors, or flows such as 'A->B' with all their connectors.", show_default=False
    ),
]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC", help="Only this topic of the flow; may be given several times."),
]


def connectors(
    rest: Rest = DEFAULT,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    credentials: Credentials = None,
    as_json: AsJson = False,
) -> None:
    """Show the connectors of a running Heliograph (or of a Connect worker), their tasks, and why one failed.

    The exit status is 1 if a connector or task has failed.

    Example: heliograph connectors --rest http://127.0.0.1:8083
    """
    by_name = client(rest, ca, cert, key, credentials).ask("GET", "/connectors?expand=status")
    typer.echo(json.dumps(by_name)) if as_json else show_connectors(by_name)
    if any(state == "FAILED" for connector in by_name.values() for state in _states(connector["status"])):
        raise typer.Exit(1)


def show_connectors(by_name: dict[str, Any], shown_reasons: Collection[str] = ()) -> None:
    """Prints connectors and the reasons of failures, except those in `shown_reasons`."""
    console = Console()
    if not by_name:
        console.print("no connectors")
        return
    table = Table(title="Connectors", title_justify="left")
    table.add_column("connector", overflow="fold")
    table.add_column("state", no_wrap=True)
    table.add_column("tasks", overflow="fold")
    for name, connector in sorted(by_name.items()):
        own, *tasks = _states(connector["status"])
        counts = ", ".join(f"{tasks.count(state)} {state}" for state in dict.fromkeys(tasks))
        style = "bold red" if "FAILED" in tasks else ""
        table.add_row(name, Text(own, _STYLES.get(own, "yellow")), Text(counts or "none", style))
    console.print(table)
    for name, connector in sorted(by_name.items()):
        for part in (connector["status"]["connector"], *connector["status"]["tasks"]):
            for line in part.get("trace", "").splitlines():
                if line in shown_reasons:
                    continue
                console.print(f"{name}: {line}", style="bold red", highlight=False, soft_wrap=True)


def _states(status: dict[str, Any]) -> list[str]:
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]


def pause(
    names: Names,
    topic: Topics = None,
    rest: Rest = DEFAULT,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    credentials: Credentials = None,
    as_json: AsJson = False,
) -> None:
    """Pause connectors, all connectors of a flow, or single topics of a flow. Mirrors stay; copying resumes later.

    Example: heliograph pause 'A->B' --topic orders
    """
    api = client(rest, ca, cert, key, credentials)
    _change(api, names, topic or [], as_json, "paused", lambda path: api.ask("PUT", f"{path}/pause"))


def resume(
    names: Names,
    topic: Topics = None,
    rest: Rest = DEFAULT,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    credentials: Credentials = None,
    as_json: AsJson = False,
) -> None:
    """Resume connectors, all connectors of a flow, or single topics of a flow.

    Example: heliograph resume 'A->B'
    """
    api = client(rest, ca, cert, key, credentials)
    _change(api, names, topic or [], as_json, "resumed", lambda path: api.ask("PUT", f"{path}/resume"))


def restart(
    names: Names,
    rest: Rest = DEFAULT,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    credentials: Credentials = None,
    as_json: AsJson = False,
) -> None:
    """Restart connectors, or all connectors of a flow, task by task.

    Example: heliograph restart 'A->B.MirrorSourceConnector'
    """
    api = client(rest, ca, cert, key, credentials)

    def restart_one(path: str) -> Any:
        return api.ask("POST", f"{path}/restart" + ("" if path.startswith(_OWN) else "?includeTasks=true"))

    _change(api, names, [], as_json, "restarted", restart_one)


def _change(
    api: RestClient, names: list[str], topics: list[str], as_json: bool, done: str, change: Callable[[str], Any]
) -> None:
    known = api.ask("GET", "/connectors")
    changed: list[str] = []
    for name in names:
        if name in known and topics:
            fail(f"{name} is a connector: --topic needs a flow such as 'A->B'", 2)
        if name in known:
            change(f"/connectors/{quote(name, safe='')}")
            changed.append(name)
            continue
        flow = f"{_OWN}/flows/{quote(name, safe='')}"
        for path in [f"{flow}/topics/{quote(topic, safe='')}" for topic in topics] or [flow]:
            change(path)
        changed += [f"{name} {topic}" for topic in topics] or [name]
    typer.echo(json.dumps({done: changed}) if as_json else "\n".join(f"{done} {name}" for name in changed))


logs = typer.Typer(help="The log levels of a running Heliograph.", no_args_is_help=True, rich_markup_mode=None)


@logs.callback()
def _logs() -> None:
    """The log levels of a running Heliograph."""


@logs.command("level")
def level(
    new: Annotated[
        str | None, typer.Argument(metavar="LEVEL", help="DEBUG, INFO, WARN or ERROR; without it, levels are shown.")
    ] = None,
    logger: Annotated[str, typer.Option(help="Only this logger, e.g. heliograph.control.")] = "heliograph",
    rest: Rest = DEFAULT,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    credentials: Credentials = None,
    as_json: AsJson = False,
) -> None:
    """Show or change the log levels of a running Heliograph, until it ends.

    Example: heliograph logs level DEBUG --logger heliograph.control
    """
    api = client(rest, ca, cert, key, credentials)
    if new is not None:
        api.ask("PUT", f"/admin/loggers/{quote(logger, safe='')}", {"level": new.upper()})
    levels = {name: entry["level"] for name, entry in api.ask("GET", "/admin/loggers").items()}
    typer.echo(
        json.dumps(levels) if as_json else "\n".join(f"{name} {level}" for name, level in sorted(levels.items()))
    )
