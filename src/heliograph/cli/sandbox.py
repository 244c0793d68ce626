"""`heliograph sandbox`: real Kafka clusters on this machine until Ctrl-C, with an mm2.properties that fits them.

It reads options, prints addresses and waits. `heliograph.sandbox` runs the clusters.
"""

import json
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from heliograph.cli.sandbox_options import BadOption, check_writable, cluster_specs
from heliograph.sandbox import (
    ADMIN,
    DEFAULT_VERSION,
    KINDS,
    ClusterSpec,
    Sandbox,
    SandboxCluster,
    SandboxError,
    write_private,
    write_properties,
)

# Printed when the clusters are up. The first two commands are part of kafka-python, which Heliograph installs.
NEXT_COMMANDS = (
    "python -m kafka.admin -b {broker} topics create -t greetings",
    "echo hello | python -m kafka.producer -b {broker} -t greetings",
    "heliograph run {file}",
)

# The same for a secured cluster, with Kafka's own tools: those of kafka-python take a password only as an argument.
NEXT_COMMANDS_WITH_LOGIN = (
    "kafka-topics.sh --bootstrap-server {broker} --command-config {client} --create --topic greetings",
    "echo hello | kafka-console-producer.sh --bootstrap-server {broker} --command-config {client} --topic greetings",
    "heliograph run {file}",
)

