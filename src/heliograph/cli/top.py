"""`heliograph top`: a running Heliograph live on one screen."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.box import SIMPLE_HEAD
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from heliograph.cli.rest_client import DEFAULT, Ca, Cert, Credentials, Key, NoAnswer, Rest, RestClient, client
from heliograph.cli.screen import fail, flow_table, member_lines, number, size
from heliograph.service.flow_status import FlowStatus, from_json

_BARS = "▁▂▃▄▅▆▇█"
_SHOWN = 8  # mirrors in each table
_LEVELS = {"WARNING": "yellow", "ERROR": "bold red"}


@dataclass(frozen=True, slots=True)
class Look:
    """The API's answers at one moment. Each mirror has the name of its flow."""

    flows: list[FlowStatus]
    trouble: dict[str, str]
    busiest: list[tuple[str, dict[str, Any]]]
    behind: list[tuple[str, dict[str, Any]]]
    events: list[dict[str, Any]]
    members: list[dict[str, Any]] = field(default_factory=list)


def top(
    rest: Rest = DEFAULT,
    ca: Ca = None,
    cert: Cert = None,
    key: Key = None,
    credentials: Credentials = None,
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0.2, help="How often to refresh.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print the current state, and end.")] = False,
) -> None:
    """Show a running Heliograph live: flows, busiest and most lagging mirrors, last events. Ctrl-C ends it.

    Example: heliograph top --rest http://127.0.0.1:8083
    """
    console = Console()
    api = client(rest, ca, cert, key, credentials)
    history: dict[str, deque[float]] = {}
    try:
        look = look_at(api)
    except NoAnswer as error:
        fail(str(error), error.status)
    remember(history, look)
    if once:
        console.print(frame(look, history, rest, console.width, 40))
        return
    with Live(console=console, screen=True, auto_refresh=False) as live, suppress(KeyboardInterrupt):
        while True:
            live.update(frame(look, history, rest, console.width, console.height), refresh=True)
            time.sleep(every)
            try:
                look = look_at(api)
                remember(history, look)
            except NoAnswer as error:  # it may be restarting
                look = replace(look, trouble={rest: str(error)})


def look_at(api: RestClient) -> Look:
    flows = api.answer_of("GET", "/heliograph/v1/flows")
    busiest: list[tuple[str, dict[str, Any]]] = []
    behind: list[tuple[str, dict[str, Any]]] = []
    for flow in flows:
        path = f"/heliograph/v1/flows/{quote(flow['name'], safe='')}/mirrors?limit={_SHOWN}"
        busiest += [(flow["name"], mirror) for mirror in api.answer_of("GET", f"{path}&order=rate")]
        behind += [(flow["name"], mirror) for mirror in api.answer_of("GET", f"{path}&order=lag")]
    return Look(
        [from_json(flow["status"]) for flow in flows if flow["status"] is not None],
        {flow["name"]: flow["trouble"] for flow in flows if flow["trouble"]},
        sorted(
            (pair for pair in busiest if pair[1]["records_per_second"]), key=lambda pair: -pair[1]["records_per_second"]
        ),
        sorted((pair for pair in behind if pair[1]["lag"]), key=lambda pair: -pair[1]["lag"]),
        api.answer_of("GET", "/heliograph/v1/events?limit=50"),
        api.answer_of("GET", "/heliograph/v1/members"),
    )


def remember(history: dict[str, deque[float]], look: Look) -> None:
    for flow in look.flows:
        history.setdefault(flow.name, deque(maxlen=200)).append(flow.records_per_second)


def frame(look: Look, history: Mapping[str, Sequence[float]], rest: str, width: int, height: int) -> RenderableType:
    """One screen of that size."""
    parts: list[RenderableType] = [Text(f"heliograph top  {rest}  {time.strftime('%X')}", "bold", no_wrap=True)]
    parts.append(flow_table(look.flows, "") if look.flows else Text("no flow copies anything", "yellow"))
    parts += [_spark(flow, history.get(flow.name, ()), width) for flow in look.flows]
    parts += [
        Text(f"{flow}: {why}", "bold red", no_wrap=True, overflow="ellipsis") for flow, why in look.trouble.items()
    ]
    members = member_lines(look.members)
    parts += [Text(text, style, no_wrap=True, overflow="ellipsis") for text, style in members]
    half = (width - 1) // 2
    tables = [
        _table("Busiest mirrors", ("rec/s", "bytes/s"), look.busiest[:_SHOWN], half, _rates),
        _table("Most lagging mirrors", ("lag", "behind"), look.behind[:_SHOWN], half, _lag),
    ]
    parts.append(Columns(tables, padding=(0, 1, 0, 0)))
    rows = max(len(look.busiest[:_SHOWN]), len(look.behind[:_SHOWN]), 1) + 5
    used = 1 + 5 + 2 * len(look.flows) + len(look.trouble) + len(members) + rows + 1
    parts += [Text("Last events", "italic"), *map(_event, look.events[-max(1, height - used) :])]
    return Group(*parts)


def _spark(flow: FlowStatus, rates: Sequence[float], width: int) -> Text:
    """Records per second lately, the newest at the right."""
    room = max(1, width - len(flow.name) - 20)
    shown = list(rates)[-room:]
    most = max(shown, default=0.0) or 1.0
    bars = "".join(_BARS[min(len(_BARS) - 1, int(rate / most * len(_BARS)))] for rate in shown)
    return Text.assemble(f"{flow.name} ", (bars, "cyan"), f" {number(flow.records_per_second)} rec/s", no_wrap=True)


def _table(
    title: str, columns: tuple[str, str], mirrors: list[tuple[str, dict[str, Any]]], width: int, values: Any
) -> Table:
    """With several flows, each topic is shown with the name of its flow."""
    table = Table(title=title, title_justify="left", width=width, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    several = len({flow for flow, _mirror in mirrors}) > 1
    table.add_column("topic", no_wrap=True, ratio=1, overflow="ellipsis")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for flow, mirror in mirrors:
        table.add_row(f"{flow} {mirror['topic']}" if several else mirror["topic"], *values(mirror))
    if not mirrors:
        table.add_row(Text("none", "dim"), "", "")
    return table


def _rates(mirror: dict[str, Any]) -> tuple[str, str]:
    return number(mirror["records_per_second"]), size(mirror["bytes_per_second"])


def _lag(mirror: dict[str, Any]) -> tuple[str, str]:
    return number(mirror["lag"]), seconds(mirror["seconds_behind"])


def seconds(value: float) -> str:
    """A time short enough for a table: 12 s, 5 min, 3.2 h, 4.1 d."""
    for limit, unit in ((86400, "d"), (3600, "h")):
        if value >= limit:
            return f"{value / limit:.1f} {unit}"
    return f"{value / 60:.0f} min" if value >= 60 else f"{value:.0f} s"


def _event(event: dict[str, Any]) -> Text:
    at = time.strftime("%X", time.localtime(event["time"]))
    return Text(f"{at} {event['text']}", _LEVELS.get(event["level"], ""), no_wrap=True, overflow="ellipsis")
