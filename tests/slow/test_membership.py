"""Membership in a group, on real brokers: who drives what, and for how long."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import pytest

from heliograph.model.flow import Cluster, Flow
from heliograph.model.membership import MembershipSettings
from heliograph.sandbox import ClusterSpec, Sandbox, SandboxCluster
from heliograph.service.members import Members, known_members
from heliograph.service.membership import MembershipFailed
from heliograph.wire.errors import BrokerError, Unreachable
from heliograph.wire.group_membership import GroupMember
from logs import Log
from waiting import async_until

# A session must outlast any pause of a busy machine.
_SETTINGS = MembershipSettings("", session_timeout=10.0, heartbeat_interval=0.1, rebalance_timeout=30.0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[SandboxCluster]:
    with Sandbox() as sandbox:
        settings = {"group.min.session.timeout.ms": "100", "group.initial.rebalance.delay.ms": "2000"}
        (started,) = sandbox.start({"B": ClusterSpec(settings=settings, fast_start=True)})
        yield started


class FakeFlows:
    """The flows of a process. Those that are not assigned any more end when the test lets them."""

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.ready.set()
        self.assigned: set[str] = set()
        self.running: set[str] = set()
        self.ends_at_once = True

    def assign(self, flows: Collection[str]) -> None:
        self.assigned = set(flows)
        self.running |= self.assigned
        if self.ends_at_once:
            self.end()

    def end(self) -> None:
        self.running &= self.assigned

    def loads(self) -> dict[str, float | None]:
        return dict.fromkeys(self.running)


class Process:
    def __init__(self, flows: list[Flow], settings: MembershipSettings) -> None:
        self.flows = FakeFlows()
        self.members = Members(flows, {"B": settings})

    async def start(self) -> "Process":
        self.members.start(self.flows)
        return self

    @property
    def count(self) -> int:
        return len(self.flows.running)

    def tenure_is_valid(self, flow: Flow) -> bool:
        tenure = self.members.tenure(flow)
        return tenure is not None and tenure.is_valid

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """Its heartbeats do not arrive."""

        async def fail() -> None:
            raise Unreachable("cut off")

        member = self.members._memberships["B"]._member
        assert member is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(member, "heartbeat", fail)
            yield


def _flows(cluster: SandboxCluster, count: int = 4) -> list[Flow]:
    target = replace(Log(cluster.bootstrap).cluster, alias="B")
    return [Flow(Cluster(f"S{number}", (("nowhere", 1),)), target) for number in range(count)]


class Scene:
    def __init__(self, cluster: SandboxCluster, group: str) -> None:
        self.settings = replace(_SETTINGS, group=group)
        self.flows = _flows(cluster)
        self.processes: list[Process] = []

    async def start(self, flows: list[Flow] | None = None, **changes: object) -> Process:
        settings = replace(self.settings, **changes)  # type: ignore[arg-type]
        self.processes.append(await Process(flows or self.flows, settings).start())
        return self.processes[-1]

    async def counts(self, *expected: int) -> None:
        def are_there() -> bool:
            counts = sorted(process.count for process in self.processes)
            drivers = [flow for process in self.processes for flow in process.flows.running]
            assert len(drivers) == len(set(drivers)), "a flow has two drivers"
            return counts == sorted(expected)

        await async_until(are_there, lambda: [process.flows.running for process in self.processes])

    async def leave(self, process: Process) -> None:
        process.flows.assign(())
        await process.members.leave()
        self.processes.remove(process)


@asynccontextmanager
async def _scene(cluster: SandboxCluster, group: str) -> AsyncIterator[Scene]:
    scene = Scene(cluster, group)
    try:
        yield scene
    finally:
        for process in list(scene.processes):
            await scene.leave(process)


def test_flows_are_shared_by_those_that_join_and_taken_over_from_those_that_leave(
    cluster: SandboxCluster, topic: str
) -> None:
    async def main() -> None:
        async with _scene(cluster, topic) as scene:
            first = await scene.start()
            await scene.counts(4)
            await scene.start()
            await scene.counts(2, 2)
            await scene.start()
            await scene.counts(1, 1, 2)

            async def is_known() -> bool:
                """Not while the group rebalances."""
                (group,) = await known_members(scene.flows, {"B": scene.settings})
                return sorted(len(member["flows"]) for member in group["members"]) == [1, 1, 2]

            await async_until(is_known)
            await scene.leave(first)
            await scene.counts(2, 2)

    asyncio.run(main())


def test_a_process_that_is_alone_drives_all_flows_and_only_one_can_be_alone(
    cluster: SandboxCluster, topic: str
) -> None:
    """The brokers wait for two seconds (group.initial.rebalance.delay.ms)."""

    async def main() -> None:
        async with _scene(cluster, topic) as scene:
            first, _second = await scene.start(), await scene.start()
            await scene.counts(2, 2)  # which also asserts that no flow ever has two drivers
            await scene.leave(scene.processes[-1])
            await scene.leave(first)
            alone = await scene.start()
            assert await alone.members.wait_until_decided(60.0)
            assert alone.count == 4
            await async_until(lambda: alone.members.view()[0]["epoch"] > 0)
            assert alone.count == 4

    asyncio.run(main())


def test_a_flow_that_moves_is_stopped_before_it_is_started(cluster: SandboxCluster, topic: str) -> None:
    async def main() -> None:
        async with _scene(cluster, topic) as scene:
            first = await scene.start()
            await scene.counts(4)
            first.flows.ends_at_once = False
            second = await scene.start()
            await async_until(lambda: len(first.flows.assigned) == 2)
            assert second.count == 0
            assert first.count == 4
            assert first.tenure_is_valid(scene.flows[0])
            first.flows.end()
            first.flows.ends_at_once = True
            await scene.counts(2, 2)

    asyncio.run(main())


def test_a_member_that_is_cut_off_may_send_nothing_before_others_take_over(
    cluster: SandboxCluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with _scene(cluster, topic) as scene:
            first, second = await scene.start(), await scene.start()
            await scene.counts(2, 2)
            before = first.members.tenure(scene.flows[0])
            assert before is not None
            with first.cut_off():
                await async_until(lambda: second.count == 4)
                assert not before.is_valid
                await async_until(lambda: "has answered no heartbeat for 10 s" in caplog.text)
            await async_until(lambda: "no longer a member" in caplog.text)
            await scene.counts(2, 2)  # it has joined again
            assert first.tenure_is_valid(scene.flows[0])
            assert not before.is_valid

    with caplog.at_level(logging.WARNING, "heliograph"):
        asyncio.run(main())


def test_the_flows_of_a_member_that_is_gone_wait_for_another_if_that_is_configured(
    cluster: SandboxCluster, topic: str
) -> None:
    async def main() -> None:
        async with _scene(cluster, topic) as scene:
            first = await scene.start(rebalance_delay=3600.0)
            second = await scene.start(rebalance_delay=3600.0)
            await scene.counts(2, 2)
            await scene.leave(second)
            await async_until(lambda: len(first.members.view()[0]["members"]) == 1)
            assert first.count == 2
            await scene.start(rebalance_delay=3600.0)
            await scene.counts(2, 2)

    asyncio.run(main())


def test_the_group_survives_its_coordinator(
    cluster: SandboxCluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with _scene(cluster, topic) as scene:
            scene.settings = replace(scene.settings, session_timeout=60.0)
            first, second = await scene.start(), await scene.start()
            await scene.counts(2, 2)
            epoch = first.members.view()[0]["epoch"]
            await asyncio.to_thread(cluster.stop_broker, 1)
            await asyncio.to_thread(cluster.start_broker, 1)
            third = await scene.start()
            await scene.counts(1, 1, 2)
            assert first.members.view()[0]["epoch"] > epoch
            assert all(process.tenure_is_valid(scene.flows[0]) for process in (first, second, third))

    with caplog.at_level(logging.WARNING, "heliograph"):
        asyncio.run(main())
    assert "no longer a member" not in caplog.text


def test_without_a_coordinator_a_member_may_send_nothing_and_continues_when_it_is_back(
    cluster: SandboxCluster, topic: str
) -> None:
    async def main() -> None:
        async with _scene(cluster, topic) as scene:
            process = await scene.start()
            await scene.counts(4)
            await async_until(lambda: process.members.view()[0]["epoch"] > 0)
            await asyncio.to_thread(cluster.stop_broker, 1)
            try:
                await async_until(lambda: not process.tenure_is_valid(scene.flows[0]))
                assert process.count == 4
            finally:
                await asyncio.to_thread(cluster.start_broker, 1)
            await async_until(lambda: process.tenure_is_valid(scene.flows[0]) and process.count == 4)

    asyncio.run(main())


def test_another_file_gets_no_flows_until_it_is_the_only_one(
    cluster: SandboxCluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with _scene(cluster, topic) as scene:
            first = await scene.start()
            await scene.counts(4)
            changed = [replace(flow, tasks_max=7) for flow in scene.flows]
            second = await scene.start(changed)
            await async_until(lambda: "its file differs" in caplog.text)
            assert (first.count, second.count) == (4, 0)
            first.members.use(changed, {"B": scene.settings})  # it is reloaded
            await scene.counts(2, 2)

    with caplog.at_level(logging.WARNING, "heliograph"):
        asyncio.run(main())
    assert "in: tasks_max" in caplog.text


def test_a_session_timeout_that_brokers_refuse_is_an_error(cluster: SandboxCluster, topic: str) -> None:
    async def main() -> None:
        scene = Scene(cluster, topic)
        process = await scene.start(session_timeout=0.01)
        with pytest.raises(MembershipFailed, match=r"session\.timeout\.ms is not within"):
            await process.members.wait_until_decided(60.0)

    asyncio.run(main())


def test_a_member_that_is_not_known_any_more_gets_the_brokers_error(cluster: SandboxCluster, topic: str) -> None:
    async def main() -> None:
        member = GroupMember(Log(cluster.bootstrap).cluster, topic, 10.0, 10.0)
        joined = await member.join(b"about me")
        assert (joined.is_leader, joined.members) == (True, {member.member_id: b"about me"})
        assert await member.sync({member.member_id: b"all"}) == b"all"
        await member.heartbeat()
        (described,) = await member.describe()
        assert (described.metadata, described.assignment) == (b"about me", b"all")
        await member.remove([member.member_id, "somebody else"])
        with pytest.raises(BrokerError, match="UNKNOWN_MEMBER_ID"):
            await member.heartbeat()
        assert await member.describe() == ()
        member.close()

    asyncio.run(main())
