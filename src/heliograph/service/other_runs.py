"""Other processes that run the same flow: noticed by the status that each of them writes to the signals topic."""

import json
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from heliograph.service.events import FlowEvent, emit
from heliograph.wire.records import Record

log = logging.getLogger(__name__)

# A run that has just handed over to us may write once more; one that still runs writes again after an interval.
_GONE_AFTER = 4  # intervals without a status


@dataclass(frozen=True, slots=True)
class OtherRun:
    """`since` is the time of its first status, in seconds since 1970."""

    run_id: str
    host: str
    since: float

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since))
        name = f"run {self.run_id or 'of another version'}{f' on {self.host}' if self.host else ''}"
        return f"another process ({name}) runs this flow as well, since {since}; stop one of them"


class OtherRuns:
    def __init__(self, flow_name: str, run_id: str, interval: float) -> None:
        """`interval`: how often a run writes its status, in seconds."""
        self._flow_name = flow_name
        self._run_id = run_id
        self._interval = interval
        self._runs: dict[str, OtherRun] = {}
        self._last: dict[str, float] = {}  # by this process's clock
        self._reported: set[str] = set()

    def apply(self, records: Iterable[Record]) -> None:
        """What was written to the status partition since we began."""
        for record in records:
            if record.key != b"status":
                continue
            run_id, host = _author(record)
            if run_id == self._run_id:
                continue
            at = record.timestamp / 1000
            other = self._runs.setdefault(run_id, OtherRun(run_id, host, at))
            self._last[run_id] = time.monotonic()
            if at - other.since >= self._interval and run_id not in self._reported:
                self._reported.add(run_id)
                emit(log, FlowEvent(self._flow_name, str(other), logging.WARNING))

    def running(self) -> tuple[OtherRun, ...]:
        """Those that still run; the others are forgotten."""
        silent_since = time.monotonic() - _GONE_AFTER * self._interval
        for run_id in [run_id for run_id, last in self._last.items() if last < silent_since]:
            gone = self._runs.pop(run_id)
            del self._last[run_id]
            if run_id in self._reported:
                self._reported.remove(run_id)
                text = f"the other process (run {gone.run_id}) no longer runs this flow"
                emit(log, FlowEvent(self._flow_name, text))
        return tuple(self._runs[run_id] for run_id in sorted(self._reported))


def _author(record: Record) -> tuple[str, str]:
    """Run id and host; empty where another version does not write them."""
    try:
        fields = json.loads(record.value or b"{}")
    except ValueError:
        fields = {}
    if not isinstance(fields, dict):
        fields = {}
    return str(fields.get("run_id", "")), str(fields.get("host", ""))
