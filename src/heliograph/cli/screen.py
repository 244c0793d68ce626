"""What an operator sees: log lines, a line of progress, the live table. Decides nothing."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table
from rich.text import Text

from heliograph.cli.json_log import JsonFormatter, LogFormat
from heliograph.config.messages import one_line
from heliograph.service.flow_status import FlowStatus

FILES = "An mm2.properties; or connectors as JSON, Strimzi's YAML, or a directory of such files."

_PLAIN = "%(asctime)s %(levelname)-7s %(message)s"


def log_console(log_format: LogFormat) -> Console:
    """Where log lines go. For JSON it is not a terminal, so that no live display mixes with the lines."""
    return Console(stderr=True, force_terminal=False if log_format == LogFormat.JSON else None)


class _LineFormatter(logging.Formatter):
    """Escapes control characters, and indents what follows a line break: a name from outside cannot look like another
    line of the log."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = "\n    ".join(map(one_line, record.message.split("\n")))
        return super().formatMessage(record)


def set_up_logging(console: Console, verbose: bool, log_format: LogFormat = LogFormat.TEXT) -> None:
    """Logs to stderr: above the live display on a terminal, plain lines with a time elsewhere, or JSON."""
    if log_format == LogFormat.JSON:
        plain = logging.StreamHandler()
        plain.setFormatter(JsonFormatter())
        logging.basicConfig(level=logging.INFO, handlers=[plain])
    elif console.is_terminal:
        handler: logging.Handler = RichHandler(
            console=console, show_path=False, show_level=True, markup=False, rich_tracebacks=False, log_time_format="%X"
        )
        handler.setFormatter(_LineFormatter("%(message)s"))
        logging.basicConfig(level=logging.INFO, handlers=[handler])
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(_LineFormatter(_PLAIN, "%Y-%m-%dT%H:%M:%S"))
        logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("heliograph").setLevel(logging.DEBUG if verbose else logging.INFO)
    logging.getLogger("py4j").setLevel(logging.WARNING)
    if not verbose:
        for handler in logging.getLogger().handlers:
            handler.addFilter(_not_from_py4j)


def _not_from_py4j(record: logging.LogRecord) -> bool:
    """Py4J logs stack traces through the root logger if the JVM ends first. Heliograph logs the cause itself."""
    return "py4j" not in record.pathname


def fail(text: str, status: int) -> NoReturn:
    """Prints one line to stderr and ends the command."""
    typer.echo(f"heliograph: {text}", err=True)
    raise typer.Exit(status)


def progress_line(flows: Sequence[FlowStatus]) -> str:
    """All flows in one line: `A->B 12 mirrors, 1.2 M records/s, 130 MB/s, lag 3.4 k`."""
    return "; ".join(_progress(flow) for flow in flows)


def _progress(flow: FlowStatus) -> str:
    parts = [
        f"{flow.name} {flow.mirrors} mirror{'' if flow.mirrors == 1 else 's'}",
        f"{number(flow.records_per_second)} records/s",
        f"{size(flow.bytes_per_second)}/s",
        f"lag {'?' if flow.lag is None else number(flow.lag)}",
    ]
    if stopped := flow.stopped:
        parts.append(f"{stopped} STOPPED")
    if waiting := len(flow.refusals) + len(flow.failed_topics) - stopped:
        parts.append(f"{waiting} waiting")
    return ", ".join(parts)


def flow_table(flows: Sequence[FlowStatus], title: str) -> Table:
    table = Table(title=title, title_justify="left", expand=False)
    table.add_column("flow", no_wrap=True)
    for name in ("mirrors", "parts", "copied", "rec/s", "bytes/s", "lag"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for flow in flows:
        state = Text(f"{flow.stopped} stopped", "bold red") if flow.stopped else Text(*_state(flow))
        table.add_row(
            flow.name,
            str(flow.mirrors),
            str(flow.partitions),
            number(flow.records),
            number(flow.records_per_second),
            size(flow.bytes_per_second),
            "?" if flow.lag is None else number(flow.lag),
            state,
        )
    return table


def member_lines(groups: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """A line for each member of groups with more than one, as the REST API has them, and its style."""
    lines = []
    for group in groups:
        for member in group["members"] if len(group["members"]) > 1 else ():
            name = f"{group['cluster']}: member {member['member']} on {member['host']}"
            leads = ", leads" if member["member"] == group["leader"] else ""
            drives = f"drives {', '.join(member['flows'])}" if member["flows"] else "drives no flow"
            refused = f", refused: {member['refused']}" if member["refused"] else ""
            lines.append((f"{name} {drives}{leads}{refused}", "bold red" if refused else ""))
    return lines


def _state(flow: FlowStatus) -> tuple[str, str]:
    if flow.lag is None:
        return "starting", "yellow"
    return ("caught up", "green") if flow.lag == 0 else ("copying", "cyan")


def size(value: float) -> str:
    text = number(value)
    return f"{text}B" if text[-1].isalpha() else f"{text} B"


def number(value: float) -> str:
    """A number short enough for a table: 950, 12.3 k, 4.56 M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.0f}"


def age(seconds: float) -> str:
    """A span of time short enough for a table: 0, 1.2 s, 5 min, 3.4 h, 12 d."""
    for limit, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= limit:
            return f"{seconds / limit:.2g} {unit}" if seconds < 10 * limit else f"{seconds / limit:.0f} {unit}"
    return f"{seconds:.2g} s" if seconds else "0"


def counted(count: int, what: str) -> str:
    """1 topic, 2 topics."""
    return f"{count} {what}{'' if count == 1 else 's'}"
