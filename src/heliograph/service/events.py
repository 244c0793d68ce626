"""The last notable things: what was logged, kept for those who look later, and told to those who listen."""

import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from heliograph.service.about import about

_KEPT = 1000
_OF_EVENTS = ("heliograph.service", "heliograph.control")


@dataclass(frozen=True, slots=True)
class Event:
    """`time` is in seconds since 1970. What it is not about is empty, or -1."""

    time: float
    level: str
    flow: str
    text: str
    topic: str = ""
    partition: int = -1
    kind: str = ""


class Events(logging.Handler):
    """Every line that matters begins with its flow. What is said in detail only is no event."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._kept: deque[Event] = deque(maxlen=_KEPT)
        self._listeners: list[Callable[[Event], None]] = []
        self.counts: Counter[tuple[str, str]] = Counter()  # by flow and level, of all there ever were

    def tell(self, listener: Callable[[Event], None]) -> None:
        """Of everything from now on; it must not block."""
        self._listeners.append(listener)

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(_OF_EVENTS):
            known = about(record)
            event = Event(
                record.created,
                record.levelname,
                known.get("flow", ""),
                record.getMessage(),
                known.get("topic", ""),
                known.get("partition", -1),
                known.get("kind", ""),
            )
            self._kept.append(event)
            self.counts[event.flow, event.level] += 1
            for listener in self._listeners:
                listener(event)

    def last(self, limit: int, flow: str = "", level: str = "", topic: str = "") -> list[Event]:
        """Newest last."""
        found = [
            one
            for one in self._kept
            if flow in ("", one.flow) and level in ("", one.level) and topic in ("", one.topic)
        ]
        return found[-limit:] if limit > 0 else []
