"""`heliograph offsets`: source and mirror of every partition side by side."""

import asyncio
import dataclasses
import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from heliograph.cli.choice import answers, choose, loaded
from heliograph.cli.screen import FILES, age, counted, fail
from heliograph.service.offset_report import FlowOffsets, NoSuchTopic, PartitionOffsets, look_at_offsets
from heliograph.wire.errors import WireError

_HEAD = ("part", "source\nstart", "\nend", "\nposition", "mirror\nstart", "\nend", "\ndiff", "\nlag", "\nage")


def offsets(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=FILES, show_default=False)],
    flow: Annotated[str | None, typer.Argument(metavar="FLOW", help="Such as 'A->B', in quotes.")] = None,
    topic: Annotated[str | None, typer.Argument(metavar="TOPIC", help="By its name, or its mirror's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show where source and mirror of every partition begin and end, and how far the mirror is behind.

    `position` is the source offset that comes next, `diff` is mirror offset minus source offset there, `lag` counts the
    source offsets that are not copied yet, and `age` is that of the oldest record among them. Read from the logs and
    the ledger: the flow need not run. The exit status is 1 if a partition cannot be copied as it is.

    Example: heliograph offsets mm2.properties 'A->B' orders
    """
    deployment = loaded(file)
    flows, name = choose(deployment, flow, topic)
    try:
        found = asyncio.run(answers((look_at_offsets(one, deployment.flows, name) for one in flows), NoSuchTopic))
    except NoSuchTopic as error:
        fail(str(error), 2)
    except WireError as error:
        fail(f"{deployment.file}: {error}", 2)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(one) for one in found]))
    else:
        console = Console()
        for one in found:
            _show(console, one)
    if any(row.problem for one in found for row in one.partitions):
        raise typer.Exit(1)


def _show(console: Console, found: FlowOffsets) -> None:
    rows = [_cells(one) for one in found.partitions]
    lines = [part.split("\n") for part in _HEAD]
    widths = [max(len(line) for line in (*head, *(row[at] for row in rows))) for at, head in enumerate(lines)]
    console.print(found.flow, style="bold", highlight=False)
    if rows:
        console.print(_table(widths, (), header=True))
    for topic, some in groupby(found.partitions, key=lambda one: (one.topic, one.mirror)):
        of_topic = list(some)
        console.print(f"{topic[0]} -> {topic[1]}", style="cyan", highlight=False, soft_wrap=True)
        console.print(_table(widths, map(_cells, of_topic), header=False))
        for one in of_topic:
            if one.problem:
                console.print(f"{one.topic}-{one.partition}: {one.problem}", style="bold red", highlight=False)
    console.print(_total(found.partitions), highlight=False)


def _table(widths: list[int], rows: Iterable[tuple[str, ...]], header: bool) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, show_header=header)
    for name, width in zip(_HEAD, widths, strict=True):
        table.add_column(name, justify="right", min_width=width, overflow="fold", vertical="bottom")
    for row in rows:
        table.add_row(*row)
    return table


def _cells(one: PartitionOffsets) -> tuple[str, ...]:
    numbers = one.source_start, one.source_end, one.position, one.mirror_start, one.mirror_end, one.difference, one.lag
    cells = ("-" if number is None else str(number) for number in numbers)
    return str(one.partition), *cells, "-" if one.lag_seconds is None else age(one.lag_seconds)


def _total(rows: tuple[PartitionOffsets, ...]) -> str:
    topics = len({one.topic for one in rows})
    text = f"{counted(len(rows), 'partition')} of {counted(topics, 'topic')}"
    behind = [one for one in rows if one.lag]
    if behind:
        oldest = max(behind, key=lambda one: one.lag_seconds or 0.0)
        text += f"; {len(behind)} behind, by {sum(one.lag or 0 for one in behind)} records"
        text += f", the oldest of which is {age(oldest.lag_seconds or 0.0)} old ({oldest.topic}-{oldest.partition})"
    elif rows:
        text += "; nothing is behind" if all(one.lag == 0 for one in rows) else ""
    problems = sum(bool(one.problem) for one in rows)
    return f"{text}; {problems} cannot go on" if problems else text
