"""One source partition, its mirror, and the copiers, the driver and the faults of one schedule."""

import asyncio
import itertools
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from unittest.mock import patch

import heliograph.control.packing  # noqa: F401  (so that it goes by virtual time)
from copying.simulation.clock import VirtualLoop, virtual_time
from copying.simulation.cluster import SimulatedCluster
from copying.simulation.follower import Follower
from copying.simulation.log import Log
from copying.simulation.network import Network
from copying.simulation.observer import Observer
from heliograph.control.packing import Packer
from heliograph.copy.copier import Copier
from heliograph.copy.ledger import Ledger
from heliograph.copy.work import Outcome, Work
from heliograph.model.compression import Compression
from heliograph.model.flow import MIB, Cluster, Flow, Policies, Reading, Writing
from heliograph.model.internal_topics import ledger_topic, signals_topic
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.model.problems import Notice
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError
from heliograph.wire.metadata import id_text

TOPIC, MIRROR = "t", "A.t"
KEY = MirrorPartition(TOPIC, MIRROR, 0)
PLACE = (TOPIC, 0)
LEDGER = ledger_topic("A")
_SETTLED_WITHIN = 300.0


@dataclass(frozen=True)
class Choices:
    """What is the same for all of a schedule."""

    seed: int = 0
    fetch: int = 250  # bytes
    join: int = 0
    compiled: bool = True
    may_raise: bool = True
    policies: Policies = field(default_factory=Policies)
    rack: str = ""  # with one, the source has a follower, which is read instead of its leader
    compression: Compression | None = None
    appends_by_id: bool = True  # else the target's brokers are from before 4.1

    def flow(self) -> Flow:
        return Flow(
            Cluster("A", (("source", 9092),), request_timeout=10.0),
            Cluster("B", (("target", 9092),), request_timeout=10.0),
            reading=Reading(fetch_max_bytes=4 * MIB, max_partition_fetch_bytes=self.fetch, rack=self.rack),
            writing=Writing(
                request_timeout=10.0, join_up_to=self.join, compiled=self.compiled, compression=self.compression
            ),
            may_raise_limits=self.may_raise,
            policies=self.policies,
        )


@dataclass(eq=False)
class Running:
    name: str
    copier: Copier
    lease: "asyncio.Task[Outcome]"


