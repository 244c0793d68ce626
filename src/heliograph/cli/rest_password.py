"""`heliograph rest-password`: hashes a password for the file of the REST API's users."""

import sys
from typing import Annotated

import typer

from heliograph.cli.screen import fail
from heliograph.model.secret import Secret
from heliograph.rest.passwords import hashed


def rest_password(
    user: Annotated[str, typer.Argument(metavar="USER", help="The name of the user.", show_default=False)],
) -> None:
    """Print the line of a user for the file in heliograph.rest.users, with a hashed password.

    Asks for the password on a terminal, else reads it from standard input: one line.

    Example: heliograph rest-password alice >> users.properties
    """
    if not user or any(char in ":=#! \\" or not char.isprintable() for char in user):
        fail(f"{user!r}: the name of a user must not contain ':', '=', '#', '!', spaces or backslashes", 2)
    if sys.stdin.isatty():
        password = Secret(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    else:
        password = Secret(sys.stdin.readline().rstrip("\n"))
    if not password.reveal():
        fail("no password was given on standard input", 2)
    typer.echo(f"{user}={hashed(password)}")
