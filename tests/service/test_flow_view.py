"""What others see of a running flow, without brokers."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from heliograph.copy.work import Progress
from heliograph.model.partitions import Position
from heliograph.model.problems import Refusal
from heliograph.service.flow_view import FlowView
from heliograph.service.lease_pool import LeasePool
from heliograph.service.mirrors import Mirrors
from heliograph.service.other_runs import OtherRuns
from service.fakes import FLOW, FakeCommands, FakeEngine, make_context, partitions

PARTITIONS = [*partitions(0, 1), *partitions(0, topic="paused")]


class Scene:
    def __init__(self) -> None:
        self.context = make_context(replace(FLOW, tasks_max=2, paused_topics=frozenset({"paused"})))
        engine = FakeEngine()
        self.pool = LeasePool(self.context, FakeCommands(), engine.run, engine.cancel)
        synced = SimpleNamespace(partitions={"t": 2, "paused": 1}, failed={"long": "too long"}, too_wide={"t": 3})
        mirrors = SimpleNamespace(partitions=PARTITIONS, synced=synced)
        others = OtherRuns(self.context.name, self.context.run_id, 5.0)
        self.view = FlowView(self.context, cast(Mirrors, mirrors), self.pool, others)


def see(look: Callable[[Scene], Any]) -> None:
    async def main() -> None:
        scene = Scene()
        await scene.pool.assign(PARTITIONS)
        look(scene)

    asyncio.run(main())


def test_the_lag_is_unknown_until_all_partitions_that_are_copied_have_been_reported() -> None:
    def look(scene: Scene) -> None:
        progress = scene.context.stats.progress
        first, second, _paused = PARTITIONS
        progress[first] = Progress(Position(3, 3), 10)
        assert scene.view.status().lag is None
        progress[second] = Progress(Position(5, 5), 5)
        assert scene.view.status().lag is None  # the flow does not run
        scene.pool.is_started = True
        status = scene.view.status()
        assert (status.lag, status.partitions, status.mirrors) == (7, 3, 2)
        assert status.states == {"copying": 1, "caught-up": 1, "paused": 1}
        assert (status.failed_topics, status.stopped, scene.view.too_wide) == ({"long": "too long"}, 1, 1)
        assert {mirror.topic: mirror.lag for mirror in scene.view.mirrors()} == {"t": 7, "paused": None, "long": 0}

    see(look)


def test_a_task_has_failed_if_its_lease_has_or_a_partition_of_it_is_stopped() -> None:
    def look(scene: Scene) -> None:
        first, second, _paused = PARTITIONS
        assert [(task.partitions, task.running, task.trouble) for task in scene.view.tasks()] == [
            ((first,), False, ""),
            ((second,), False, ""),
        ]
        scene.pool.failures.add(0, "SparkFailed: no memory")
        stopped = Refusal(second, "hole", 7, 5, "a hole")
        scene.context.stats.refusals[second] = stopped
        assert [task.trouble for task in scene.view.tasks()] == ["SparkFailed: no memory", str(stopped)]
        scene.pool.failures.recovered(0)
        scene.context.stats.refusals[second] = replace(stopped, final=False)
        assert [task.trouble for task in scene.view.tasks()] == ["", ""]

    see(look)


def test_a_written_status_has_only_some_of_the_refusals() -> None:
    def look(scene: Scene) -> None:
        for partition in PARTITIONS[:2]:
            scene.context.stats.refusals[partition] = Refusal(partition, "hole", 7, 5, "a hole")
        assert len(scene.view.status().refusals) == 2
        assert len(scene.view.status(1).refusals) == 1

    see(look)
