"""Saying each thing once: in an outage the same few errors come back by turns for as long as it lasts."""

from collections.abc import Hashable


class ErrorLog:
    """What was said about a thing since it was last well."""

    def __init__(self) -> None:
        self._said: dict[Hashable, set[str]] = {}

    def is_new(self, about: Hashable, text: str) -> bool:
        """Whether this is to be said now."""
        said = self._said.setdefault(about, set())
        new = text not in said
        said.add(text)
        return new

    def is_well(self, about: Hashable) -> bool:
        """Whether something was said about it before, so that it is worth a word that it is over."""
        return self._said.pop(about, None) is not None
