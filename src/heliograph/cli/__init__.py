"""The commands. Each reads its options, calls the packages below, and turns the outcome into words and an exit status.

Exit statuses: 0 done or stopped by a signal, 1 failed (with --until-caught-up: something could not be mirrored; in the
demo: something differs; in the status: something is stopped, or nothing runs; of groups: one is not synced; of offsets:
a partition cannot go on), 2 wrong options, configuration or addresses.
"""

import typer

from heliograph import __version__
from heliograph.cli.config import config
from heliograph.cli.demo import demo
from heliograph.cli.groups import groups
from heliograph.cli.offsets import offsets
from heliograph.cli.remote import connectors, logs, pause, restart, resume
from heliograph.cli.run import run
from heliograph.cli.sandbox import sandbox
from heliograph.cli.serve import serve
from heliograph.cli.status import status
from heliograph.cli.top import top
from heliograph.cli.topics import topics

app = typer.Typer(
    name="heliograph",
    help="Mirror Kafka clusters: whole record batches, exactly once, on Spark.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("run")(run)
app.command("serve")(serve)
app.command("status")(status)
app.command("top")(top)
app.command("connectors")(connectors)
app.command("pause")(pause)
app.command("resume")(resume)
app.command("restart")(restart)
app.add_typer(logs, name="logs")
app.command("config")(config)
app.command("groups")(groups)
app.command("offsets")(offsets)
app.command("topics")(topics)
app.command("sandbox")(sandbox)
app.command("demo")(demo)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(f"heliograph {__version__}")
        raise typer.Exit


def main() -> None:
    app()
