"""Membership in the group of one target cluster: joins, keeps the session alive, leads if it is chosen to, and joins
again after every error.

One tenure after the other: a tenure lasts as long as the coordinator counts this process as a member. What the process
drives is decided in `flow_assignment` and carried out by `members`.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from heliograph.copy.clock import now
from heliograph.model.flow import Cluster
from heliograph.model.member import Assignment, Member, Share, decode_assignment, decode_member, encode
from heliograph.model.membership import MembershipSettings
from heliograph.service.error_log import ErrorLog
from heliograph.service.flow_assignment import assign
from heliograph.service.process_identity import is_dead
from heliograph.service.task_groups import continue_after_failure, first_error
from heliograph.service.tenure import Tenure
from heliograph.wire.errors import (
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_SESSION_TIMEOUT,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    BrokerError,
    WireError,
)
from heliograph.wire.group_membership import GroupMember, Joined

log = logging.getLogger(__name__)

_RETRY_AFTER = 0.5
_LOOK_EVERY = 0.02
_LEAVES_WITHIN = 0.5
_ASSIGN_EVERY = 300.0
_CHECK_CLOCK_EVERY = 0.5


class MembershipFailed(Exception):
    """The settings do not allow this process to be a member."""


class _Lost(Exception):
    """The coordinator has removed this member."""


class Duties(Protocol):
    """Who carries out what a membership decides."""

    def member(self, alias: str) -> Member:
        """What this process tells the others, for the group of this target cluster."""

    def drive(self, alias: str, share: Share, tenure: Tenure) -> None:
        """These flows are this process's from now on."""

    def drive_all(self, alias: str) -> None:
        """There is no membership: all flows into this cluster are this process's."""

    async def release(self, alias: str) -> None:
        """This process is no member any more: ends its flows. Returns when they have ended."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Flows of a member that is gone, which wait for it until a time by the clock of leases."""

    flows: frozenset[str]
    until: float


