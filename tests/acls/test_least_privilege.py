"""A flow whose principals have just the ACLs that `heliograph acls` prints: everything works, and without any one of
them, what was announced does not, and everything else does."""

import asyncio
import logging
import os
import uuid
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

import pytest

from acls.probes import Probes, Said, Side
from acls.secured import Secured, allow_all, start
from heliograph.control import packing
from heliograph.control.internal_topic_setup import ensure_internal_topics
from heliograph.control.principals import Principal
from heliograph.control.required_acls import Feature
from heliograph.copy.copier import Copier
from heliograph.copy.work import Outcome, Work
from heliograph.model.acl import CREATE, Grant
from heliograph.model.flow import (
    CONTINUE,
    DEFAULT_CONFIG_PROPERTIES_EXCLUDE,
    Flow,
    Groups,
    Heartbeats,
    KeptOffsets,
    OffsetSyncs,
    Policies,
    TopicSync,
)
from heliograph.model.internal_topics import dead_letters_topic
from heliograph.model.membership import MembershipSettings
from heliograph.model.names import NameFilter
from heliograph.sandbox import Sandbox
from heliograph.service import acl_report
from heliograph.service.flow_clients import FlowClients
from heliograph.service.flow_runner import FlowRunner
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.service.members import Members
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.topic_requests import delete_topics
from waiting import async_until, until

SHORT = 0.3
# These are seen only while records are copied.
OF_COPYING = {
    Feature.OFFSET_SYNCS,
    Feature.TAKE_OVER,
    Feature.HAND_BACK,
    Feature.PRESERVE,
    Feature.DEAD_LETTERS,
    Feature.LARGE_BATCHES,
    Feature.TRIMMING,
}
# Where the source does not list a topic, nothing is said of what is new about it.
OF_NEW_TOPICS = {Feature.NEW_MIRRORS, Feature.MORE_PARTITIONS, Feature.CONFIGS}


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, Secured]]:
    with Sandbox() as own:
        a, b = start(own)
        yield {"A": a, "B": b}


def _flow(clusters: dict[str, Secured], base: str, reader: str = "", writer: str = "") -> Flow:
    (source, a), (target, b) = clusters.items()
    exclude = NameFilter((*DEFAULT_CONFIG_PROPERTIES_EXCLUDE.include, r"max\.message\.bytes"))
    return Flow(
        a.as_user(source, "mirror"),
        b.as_user(target, "mirror"),
        reader=a.as_user(source, reader) if reader else None,
        writer=b.as_user(target, writer) if writer else None,
        topics=NameFilter((f"{base}.*",)),
        heartbeats_replication=False,
        replication_factor=1,
        refresh_topics_every=SHORT,
        lease_seconds=3.0,
        kept_offsets=KeptOffsets(NameFilter((f"{base}-kept",))),
        topic_sync=TopicSync(SHORT, SHORT, exclude),
        offset_syncs=OffsetSyncs(lag_max=0, replication_factor=1),
        groups=Groups(NameFilter((base,)), SHORT, SHORT, SHORT, 1),
        heartbeats=Heartbeats(SHORT, 1),
        policies=Policies(refused_record=CONTINUE),
    )


