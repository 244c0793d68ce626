"""One copy, measured: from the first record in the mirror to the last.

Progress is read from the end offsets of the mirror's partitions. These are not the number of records: a tool that
writes in transactions leaves markers, too. A copy is complete when the ends have reached the expected value, have not
moved for a while, and the batch headers hold as many visible records as the source has. The time of completion is the
last move of the ends.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from clusters import BROKER, Ends, client_of, data
from logfiles import Survey, survey
from processes import Machine, Tree
from results import Copy
from stage import Mirror, Run, Stage, ToolFailed, running
from tools import Tool, without_effect
from workloads import Workload

POLL = 0.02
_SETTLED = 1.0
_LOOK_EVERY = 1.0


@dataclass(frozen=True)
class Patience:
    """How long a tool may take: to its first record, and without any further one."""

    start: float = 90.0
    stall: float = 40.0


PATIENCE = Patience()


@dataclass(frozen=True)
class Sight:
    """A time at which the ends had moved. CPU in core-seconds so far; `bench_cpu`: this process and the proxy."""

    time: float
    end: int
    mirror_cpu: float
    broker_cpu: float
    bench_cpu: float
    machine: Machine


Completed = Callable[[Tool, Run, float, float], None]


def copy(
    stage: Stage,
    workload: Workload,
    source: Survey,
    tool: Tool,
    number: int,
    patience: Patience,
    completed: Completed | None = None,
) -> Copy:
    """Measures a tool that mirrors the workload's topic.

    `completed` is called while the tool still runs, with the times of the first and the last record in the mirror.
    """
    alias = f"{tool.key}-{number}-{workload.topic}"
    result = Copy(workload.number, tool.key, number)
    try:
        with running(stage, tool, alias, workload, workload.topic) as run:
            watch = Watch(stage, run, workload.partitions, source.visible, patience)
            sights = asyncio.run(watch.until_complete())
            if useless := without_effect(tool, workload, run.log()):
                raise ToolFailed(f"settings without effect: {', '.join(useless)}")
            result = _result(result, sights, source, watch)
            if completed is not None:
                completed(tool, run, sights[0].time, sights[-1].time)
    except ToolFailed as failure:
        result = replace(result, failure=str(failure))
    return result


def _result(result: Copy, sights: list[Sight], source: Survey, watch: "Watch") -> Copy:
    first, last = sights[0], sights[-1]
    records = max(0, source.visible - first.end)
    middle = next(sight for sight in sights if sight.end - first.end >= (last.end - first.end) / 2)
    late = last.time - middle.time
    mirror, brokers = last.mirror_cpu - first.mirror_cpu, last.broker_cpu - first.broker_cpu
    ours = mirror + brokers + last.bench_cpu - first.bench_cpu
    cores = last.machine.total - first.machine.total
    return replace(
        result,
        records=records,
        size=round(source.size * records / source.visible),
        seconds=last.time - first.time,
        late_rate=(last.end - middle.end) / late if late else 0.0,
        mirror_cpu=mirror,
        broker_cpu=brokers,
        peak_memory=watch.peak_memory,
        start_seconds=first.time - watch.began,
        steal=last.machine.steal_since(first.machine),
        others=max(0.0, last.machine.busy - first.machine.busy - ours) / cores if cores else 0.0,
        surplus=watch.visible - source.visible,
    )


class Watch:
    def __init__(self, stage: Stage, run: Run, partitions: int, goal: int, patience: Patience) -> None:
        self.began = time.monotonic()
        self.peak_memory = 0
        self.visible = 0
        self._proxy = Tree([stage.proxy.pid] if stage.proxy else [])
        self._brokers = Tree(stage.pair.broker_pids(), with_children=False)
        self._run = run
        self._partitions = partitions
        self._goal = goal
        self._patience = patience
        self._looked = 0.0

    async def until_complete(self) -> list[Sight]:
        """Yields each time at which the ends had moved, including the first and the last."""
        sights: list[Sight] = []
        counted_at = -1  # the end at which the records were last counted
        async with AsyncExitStack() as clients:
            ends = [await self._ends(clients, mirror) for mirror in self._run.mirrors]
            while True:
                end = sum([await mirror_ends.total() for mirror_ends in ends])
                now = time.monotonic()
                if end > 0 and not sights:
                    self._run.tree.refresh()
                if end > (sights[-1].end if sights else 0):
                    sights.append(self._sight(now, end))
                still = now - (sights[-1].time if sights else self.began)
                if end >= self._goal and still > _SETTLED and end != counted_at:
                    counted_at = end
                    if self._is_complete():
                        return sights
                self._look(now, still, end)
                await asyncio.sleep(POLL)

    async def _ends(self, clients: AsyncExitStack, mirror: Mirror) -> Ends:
        client = await clients.enter_async_context(client_of(mirror.cluster))
        return Ends(await client.connection(BROKER), mirror.topic, self._partitions)

    def _is_complete(self) -> bool:
        """Whether each mirror has its share: with two of them, the sources are the same."""
        visible = [survey(data(mirror.cluster), mirror.topic).visible for mirror in self._run.mirrors]
        self.visible = sum(visible)
        return all(records >= self._goal / len(visible) for records in visible)

    def _sight(self, now: float, end: int) -> Sight:
        bench = time.process_time() + self._proxy.cpu()
        return Sight(now, end, self._run.tree.cpu(), self._brokers.cpu(), bench, Machine.now())

    def _look(self, now: float, still: float, end: int) -> None:
        """Checks now and then whether the tool is alive and makes progress, and how much memory it uses."""
        if now < self._looked + _LOOK_EVERY:
            return
        self._looked = now
        self._run.check()
        self.peak_memory = max(self.peak_memory, self._run.tree.memory())
        if still > (self._patience.stall if end else self._patience.start):
            what = f"stuck at {end:,} of {self._goal:,} records" if end else "not one record"
            raise ToolFailed(f"{what} for {still:.0f} s: {self._run.last_words()}")
