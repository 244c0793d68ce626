"""The last notable things: what was logged, kept for those who look later."""

import logging
from collections import Counter, deque
from dataclasses import dataclass

_KEPT = 1000
_OF_EVENTS = ("heliograph.service", "heliograph.control")


@dataclass(frozen=True, slots=True)
class Event:
    """`time` is in seconds since 1970; `flow` is empty for what is about none."""

    time: float
    level: str
    flow: str
    text: str


class Events(logging.Handler):
    """Every line that matters begins with its flow. What is said in detail only is no event."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._kept: deque[Event] = deque(maxlen=_KEPT)
        self.counts: Counter[tuple[str, str]] = Counter()  # by flow and level, of all there ever were

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(_OF_EVENTS):
            text = record.getMessage()
            flow, colon, _rest = text.partition(": ")
            named = bool(colon) and "->" in flow and " " not in flow
            event = Event(record.created, record.levelname, flow if named else "", text)
            self._kept.append(event)
            self.counts[event.flow, event.level] += 1

    def last(self, limit: int, flow: str = "", level: str = "") -> list[Event]:
        """Newest last."""
        found = [one for one in self._kept if flow in ("", one.flow) and level in ("", one.level)]
        return found[-limit:] if limit > 0 else []
