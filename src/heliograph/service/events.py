"""What happens to flows, as typed events.

An event is emitted where it happens. The log line, the webhook's body, the REST API's event list and the counters are
renderings of it. A plain log line of a flow is an event, too: its flow is the one in whose `flow_scope` it is logged.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from heliograph.model.partitions import MirrorPartition
from heliograph.model.problems import Notice, Refusal

_CAPACITY = 1000
_LOGGERS_OF_EVENTS = ("heliograph.service", "heliograph.control")
_EXTRA_FIELDS = ("flow", "topic", "partition")

_flow_in_scope: ContextVar[str] = ContextVar("flow", default="")


@contextmanager
def flow_scope(flow_name: str) -> Iterator[None]:
    """What is logged inside, and by tasks created inside, is about this flow."""
    token = _flow_in_scope.set(flow_name)
    try:
        yield
    finally:
        _flow_in_scope.reset(token)


# --- what can happen ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """Something that an operator should know. `flow` is empty if it is about no flow."""

    flow: str

    @property
    def level(self) -> int:
        raise NotImplementedError

    @property
    def message(self) -> str:
        """Without the flow."""
        raise NotImplementedError

    def fields(self) -> dict[str, Any]:
        """What the event is about besides its flow: topic, partition, source_offset, mirror_offset, kind."""
        return {}

    def __str__(self) -> str:
        return f"{self.flow}: {self.message}" if self.flow else self.message


@dataclass(frozen=True, slots=True)
class PartitionStopped(Event):
    """A partition is not copied any further: for good, or until what it waits for is over."""

    refusal: Refusal

    @property
    def level(self) -> int:
        return logging.ERROR if self.refusal.final else logging.WARNING

    @property
    def message(self) -> str:
        return str(self.refusal)

    def fields(self) -> dict[str, Any]:
        refusal = self.refusal
        return _at(refusal.partition, refusal.source_offset, refusal.target_offset, refusal.reason)


@dataclass(frozen=True, slots=True)
class PartitionNotice(Event):
    """Something went wrong with a partition that is copied all the same."""

    notice: Notice

    @property
    def level(self) -> int:
        return logging.WARNING

    @property
    def message(self) -> str:
        return str(self.notice)

    def fields(self) -> dict[str, Any]:
        notice = self.notice
        return _at(notice.partition, notice.source_offset, notice.target_offset, notice.kind)


@dataclass(frozen=True, slots=True)
class PartitionEvent(Event):
    """Anything else about one partition; `text` names it."""

    partition: MirrorPartition
    text: str
    level: int = logging.INFO

    @property
    def message(self) -> str:
        return self.text

    def fields(self) -> dict[str, Any]:
        return {"topic": self.partition.topic, "partition": self.partition.partition}


@dataclass(frozen=True, slots=True)
class TopicEvent(Event):
    """Anything about a source topic or its mirror; `text` names it."""

    topic: str
    text: str
    level: int = logging.INFO

    @property
    def message(self) -> str:
        return self.text

    def fields(self) -> dict[str, Any]:
        return {"topic": self.topic}


@dataclass(frozen=True, slots=True)
class FlowEvent(Event):
    """Anything else about a flow as a whole, or about no flow."""

    text: str
    level: int = logging.INFO

    @property
    def message(self) -> str:
        return self.text


def _at(partition: MirrorPartition, source_offset: int, mirror_offset: int, kind: str) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "source_offset": source_offset,
        "mirror_offset": mirror_offset,
        "kind": kind,
    }


# --- emitting and rendering ---------------------------------------------------------------------------------------


def emit(log: logging.Logger, event: Event, error: BaseException | None = None) -> None:
    """Logs the event, with the traceback of `error` if it is given."""
    log.log(event.level, "%s", event, extra={"event": event}, exc_info=error, stacklevel=2)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """What a log line is about, as far as it is known: the fields of its event, or those given as `extra`."""
    event = getattr(record, "event", None)
    if isinstance(event, Event):
        return ({"flow": event.flow} if event.flow else {}) | event.fields()
    fields = {name: getattr(record, name) for name in _EXTRA_FIELDS if hasattr(record, name)}
    if "flow" not in fields and (flow := _flow_in_scope.get()):
        fields["flow"] = flow
    return fields


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event as the event list and the webhook show it. `time` is in seconds since 1970. What it is not about is
    empty, or -1."""

    time: float
    level: str
    flow: str
    text: str
    topic: str = ""
    partition: int = -1
    kind: str = ""


class Events(logging.Handler):
    """Keeps the last events, counts all of them, and passes each on to the listeners."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._last: deque[LoggedEvent] = deque(maxlen=_CAPACITY)
        self._listeners: list[Callable[[LoggedEvent], None]] = []
        self.counts: Counter[tuple[str, str]] = Counter()  # by flow and level, since the start

    def subscribe(self, listener: Callable[[LoggedEvent], None]) -> None:
        """Calls the listener with every event from now on; it must not block."""
        self._listeners.append(listener)

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(_LOGGERS_OF_EVENTS):
            return
        fields = fields_of(record)
        event = LoggedEvent(
            record.created,
            record.levelname,
            fields.get("flow", ""),
            record.getMessage(),
            fields.get("topic", ""),
            fields.get("partition", -1),
            fields.get("kind", ""),
        )
        self._last.append(event)
        self.counts[event.flow, event.level] += 1
        for listener in self._listeners:
            listener(event)

    def last(
        self,
        limit: int,
        flow: str = "",
        level: str = "",
        topic: str = "",
        may_see: Callable[[str], bool] = lambda _flow: True,
    ) -> list[LoggedEvent]:
        """Newest last, of flows that may be seen. Events of no flow have the name ''."""
        events = [
            event
            for event in self._last
            if flow in ("", event.flow)
            and level in ("", event.level)
            and topic in ("", event.topic)
            and may_see(event.flow)
        ]
        return events[-limit:] if limit > 0 else []
