"""The declaration of a setting: name, kind, default, where it may be written, and whether it is supported."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from heliograph.config.declare.kinds import Kind
from heliograph.config.declare.locations import LocationSet

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Setting(Generic[T_co]):
    """`default` is written as in a file, None if there is none. A name that ends in `.*` stands for all names that
    begin that way. `old_names` are deprecated names, used if the new one is absent. `ignored_because` completes the
    sentence "it is ignored: ..." for a setting that is not supported; `is_missed` is whether somebody may miss it."""

    name: str
    kind: Kind[T_co]
    default: str | None
    where: LocationSet
    old_names: tuple[str, ...] = ()
    supported: bool = True
    ignored_because: str = ""
    is_missed: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        return self.name, *self.old_names
