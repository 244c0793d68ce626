"""One copy, measured: from the first record in the mirror to the last, or from a moment at which the mirror is behind.

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
from logfiles import Survey, surveys
from processes import Machine, Tree
from results import Copy
from stage import Run, Stage, ToolFailed, by_cluster, running
from tools import Tool, without_effect
from workloads import Workload

from heliograph.sandbox import SandboxCluster

POLL = 0.02
_ASKING = 0.2  # the share of the time in which brokers may be asked for the ends of very many partitions
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


def catch_up(
    stage: Stage,
    run: Run,
    partitions: int,
    write: Callable[[], Survey],
    before: Survey,
    result: Copy,
    patience: Patience,
) -> tuple[Copy, Survey]:
    """Measures a tool that has copied everything, and is frozen while more is written: from then to the last record.

    Unlike `copy`, this counts all records, and nothing of the start. Writing must not take longer than a lease lasts.
    `before` and what `write` returns are what the source holds; the latter is returned, too.
    """
    with run.frozen():
        after = write()
        watch = Watch(stage, run, partitions, after.visible, patience, before.visible)
        thawed = watch.sight(time.monotonic(), before.visible)
    sights = asyncio.run(watch.until_complete())
    return _result(result, [thawed, *sights], after, watch), after


def idle(run: Run, settle: float, seconds: float) -> float:
    """The share of one core that a tool takes without anything to copy, some seconds after it has copied something."""
    time.sleep(settle)
    began, cpu = time.monotonic(), run.tree.cpu()
    while (passed := time.monotonic() - began) < seconds:
        time.sleep(min(_LOOK_EVERY, seconds - passed))
        run.check()
        spent = run.tree.cpu() - cpu  # often: the last work of processes that end is not seen
    return spent / (time.monotonic() - began)


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
    """The ends of a tool's mirrors, from `before` to `goal`. Each mirror has as many partitions."""

    def __init__(self, stage: Stage, run: Run, partitions: int, goal: int, patience: Patience, before: int = 0) -> None:
        self.began = time.monotonic()
        self.peak_memory = 0
        self.visible = 0
        self._proxy = Tree([stage.proxy.pid] if stage.proxy else [])
        self._brokers = Tree(stage.pair.broker_pids(), with_children=False)
        self._run = run
        self._partitions = partitions
        self._goal = goal
        self._before = before
        self._patience = patience
        self._looked = 0.0

    async def until_complete(self) -> list[Sight]:
        """Yields each time at which the ends had moved, including the first and the last."""
        sights: list[Sight] = []
        counted_at = -1  # the end at which the records were last counted
        async with AsyncExitStack() as clients:
            ends = [await self._ends(clients, *mirrors) for mirrors in by_cluster(self._run.mirrors)]
            while True:
                asked = time.monotonic()
                end = sum([await mirror_ends.total() for mirror_ends in ends])
                now = time.monotonic()
                if end > self._before and not sights:
                    self._run.tree.refresh()
                if end > (sights[-1].end if sights else self._before):
                    sights.append(self.sight(now, end))
                still = now - (sights[-1].time if sights else self.began)
                if end >= self._goal and still > _SETTLED and end != counted_at:
                    counted_at = end
                    if self._is_complete():
                        return sights
                self._look(now, still, end)
                await asyncio.sleep(max(POLL, (now - asked) / _ASKING))

    async def _ends(self, clients: AsyncExitStack, cluster: SandboxCluster, mirrors: list[str]) -> Ends:
        client = await clients.enter_async_context(client_of(cluster))
        return Ends(await client.connection(BROKER), mirrors, self._partitions)

    def _is_complete(self) -> bool:
        """Whether each mirror has its share: with several of them, the sources are the same."""
        counted = [surveys(data(cluster), mirrors) for cluster, mirrors in by_cluster(self._run.mirrors)]
        visible = [survey.visible for of_cluster in counted for survey in of_cluster.values()]
        self.visible = sum(visible)
        return all(records >= self._goal / len(visible) for records in visible)

    def sight(self, now: float, end: int) -> Sight:
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