Clusters = Annotated[str, typer.Option(metavar="A,B", help="Aliases of the clusters, comma-separated.")]
Brokers = Annotated[
    list[str] | None,
    typer.Option(metavar="N or A=N", help="Number of brokers of every cluster, or of one (default 1)."),
]
Ports = Annotated[
    list[str] | None,
    typer.Option(metavar="A=PORT", help="Port of a cluster's first broker; again for its second (default: any free)."),
]
Versions = Annotated[
    list[str] | None,
    typer.Option(metavar="V or A=V", help=f"Kafka version of all clusters, or of one (default {DEFAULT_VERSION})."),
]
Security = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KIND or A=KIND",
        help=f"Secure all clusters, or one: {', '.join(KINDS)} (default: anyone on this machine may connect).",
    ),
]
Acls = Annotated[
    bool, typer.Option("--acls", help="With --security: user `mirror` may do nothing unless ACLs allow it.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="K=V or A:K=V", help="A broker setting for all clusters, or for one."),
]
Heap = Annotated[int, typer.Option(metavar="MB", help="Java heap of each broker.")]
Directory = Annotated[
    Path | None, typer.Option("--dir", help="Folder for data and logs. It is kept, and used again by the next run.")
]
Keep = Annotated[bool, typer.Option("--keep", help="Do not remove the temporary folder at the end.")]
Write = Annotated[Path | None, typer.Option(help="Where to write mm2.properties (default: the sandbox's folder).")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON line when the clusters are up.")]


def sandbox(
    clusters: Clusters = "A,B",
    brokers: Brokers = None,
    port: Ports = None,
    version: Versions = None,
    security: Security = None,
    acls: Acls = False,
    set_: Settings = None,
    heap: Heap = 256,
    directory: Directory = None,
    keep: Keep = False,
    write: Write = None,
    as_json: AsJson = False,
) -> None:
    """Start real Kafka clusters on this machine, and stop them with Ctrl-C.

    Nothing is left behind, however the command ends. The first run downloads
    Kafka into the user's cache. It needs Java 17 or newer, and no Docker.

    Example, two clusters with one and three brokers, ready to be mirrored:

    \b
      heliograph sandbox --clusters east,west --brokers west=3 \\
          --port east=9092 --write mm2.properties

    With --security, clients log in as user `mirror`, or as `admin` to create
    topics and ACLs; tls alone has no users. Passwords and certificates are new
    in each run. Clients' settings are in `mm2.properties` and, for `admin`, in
    `client-A.properties`. Brokers talk to each other on a port without login:
    this is for trying out security, not for data that needs it.

    \b
      heliograph sandbox --security A=scram --security B=mtls
    """
    try:
        specs = cluster_specs(
            clusters, brokers or [], port or [], version or [], set_ or [], heap, security or [], acls
        )
        check_writable(write, len(specs))
    except BadOption as error:
        _fail(str(error), status=2)
    # SIGTERM acts like Ctrl-C: the `with` below stops the brokers in order.
    for number in (signal.SIGTERM, signal.SIGINT):  # a shell starts background jobs with SIGINT ignored
        signal.signal(number, _interrupt)
    up = False
    try:
        with Sandbox(directory, keep=keep) as box:
            typer.echo(f"starting {_listing(specs)} ...", err=True)
            box.start(specs)
            file = _write_properties(box, write)
            _write_client_files(box)
            # Before the output: whoever reads it may send the signal at once.
            up = True
            typer.echo(_as_json(box, file) if as_json else _as_text(box, file))
            _watch(box)
    except KeyboardInterrupt:
        typer.echo(f"stopped; {box.folder} is kept" if up and box.kept else "stopped", err=True)
        raise typer.Exit(0 if up else 130) from None
    except (SandboxError, OSError) as error:
        _fail(str(error), status=1)


def _watch(box: Sandbox) -> None:
    """Waits for Ctrl-C. Announces each broker that ends by itself, and ends the sandbox after the last one."""
    announced: set[str] = set()
    while True:
        # Read before the deaths: the death of the last broker must be announced as well.
        any_left = any(cluster.pids() for cluster in box.clusters.values())
        for death in box.deaths():
            if death.name not in announced:
                announced.add(death.name)
                message = f"BROKER DOWN: {death}\nfull log: {death.log}"
                typer.secho(message, err=True, fg=typer.colors.RED, bold=True)
        if not any_left:
            raise SandboxError("no broker is left running")
        time.sleep(0.5)


def _write_properties(box: Sandbox, write: Path | None) -> Path | None:
    if len(box.clusters) < 2:
        return None
    file = write or box.folder / "mm2.properties"
    write_private(file, box.properties().encode())
    return file


def _write_client_files(box: Sandbox) -> None:
    for cluster in box.clusters.values():
        if client_file := _client_file(box, cluster):
            write_properties(client_file, cluster.security.client_settings(ADMIN))


def _client_file(box: Sandbox, cluster: SandboxCluster) -> Path | None:
    """The file with the settings of `admin` for Kafka's own tools; a cluster without security needs none."""
    return box.folder / f"client-{cluster.alias}.properties" if cluster.spec.security else None


def _address(cluster: SandboxCluster) -> str:
    return cluster.security.client_settings()["bootstrap.servers"]


def _as_json(box: Sandbox, file: Path | None) -> str:
    clusters = {
        cluster.alias: {
            "bootstrap": _address(cluster),
            "security": next(iter(cluster.spec.security), None),
            "client": client_file and str(client_file),
            "version": cluster.version,
            "pids": cluster.pids(),
            "logs": [str(cluster.folder(broker) / "server.log") for broker in cluster.broker_ids],
        }
        for cluster in box.clusters.values()
        for client_file in [_client_file(box, cluster)]
    }
    return json.dumps({"clusters": clusters, "properties": file and str(file), "folder": str(box.folder)})


def _as_text(box: Sandbox, file: Path | None) -> str:
    width = max(map(len, box.clusters))
    lines = [f"{cluster.alias:{width}}  {_described(cluster)}" for cluster in box.clusters.values()]
    lines += ["", f"logs and data   {box.folder}"]
    lines += [f"client settings {path}" for cluster in box.clusters.values() if (path := _client_file(box, cluster))]
    if file is not None:
        first = next(iter(box.clusters.values()))
        commands = NEXT_COMMANDS_WITH_LOGIN if first.spec.security else NEXT_COMMANDS
        broker, client = _address(first).split(",")[0], _client_file(box, first)
        lines += [f"mm2.properties  {file}", "", "Try, in another terminal:"]
        lines += [f"  export KAFKA_OPTS={flag}" for flag in box.client_flags]
        lines += ["  " + command.format(broker=broker, client=client, file=file) for command in commands]
    return "\n".join([*lines, "", "Ctrl-C stops it all."])


def _described(cluster: SandboxCluster) -> str:
    return f"{_address(cluster)}  ({', '.join([f'Kafka {cluster.version}', *cluster.spec.security])})"


def _listing(specs: dict[str, ClusterSpec]) -> str:
    return ", ".join(f"{alias} (Kafka {spec.version}, brokers: {spec.brokers})" for alias, spec in specs.items())


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _fail(message: str, status: int) -> NoReturn:
    typer.echo(f"heliograph sandbox: {message}", err=True)
    sys.exit(status)