class Membership:
    """`assignment` is the last one of the group. `looked` is set as soon as this process knows whether there are other
    members, `decided` as soon as it knows what it may drive."""

    def __init__(self, cluster: Cluster, settings: MembershipSettings, duties: Duties) -> None:
        self.alias = cluster.alias
        self.group = settings.group
        self.assignment = Assignment()
        self.epoch = 0
        self.looked = asyncio.Event()
        self.decided = asyncio.Event()
        self.is_unavailable = False
        self._cluster = cluster
        self._settings = settings
        self._duties = duties
        self._member: GroupMember | None = None
        self._earlier_id = ""
        self._rejoin = asyncio.Event()
        self._is_joining = False
        self._hold = Hold(frozenset(), 0.0)
        self._errors = ErrorLog()

    def use(self, cluster: Cluster) -> None:
        """How to reach the cluster from now on."""
        self._cluster = cluster
        if self._member is not None:
            self._member.use(cluster)

    def rejoin(self) -> None:
        """What this process tells the others has changed."""
        self._rejoin.set()

    async def run(self) -> None:
        """Until cancelled, or until membership turns out not to be allowed. Raises MembershipFailed."""
        while not self.is_unavailable:
            try:
                await self._take_part()
            except _Lost as lost:
                log.warning("%s: this process is no longer a member of group %s: %s", self.alias, self.group, lost)
            except WireError as error:
                self._note(error)
            await asyncio.sleep(_RETRY_AFTER)

    async def leave(self) -> None:
        """After `run` was cancelled and the flows have ended: the others need not wait for the session to time out."""
        if self._member is None:
            return
        try:
            async with asyncio.timeout(_LEAVES_WITHIN):
                await self._member.leave()
        except (TimeoutError, WireError) as error:
            log.debug("%s: group %s cannot be left: %r", self.alias, self.group, error)
        self._member.close()

    def _note(self, error: WireError) -> None:
        code = error.code if isinstance(error, BrokerError) else 0
        if code in (INVALID_SESSION_TIMEOUT, INCONSISTENT_GROUP_PROTOCOL):
            self.decided.set()
        if code == INVALID_SESSION_TIMEOUT:
            raise MembershipFailed(
                f"session.timeout.ms is not within group.min.session.timeout.ms and group.max.session.timeout.ms of "
                f"cluster {self.alias}: {error}"
            ) from error
        if code == INCONSISTENT_GROUP_PROTOCOL:
            raise MembershipFailed(
                f"group {self.group} on cluster {self.alias} has members that are not Heliograph's: set another "
                f"{self.alias}.group.id"
            ) from error
        if code == GROUP_AUTHORIZATION_FAILED:
            self.is_unavailable = True
            log.warning(
                "%s: other processes do not share the flows with this one, and it runs all of them: the right Read on "
                "group %s is missing. Allow it, or set heliograph.membership = off",
                self.alias,
                self.group,
            )
            self._duties.drive_all(self.alias)
            self.decided.set()
        elif self._errors.is_new("group", str(error)):
            log.warning("%s: group %s cannot be joined and will be tried again: %s", self.alias, self.group, error)

    # --- one tenure -----------------------------------------------------------------------------------------

    async def _take_part(self) -> None:
        """Joins, and takes part until the membership is lost. Raises what it is lost by."""
        settings = self._settings
        if self._member is not None:
            self._earlier_id = self._member.member_id
            self._member.close()
        member = self._member = GroupMember(
            self._cluster, self.group, settings.session_timeout, settings.rebalance_timeout
        )
        await self._remove_dead(member)
        tenure = Tenure(self.group, settings.session_timeout)
        try:
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._rebalance(member, tenure))
                    tasks.create_task(self._keep_alive(member, tenure))
                    tasks.create_task(self._watch(tenure))
            finally:
                tenure.end()
                self.epoch = 0
        except BaseExceptionGroup as errors:
            continue_after_failure()
            await self._duties.release(self.alias)
            raise first_error(errors) from None

    async def _remove_dead(self, member: GroupMember) -> None:
        """Members of processes of this machine that were killed, and the one that this process was before: the
        coordinator would wait for them until their sessions time out."""
        own = self._duties.member(self.alias)
        described = await member.describe()
        gone = {each.id for each in described if each.id == self._earlier_id}
        for each in described:
            other = decode_member(each.metadata)
            if other is not None and (other.run == own.run or is_dead(other.process)):
                log.info("%s: removing member %s from group %s: its process is dead", self.alias, other, self.group)
                gone.add(each.id)
        if gone:
            await member.remove(gone)
        self._earlier_id = ""

    async def _rebalance(self, member: GroupMember, tenure: Tenure) -> None:
        """Joins again whenever the group or this member has changed. The flows run on as long as the tenure lasts."""
        is_driving = False
        while True:
            self._rejoin.clear()
            self._is_joining = True
            joining = asyncio.ensure_future(member.join(encode(self._duties.member(self.alias))))
            try:
                if not is_driving and await self._is_alone(member, joining):
                    is_driving = True
                    own = self._duties.member(self.alias)
                    self._apply(Share(own.run, flows=own.flows), tenure)
                self.looked.set()
                joined = await joining
                asked_at = now()
                assignment = await self._sync(member, joined)
                tenure.confirm(asked_at)
            except WireError as error:
                code = error.code if isinstance(error, BrokerError) else 0
                if not is_driving and code != REBALANCE_IN_PROGRESS:
                    raise
                if code in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION):
                    raise _Lost(str(error)) from error
                log.debug("%s: group %s is to be joined again: %s", self.alias, self.group, error)
                await asyncio.sleep(_LOOK_EVERY if code == REBALANCE_IN_PROGRESS else _RETRY_AFTER)
                continue
            finally:
                joining.cancel()
                self._is_joining = False
            is_driving = True
            tenure.epoch = self.epoch = joined.generation
            self.assignment = assignment
            self._errors.recovered("group")
            self._apply(assignment.share(self._duties.member(self.alias).run), tenure)
            await self._wait_for_rejoin(joined.is_leader)

    def _apply(self, share: Share, tenure: Tenure) -> None:
        self._duties.drive(self.alias, share, tenure)
        self.decided.set()

    async def _wait_for_rejoin(self, is_leader: bool) -> None:
        """The leader joins again from time to time, so that flows are assigned by the loads that they have now."""
        left = self._hold.until - now() if self._hold.flows else _ASSIGN_EVERY if is_leader else None
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._rejoin.wait()

    async def _is_alone(self, member: GroupMember, joining: "asyncio.Future[Joined]") -> bool:
        """Whether this is the only member while the first rebalance of a group waits for others, for
        `group.initial.rebalance.delay.ms`. Who joins later sees this one, so at most one process gets True."""
        while not joining.done():
            members = {each.id for each in await member.describe()}
            if member.member_id in members:
                return len(members) == 1
            await asyncio.sleep(_LOOK_EVERY)
        return False

    async def _sync(self, member: GroupMember, joined: Joined) -> Assignment:
        if not joined.is_leader:
            return decode_assignment(await member.sync({}))
        own = self._duties.member(self.alias)
        members = {member_id: decode_member(metadata) for member_id, metadata in joined.members.items()}
        members[member.member_id] = own  # it may have begun to drive flows since it sent that
        known = [each for each in members.values() if each is not None]
        assignment = assign(known, own.run, self._held(known))
        data = encode(assignment)
        return decode_assignment(await member.sync(dict.fromkeys(members, data)))

    def _held(self, members: list[Member]) -> frozenset[str]:
        """Flows of members that are gone, while scheduled.rebalance.max.delay.ms is not over."""
        delay = self._settings.rebalance_delay
        if not delay or not self.epoch:
            return frozenset()
        driven = {flow for member in members for flow in member.driven}
        present = {member.run for member in members}
        lost = {flow for share in self.assignment.shares if share.run not in present for flow in share.flows}
        if self._hold.flows and now() >= self._hold.until:
            self._hold = Hold(frozenset(), 0.0)
            return frozenset()
        until = self._hold.until if self._hold.flows else now() + delay
        self._hold = Hold((self._hold.flows | lost) - driven, until)
        return self._hold.flows

    async def _keep_alive(self, member: GroupMember, tenure: Tenure) -> None:
        while True:
            await asyncio.sleep(self._settings.heartbeat_interval)
            asked_at, generation = now(), member.generation
            try:
                if tenure.epoch:
                    await member.heartbeat()
                elif member.member_id not in {each.id for each in await member.describe()}:
                    continue
                tenure.confirm(asked_at)
            except BrokerError as error:
                # While this member joins, both are about the generation before.
                is_joining = self._is_joining or generation != member.generation
                if error.code == REBALANCE_IN_PROGRESS:
                    tenure.confirm(asked_at)
                    if not is_joining:
                        self._rejoin.set()
                elif error.code == UNKNOWN_MEMBER_ID or (error.code == ILLEGAL_GENERATION and not is_joining):
                    raise _Lost(str(error)) from error
                else:
                    log.debug("%s: heartbeat: %s", self.alias, error)
            except WireError as error:
                log.debug("%s: heartbeat: %s", self.alias, error)

    async def _watch(self, tenure: Tenure) -> None:
        """Reports when the coordinator has not answered for too long, and when it does again."""
        is_reported = False
        while True:
            await asyncio.sleep(_CHECK_CLOCK_EVERY)
            if tenure.epoch and tenure.is_valid == is_reported:
                is_reported = not is_reported
                if is_reported:
                    log.warning(
                        "%s: the coordinator of group %s has answered no heartbeat for %g s: this process sends "
                        "nothing for its flows until it does",
                        self.alias,
                        self.group,
                        self._settings.session_timeout,
                    )
                else:
                    log.info("%s: the coordinator of group %s answers again", self.alias, self.group)
