"""The commands. Each reads its options, calls the packages below, and prints the result.

Exit statuses: 0 done or stopped by a signal; 1 failed (`run --until-caught-up`: something could not be mirrored;
`demo`: source and mirror differ; `status`: a flow does not run or something is stopped; `groups`: a group is not
synced; `offsets`: a partition cannot be copied; `acls --check`: an ACL is missing); 2 wrong options, configuration or
addresses.
"""

import importlib
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from heliograph import __version__
from heliograph.imports import many_imports

_STYLE: Any = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
# Command to module. A module is imported when its command is called, because each needs different libraries.
_MODULES = {
    "run": "run",
    "serve": "serve",
    "status": "status",
    "top": "top",
    "connectors": "remote",
    "pause": "remote",
    "resume": "remote",
    "restart": "remote",
    "logs": "remote",
    "rest-password": "rest_password",
    "config": "config",
    "groups": "groups",
    "offsets": "offsets",
    "topics": "topics",
    "acls": "acls",
    "sandbox": "sandbox",
    "demo": "demo",
}


class _Commands(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name) for name in _MODULES}  # only names; get_command loads the rest

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if super().get_command(ctx, cmd_name) is None:
            return None
        with many_imports():
            module = importlib.import_module(f"heliograph.cli.{_MODULES[cmd_name]}")
        command = getattr(module, cmd_name.replace("-", "_"))
        if isinstance(command, typer.Typer):
            return typer.main.get_group(command)
        single = typer.Typer(**_STYLE)
        single.command(cmd_name, cls=getattr(module, "COMMAND_CLASS", TyperCommand))(command)
        return typer.main.get_command(single)


app = typer.Typer(
    name="heliograph",
    cls=_Commands,
    help="Mirror Kafka clusters: whole record batches, exactly once, on Spark.",
    no_args_is_help=True,
    **_STYLE,
)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        typer.echo(f"heliograph {__version__}")
        raise typer.Exit


def main() -> None:
    app()
