"""What driver and running leases say to each other, through an internal topic on the target.

Spark brings word from a task only when it ends, and cancels without asking. So commands (end this lease, go on with
that one, take these partitions as well, log more) go through one partition and progress through the other of a topic
with short retention. Losing a message does no harm: a lease ends by itself, and its outcome repeats all that its
progress said.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from heliograph.copy.counts import Counts
from heliograph.copy.work import Copied, Progress
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.problems import Notice, Refusal


def end_command(leases: Iterable[str]) -> tuple[bytes, bytes]:
    return b"end", json.dumps(sorted(leases)).encode()


@dataclass(frozen=True, slots=True)
class EndLease:
    """The lease ends now."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The answer to a lease that asked for more time: it has it, counted from when it asked.

    So by its own clock a lease ends before the driver thinks so, whatever the messages took. If Spark has started the
    same lease again, only the last `attempt` is granted anything.
    """

    attempt: int
    ask: int
    bytes_per_second: float  # the lease's share of the flow's limit from now on


def grant_command(grants: Mapping[str, Grant]) -> tuple[bytes, bytes]:
    said = {lease: [one.attempt, one.ask, one.bytes_per_second] for lease, one in grants.items()}
    return b"grant", json.dumps(said, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Change:
    """Partitions that a running lease is to copy as well, and others that it is to leave."""

    added: tuple[MirrorPartition, ...]
    dropped: tuple[MirrorPartition, ...]


def change_command(changes: Mapping[str, Change]) -> tuple[bytes, bytes]:
    said = {
        lease: [[_fields(one) for one in some] for some in (change.added, change.dropped)]
        for lease, change in changes.items()
    }
    return b"change", json.dumps(said, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class LogLevels:
    """Log levels by logger, for all leases."""

    levels: dict[str, int]


def levels_command(levels: Mapping[str, int]) -> tuple[bytes, bytes]:
    """Log levels from now on, for all leases."""
    return b"levels", json.dumps(levels, separators=(",", ":")).encode()


Command = EndLease | Grant | Change | LogLevels


def command_for(lease: str, key: bytes | None, value: bytes | None) -> Command | None:
    """The command in a record; None if it is for other leases, or of a kind that this version does not know."""
    if value is None or key not in (b"end", b"grant", b"change", b"levels"):
        return None
    fields = json.loads(value)
    if key == b"levels":
        return LogLevels(fields)
    if lease not in fields:
        return None
    if key == b"end":
        return EndLease()
    if key == b"grant":
        return Grant(*fields[lease])
    added, dropped = (tuple(MirrorPartition(*partition) for partition in part) for part in fields[lease])
    return Change(added, dropped)


@dataclass(frozen=True, slots=True)
class Report:
    """What a running lease says of itself: totals so far, and the partitions that changed since the last report.

    `notices` are numbered from `first_notice` on: the lease's outcome will have them all again. With `ask` above zero,
    it asks for more time.
    """

    lease: str
    attempt: int
    ask: int
    counts: Counts
    changed: dict[MirrorPartition, Progress]
    refusals: tuple[Refusal, ...]
    notices: tuple[Notice, ...] = ()
    first_notice: int = 0

    def to_record(self) -> tuple[bytes, bytes]:
        value = {
            "attempt": self.attempt,
            "ask": self.ask,
            "counts": self.counts.to_json(),
            "changed": [[*_fields(one), *_progress(at)] for one, at in self.changed.items()],
            "open": [[*_fields(one), at.high_watermark] for one, at in self.changed.items() if _is_open(at)],
            "refusals": [
                [*_fields(one.partition), one.reason, one.source_offset, one.target_offset, one.text, one.final]
                for one in self.refusals
            ],
            "first_notice": self.first_notice,
            "notices": [
                [*_fields(one.partition), one.kind, one.count, one.source_offset, one.target_offset, one.text]
                for one in self.notices
            ],
        }
        return self.lease.encode(), json.dumps(value, separators=(",", ":")).encode()

    @classmethod
    def from_record(cls, key: bytes, value: bytes) -> "Report":
        fields = json.loads(value)
        is_open = {MirrorPartition(*place): high_watermark for *place, high_watermark in fields.get("open", ())}
        return cls(
            key.decode(),
            fields["attempt"],
            fields["ask"],
            Counts.from_json(fields["counts"]),
            {
                (one := MirrorPartition(topic, mirror, partition)): Progress(
                    Position(source, target, epoch, *mirror_id),  # older versions do not tell it
                    end,
                    Copied(records, size, newest, landed, stay),
                    start,
                    is_open.get(one, end),
                )
                for topic, mirror, partition, source, target, epoch, start, end, *more in fields["changed"]
                for records, size, newest, landed, stay, *mirror_id in (more,)
            },
            tuple(
                Refusal(MirrorPartition(topic, mirror, partition), reason, source, target, text, final)
                for topic, mirror, partition, reason, source, target, text, final in fields["refusals"]
            ),
            tuple(
                Notice(MirrorPartition(topic, mirror, partition), kind, count, source, target, text)
                for topic, mirror, partition, kind, count, source, target, text in fields["notices"]
            ),
            fields["first_notice"],
        )


def _is_open(at: Progress) -> bool:
    """Whether records wait behind a transaction."""
    return at.high_watermark > at.source_end


def _fields(partition: MirrorPartition) -> tuple[str, str, int]:
    return partition.topic, partition.mirror, partition.partition


def _progress(at: Progress) -> tuple[int | str, ...]:
    position, copied = at.position, at.copied
    totals = copied.records, copied.size, copied.newest, copied.landed, copied.stay
    place = position.source, position.target, position.epoch, at.source_start, at.source_end
    return *place, *totals, position.mirror_id