@dataclass
class World:
    choices: Choices
    running: list[Running] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    position: Position | None = None  # the last that a lease has reported
    names: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.loop = VirtualLoop()
        self.source = SimulatedCluster("source")
        self.target = SimulatedCluster("target", appends_by_id=self.choices.appends_by_id)
        self.source.create(TOPIC)
        self.target.create(MIRROR)
        self.target.create(LEDGER, 3)
        self.target.create(signals_topic("A"), 3)
        self.follower = Follower("follower", leader=self.source)
        if self.choices.rack:
            self.source.follower = self.follower
            self.follower.replicate()
        clusters = {"source": self.source, "target": self.target, "follower": self.follower}
        self.network = Network(self.loop, clusters, Random(self.choices.seed))
        self.flow = self.choices.flow()
        self.observer = Observer(self.flow.target, self.target, "A")
        self._patches = ExitStack()
        self._patches.enter_context(virtual_time(self.loop))
        for name, value in {
            "heliograph.wire.cluster.Connection": self.network,
            "heliograph.model.pages.PAGE": 3,
            "heliograph.copy.ledger._AROUND": 3,
            "heliograph.copy.reader._FOLLOWER_FOR": 5.0,
            "heliograph.copy.reader._AVOID_FOLLOWERS_FOR": 1.0,
        }.items():
            self._patches.enter_context(patch(name, value))
        self.new_driver()

    @property
    def log(self) -> Log:
        return self.source.topics[TOPIC].partitions[0]

    @property
    def mirror(self) -> Log:
        return self.target.topics[MIRROR].partitions[0]

    # --- the driver -----------------------------------------------------------------------------------------------

    def new_driver(self) -> None:
        self.driver_name = f"driver-{next(self.names)}"
        flow = self._as(self.driver_name)
        source, target = ClusterClient(flow.source), ClusterClient(flow.target)
        self.driver = Ledger(target, "A")
        self.packer = Packer(flow, source, target, self.driver)

    def pack(self, rounds: int | None, prune: bool) -> None:
        """Pack the ledger; a driver that dies over it has a successor."""

        async def do() -> None:
            with suppress(WireError):  # next time
                await (self.packer.prune() if prune else self.packer.pack())

        task = self.loop.create_task(do())
        if rounds is None:
            self.loop.run_until_complete(task)
            return
        self.loop.run_rounds(rounds)
        if not task.done():
            self.network.kill(self.driver_name, surviving=1, later=0.0)
            task.cancel()
            self._wait_for(task)
            self.new_driver()
        else:
            task.result()

    # --- copiers --------------------------------------------------------------------------------------------------

    def start(self, handed: bool = False, positioned: bool = False, seconds: float = 20.0) -> Running:
        name = f"lease-{next(self.names)}"
        positions = {KEY: self.position} if positioned and self.position is not None else {}
        ledger = None
        if handed:
            try:
                self.loop.run_until_complete(self.driver.catch_up())
                ledger = self.driver.hand_over({PLACE: positions[KEY].target if positions else None})
            except WireError:
                ledger = None
        work = Work(self._as(name), name, seconds, (KEY,), positions, ledger)
        copier = Copier(work)
        lease = Running(name, copier, self.loop.create_task(copier.run()))
        self.running.append(lease)
        return lease

    def crash(self, running: Running, surviving: int, later: float) -> None:
        """As if its process were killed: some of its requests may still arrive."""
        self._note_result(running)
        self.network.kill(running.name, surviving, later)
        running.lease.cancel()
        self._wait_for(running.lease)
        self.running.remove(running)

    def _wait_for(self, task: "asyncio.Task[Any]") -> None:
        self.loop.run_until_complete(asyncio.wait([task], timeout=60.0))
        assert task.done(), f"does not end: {[str(task) for task in asyncio.all_tasks(self.loop)]}"

    def end(self, running: Running) -> None:
        running.copier.stop()
        self._wait_for(running.lease)
        running.lease.result()
        self._note_result(running)
        self.running.remove(running)

    def run(self, seconds: float) -> None:
        self.loop.run_for(seconds)

    def collect_ended(self) -> None:
        """Remove leases that have ended by themselves; raises their errors."""
        for lease in [lease for lease in self.running if lease.lease.done()]:
            lease.lease.result()
            self._note_result(lease)
            self.running.remove(lease)

    def settle(self) -> Running:
        """One last copier, until all is copied or refused."""
        for lease in list(self.running):
            self.end(lease)
        self.network.faults.clear()
        self.target.refusals.clear()
        self.run(60.0)  # what is on its way has landed
        running = self.start(handed=True, seconds=10 * _SETTLED_WITHIN)
        until = self.loop.time() + _SETTLED_WITHIN
        while not self.is_settled(running):
            assert self.loop.time() < until, _standing(running)
            assert not running.lease.done() or running.lease.result() is None
            self.follower.replicate()
            self.run(0.5)
        return running

    def is_settled(self, running: Running) -> bool:
        (cursor,) = running.copier.cursors
        if cursor.refusal is not None:
            return cursor.sending.is_idle
        at = cursor.position
        done = at is not None and cursor.state.value == "copying" and cursor.sending.is_idle
        if not done or at is None or at.target != self.mirror.end:
            return False
        return at.source >= self.log.start and not self.log.read(at.source, self.log.stable_end, 0)

    def _note_result(self, running: Running) -> None:
        (cursor,) = running.copier.cursors
        if cursor.position is not None and cursor.source.end >= 0:
            self.position = cursor.position
        self.notices += running.copier.notices

    def _as(self, name: str) -> Flow:
        flow = self.flow
        return replace(flow, source=replace(flow.source, client_id=name), target=replace(flow.target, client_id=name))

    # --- what is seen from outside --------------------------------------------------------------------------------

    def translations(self) -> dict[int, int | None]:
        ids = id_text(self.target.topics[MIRROR].id), id_text(self.source.topics[TOPIC].id)
        offsets = range(self.log.start, self.log.end + 1)
        return self.observer.translations(PLACE, *ids, offsets, self.mirror.end)

    def fingerprint(self) -> tuple[object, ...]:
        """As long as it is the same, so is every answer."""
        ledger = [log.end for log in self.target.topics[LEDGER].partitions]
        mirror = self.target.topics[MIRROR].id, self.mirror.end, self.mirror.epoch
        return (*ledger, *mirror, self.log.start, self.log.end)

    def close(self) -> None:
        try:
            for lease in self.running:
                self.network.kill(lease.name, 0, 0.0)
                lease.lease.cancel()
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            self._patches.close()
            self.observer.close()
            self.loop.close()


def _standing(running: Running) -> str:
    (cursor,) = running.copier.cursors
    return f"not settled: {cursor.state}, {cursor.position}, {cursor.retry}"
