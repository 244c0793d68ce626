"""Messages between the driver and running leases, in an internal topic on the target.

Spark reports from a task only when it ends, and its cancellation cannot be handled. So commands (end this lease, extend
that one, change the partitions, change log levels) go through one partition, and progress through the other, of a topic
with short retention. Losing a message does no harm: a lease ends by itself, and its outcome repeats its progress.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass

from heliograph.copy.counts import Counts, Recent
from heliograph.copy.work import Copied, Progress
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.problems import Notice, Refusal

_VERSION = 1  # of reports


def end_command(leases: Iterable[str]) -> tuple[bytes, bytes]:
    return b"end", json.dumps(sorted(leases)).encode()


@dataclass(frozen=True, slots=True)
class EndLease:
    """The lease ends now."""


@dataclass(frozen=True, slots=True)
class Grant:
    """More time for a lease that has asked for it, counted from when it asked.

    So by its own clock a lease ends before the driver's deadline for it, however long messages take. If Spark has
    started the same lease again, only the last `attempt` is granted time.
    """

    attempt: int
    ask: int
    bytes_per_second: float  # the lease's share of the flow's limit from now on


def grant_command(grants: Mapping[str, Grant]) -> tuple[bytes, bytes]:
    values = {lease: [grant.attempt, grant.ask, grant.bytes_per_second] for lease, grant in grants.items()}
    return b"grant", json.dumps(values, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Change:
    """Partitions that are added to a running lease, and others that it must drop."""

    added: tuple[MirrorPartition, ...]
    dropped: tuple[MirrorPartition, ...]


def change_command(changes: Mapping[str, Change]) -> tuple[bytes, bytes]:
    values = {
        lease: [[_fields(partition) for partition in partitions] for partitions in (change.added, change.dropped)]
        for lease, change in changes.items()
    }
    return b"change", json.dumps(values, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class LogLevels:
    """Log levels by logger, for all leases."""

    levels: dict[str, int]


def levels_command(levels: Mapping[str, int]) -> tuple[bytes, bytes]:
    """For all leases."""
    return b"levels", json.dumps(levels, separators=(",", ":")).encode()


def fence_command(epoch: int) -> tuple[bytes, bytes]:
    """Ends all leases of drivers with a lower epoch: they were declared dead, and cannot end their leases."""
    return b"fence", json.dumps(epoch).encode()


Command = EndLease | Grant | Change | LogLevels


def command_for(lease: str, key: bytes | None, value: bytes | None, epoch: int = 0) -> Command | None:
    """The command in a record; None if it is for other leases, or of a kind that this version does not know. `epoch` is
    that of the lease's driver."""
    if value is None or key not in (b"end", b"grant", b"change", b"levels", b"fence"):
        return None
    try:
        fields = json.loads(value)
    except ValueError:
        return None
    if key == b"levels":
        return LogLevels(fields)
    if key == b"fence":
        return EndLease() if epoch < int(fields) else None
    if lease not in fields:
        return None
    if key == b"end":
        return EndLease()
    if key == b"grant":
        return Grant(*fields[lease][:3])
    added, dropped, *_later = (tuple(MirrorPartition(*partition[:3]) for partition in part) for part in fields[lease])
    return Change(added, dropped)


@dataclass(frozen=True, slots=True)
class Report:
    """What a running lease reports: totals so far, and the partitions that changed since the last report.

    `notices` are numbered from `first_notice` on: the lease's outcome has them all again. With `ask` above zero the
    lease asks for more time. `recent` is None in a report of an older version.
    """

    lease: str
    attempt: int
    ask: int
    counts: Counts
    changed: dict[MirrorPartition, Progress]
    refusals: tuple[Refusal, ...]
    notices: tuple[Notice, ...] = ()
    first_notice: int = 0
    recent: Recent | None = None

    def to_record(self) -> tuple[bytes, bytes]:
        value = {
            "version": _VERSION,
            "attempt": self.attempt,
            "ask": self.ask,
            "counts": self.counts.to_json(),
            "recent": None if self.recent is None else astuple(self.recent),
            "changed": [[*_fields(partition), *_progress(at)] for partition, at in self.changed.items()],
            "open": [
                [*_fields(partition), at.high_watermark] for partition, at in self.changed.items() if _is_open(at)
            ],
            "refusals": [
                [
                    *_fields(refusal.partition),
                    refusal.reason,
                    refusal.source_offset,
                    refusal.target_offset,
                    refusal.text,
                    refusal.final,
                ]
                for refusal in self.refusals
            ],
            "first_notice": self.first_notice,
            "notices": [
                [
                    *_fields(notice.partition),
                    notice.kind,
                    notice.count,
                    notice.source_offset,
                    notice.target_offset,
                    notice.text,
                ]
                for notice in self.notices
            ],
        }
        return self.lease.encode(), json.dumps(value, separators=(",", ":")).encode()

    @classmethod
    def from_record(cls, lease: bytes, value: bytes) -> "Report":
        """Of any version: during a rolling upgrade driver and leases differ. Missing fields have defaults, unknown
        fields, and values at the end of a row, are ignored."""
        fields = json.loads(value)
        open_transactions = {MirrorPartition(*row[:3]): row[3] for row in fields.get("open", ())}
        return cls(
            lease.decode(),
            fields.get("attempt", 0),
            fields.get("ask", 0),
            Counts.from_json(fields.get("counts", {})),
            {
                (key := MirrorPartition(topic, mirror, partition)): Progress(
                    Position(source, target, epoch, *later[:1]),  # the mirror's id, which older versions do not write
                    end,
                    Copied(records, size, newest, landed, stay),
                    start,
                    open_transactions.get(key, end),
                )
                for topic, mirror, partition, source, target, epoch, start, end, *more in fields.get("changed", ())
                for records, size, newest, landed, stay, *later in (more,)
            },
            tuple(
                Refusal(MirrorPartition(topic, mirror, partition), reason, source, target, text, final)
                for topic, mirror, partition, reason, source, target, text, final, *_later in fields.get("refusals", ())
            ),
            tuple(
                Notice(MirrorPartition(topic, mirror, partition), kind, count, source, target, text)
                for topic, mirror, partition, kind, count, source, target, text, *_later in fields.get("notices", ())
            ),
            fields.get("first_notice", 0),
            Recent(*recent[:4]) if (recent := fields.get("recent")) else None,
        )


def _is_open(at: Progress) -> bool:
    """Whether records wait for a transaction to end."""
    return at.high_watermark > at.source_end


def _fields(partition: MirrorPartition) -> tuple[str, str, int]:
    return partition.topic, partition.mirror, partition.partition


def _progress(at: Progress) -> tuple[int | str, ...]:
    position, copied = at.position, at.copied
    totals = copied.records, copied.size, copied.newest, copied.landed, copied.stay
    offsets = position.source, position.target, position.epoch, at.source_start, at.source_end
    return *offsets, *totals, position.mirror_id
