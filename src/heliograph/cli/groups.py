"""`heliograph groups`: offsets of consumer groups on both clusters, and why a group is not synced."""

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from heliograph.cli.choice import WorkerFile, answers, choose, loaded
from heliograph.cli.screen import FILES, counted, fail, number
from heliograph.model.flow import Flow
from heliograph.service.group_report import (
    FlowGroups,
    GroupPartition,
    GroupStanding,
    NoAnswer,
    look_at_groups,
    sync_now,
)
from heliograph.wire.errors import WireError

_EXACT = ("source\noffset", "mirror\noffset", "target\nhas", "mirror\nend")


def groups(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=FILES, show_default=False)],
    flow: Annotated[str | None, typer.Argument(metavar="FLOW", help="Such as 'A->B', in quotes.")] = None,
    group: Annotated[str | None, typer.Argument(metavar="GROUP", help="Show every partition of this group.")] = None,
    sync: Annotated[bool, typer.Option("--sync", help="First translate and sync once, now. This writes.")] = False,
    worker: WorkerFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show the consumer groups of each flow's source: committed offsets, their position in the mirrors, the offsets on
    the target, and for a group that is not synced the reason and the remedy.

    Writes nothing without --sync. With --sync, writes checkpoints and offsets once, as the running flow does: never for
    a group in use, never backwards. This also works if sync.group.offsets.enabled is false. The exit status is 1 if a
    group is not synced, except groups that the file excludes.

    Example: heliograph groups mm2.properties

    Example: heliograph groups mm2.properties 'A->B' billing --sync
    """
    deployment = loaded(file, worker)
    flows, name = choose(deployment, flow, group)
    try:
        reports = asyncio.run(_look(flows, name, sync))
    except NoAnswer as error:
        fail(str(error), 2)
    except WireError as error:
        fail(f"{deployment.file}: {error}", 2)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(report) for report, _written in reports]))
    else:
        console = Console()
        for report, written in reports:
            _show(console, report, name)
            if written is not None:
                console.print(f"--sync wrote offsets of {counted(written, 'group')}", highlight=False)
    all_answered = name is not None or len(reports) == len(flows)
    if not (
        all_answered
        and all(standing.synced or standing.left_out for report, _written in reports for standing in report.groups)
    ):
        raise typer.Exit(1)


async def _look(flows: tuple[Flow, ...], group: str | None, sync: bool) -> list[tuple[FlowGroups, int | None]]:
    """The report of each flow that has one, and with --sync the number of groups whose offsets were written."""

    async def report_of(flow: Flow) -> tuple[FlowGroups, int | None]:
        written = len((await sync_now(flow, group)).written) if sync else None
        return await look_at_groups(flow, group), written

    return await answers(map(report_of, flows), NoAnswer, say=group is None)


def _show(console: Console, report: FlowGroups, group: str | None) -> None:
    console.print(report.flow, style="bold", highlight=False)
    if group is not None:
        for standing in report.groups:
            _show_one(console, standing)
        return
    shown = [standing for standing in report.groups if not standing.left_out]
    if shown:
        console.print(_overview(shown))
    _reasons(
        console,
        (
            (f"{standing.state}: {standing.text}", standing.advice, standing.group)
            for standing in shown
            if not standing.synced
        ),
    )
    left_out = Counter(standing.text for standing in report.groups if standing.left_out)
    for text, count in sorted(left_out.items()):
        console.print(f"{counted(count, 'group')} left out: {text}", style="dim", highlight=False)
    synced = sum(standing.synced for standing in shown)
    console.print(f"{synced} of {counted(len(shown), 'group')} synced", highlight=False)


def _overview(standings: Iterable[GroupStanding]) -> Table:
    table = Table(expand=False)
    table.add_column("group", overflow="fold")
    for name in ("parts", "synced", "lag on\nsource", "lag on\nmirror"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for standing in standings:
        synced = sum(row.state == "synced" for row in standing.partitions)
        lags = (
            _total(row.source_lag for row in standing.partitions),
            _total(row.mirror_lag for row in standing.partitions),
        )
        table.add_row(standing.group, str(len(standing.partitions)), str(synced), *lags, _state(standing.state))
    return table


def _show_one(console: Console, group: GroupStanding) -> None:
    console.print(group.group, style="cyan", highlight=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("partition", overflow="fold")
    for name in (*_EXACT, "lag on\nsource", "lag on\nmirror"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("state", no_wrap=True)
    for row in group.partitions:
        exact = (_text(offset) for offset in (row.source_offset, row.mirror_offset, row.target_offset, row.mirror_end))
        lags = (_total([row.source_lag]), _total([row.mirror_lag]))
        table.add_row(f"{row.topic}-{row.partition}", *exact, *lags, _state(row.state))
    if group.partitions:
        console.print(table)
        _reasons(console, (_reason_of(row) for row in group.partitions if row.text))
    else:
        _reasons(console, [(f"{group.state}: {group.text}", group.advice, group.group)])
    synced = sum(row.state == "synced" for row in group.partitions)
    console.print(f"{synced} of {counted(len(group.partitions), 'partition')} synced", highlight=False)


def _reason_of(row: GroupPartition) -> tuple[str, str, str]:
    return f"{row.state}: {row.text}", row.advice, f"{row.topic}-{row.partition}"


def _reasons(console: Console, reasons: Iterable[tuple[str, str, str]]) -> None:
    """Prints each reason once, with the names it applies to."""
    about: dict[tuple[str, str], list[str]] = {}
    for text, advice, name in reasons:
        about.setdefault((text, advice), []).append(name)
    for (text, advice), names in about.items():
        named = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        console.print(f"{named}: {text}", highlight=False)
        if advice:
            console.print(f"  what would change it: {advice}", style="cyan", highlight=False)


def _state(state: str) -> Text:
    return Text(state, {"synced": "green", "due": "cyan", "not-copied": "cyan"}.get(state, "yellow"))


def _text(value: int | None) -> str:
    return "-" if value is None else str(value)


def _total(lags: Iterable[int | None]) -> str:
    known_lags = [lag for lag in lags if lag is not None]
    return number(sum(known_lags)) if known_lags else "-"
