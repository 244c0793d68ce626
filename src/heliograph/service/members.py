"""This process among the members of its deployment: which flows it drives, in the group of each target cluster."""

import asyncio
import logging
import socket
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from heliograph import __version__
from heliograph.model.fingerprint import fingerprint
from heliograph.model.flow import Flow
from heliograph.model.member import Member, Share
from heliograph.model.membership import MembershipSettings
from heliograph.service.membership import Membership
from heliograph.service.process_identity import own_identity
from heliograph.service.tenure import Tenure

log = logging.getLogger(__name__)

_POLL = 0.02


class DrivenFlows(Protocol):
    """The flows of this process; a `Supervisor` has them."""

    ready: asyncio.Event

    def assign(self, flows: Collection[str]) -> None:
        """These flows run here, and no others."""

    def loads(self) -> Mapping[str, float]:
        """The flows that run, or are about to or have not ended yet, with their loads."""


class Members:
    """`rest` is the address of this process's REST API."""

    def __init__(self, flows: Sequence[Flow], settings: Mapping[str, MembershipSettings], rest: str = "") -> None:
        self.run = uuid.uuid4().hex[:8]
        self._host, self._rest, self._process = socket.gethostname(), rest, own_identity()
        self._settings = dict(settings)
        self._flows = tuple(flows)
        self._fingerprints: dict[str, dict[str, str]] = {}
        self._driven: DrivenFlows | None = None
        self._memberships: dict[str, Membership] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._handing_over: dict[str, asyncio.Task[None]] = {}
        self._shares: dict[str, Share] = {}
        self._tenures: dict[str, Tenure] = {}
        self._unshared: set[str] = set()  # clusters whose flows are driven without membership
        self._said: dict[str, str] = {}

    def start(self, driven: DrivenFlows) -> None:
        """Joins the groups."""
        self._driven = driven
        self.use(self._flows, self._settings)

    def use(self, flows: Sequence[Flow], settings: Mapping[str, MembershipSettings]) -> None:
        """The flows of the deployment from now on. Members with others get no flows."""
        before = {alias: self._fingerprint(alias) for alias in self._memberships}
        self._flows, self._settings, self._fingerprints = tuple(flows), dict(settings), {}
        targets = {flow.target.alias: flow.target for flow in flows}
        for alias, cluster in targets.items():
            if alias not in self._memberships:
                membership = self._memberships[alias] = Membership(cluster, self._settings[alias], self)
                self._tasks[alias] = asyncio.create_task(membership.run())
            else:
                self._memberships[alias].use(cluster)
                if before[alias] != self._fingerprint(alias):
                    self._memberships[alias].rejoin()

    async def wait_until_decided(self, within: float) -> bool:
        """Until this process knows which flows it drives. Returns whether it does."""
        waits = [asyncio.ensure_future(membership.decided.wait()) for membership in self._memberships.values()]
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await asyncio.gather(*waits)
        self.check()
        return all(membership.decided.is_set() for membership in self._memberships.values())

    def check(self) -> None:
        """Raises what a membership fails with."""
        for task in self._tasks.values():
            if task.done() and not task.cancelled():
                task.result()

    async def leave(self) -> None:
        """When the flows have ended: the others take them over at once."""
        for task in (*self._tasks.values(), *self._handing_over.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await asyncio.gather(*(membership.leave() for membership in self._memberships.values()))

    # --- what flows ask -------------------------------------------------------------------------------------

    def tenure(self, flow: Flow) -> Tenure | None:
        """While it is valid, this process drives the flow; None if it does so without membership."""
        return self._tenures.get(flow.target.alias)

    # --- what memberships ask -------------------------------------------------------------------------------

    def member(self, alias: str) -> Member:
        loads = self._loads()
        driven = {flow: load for flow, load in loads.items() if _target(flow) == alias}
        return Member(
            self.run,
            self._host,
            self._rest,
            __version__,
            self._process,
            self._fingerprint(alias),
            tuple(flow.name for flow in self._into(alias)),
            driven,
            sum(load for flow, load in loads.items() if flow not in driven),
        )

    def drive(self, alias: str, share: Share, tenure: Tenure) -> None:
        before = self._shares.get(alias, Share(self.run))
        self._shares[alias], self._tenures[alias] = share, tenure
        self._say(alias, before, share, tenure)
        self._apply()
        leaving = {flow for flow in self._loads() if _target(flow) == alias} - set(share.flows)
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

    def _loads(self) -> Mapping[str, float]:
        return self._driven.loads() if self._driven is not None else {}

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
            {
                "cluster": alias,
                "group": membership.group,
                "epoch": membership.epoch,
                "leader": membership.assignment.leader,
                "member": self.run,
                "members": [
                    {
                        "member": share.run,
                        "host": share.host,
                        "worker_id": share.rest,
                        "version": share.version,
                        "flows": share.flows,
                        "coming": share.coming,
                        "refused": share.refused,
                    }
                    for share in membership.assignment.shares
                ],
            }
            for alias, membership in self._memberships.items()
        ]

    def driver(self, flow: str) -> Share | None:
        """The other member that drives a flow; None if this process does or nobody."""
        membership = self._memberships.get(_target(flow))
        shares = membership.assignment.shares if membership is not None else ()
        return next((share for share in shares if flow in share.flows and share.run != self.run), None)


def _target(flow: str) -> str:
    return flow.rpartition("->")[2]
