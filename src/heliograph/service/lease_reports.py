"""Reads what running leases report, and renews those that ask for it."""

import logging
import time
from collections.abc import Mapping

from heliograph.copy.signals import Grant, Report, grant_command
from heliograph.model.partitions import MirrorPartition
from heliograph.service.flow_context import FlowContext
from heliograph.service.lease_pool import LeasePool
from heliograph.service.mirrors import Mirrors
from heliograph.service.running_lease import RunningLease
from heliograph.service.signals_channel import SignalsChannel
from heliograph.wire.records import Record

log = logging.getLogger(__name__)

# A lease is renewed for this many times its length at most; then it starts again and checks everything.
_RENEWALS = 15


class LeaseReports:
    def __init__(self, context: FlowContext, pool: LeasePool, signals: SignalsChannel, mirrors: Mirrors) -> None:
        self._context = context
        self._pool = pool
        self._signals = signals
        self._mirrors = mirrors

    async def handle(self, records: list[Record]) -> None:
        await self._renew(self._apply(records))

    def _apply(self, records: list[Record]) -> dict[str, Report]:
        """Returns the last report of each lease that asks for more time."""
        asking: dict[str, Report] = {}
        for record in records:
            key, value = record.key or b"", record.value
            lease = self._pool.leases.get(key.decode(errors="replace"))
            if lease is None or value is None:
                continue  # of another run, perhaps of another version, or of a lease that has ended
            try:
                report = Report.from_record(key, value)
                is_current = self._context.stats.apply_report(report, lease)
            except Exception as error:  # the lease continues; its outcome repeats what it reports
                if self._context.errors.is_new(("report", lease.id), repr(error)):
                    log.exception("%s: a report of lease %s cannot be read", self._context.name, lease.id)
                continue
            if is_current:
                self._pool.failures.clear(lease.number)
                if report.ask:
                    asking[report.lease] = report
        return asking

    async def _renew(self, asking: Mapping[str, Report]) -> None:
        stopped = self._context.stats.stopped()
        grants = {
            lease.id: Grant(report.attempt, report.ask, self._pool.bytes_per_second(lease))
            for lease, report in ((self._pool.leases[lease_id], report) for lease_id, report in asking.items())
            if report.attempt == lease.attempt and self._may_renew(lease, stopped)
        }
        if grants and not self._pool.is_stopping:
            await self._signals.send(grant_command(grants))
            for lease in [self._pool.leases[lease_id] for lease_id in grants.keys() & self._pool.leases.keys()]:
                self._pool.note_renewal(lease)

    def _may_renew(self, lease: RunningLease, stopped: set[MirrorPartition]) -> bool:
        """False where the next lease must check everything: the assignment has changed; a partition is stopped, and the
        cause may be gone; topics have no id, and may have been recreated; a command may have been lost."""
        lease_seconds = self._context.flow.lease_seconds
        assigned = self._pool.assignor.partitions(lease.number)
        return (
            (assigned == lease.partitions or set(assigned) == set(lease.partitions))  # sets of thousands take time
            and self._pool.assignor.has(lease.number)
            and lease.age() < min(lease_seconds * _RENEWALS, time.monotonic() - self._signals.lost_at)
            and self._mirrors.have_ids
            and lease.partitions_confirmed
            and (not stopped or stopped.isdisjoint(lease.partitions))
        )
