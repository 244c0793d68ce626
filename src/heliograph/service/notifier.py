"""Posts warnings and errors to a webhook, for those without Alertmanager. Copying never waits for it."""

import json
import logging
import queue
import threading
import time
import urllib.request
from dataclasses import asdict
from typing import Any

from heliograph.service.events import LoggedEvent

# Not a logger of events: a webhook that fails must not be sent its own failures.
log = logging.getLogger("heliograph.notify")

_LEVELS = ("WARNING", "ERROR", "CRITICAL")
_QUEUE_CAPACITY = 1000
_EVENTS_PER_POST = 100
_TIMEOUT = 10.0
_END_WITHIN = 0.5


class Notifier:
    """Posts in a thread of its own, the events of `every` seconds together. A post is tried `tries` times."""

    def __init__(self, address: str, every: float = 5.0, tries: int = 6) -> None:
        self._address = address
        self._every = every
        self._tries = tries
        self._queue: queue.Queue[LoggedEvent] = queue.Queue(_QUEUE_CAPACITY)
        self._dropped = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)
        self._thread.start()

    def notify(self, event: LoggedEvent) -> None:
        if event.level in _LEVELS:
            try:
                self._queue.put_nowait(event)
            except queue.Full:
                self._dropped += 1

    def end(self) -> None:
        """Gives the last events a moment to be posted."""
        self._ended.set()
        self._thread.join(_END_WITHIN)

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            self._post()
        self._post()

    def _post(self) -> None:
        events = [self._queue.get_nowait() for _ in range(min(self._queue.qsize(), _EVENTS_PER_POST))]
        if not events:
            return
        dropped, self._dropped = self._dropped, 0
        body = json.dumps(webhook_body(events, self._queue.qsize() + dropped)).encode()
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
        except Exception as error:  # texts of others than OSError may contain the address, which is a secret
            reason = str(error) if isinstance(error, OSError) else type(error).__name__
            if attempt in (0, self._tries - 1):
                next_step = "will be tried again" if attempt == 0 else "are given up"
                log.warning("events could not be posted to heliograph.notify.webhook and %s: %s", next_step, reason)
            return False


def webhook_body(events: list[LoggedEvent], more: int) -> dict[str, Any]:
    """`text` is what Slack and the like show."""
    lines = [f"{event.level} {time.strftime('%X', time.gmtime(event.time))} {event.text}" for event in events]
    if more:
        lines.append(f"... and {more} more")
    return {"text": "\n".join(lines), "events": [asdict(event) for event in events]}
