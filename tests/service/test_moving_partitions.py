"""Where partitions move from one lease to another, the one has ended before the other begins."""

import asyncio
from dataclasses import replace

import pytest

from copying.lease import only
from heliograph.copy.work import MirrorPartition, Outcome, Work
from heliograph.model.flow import Cluster, Flow
from heliograph.service.flow import FlowRunner
from heliograph.service.lease import Lease
from logs import Pair, some_records
from service.runner import run_here, running, until


def test_no_partition_is_held_by_two_leases_though_one_does_not_hear_that_it_shall_end(pair: Pair, topic: str) -> None:
    pair.a.create(topic, partitions=4)
    for partition in range(4):
        pair.a.write(topic, some_records(10), partition)
    flow = replace(only(pair.flow(), topic), tasks_max=1, lease_seconds=600.0)
    holders: dict[MirrorPartition, str] = {}
    twice: list[str] = []
    begun: list[int] = []
    may_end = asyncio.Event()
    first = "run-A->B-0-1"

    async def deaf(work: Work) -> Outcome:
        """The first lease copies, and goes on when it has been told to end until it may."""
        begun.append(work.number)
        twice.extend(f"{one} by {holders[one]} and {work.lease}" for one in work.partitions if one in holders)
        holders.update(dict.fromkeys(work.partitions, work.lease))
        outcome = await run_here(work)
        if work.lease == first:
            await may_end.wait()
        for one in work.partitions:
            holders.pop(one, None)
        return outcome

    async def main() -> None:
        async with running(flow, "run", deaf) as runner:
            await until(lambda: len(runner.positions()) == 4)
            try:
                await runner.change(replace(flow, tasks_max=2))
                assert len(runner.tasks()) == 2
                # The second lease has nothing to wait for but the first, which has not ended.
                await asyncio.to_thread(pair.a.write, topic, some_records(10), 0)
                assert begun == [0]
            finally:
                may_end.set()
            await until(lambda: sorted(begun) == [0, 0, 1])
            await until(lambda: sum(at.source for at in runner.positions().values()) == 50)

    asyncio.run(main())
    assert twice == []


def test_a_lease_holds_what_it_gets_before_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else another could begin with it meanwhile, if all is shared out once more."""
    one, new = MirrorPartition("t", "A.t", 0), MirrorPartition("t", "A.t", 1)
    flow = Flow(Cluster("A", (("a", 9092),)), Cluster("B", (("b", 9092),)))
    lease = Lease("lease", 0, (one,))
    held: list[tuple[MirrorPartition, ...]] = []

    async def cancel(_lease: str) -> None:
        return None

    async def command(_command: tuple[bytes, bytes]) -> None:
        held.append(lease.partitions)

    async def main() -> None:
        runner = FlowRunner(flow, (flow,), run_here, cancel, "run")
        runner._mirrors.partitions, runner._assignment = (one, new), ((one,),)
        runner._leases[lease.id] = lease
        monkeypatch.setattr(runner, "_command", command)
        await runner._arrange()
        runner.close()

    asyncio.run(main())
    assert held == [(one, new)]
