"""The declaration of a setting: name, kind, default, sentence, where it may be written, and whether it is supported.

Parsing, warnings about unknown names and the page `docs/configuration.md` all come from the declarations; nothing else
spells a setting's name.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from heliograph.config.declare.kinds import Kind
from heliograph.config.declare.locations import FLOW, LocationSet
from heliograph.model.flow import Cluster, Flow

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

# The defaults are the model's, stated there once.
DEFAULTS = Flow(Cluster("A", ()), Cluster("B", ()))


def default_text(value: bool | int | float | tuple[str, ...] | None) -> str:
    """A default of the model as it would be written in a file."""
    match value:
        case bool():
            return "true" if value else "false"
        case tuple():
            return ", ".join(value)
        case float():
            return f"{value:.10g}"
    return str(value)


@dataclass(frozen=True, slots=True)
class Setting(Generic[T_co]):
    """`default` is written as in a file, None if there is none. A name that ends in `.*` stands for all names that
    begin that way. `old_names` are deprecated names, used if the new one is absent. `ignored_because` completes the
    sentence "it is ignored: ..." for a setting that is not supported."""

    name: str
    kind: Kind[T_co]
    default: str | None
    about: str
    where: LocationSet
    old_names: tuple[str, ...] = ()
    supported: bool = True
    ignored_because: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return self.name, *self.old_names


class SettingGroup:
    """A table of the reference page, with its supported settings."""

    def __init__(self, title: str, about: str) -> None:
        self.title = title
        self.about = about
        self.settings: list[Setting[object]] = []

    def declare(
        self,
        name: str,
        kind: Kind[T],
        default: str | None,
        about: str,
        where: LocationSet = FLOW,
        old_names: tuple[str, ...] = (),
    ) -> Setting[T]:
        setting = Setting(name, kind, default, about, where, old_names)
        self.settings.append(setting)
        return setting
