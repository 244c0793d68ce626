"""Other processes that run the same flow: noticed by the status that each of them writes to the signals topic."""

import json
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from heliograph.wire.records import Record

log = logging.getLogger(__name__)

# A run that has just handed over to us may write once more; one that goes on writes again after an interval.
_GONE_AFTER = 4  # intervals without a word


@dataclass(frozen=True, slots=True)
class OtherRun:
    """`since` is when it was first heard of, in seconds since 1970."""

    run_id: str
    host: str
    since: float

    def __str__(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.since))
        name = f"run {self.run_id or 'of another version'}{f' on {self.host}' if self.host else ''}"
        return f"another process ({name}) runs this flow as well, since {since}; stop one of them"


class OtherRuns:
    def __init__(self, flow_name: str, run_id: str, every: float) -> None:
        """`every`: how often a run writes its status, in seconds."""
        self._flow_name = flow_name
        self._run_id = run_id
        self._every = every
        self._heard: dict[str, OtherRun] = {}
        self._last: dict[str, float] = {}  # by this process's clock
        self._told: set[str] = set()

    def hear(self, records: Iterable[Record]) -> None:
        """What was written to the status partition since we began."""
        for record in records:
            said = json.loads(record.value or b"{}")
            run_id, at = str(said.get("run_id", "")), record.timestamp / 1000
            if record.key != b"status" or run_id == self._run_id:
                continue
            other = self._heard.setdefault(run_id, OtherRun(run_id, str(said.get("host", "")), at))
            self._last[run_id] = time.monotonic()
            if at - other.since >= self._every and run_id not in self._told:
                self._told.add(run_id)
                log.warning("%s: %s", self._flow_name, other)

    def running(self) -> tuple[OtherRun, ...]:
        """Those that go on; the others are forgotten."""
        silent_since = time.monotonic() - _GONE_AFTER * self._every
        for run_id in [one for one, last in self._last.items() if last < silent_since]:
            gone = self._heard.pop(run_id)
            del self._last[run_id]
            if run_id in self._told:
                self._told.remove(run_id)
                log.info("%s: the other process (run %s) runs this flow no more", self._flow_name, gone.run_id)
        return tuple(self._heard[run_id] for run_id in sorted(self._told))
