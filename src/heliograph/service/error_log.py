"""Logs each error once: in an outage, the same few errors alternate for as long as it lasts."""

from collections.abc import Hashable


class ErrorLog:
    """The errors of each subject since it last worked."""

    def __init__(self) -> None:
        self._errors: dict[Hashable, set[str]] = {}

    def is_new(self, subject: Hashable, text: str) -> bool:
        """Whether to log this error now."""
        errors = self._errors.setdefault(subject, set())
        is_new = text not in errors
        errors.add(text)
        return is_new

    def recovered(self, subject: Hashable) -> bool:
        """Call it when the subject works. Returns whether it had errors, so that its recovery is worth a line."""
        return self._errors.pop(subject, None) is not None
