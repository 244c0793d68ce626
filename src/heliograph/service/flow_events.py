"""Events of a running flow's leases, signals topic and mirrors."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from heliograph.model.partitions import MirrorPartition
from heliograph.service.events import Event

_NAMED = 5  # partitions in a message


@dataclass(frozen=True, slots=True)
class LeaseOverdue(Event):
    lease: str
    severity = logging.WARNING

    @property
    def message(self) -> str:
        return f"lease {self.lease} is overdue and is cancelled"


@dataclass(frozen=True, slots=True)
class LeaseWaiting(Event):
    """A lease cannot start: another one holds partitions that are to move to it."""

    lease: int
    holder: str
    severity = logging.WARNING

    @property
    def message(self) -> str:
        return f"lease {self.lease} waits for lease {self.holder} to end, which still holds partitions that are to move"


@dataclass(frozen=True, slots=True)
class CommandNotSent(Event):
    command: str
    reason: str
    severity = logging.WARNING

    @property
    def message(self) -> str:
        return f"{self.command} cannot be sent to running leases, which end at their deadlines: {self.reason}"


@dataclass(frozen=True, slots=True)
class SignalsMissing(Event):
    topic: str
    severity = logging.WARNING

    @property
    def message(self) -> str:
        return f"internal topic {self.topic} is missing: it is created again"


@dataclass(frozen=True, slots=True)
class SignalsLost(Event):
    what: str
    severity = logging.WARNING

    @property
    def message(self) -> str:
        effect = "reports and commands may be lost, so leases that run end at their deadlines and start again"
        return f"{self.what}; {effect}"


@dataclass(frozen=True, slots=True)
class ReportsNotRead(Event):
    reason: str
    severity = logging.WARNING

    @property
    def message(self) -> str:
        return f"reports of leases cannot be read: {self.reason}"


@dataclass(frozen=True, slots=True)
class StatusNotWritten(Event):
    topic: str
    reason: str
    severity = logging.WARNING

    @property
    def message(self) -> str:
        return f"status and progress cannot be written to {self.topic}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TopicListIgnored(Event):
    cluster: str
    severity = logging.WARNING

    @property
    def message(self) -> str:
        return f"cluster {self.cluster} returned an empty topic list; ignored"


@dataclass(frozen=True, slots=True)
class MirrorsCopiedAgain(Event):
    """`lost` are the partitions, with what has become of their mirrors."""

    lost: Mapping[MirrorPartition, str]

    @property
    def message(self) -> str:
        named = [f"{partition} (mirror {why})" for partition, why in sorted(self.lost.items())[:_NAMED]]
        more = len(self.lost) - len(named)
        listed = ", ".join(named) + (f" and {more} more" if more else "")
        return f"copied again, as their mirrors do not hold what was copied: {listed}"


@dataclass(frozen=True, slots=True)
class OtherRunStarted(Event):
    text: str
    severity = logging.WARNING

    @property
    def message(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class OtherRunGone(Event):
    run_id: str

    @property
    def message(self) -> str:
        return f"the other process (run {self.run_id}) no longer runs this flow"


@dataclass(frozen=True, slots=True)
class TakeoverBlocked(Event):
    reason: str
    severity = logging.ERROR

    @property
    def message(self) -> str:
        return self.reason
