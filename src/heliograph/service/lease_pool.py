"""The leases of a flow: assigns partitions to them, runs them one after the other, retries those that fail."""

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Protocol

from heliograph.copy.log_levels import levels
from heliograph.copy.signals import Change, change_command, end_command
from heliograph.copy.work import Outcome, Work
from heliograph.model.partitions import MirrorPartition
from heliograph.service.assignment import Assignor
from heliograph.service.events import FlowEvent, emit
from heliograph.service.flow_context import FlowContext
from heliograph.service.lease_failures import LeaseFailures
from heliograph.service.measures import Leases
from heliograph.service.running_lease import RunningLease, lease_changes
from heliograph.service.task_groups import raise_if_cancelled
from heliograph.wire.errors import Fenced, WireError

log = logging.getLogger(__name__)

RunLease = Callable[[Work], Awaitable[Outcome]]
CancelLease = Callable[[str], Awaitable[None]]
_PAUSE_AFTER_FAILURE = 1.0
# How long a lease may take to end before the next one gets its command.
_ENDS_WITHIN = 5.0
_POLL = 0.02


class Commands(Protocol):
    """Where commands to running leases are written."""

    @property
    def next_offset(self) -> int:
        """A lease that starts now reads commands from here on."""

    async def send(self, command: tuple[bytes, bytes]) -> None: ...


