"""What is reported about a configuration: errors that stop it, and notices about single lines.

Each is one line of text that names file, line and key. The commands print them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType


class Consequence(Enum):
    """What follows from a note, and so where it is shown."""

    ACTION = "there is something to do or to know: always shown"
    NO_EFFECT = "what is written has no effect: counted in one line, listed with --verbose"
    NONE = "nobody notices a difference: in --json only"


@dataclass(frozen=True, slots=True, order=True)
class ConfigNotice:
    """About one line of a file: a warning (probably a mistake) or a note (known, but ignored). `consequence` is that of
    a note."""

    line: int
    key: str
    text: str
    file: str = ""
    consequence: Consequence = field(default=Consequence.NO_EFFECT, compare=False)

    def __str__(self) -> str:
        return one_line(f"{position(self.file, self.line)}: {self.text}")


def one_line(text: str) -> str:
    """Values are quoted as they are in a file, and may contain control characters."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def position(file: str, line: int) -> str:
    """The beginning of a message; line 0 is unknown."""
    return f"{file}:{line}" if line else file


def repeated(names: Iterable[tuple[str, int]], file: str, owner: str = "") -> Iterator[ConfigNotice]:
    """About names that are set more than once, each with its line: the last one counts, as in Java."""
    lines: dict[str, int] = {}
    for name, line in names:
        if name in lines:
            text = f"{owner}'{name}' is set again: this value replaces the one in line {lines[name]}"
            yield ConfigNotice(line, name, text, file)
        lines[name] = line


def shown_notes(notes: Iterable[ConfigNotice], verbose: bool) -> Iterator[str]:
    """The lines that a command prints about notes: one for all settings without effect, unless `verbose`."""
    without_effect = 0
    for note in notes:
        if note.consequence is Consequence.ACTION or (verbose and note.consequence is Consequence.NO_EFFECT):
            yield str(note)
        elif note.consequence is Consequence.NO_EFFECT:
            without_effect += 1
    if without_effect:
        settings = "1 setting has" if without_effect == 1 else f"{without_effect} settings have"
        yield f"{settings} no effect here: --verbose says which, and why"


def sorted_notices(notices: Iterable[ConfigNotice]) -> tuple[ConfigNotice, ...]:
    return tuple(sorted(notices, key=lambda notice: (notice.file, notice)))


class ConfigError(Exception):
    """A configuration that cannot be run. `str()` has one line for each of its `errors`; `warnings` are other notices
    about it, often the cause, such as a misspelt name."""

    warnings: tuple[ConfigNotice, ...] = ()

    def __init__(self, *errors: str) -> None:
        super().__init__(*errors)
        self.errors = tuple(one_line(error) for error in errors)

    def __str__(self) -> str:
        return "\n".join(self.errors)


class ErrorCollector:
    """Reports all errors of a configuration at once. `with errors:` collects the `ConfigError` of a step."""

    def __init__(self, errors: Iterable[str] = ()) -> None:
        self._errors: dict[str, None] = dict.fromkeys(errors)

    def __bool__(self) -> bool:
        return bool(self._errors)

    @property
    def errors(self) -> tuple[str, ...]:
        return tuple(self._errors)

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: TracebackType | None) -> bool:
        if not isinstance(error, ConfigError):
            return False
        self.add(error)
        return True

    def add(self, error: ConfigError) -> None:
        self._errors |= dict.fromkeys(error.errors)

    def raise_collected(self) -> None:
        if self._errors:
            raise ConfigError(*self._errors)
