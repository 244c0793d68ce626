"""Posts warnings and errors to a webhook, for those without Alertmanager. Copying never waits for it."""

import json
import logging
import queue
import threading
import time
import urllib.request
from dataclasses import asdict
from typing import Any

from heliograph.service.events import Event

# Not of the events: or a webhook that fails would be told to itself.
log = logging.getLogger("heliograph.notify")

_LEVELS = ("WARNING", "ERROR", "CRITICAL")
_MOST_WAITING = 1000
_MOST_AT_ONCE = 100
_TIMEOUT = 10.0
_LAST_WORDS = 0.5


class Notifier:
    """A thread of its own. Events of `every` seconds go together; what cannot be posted is tried again for a while."""

    def __init__(self, address: str, every: float = 5.0, tries: int = 6) -> None:
        self._address = address
        self._every = every
        self._tries = tries
        self._waiting: queue.Queue[Event] = queue.Queue(_MOST_WAITING)
        self._dropped = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)
        self._thread.start()

    def tell(self, event: Event) -> None:
        if event.level in _LEVELS:
            try:
                self._waiting.put_nowait(event)
            except queue.Full:
                self._dropped += 1

    def end(self) -> None:
        """A moment for the last ones."""
        self._ended.set()
        self._thread.join(_LAST_WORDS)

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            self._post()
        self._post()

    def _post(self) -> None:
        events = [self._waiting.get_nowait() for _ in range(min(self._waiting.qsize(), _MOST_AT_ONCE))]
        if not events:
            return
        dropped, self._dropped = self._dropped, 0
        body = json.dumps(message(events, self._waiting.qsize() + dropped)).encode()
        for attempt in range(self._tries):
            if self._sent(body, attempt):
                return
            if self._ended.wait(self._every * 2**attempt):
                return

    def _sent(self, body: bytes, attempt: int) -> bool:
        request = urllib.request.Request(self._address, body, {"Content-Type": "application/json"}, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT):
                return True
        except Exception as error:  # whatever it says may hold the address, but for these
            why = str(error) if isinstance(error, OSError) else type(error).__name__
            if attempt in (0, self._tries - 1):
                again = "is tried again" if attempt == 0 else "is given up"
                log.warning("heliograph.notify.webhook does not take events, which %s: %s", again, why)
            return False


def message(events: list[Event], more: int) -> dict[str, Any]:
    """`text` is what Slack and the like show."""
    lines = [f"{one.level} {time.strftime('%X', time.gmtime(one.time))} {one.text}" for one in events]
    if more:
        lines.append(f"... and {more} more")
    return {"text": "\n".join(lines), "events": [asdict(one) for one in events]}
