"""Where a partition moves between leases, the old one has ended before the new one starts."""

import asyncio
from dataclasses import replace

from copying.lease import only
from heliograph.copy.work import Outcome, Work
from heliograph.model.partitions import MirrorPartition
from logs import Pair, some_records
from service.runner import run_here, running, until


def test_no_partition_is_held_by_two_leases_even_if_one_ignores_the_command_to_end(pair: Pair, topic: str) -> None:
    pair.a.create(topic, partitions=4)
    for partition in range(4):
        pair.a.write(topic, some_records(10), partition)
    flow = replace(only(pair.flow(), topic), tasks_max=1, lease_seconds=600.0)
    holders: dict[MirrorPartition, str] = {}
    twice: list[str] = []
    begun: list[int] = []
    may_end = asyncio.Event()
    first = "run-A->B-0-1"

    async def ends_late(work: Work) -> Outcome:
        """The first lease does not return when it gets the command to end, but later."""
        begun.append(work.number)
        twice.extend(f"{held} by {holders[held]} and {work.lease}" for held in work.partitions if held in holders)
        holders.update(dict.fromkeys(work.partitions, work.lease))
        outcome = await run_here(work)
        if work.lease == first:
            await may_end.wait()
        for released in work.partitions:
            holders.pop(released, None)
        return outcome

    async def main() -> None:
        async with running(flow, "run", ends_late) as runner:
            await until(lambda: len(runner.view.positions()) == 4)
            try:
                await runner.change(replace(flow, tasks_max=2))
                assert len(runner.view.tasks()) == 2
                # The second lease has nothing to wait for but the first, which has not ended.
                await asyncio.to_thread(pair.a.write, topic, some_records(10), 0)
                assert begun == [0]
            finally:
                may_end.set()
            await until(lambda: sorted(begun) == [0, 0, 1])
            await until(lambda: sum(at.source for at in runner.view.positions().values()) == 50)

    asyncio.run(main())
    assert twice == []
