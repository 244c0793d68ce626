"""The commands that use the REST API of a running Heliograph: connectors, pause, resume, restart, logs."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Collection
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heliograph.cli.screen import fail

DEFAULT = "http://127.0.0.1:8083"
_OWN = "/heliograph/v1"
_TIMEOUT = 30.0
_STYLES = {"RUNNING": "green", "FAILED": "bold red"}

Rest = Annotated[
    str, typer.Option("--rest", metavar="URL", envvar="HELIOGRAPH_REST", help="Address of Heliograph's REST API.")
]
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


class NoAnswer(Exception):
    """The reason in one line, and the exit status for it."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def ask(rest: str, method: str, path: str, body: object = None) -> Any:
    """The decoded JSON of the answer; None for an empty answer. Prints an error and ends the command."""
    try:
        return answer_of(rest, method, path, body)
    except NoAnswer as error:
        fail(str(error), error.status)


def answer_of(rest: str, method: str, path: str, body: object = None) -> Any:
    """The same, but raises NoAnswer."""
    url = rest if "://" in rest else f"http://{rest}"
    data = None if body is None else json.dumps(body).encode()
    headers = {} if data is None else {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url.rstrip('/')}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            text = answer.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        raise NoAnswer(_message(error), 1) from None
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        hint = "Is Heliograph running, and is this its address (--rest)?"
        raise NoAnswer(f"no answer from {url}: {reason}. {hint}", 2) from None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read())["message"])
    except (ValueError, KeyError, TypeError):
        return f"{error.code} {error.reason}"


def connectors(rest: Rest = DEFAULT, as_json: AsJson = False) -> None:
    """Show the connectors of a running Heliograph (or of a Connect worker), their tasks, and why one failed.

    The exit status is 1 if a connector or task has failed.

    Example: heliograph connectors --rest http://127.0.0.1:8083
    """
    by_name = ask(rest, "GET", "/connectors?expand=status")
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


def pause(names: Names, topic: Topics = None, rest: Rest = DEFAULT, as_json: AsJson = False) -> None:
    """Pause connectors, all connectors of a flow, or single topics of a flow. Mirrors stay; copying resumes later.

    Example: heliograph pause 'A->B' --topic orders
    """
    _change(rest, names, topic or [], as_json, "paused", lambda path: ask(rest, "PUT", f"{path}/pause"))


def resume(names: Names, topic: Topics = None, rest: Rest = DEFAULT, as_json: AsJson = False) -> None:
    """Resume connectors, all connectors of a flow, or single topics of a flow.

    Example: heliograph resume 'A->B'
    """
    _change(rest, names, topic or [], as_json, "resumed", lambda path: ask(rest, "PUT", f"{path}/resume"))


def restart(names: Names, rest: Rest = DEFAULT, as_json: AsJson = False) -> None:
    """Restart connectors, or all connectors of a flow, task by task.

    Example: heliograph restart 'A->B.MirrorSourceConnector'
    """

    def restart_one(path: str) -> Any:
        return ask(rest, "POST", f"{path}/restart" + ("" if path.startswith(_OWN) else "?includeTasks=true"))

    _change(rest, names, [], as_json, "restarted", restart_one)


def _change(
    rest: str, names: list[str], topics: list[str], as_json: bool, done: str, change: Callable[[str], Any]
) -> None:
    known = ask(rest, "GET", "/connectors")
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
    as_json: AsJson = False,
) -> None:
    """Show or change the log levels of a running Heliograph, until it ends.

    Example: heliograph logs level DEBUG --logger heliograph.control
    """
    if new is not None:
        ask(rest, "PUT", f"/admin/loggers/{quote(logger, safe='')}", {"level": new.upper()})
    levels = {name: entry["level"] for name, entry in ask(rest, "GET", "/admin/loggers").items()}
    typer.echo(
        json.dumps(levels) if as_json else "\n".join(f"{name} {level}" for name, level in sorted(levels.items()))
    )
