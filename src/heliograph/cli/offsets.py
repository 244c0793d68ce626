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

from heliograph.cli.choice import WorkerFile, answers, choose, loaded
from heliograph.cli.screen import FILES, age, counted, fail
from heliograph.service.offset_report import FlowOffsets, NoSuchTopic, PartitionOffsets, look_at_offsets
from heliograph.wire.errors import WireError

_HEAD = ("part", "source\nstart", "\nend", "\nposition", "mirror\nstart", "\nend", "\ndiff", "\nlag", "\nage")


def offsets(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=FILES, show_default=False)],
    flow: Annotated[str | None, typer.Argument(metavar="FLOW", help="Such as 'A->B', in quotes.")] = None,
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="A topic, by its own name or its mirror's.")
    ] = None,
    worker: WorkerFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show start and end of every partition on source and mirror, and how far the mirror is behind.

    `position` is the next source offset to copy, `diff` is mirror offset minus source offset at the position, `lag`
    counts the source offsets that are not copied yet, and `age` is the age of the oldest record among them. Everything
    is read from the logs and the ledger: the flow need not run. The exit status is 1 if a partition cannot be copied.

    Example: heliograph offsets mm2.properties 'A->B' orders
    """
    deployment = loaded(file, worker)
    flows, name = choose(deployment, flow, topic)
    try:
        reports = asyncio.run(
            answers((look_at_offsets(chosen_flow, deployment.flows, name) for chosen_flow in flows), NoSuchTopic)
        )
    except NoSuchTopic as error:
        fail(str(error), 2)
    except WireError as error:
        fail(f"{deployment.file}: {error}", 2)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(report) for report in reports]))
    else:
        console = Console()
        for report in reports:
            _show(console, report)
    if any(row.problem for report in reports for row in report.partitions):
        raise typer.Exit(1)


def _show(console: Console, report: FlowOffsets) -> None:
    rows = [_cells(partition) for partition in report.partitions]
    lines = [part.split("\n") for part in _HEAD]
    widths = [max(len(line) for line in (*head, *(row[at] for row in rows))) for at, head in enumerate(lines)]
    console.print(report.flow, style="bold", highlight=False)
    if rows:
        console.print(_table(widths, (), header=True))
    for topic, of_topic in groupby(report.partitions, key=lambda partition: (partition.topic, partition.mirror)):
        partitions = list(of_topic)
        console.print(f"{topic[0]} -> {topic[1]}", style="cyan", highlight=False, soft_wrap=True)
        console.print(_table(widths, map(_cells, partitions), header=False))
        for partition in partitions:
            if partition.problem:
                console.print(
                    f"{partition.topic}-{partition.partition}: {partition.problem}", style="bold red", highlight=False
                )
    console.print(_total(report.partitions), highlight=False)


def _table(widths: list[int], rows: Iterable[tuple[str, ...]], header: bool) -> Table:
    table = Table(box=None, padding=(0, 1), pad_edge=False, show_header=header)
    for name, width in zip(_HEAD, widths, strict=True):
        table.add_column(name, justify="right", min_width=width, overflow="fold", vertical="bottom")
    for row in rows:
        table.add_row(*row)
    return table


def _cells(partition: PartitionOffsets) -> tuple[str, ...]:
    numbers = (
        partition.source_start,
        partition.source_end,
        partition.position,
        partition.mirror_start,
        partition.mirror_end,
        partition.difference,
        partition.lag,
    )
    cells = ("-" if number is None else str(number) for number in numbers)
    return str(partition.partition), *cells, "-" if partition.lag_seconds is None else age(partition.lag_seconds)


def _total(rows: tuple[PartitionOffsets, ...]) -> str:
    topics = len({row.topic for row in rows})
    text = f"{counted(len(rows), 'partition')} of {counted(topics, 'topic')}"
    behind = [row for row in rows if row.lag]
    if behind:
        oldest = max(behind, key=lambda row: row.lag_seconds or 0.0)
        text += f"; {len(behind)} behind, by {sum(row.lag or 0 for row in behind)} records"
        text += f", the oldest of which is {age(oldest.lag_seconds or 0.0)} old ({oldest.topic}-{oldest.partition})"
    elif rows:
        text += "; nothing is behind" if all(row.lag == 0 for row in rows) else ""
    problems = sum(bool(row.problem) for row in rows)
    return f"{text}; {problems} cannot go on" if problems else text