class LeasePool:
    """`leases` are those that run, by id. There is one loop per index of the assignment."""

    def __init__(self, context: FlowContext, commands: Commands, run: RunLease, cancel: CancelLease) -> None:
        self._context = context
        self._commands = commands
        self._run = run
        self._cancel = cancel
        self.assignor = Assignor()
        self.leases: dict[str, RunningLease] = {}
        self._partitions: Sequence[MirrorPartition] = ()  # of the flow, with those of paused topics
        self._assigned = asyncio.Event()
        self._stop = asyncio.Event()
        self._loops: asyncio.TaskGroup | None = None
        self._loop_count = 0
        self.failures = LeaseFailures(context.name)
        self._renewals = 0
        self.is_started = False

    async def run(self) -> None:
        """Runs leases until `stop`; then returns when the last one has ended."""
        self.is_started = True
        async with asyncio.TaskGroup() as loops:
            self._loops = loops
            try:
                self._start_loops()
                await self._stop.wait()
            finally:
                self._loops = None

    async def stop(self) -> None:
        """Asks all running leases to end. They would at their deadline anyway."""
        self._stop.set()
        self._assigned.set()
        await self._end(list(self.leases))

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    async def restart(self, numbers: Collection[int]) -> None:
        """Makes leases end and start again, one after the other, so that not all pause at once."""
        for lease in [lease for lease in self.leases.values() if lease.number in numbers]:
            await self._end([lease.id])
            deadline = time.monotonic() + _ENDS_WITHIN
            while lease.id in self.leases and time.monotonic() < deadline:
                await asyncio.sleep(_POLL)

    async def assign(self, partitions: Sequence[MirrorPartition]) -> None:
        """Assigns these, all of the flow. A lease that only gets or loses partitions continues with the others; where
        one moves between leases, both end, so that the old one has released it before the new one starts."""
        flow, stats = self._context.flow, self._context.stats
        self._partitions = partitions
        stats.load.retain(partitions)
        copied = [partition for partition in partitions if partition.topic not in flow.paused_topics]
        stats.stalled.retain(copied)
        self.assignor.reassign(copied, flow.tasks_max, stats.load.per_second())
        self._start_loops()
        self._assigned.set()
        changes, ending = lease_changes(list(self.leases.values()), self.assignor.assignment)
        for lease_id, change in changes.items():
            self.leases[lease_id].add(change.added)  # held from now on, whenever the command arrives
        await self._end(ending)
        if changes:
            for lease in await self._change(changes):
                lease.drop(changes[lease.id].dropped)

    async def copy_again(self, lost: Collection[MirrorPartition]) -> None:
        """Makes the leases that hold these partitions resume them from what the mirrors hold."""
        changes = {
            lease.id: Change(held, held)
            for lease in self.leases.values()
            if (held := tuple(partition for partition in lease.partitions if partition in lost))
        }
        if changes:
            await self._change(changes)

    async def _change(self, changes: Mapping[str, Change]) -> list[RunningLease]:
        """Returns the leases to which their change was sent. The others end soon: they are not renewed."""
        leases = [self.leases[lease_id] for lease_id in changes if lease_id in self.leases]
        for lease in leases:
            lease.removals.update(changes[lease.id].dropped)
        try:
            await self._commands.send(change_command(changes))
        except WireError as error:
            self._warn_not_sent("the change of partitions", error)
            for lease in leases:
                lease.partitions_confirmed = False
            return []
        return leases

    async def _end(self, leases: list[str]) -> None:
        if not leases:
            return
        try:
            await self._commands.send(end_command(leases))
        except Fenced:  # the next driver makes them end, at their deadlines at the latest
            for lease_id in leases:
                await self._cancel(lease_id)
        except WireError as error:
            self._warn_not_sent("the command to end", error)

    def _warn_not_sent(self, command: str, error: WireError) -> None:
        text = f"{command} cannot be sent to running leases, which end at their deadlines: {error}"
        emit(log, FlowEvent(self._context.name, text, logging.WARNING))

    def _start_loops(self) -> None:
        while self._loops is not None and self._loop_count < len(self.assignor.assignment):
            self._loops.create_task(self._run_leases(self._loop_count))
            self._loop_count += 1

    async def _run_leases(self, number: int) -> None:
        for count in itertools.count(1):
            while not self._stop.is_set() and not self.assignor.has(number):
                self._assigned.clear()
                await self._assigned.wait()
            try:
                if not self._stop.is_set():
                    await self._context.ledger.catch_up()
                await self._until_released(number)
                if self._stop.is_set():
                    return
                if self.assignor.has(number):
                    lease_id = f"{self._context.run_id}-{self._context.name}-{number}-{count}"
                    await self._run_lease(RunningLease(lease_id, number, self.assignor.partitions(number)))
            except Exception as error:  # a lease is retried after any error
                if self._stop.is_set():
                    return
                raise_if_cancelled()
                if not isinstance(error, Fenced):
                    self.failures.add(number, _one_line(error))
                await asyncio.sleep(_PAUSE_AFTER_FAILURE)

    async def _until_released(self, number: int) -> None:
        """Waits until no other lease holds a partition of this one. A lease that misses the command to end does so at
        its deadline, as it is not renewed."""
        began = time.monotonic()
        errors = self._context.errors
        while not self._stop.is_set() and (holder := self._holder_of(number)) is not None:
            waited = time.monotonic() - began
            if waited > _ENDS_WITHIN and errors.is_new(("released", number), holder.id):
                text = (
                    f"lease {number} waits for lease {holder.id} to end, which still holds partitions that are to move"
                )
                emit(log, FlowEvent(self._context.name, text, logging.WARNING))
            await asyncio.sleep(_POLL)
        if errors.recovered(("released", number)):
            emit(log, FlowEvent(self._context.name, f"lease {number} has its partitions"))

    def _holder_of(self, number: int) -> RunningLease | None:
        wanted = set(self.assignor.partitions(number))
        others = (lease for lease in self.leases.values() if lease.number != number)
        return next((lease for lease in others if not wanted.isdisjoint(lease.partitions)), None)

    async def _run_lease(self, lease: RunningLease) -> None:
        # Its work is built and it is listed in one step, so that no command to end it falls in between.
        work = self._work(lease)
        lease.extend(work.seconds)
        self.leases[lease.id] = lease
        task = self._context.stats.task(lease.number)
        try:
            outcome = await self._outcome(work, lease)
        except BaseException:
            self._context.stats.add_reported_counts(lease)
            raise
        else:
            self._context.stats.apply_outcome(outcome, lease)
            self.failures.recovered(lease.number)
        finally:
            del self.leases[lease.id]
            task.lease_ended(lease.running_seconds)

    async def _outcome(self, work: Work, lease: RunningLease) -> Outcome:
        outcome = asyncio.ensure_future(self._run(work))
        try:
            while not (await asyncio.wait([outcome], timeout=lease.overdue_in()))[0]:
                if not lease.overdue_in():
                    text = f"lease {lease.id} is overdue and is cancelled"
                    emit(log, FlowEvent(self._context.name, text, logging.WARNING))
                    await self._cancel(lease.id)
                    break
            return await outcome
        finally:
            outcome.cancel()

    def _work(self, lease: RunningLease) -> Work:
        flow, stats = self._context.flow, self._context.stats
        positions = {
            partition: progress.position
            for partition in lease.partitions
            if (progress := stats.progress.get(partition)) is not None
        }
        ledger = self._context.ledger.hand_over(
            {
                (partition.topic, partition.partition): positions[partition].target if partition in positions else None
                for partition in lease.partitions
            }
        )
        return Work(
            flow,
            lease.id,
            flow.lease_seconds,
            lease.partitions,
            # Where a partition was refused, the lease looks again whether the cause is gone.
            {partition: at for partition, at in positions.items() if partition not in stats.refusals},
            ledger,
            self._commands.next_offset,
            self.bytes_per_second(lease),
            lease.number,
            levels(),
            self._context.epoch,
        )

    def bytes_per_second(self, lease: RunningLease) -> float:
        """The lease's share of the flow's limit; 0 if there is none."""
        limit = self._context.flow.max_bytes_per_second
        return limit * self._context.stats.load.share(lease.partitions, self._partitions) if limit else 0.0

    def note_renewal(self, lease: RunningLease) -> None:
        lease.extend(self._context.flow.lease_seconds)
        self.failures.recovered(lease.number)
        self._renewals += 1

    def measure(self) -> Leases:
        running = [lease.age() for lease in self.leases.values() if lease.is_running]
        return Leases(
            wanted=len(self.assignor.assignment),
            running=len(running),
            oldest=max(running, default=0.0),
            failures=self.failures.count,
            renewals=self._renewals,
            assignment_changes=self.assignor.changes,
            seconds_since_change=time.monotonic() - self.assignor.changed_at,
        )


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1] if lines else ''}"[:300]
