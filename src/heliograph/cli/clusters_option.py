"""`--clusters`, as MirrorMaker 2's command takes it: several aliases after one option."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

_OPTION = "--clusters"

Clusters = Annotated[
    list[str] | None,
    typer.Option(
        _OPTION,
        metavar="ALIAS...",
        help="Run only the flows into these clusters, as connect-mirror-maker.sh does: B C, or B,C.",
        show_default="all",
    ),
]


class ClustersCommand(TyperCommand):
    """Options of Click have one value each: here the words after the first alias are aliases, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(one_value_each(args)))


def one_value_each(args: Sequence[str]) -> Iterator[str]:
    """The arguments, with the option repeated before each further alias. A file that exists ends the aliases, so that
    FILE may come last."""
    count: int | None = None  # aliases since the option; None: after another argument
    for arg in args:
        if arg.startswith("-"):
            count = 0 if arg == _OPTION else 1 if arg.startswith(f"{_OPTION}=") else None
        elif count is not None:
            if count and Path(arg).exists():
                count = None
            elif count:
                yield _OPTION
            count = None if count is None else count + 1
        yield arg


def aliases(given: Sequence[str] | None) -> tuple[str, ...]:
    """Also those that are separated by commas, once each."""
    names = (name.strip() for text in given or () for name in text.split(","))
    return tuple(dict.fromkeys(name for name in names if name))