@dataclass
class Scene:
    flow: Flow
    runner: FlowRunner
    syncers: FlowSyncers
    probes: Probes
    said: Said
    clients: FlowClients

    async def works(self, features: Collection[Feature]) -> None:
        async def one(feature: Feature) -> None:
            works = await self.probes.of[feature].provoke()
            await async_until(works, lambda: (feature, self.said.texts[-20:]), every=0.1, seconds=60)

        async with asyncio.TaskGroup() as tasks:
            for feature in features:
                tasks.create_task(one(feature))

    async def is_off(self, features: Collection[Feature]) -> None:
        """Provokes them until the log has the reason, and sees that they do not work."""

        async def one(feature: Feature) -> None:
            works = await self.probes.of[feature].provoke()

            async def is_explained() -> bool:
                await works()
                return bool(self.probes.says_why(feature, self.said))

            await async_until(is_explained, lambda: (feature, self.said.texts[-20:]), every=0.1, seconds=60)
            works = await self.probes.of[feature].provoke()
            assert not await works(), feature

        async with asyncio.TaskGroup() as tasks:
            for feature in features:
                tasks.create_task(one(feature))

    async def start_again(self) -> None:
        """As after a restart, nothing is known but what is in the clusters."""
        self.syncers.checkpoint_syncer.loaded = False
        with suppress(WireError):  # the command needs a right itself; without it, leases end soon enough
            await self.runner.restart_leases([0])

    async def creates_again(self, topic: str, side: Side, is_allowed: bool) -> None:
        """An internal topic that was deleted."""
        if await side.exists(topic):
            await delete_topics(side.client, [topic])

        async def is_as_expected() -> bool:
            if is_allowed:
                return await side.end(topic) >= 0
            return bool(
                self.said.find(f"internal topics could not be synced.*{topic} cannot be created.*AUTHORIZATION")
            )

        await async_until(is_as_expected, lambda: (topic, self.said.texts[-20:]), seconds=60)


async def _run_lease(work: Work) -> Outcome:
    """Each lease finds its positions in the logs."""
    return await Copier(replace(work, positions={})).run()


@asynccontextmanager
async def _running(flow: Flow, base: str, clusters: dict[str, Secured]) -> AsyncIterator[Scene]:
    clients, own = FlowClients(flow), [ClusterClient(cluster.log.cluster) for cluster in clusters.values()]
    for client in own:
        await client.connect()
    said = Said()
    logging.getLogger("heliograph").addHandler(said)
    logging.getLogger("heliograph").setLevel(logging.INFO)

    async def cancel(_lease: str) -> None:
        return None

    runner = FlowRunner(flow, (flow,), _run_lease, cancel, uuid.uuid4().hex[:8], clients)
    syncers = FlowSyncers(flow, runner.view.positions, clients)
    for syncer in syncers.runner.syncers:
        syncer.interval = SHORT
    probes = Probes(flow, base, own[0], own[1])
    probes.packer = syncers.packer
    try:
        await probes.set_up()
        await syncers.prepare()
        await runner.connect()
        await runner.prepare()
        running = [asyncio.create_task(runner.run()), asyncio.create_task(syncers.run())]
        yield Scene(flow, runner, syncers, probes, said, clients)
        assert not any(task.done() for task in running), running
        await runner.stop()
        await running[0]
        running[1].cancel()
    finally:
        logging.getLogger("heliograph").removeHandler(said)
        for client in own:
            client.close()
        clients.close()


def test_with_these_acls_everything_works_and_without_any_one_what_was_announced_does_not(
    clusters: dict[str, Secured], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "_TRIM_AFTER", 0.0)
    flow = _flow(clusters, "orders")
    principals = acl_report.required([flow]).principals
    allow_all(clusters, principals)

    async def main() -> None:
        async with _running(flow, "orders", clusters) as scene:
            await scene.works([feature for feature in Feature if feature in scene.probes.of])
            for principal, grant in _chosen(principals):
                await _without(scene, clusters[principal.cluster.alias], principal, grant)

    asyncio.run(main())


def _chosen(principals: Sequence[Principal]) -> list[tuple[Principal, Grant]]:
    """Every sixth ACL, as each takes seconds. ACLS=all in the environment: all of them."""
    every = [(principal, grant) for principal in principals for grant in principal.grants()]
    assert len(every) > 30
    return every if os.environ.get("ACLS") == "all" else every[::6]


