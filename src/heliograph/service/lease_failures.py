"""Which leases of a flow have failed and not run since."""

import logging

from heliograph.service.error_log import ErrorLog
from heliograph.service.events import FlowEvent, emit

log = logging.getLogger(__name__)


class LeaseFailures:
    """`count` is that of all failures. Leases are known by their index in the assignment."""

    def __init__(self, flow_name: str) -> None:
        self._flow_name = flow_name
        self._logged = ErrorLog()
        self._errors: dict[int, str] = {}
        self.count = 0

    def add(self, number: int, error: str) -> None:
        self._errors[number] = error
        self.count += 1
        if self._logged.is_new(number, error):
            text = f"lease {number} failed and will be tried again: {error}"
            emit(log, FlowEvent(self._flow_name, text, logging.ERROR))

    def clear(self, number: int) -> None:
        """The lease runs. It may fail with the same error again, so recovery is not logged yet."""
        self._errors.pop(number, None)

    def recovered(self, number: int) -> None:
        """The lease has been renewed, or has ended without an error."""
        self.clear(number)
        if self._logged.recovered(number):
            emit(log, FlowEvent(self._flow_name, f"lease {number} runs again"))

    def error_of(self, number: int) -> str:
        """Empty if the lease runs."""
        return self._errors.get(number, "")
