"""Which flow of a file a command is about, and what in it; and asking several flows at once."""

import asyncio
import difflib
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import TypeVar

import typer

from heliograph.cli.screen import fail
from heliograph.config import ConfigError, Deployment, load
from heliograph.model.flow import Flow

T = TypeVar("T")


def loaded(file: Path) -> Deployment:
    try:
        return load(file)
    except ConfigError as error:
        fail(str(error), 2)


def choose(deployment: Deployment, flow: str | None, name: str | None) -> tuple[tuple[Flow, ...], str | None]:
    """The flows, and the name of a group or topic in them. Both may be left out, so a first word that is no flow's name
    is that of something in all of them."""
    flows = tuple(one for one in deployment.flows if one.reads_source)
    if flow is None:
        return flows, None
    known = [one.name for one in flows]
    if flow in known:
        return tuple(one for one in flows if one.name == flow), name
    cut = next((one for one in known if one.startswith(f"{flow}>")), None)
    if cut is not None:
        fail(f"write the flow in quotes, '{cut}': the shell takes what follows > for a file to write to", 2)
    if name is not None or "->" in flow:
        near = difflib.get_close_matches(flow, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        fail(f"{deployment.file} has no flow {flow}; {hint}", 2)
    return flows, flow


async def answers(questions: Iterable[Awaitable[T]], no_answer: type[Exception], say: bool = False) -> list[T]:
    """What flows answer, as long as one of them has an answer; `say` tells why others have none."""
    found, missing = [], []
    for one in await asyncio.gather(*questions, return_exceptions=True):
        if isinstance(one, no_answer):
            missing.append(one)
        elif isinstance(one, BaseException):
            raise one
        else:
            found.append(one)
    if missing and not found:
        raise missing[0]
    for one in missing if say else ():
        typer.echo(f"heliograph: {one}", err=True)
    return found