async def _without(scene: Scene, cluster: Secured, principal: Principal, grant: Grant) -> None:
    lost = set(principal.lost_without(grant))
    await asyncio.to_thread(cluster.revoke, principal.name, [grant])
    scene.said.texts.clear()
    await scene.start_again()
    missing = [
        (checked.principal.cluster.alias, row.grant)
        for checked in await acl_report.check([scene.flow])
        for row in checked.missing_needed
    ]
    assert missing == [(principal.cluster.alias, grant)]
    unseen = {Feature.GROUP_OFFSETS} if Feature.CHECKPOINTS in lost else set()
    if Feature.COPYING in lost:
        unseen |= OF_COPYING | (OF_NEW_TOPICS & lost)
        await scene.probes.of[Feature.COPYING].provoke()
        await scene.start_again()  # the lease before it may have had all that it needed
    probed = scene.probes.of.keys() - unseen
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(scene.is_off(probed & lost))
        tasks.create_task(scene.works(probed - lost))
    if Feature.INTERNAL_TOPICS_CHECK in lost:
        await ensure_internal_topics(scene.flow, scene.clients.source, scene.clients.target)
        assert scene.said.find(f"settings of internal topic {grant.resource.name} .* are not checked")
    if Feature.REPORTS in lost:
        assert scene.said.find("status and progress cannot be written|reports of leases cannot be read")
    side = scene.probes.a if principal.cluster.alias == scene.flow.source.alias else scene.probes.b
    is_deleted = grant.operation == CREATE and grant.resource.name in _expendable(scene.flow)
    if is_deleted:
        await scene.creates_again(grant.resource.name, side, is_allowed=False)
    await asyncio.to_thread(cluster.allow, principal.name, [grant])
    if is_deleted:
        await scene.creates_again(grant.resource.name, side, is_allowed=True)
    await scene.start_again()
    await scene.works(scene.probes.of.keys() & (probed | {Feature.COPYING}) & lost)


def _expendable(flow: Flow) -> set[str]:
    """Internal topics that may be deleted while a flow runs."""
    return {flow.offset_syncs_topic, flow.policy.heartbeats_topic(), dead_letters_topic(flow.source.alias)}


def test_leases_that_log_in_as_others_need_just_what_is_printed_for_them(
    clusters: dict[str, Secured], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "_TRIM_AFTER", 0.0)
    a, b = clusters.values()
    others = {"C": a, "D": b}
    flow = _flow(others, "sales", "reader", "writer")
    principals = acl_report.required([flow]).principals
    assert len(principals) == 4
    for principal in principals:
        others[principal.cluster.alias].revoke_all(principal.name)
    allow_all(others, principals)

    async def main() -> None:
        async with _running(flow, "sales", others) as scene:
            await scene.works(list(scene.probes.of))

    asyncio.run(main())


class FlowsOfMember:
    """What a member is assigned, without running it."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.ready.set()
        self.assigned: Collection[str] = ()

    def assign(self, flows: Collection[str]) -> None:
        self.assigned = flows

    def loads(self) -> dict[str, float | None]:
        return dict.fromkeys(self.assigned)


def test_members_need_read_on_their_group_and_run_all_flows_without_it(
    clusters: dict[str, Secured], caplog: pytest.LogCaptureFixture
) -> None:
    a, b = clusters.values()
    flow = _flow({"E": a, "F": b}, "members", writer="writer")
    flow = replace(flow, target=b.as_user("F", "reader"))
    groups = {"F": MembershipSettings("heliograph.members")}
    driver = next(
        found for found in acl_report.required([flow], groups=groups).principals if found.name == "User:reader"
    )
    (grant,) = [grant for grant in driver.grants() if grant.resource.name == "heliograph.members"]
    assert list(driver.lost_without(grant)) == [Feature.MEMBERSHIP]

    async def epoch() -> int:
        members, flows = Members([flow], groups), FlowsOfMember()
        members.start(flows)
        try:
            assert await members.wait_until_decided(60.0)
            assert list(flows.assigned) == [flow.name]
            await async_until(lambda: members.view()[0]["epoch"] or "do not share the flows" in caplog.text)
            return int(members.view()[0]["epoch"])
        finally:
            await members.leave()

    assert asyncio.run(epoch()) == 0
    assert "the right Read on group heliograph.members is missing" in caplog.text
    b.allow(driver.name, [grant])

    def joins() -> bool:
        caplog.clear()
        return asyncio.run(epoch()) > 0

    until(joins)
