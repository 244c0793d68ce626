"""This process among the members of its deployment: which flows it drives, in the group of each target cluster."""

import asyncio
import logging
import socket
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from heliograph import __version__
from heliograph.model.fingerprint import fingerprint
from heliograph.model.flow import Cluster, Flow
from heliograph.model.member import Assignment, Member, Share, decode_assignment
from heliograph.model.membership import MembershipSettings
from heliograph.service.membership import Membership
from heliograph.service.process_identity import own_identity
from heliograph.service.tenure import Tenure
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.group_membership import describe_members

log = logging.getLogger(__name__)

_POLL = 0.02


class DrivenFlows(Protocol):
    """The flows of this process; a `Supervisor` has them."""

    ready: asyncio.Event

    def assign(self, flows: Collection[str]) -> None:
        """These flows run here, and no others."""

    def loads(self) -> Mapping[str, float | None]:
        """The flows that run, are about to, or have not ended yet, with their loads; None if it is not known yet."""


class Members:
    """`rest` is the address of this process's REST API."""

    def __init__(self, flows: Sequence[Flow], settings: Mapping[str, MembershipSettings], rest: str = "") -> None:
        self.run = uuid.uuid4().hex[:8]
        self._host, self._rest, self._process = socket.gethostname(), rest, own_identity()
        self._settings = dict(settings)
        self._flows = tuple(flows)
        self._fingerprints: dict[str, dict[str, str]] = {}
        self._shared_names: set[str] = set()  # of all flows that the file has had
        self._driven: DrivenFlows | None = None
        self._memberships: dict[str, Membership] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._handing_over: dict[str, asyncio.Task[None]] = {}
        self._shares: dict[str, Share] = {}
        self._tenures: dict[str, Tenure] = {}
        self._unshared: set[str] = set()  # clusters whose flows are driven without membership
        self._known_loads: dict[str, float] = {}
        self._said: dict[str, str] = {}

    def start(self, driven: DrivenFlows) -> None:
        """Joins the groups."""
        self._driven = driven
        self.use(self._flows, self._settings)

    def use(self, flows: Sequence[Flow], settings: Mapping[str, MembershipSettings]) -> None:
        """The flows of the deployment from now on. Members with others get no flows."""
        before = {alias: self._fingerprint(alias) for alias in self._memberships}
        self._flows, self._settings, self._fingerprints = tuple(flows), dict(settings), {}
        self._shared_names |= {flow.name for flow in flows}
        targets = {flow.target.alias: flow.target for flow in flows if self.shares(flow)}
        for alias, cluster in targets.items():
            if alias not in self._memberships:
                membership = self._memberships[alias] = Membership(cluster, self._settings[alias], self)
                self._tasks[alias] = asyncio.create_task(membership.run())
            else:
                self._memberships[alias].use(cluster)
                if before[alias] != self._fingerprint(alias):
                    self._memberships[alias].rejoin()

    async def wait_for_first_look(self, within: float) -> bool:
        """Until this process knows whether there are other members. Returns whether it does."""
        return await self._all_set([membership.looked for membership in self._memberships.values()], within)

    async def wait_until_decided(self, within: float) -> bool:
        """Until this process knows which flows it drives. Returns whether it does."""
        return await self._all_set([membership.decided for membership in self._memberships.values()], within)

    async def _all_set(self, events: Sequence[asyncio.Event], within: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await asyncio.gather(*(event.wait() for event in events))
        self.check()
        return all(event.is_set() for event in events)

    def check(self) -> None:
        """Raises what a membership fails with."""
        for task in self._tasks.values():
            if task.done() and not task.cancelled():
                task.result()

    async def leave(self) -> None:
        """When the flows have ended: the others take them over at once."""
        tasks = (*self._tasks.values(), *self._handing_over.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(membership.leave() for membership in self._memberships.values()))

    # --- what flows ask -------------------------------------------------------------------------------------

    def shares(self, flow: Flow) -> bool:
        """Whether it is a flow of the deployment. One that was posted to this process is this process's alone."""
        return flow.target.alias in self._settings and any(flow.name == shared.name for shared in self._flows)

    def tenure(self, flow: Flow) -> Tenure | None:
        """While it is valid, this process drives the flow; None if it does so without membership."""
        return self._tenures.get(flow.target.alias)

    # --- what memberships ask -------------------------------------------------------------------------------

    def member(self, alias: str) -> Member:
        loads = self._loads()
        self._known_loads |= {flow: load for flow, load in loads.items() if load is not None}
        driven = tuple(sorted(flow for flow in loads if _target(flow) == alias))
        return Member(
            self.run,
            self._host,
            self._rest,
            __version__,
            self._process,
            self._fingerprint(alias),
            tuple(flow.name for flow in self._into(alias)),
            driven,
            {flow: load for flow, load in self._known_loads.items() if _target(flow) == alias},
            sum(self._known_loads.get(flow, 0.0) for flow in loads if flow not in driven),
        )

    def drive(self, alias: str, share: Share, tenure: Tenure) -> None:
        before = self._shares.get(alias, Share(self.run))
        leaving = {flow for flow in self._loads() if _target(flow) == alias} - set(share.flows)
        self._shares[alias], self._tenures[alias] = share, tenure
        self._say(alias, before, share, tenure)
        self._apply()
        if leaving and alias not in self._handing_over:
            self._handing_over[alias] = asyncio.create_task(self._hand_over(alias))

    def drive_all(self, alias: str) -> None:
        self._unshared.add(alias)
        self._apply()

    async def release(self, alias: str) -> None:
        self._shares.pop(alias, None)
        self._apply()
        await self._ended(alias)
        self._tenures.pop(alias, None)

    def _apply(self) -> None:
        driven = self._driven
        assert driven is not None
        flows = {flow for share in self._shares.values() for flow in share.flows}
        flows |= {flow.name for alias in self._unshared for flow in self._into(alias)}
        if not driven.ready.is_set():
            flows |= driven.loads().keys()  # they are being prepared; `settle` ends them
        driven.assign(flows)

    def settle(self) -> None:
        """When the flows run: what was assigned meanwhile."""
        self._apply()

    async def _hand_over(self, alias: str) -> None:
        """Joins again when the flows that others get have ended here."""
        await self._ended(alias)
        del self._handing_over[alias]
        self._memberships[alias].rejoin()

    async def _ended(self, alias: str) -> None:
        """Waits until only flows of this member's share run."""
        assert self._driven is not None
        await self._driven.ready.wait()
        while True:
            share = self._shares.get(alias)
            kept = set(share.flows) if share is not None else set()
            if not {flow for flow in self._loads() if _target(flow) == alias} - kept:
                return
            await asyncio.sleep(_POLL)

    def _loads(self) -> Mapping[str, float | None]:
        """Also of flows that the file had before, until they have ended."""
        loads = self._driven.loads() if self._driven is not None else {}
        return {flow: load for flow, load in loads.items() if flow in self._shared_names}

    def _into(self, alias: str) -> list[Flow]:
        return [flow for flow in self._flows if flow.target.alias == alias]

    def _fingerprint(self, alias: str) -> dict[str, str]:
        if alias not in self._fingerprints:
            self._fingerprints[alias] = fingerprint(self._into(alias))
        return self._fingerprints[alias]

    # --- what others see ------------------------------------------------------------------------------------

    def _say(self, alias: str, before: Share, share: Share, tenure: Tenure) -> None:
        if share.refused and share.refused != before.refused:
            log.warning(
                "%s: this process gets no flows and waits: %s. Give all members the same file; a deployment of its own "
                "needs its own %s.group.id",
                alias,
                share.refused,
                alias,
            )
        text = ", ".join(share.flows) or "no flow"
        if tenure.epoch and self._said.get(alias) != text:
            count = len(self._memberships[alias].assignment.shares)
            if count > 1 or alias in self._said:
                log.info("%s: member %s of %d drives %s (epoch %d)", alias, self.run, count, text, tenure.epoch)
                self._said[alias] = text

    def view(self) -> list[dict[str, Any]]:
        """The groups and their members, as far as this process knows."""
        return [
            _group(alias, membership.group, membership.assignment) | {"epoch": membership.epoch, "member": self.run}
            for alias, membership in self._memberships.items()
        ]

    def driver(self, flow: str) -> Share | None:
        """The other member that drives a flow; None if this process does or nobody."""
        membership = self._memberships.get(_target(flow))
        shares = membership.assignment.shares if membership is not None else ()
        return next((share for share in shares if flow in share.flows and share.run != self.run), None)


async def known_members(flows: Iterable[Flow], settings: Mapping[str, MembershipSettings]) -> list[dict[str, Any]]:
    """The same as the target clusters know it, for who is no member. Empty for a group that cannot be described."""

    async def look(cluster: Cluster, group: str) -> dict[str, Any]:
        client = ClusterClient(cluster)
        try:
            assignments = [member.assignment for member in await describe_members(client, group) if member.assignment]
        except WireError as error:
            log.debug("group %s on cluster %s cannot be described: %s", group, cluster.alias, error)
            assignments = []
        finally:
            client.close()
        return _group(cluster.alias, group, decode_assignment(assignments[0]) if assignments else Assignment())

    targets = {flow.target.alias: flow.target for flow in flows}
    return list(
        await asyncio.gather(
            *(look(target, settings[alias].group) for alias, target in targets.items() if alias in settings)
        )
    )


def _group(alias: str, group: str, assignment: Assignment) -> dict[str, Any]:
    return {
        "cluster": alias,
        "group": group,
        "leader": assignment.leader,
        "members": [
            {
                "member": share.run,
                "host": share.host,
                "worker_id": share.rest,
                "version": share.version,
                "flows": list(share.flows),
                "coming": list(share.coming),
                "refused": share.refused,
            }
            for share in assignment.shares
        ],
    }


def _target(flow: str) -> str:
    return flow.rpartition("->")[2]
