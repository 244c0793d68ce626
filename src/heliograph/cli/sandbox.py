"""`heliograph sandbox`: real Kafka clusters on this machine until Ctrl-C, with an mm2.properties that fits them.

It reads options, prints addresses and waits; the clusters themselves are the business of `heliograph.sandbox`.
"""

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn, TypeVar

import typer

from heliograph.sandbox import DEFAULT_VERSION, PROPERTIES_HEADER, ClusterSpec, Sandbox, SandboxError

Value = TypeVar("Value")

# Shown when the clusters are up. The first two are kafka-python's, which comes with Heliograph.
NEXT_COMMANDS = (
    "python -m kafka.admin -b {broker} topics create -t greetings",
    "echo hello | python -m kafka.producer -b {broker} -t greetings",
    "heliograph run {file}",
)


class _BadOption(Exception):
    pass


def sandbox(
    clusters: Annotated[str, typer.Option(metavar="A,B", help="Aliases of the clusters, comma-separated.")] = "A,B",
    brokers: Annotated[
        list[str] | None, typer.Option(metavar="N or A=N", help="Brokers of each cluster, or of one (default 1).")
    ] = None,
    port: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A=PORT", help="Port of a cluster's first broker; again for its second (default: any free)."
        ),
    ] = None,
    version: Annotated[
        list[str] | None,
        typer.Option(metavar="V or A=V", help=f"Kafka of all clusters, or of one (default {DEFAULT_VERSION})."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V or A:K=V", help="A broker setting for all clusters, or for one."),
    ] = None,
    heap: Annotated[int, typer.Option(metavar="MB", help="Java heap of each broker.")] = 256,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Folder for data and logs; stays, and is continued with next time.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Do not remove the temporary folder at the end.")] = False,
    write: Annotated[
        Path | None, typer.Option(help="Where to write mm2.properties (default: the sandbox's folder).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line when the clusters are up.")] = False,
) -> None:
    """Start real Kafka clusters on this machine, and stop them with Ctrl-C.

    Nothing is left behind, however the command ends. The first run downloads
    Kafka into the user's cache. It takes Java 17 or newer, and no Docker.

    Example, two clusters of one and of three brokers, to mirror between:

    \b
      heliograph sandbox --clusters east,west --brokers west=3 \\
          --port east=9092 --write mm2.properties
    """
    try:
        specs = _specs(clusters, brokers or [], port or [], version or [], set_ or [], heap)
        _check_writable(write, len(specs))
    except _BadOption as error:
        _fail(str(error), status=2)
    # As Ctrl-C: the `with` below then stops the brokers in order.
    for number in (signal.SIGTERM, signal.SIGINT):  # SIGINT too: a shell starts background jobs with it ignored
        signal.signal(number, _interrupt)
    up = False
    try:
        with Sandbox(directory, keep=keep) as box:
            typer.echo(f"starting {_listing(specs)} ...", err=True)
            box.start(specs)
            file = _write_properties(box, write)
            # Before the words: whoever reads them may send the signal at once.
            up = True
            typer.echo(_as_json(box, file) if as_json else _as_text(box, file))
            _watch(box)
    except KeyboardInterrupt:
        typer.echo(f"stopped; {box.folder} is kept" if up and box.kept else "stopped", err=True)
        raise typer.Exit(0 if up else 130) from None
    except (SandboxError, OSError) as error:
        _fail(str(error), status=1)


def _watch(box: Sandbox) -> None:
    """Waits for Ctrl-C. A broker that ends by itself is announced; with the last one the sandbox ends too."""
    announced: set[str] = set()
    while True:
        # Asked before the deaths, so that the last one is announced as well.
        any_left = any(cluster.pids() for cluster in box.clusters.values())
        for death in box.deaths():
            if death.name not in announced:
                announced.add(death.name)
                message = f"BROKER DOWN: {death}\nall of it: {death.log}"
                typer.secho(message, err=True, fg=typer.colors.RED, bold=True)
        if not any_left:
            raise SandboxError("no broker is left running")
        time.sleep(0.5)


def _write_properties(box: Sandbox, write: Path | None) -> Path | None:
    if len(box.clusters) < 2:
        return None
    file = write or box.folder / "mm2.properties"
    file.write_text(box.properties())
    return file


def _as_json(box: Sandbox, file: Path | None) -> str:
    clusters = {
        cluster.alias: {
            "bootstrap": cluster.bootstrap,
            "version": cluster.version,
            "pids": cluster.pids(),
            "logs": [str(cluster.folder(broker) / "server.log") for broker in cluster.broker_ids],
        }
        for cluster in box.clusters.values()
    }
    return json.dumps({"clusters": clusters, "properties": file and str(file), "folder": str(box.folder)})


