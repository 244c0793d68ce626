"""Chooses the flows of a file that a command is about, and asks several flows at once."""

import asyncio
import difflib
from collections.abc import Awaitable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from heliograph.cli.screen import fail
from heliograph.config import ConfigError, Deployment, load_all
from heliograph.config.read.formats import is_worker_file
from heliograph.model.flow import Flow

T = TypeVar("T")

WorkerFile = Annotated[
    Path | None,
    typer.Option(
        "--worker",
        metavar="FILE",
        help="The connect-distributed.properties of the workers that ran the connectors: says where MM2's offsets are.",
        show_default=False,
    ),
]


def with_worker(files: Sequence[Path], worker: Path | None) -> list[Path]:
    """All files of the deployment. Exits if `worker` is not the file of a Connect worker."""
    if worker is None:
        return list(files)
    try:
        if not is_worker_file(worker):
            fail(f"--worker {worker}: this is not the file of a Connect worker, which has group.id", 2)
    except ConfigError as error:
        fail(f"--worker {error}", 2)
    return [*files, worker]


def loaded(file: Path, worker: Path | None) -> Deployment:
    try:
        return load_all(with_worker([file], worker))
    except ConfigError as error:
        fail(str(error), 2)


def choose(deployment: Deployment, flow_name: str | None, name: str | None) -> tuple[tuple[Flow, ...], str | None]:
    """The chosen flows, and the name of a group or topic. Both arguments are optional: a first argument that is not the
    name of a flow names a group or topic in all flows."""
    flows = tuple(flow for flow in deployment.flows if flow.reads_source)
    if flow_name is None:
        return flows, None
    known_names = [flow.name for flow in flows]
    if flow_name in known_names:
        return tuple(flow for flow in flows if flow.name == flow_name), name
    cut = next((known for known in known_names if known.startswith(f"{flow_name}>")), None)
    if cut is not None:
        fail(f"write the flow in quotes, '{cut}': the shell redirects output at the > sign", 2)
    if name is not None or "->" in flow_name:
        near = difflib.get_close_matches(flow_name, known_names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known_names)}"
        fail(f"{deployment.file} has no flow {flow_name}; {hint}", 2)
    return flows, flow_name


async def answers(questions: Iterable[Awaitable[T]], no_answer: type[Exception], say: bool = False) -> list[T]:
    """The results of all flows that have one; `say` prints why others have none. Raises `no_answer` if none has."""
    results, missing = [], []
    for result in await asyncio.gather(*questions, return_exceptions=True):
        if isinstance(result, no_answer):
            missing.append(result)
        elif isinstance(result, BaseException):
            raise result
        else:
            results.append(result)
    if missing and not results:
        raise missing[0]
    for error in missing if say else ():
        typer.echo(f"heliograph: {error}", err=True)
    return results