def _as_text(box: Sandbox, file: Path | None) -> str:
    width = max(map(len, box.clusters))
    lines = [
        f"{cluster.alias:{width}}  {cluster.bootstrap}  (Kafka {cluster.version})" for cluster in box.clusters.values()
    ]
    lines += ["", f"logs and data   {box.folder}"]
    if file is not None:
        broker = next(iter(box.clusters.values())).bootstrap.split(",")[0]
        lines += [f"mm2.properties  {file}", "", "Try, in another terminal:"]
        lines += ["  " + command.format(broker=broker, file=file) for command in NEXT_COMMANDS]
    return "\n".join([*lines, "", "Ctrl-C stops it all."])


def _specs(
    clusters: str,
    brokers: Sequence[str],
    ports: Sequence[str],
    versions: Sequence[str],
    settings: Sequence[str],
    heap: int,
) -> dict[str, ClusterSpec]:
    aliases = [alias.strip() for alias in clusters.split(",")]
    for alias in aliases:
        if not re.fullmatch(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*", alias):
            raise _BadOption(f"--clusters: {alias!r} is not a name for a cluster")
    if len(set(aliases)) < len(aliases):
        raise _BadOption(f"--clusters: a name is given twice in {clusters!r}")
    how_many = _one_each("--brokers", brokers, aliases, 1, int)
    which = _one_each("--version", versions, aliases, DEFAULT_VERSION, str)
    where = _ports(ports, aliases)
    how = _settings(settings, aliases)
    specs = {}
    for alias in aliases:
        # One option after the other, so that the message can name the one that is wrong.
        _spec("--brokers", brokers=how_many[alias])
        _spec("--version", version=which[alias])
        _spec("--heap", heap_mb=heap)
        specs[alias] = _spec(
            "--port",
            brokers=how_many[alias],
            version=which[alias],
            heap_mb=heap,
            ports=tuple(where[alias]),
            settings=how[alias],
        )
    return specs


def _spec(option: str, **fields: object) -> ClusterSpec:
    try:
        return ClusterSpec(**fields)  # type: ignore[arg-type]
    except SandboxError as error:
        raise _BadOption(f"{option}: {error}") from None


def _one_each(
    option: str, given: Sequence[str], aliases: Sequence[str], default: Value, read: Callable[[str], Value]
) -> dict[str, Value]:
    """`VALUE` is for all clusters, `ALIAS=VALUE` for one, whichever comes first."""
    for_all, for_one = default, {}
    for item in given:
        alias, equals, value = item.rpartition("=")
        if equals:
            for_one[_known(option, alias, aliases)] = _read(option, value, read)
        else:
            for_all = _read(option, value, read)
    return {alias: for_one.get(alias, for_all) for alias in aliases}


def _ports(given: Sequence[str], aliases: Sequence[str]) -> dict[str, list[int]]:
    ports: dict[str, list[int]] = {alias: [] for alias in aliases}
    for item in given:
        alias, equals, value = item.rpartition("=")
        if not equals:
            raise _BadOption(f"--port: {item!r} is not of the form ALIAS=PORT, such as {aliases[0]}=9092")
        ports[_known("--port", alias, aliases)].append(_read("--port", value, int))
    every = [port for each in ports.values() for port in each]
    if len(set(every)) < len(every):
        raise _BadOption("--port: the same port is given twice")
    return ports


def _settings(given: Sequence[str], aliases: Sequence[str]) -> dict[str, dict[str, str]]:
    settings: dict[str, dict[str, str]] = {alias: {} for alias in aliases}
    for item in given:
        key, equals, value = item.partition("=")
        alias, colon, key_alone = key.rpartition(":")
        if not equals or not key_alone.strip():
            raise _BadOption(f"--set: {item!r} is not of the form KEY=VALUE or ALIAS:KEY=VALUE")
        for chosen in [_known("--set", alias, aliases)] if colon else aliases:
            settings[chosen][key_alone.strip()] = value.strip()
    return settings


def _known(option: str, alias: str, aliases: Sequence[str]) -> str:
    if alias not in aliases:
        raise _BadOption(f"{option}: there is no cluster {alias!r}; the clusters are {', '.join(aliases)}")
    return alias


def _read(option: str, value: str, read: Callable[[str], Value]) -> Value:
    try:
        return read(value)
    except ValueError:
        raise _BadOption(f"{option}: {value!r} is not a number") from None


def _check_writable(write: Path | None, clusters: int) -> None:
    """An mm2.properties that someone wrote by hand is not overwritten; one of a sandbox is."""
    if write is None:
        return
    if clusters < 2:
        raise _BadOption("--write: mirroring takes two clusters, see --clusters")
    if not write.absolute().parent.is_dir():
        raise _BadOption(f"--write: {write.parent} is not a folder")
    if write.is_dir() or (write.exists() and not write.read_text(errors="replace").startswith(PROPERTIES_HEADER)):
        raise _BadOption(f"--write: {write} is there already and no sandbox wrote it")


def _listing(specs: dict[str, ClusterSpec]) -> str:
    return ", ".join(f"{alias} (Kafka {spec.version}, brokers: {spec.brokers})" for alias, spec in specs.items())


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _fail(message: str, status: int) -> NoReturn:
    typer.echo(f"heliograph sandbox: {message}", err=True)
    sys.exit(status)
