"""When topics are refreshed, and what happens when that fails: with mirrors and a source in memory."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from heliograph.copy.work import Progress
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service import mirror_check
from heliograph.service.catch_up import CatchUpGoals
from heliograph.service.lease_pool import LeasePool
from heliograph.service.mirror_check import MISSING, TRUNCATED, MirrorChecker
from heliograph.service.mirrors import Mirrors
from heliograph.service.topic_watcher import TopicWatcher
from heliograph.wire.errors import Unreachable
from heliograph.wire.metadata import Topic
from logged import lines_of
from service.fakes import FLOW, FakeCommands, FakeEngine, make_context, partitions
from service.runner import until


class FakeSource:
    """`errors` are raised by the next requests, one each."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.requests = 0

    async def metadata(self, _names: object) -> Any:
        self.requests += 1
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        return SimpleNamespace(topics={})


class FakeMirrors:
    def __init__(self) -> None:
        self.partitions: list[MirrorPartition] = []
        self.refreshes = 0
        self.is_changed = False
        self.is_ignored = False

    def have_changed(self, _topics: Mapping[str, Topic]) -> bool:
        return self.is_changed

    async def refresh(self, _topics: Mapping[str, Topic] | None) -> bool:
        self.refreshes += 1
        self.is_changed = False
        return not self.is_ignored

    async def take_over(self, again: Collection[MirrorPartition], *, at_start: bool) -> None:
        assert at_start


class Scene:
    def __init__(self, interval: float | None) -> None:
        self.context = make_context(replace(FLOW, refresh_topics_every=interval))
        self.source = cast(Any, self.context.clients).source = FakeSource()
        self.mirrors = FakeMirrors()
        self.commands = FakeCommands()
        engine = FakeEngine()
        self.pool = LeasePool(self.context, self.commands, engine.run, engine.cancel)
        mirrors = cast(Mirrors, self.mirrors)
        self.watcher = TopicWatcher(self.context, mirrors, self.pool, CatchUpGoals(self.context))

    async def looks(self, times: int = 2) -> None:
        seen = self.source.requests
        await until(lambda: self.source.requests >= seen + times)


@asynccontextmanager
async def watching(interval: float | None = 600.0) -> AsyncIterator[Scene]:
    scene = Scene(interval)
    task = asyncio.create_task(scene.watcher.run())
    try:
        yield scene
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.service.topic_watcher._LIST_EVERY", 0.001)
    monkeypatch.setattr("heliograph.service.topic_watcher._LIST_COST", 0)


def test_topics_are_refreshed_when_they_change_and_when_it_is_needed() -> None:
    async def main() -> None:
        async with watching() as scene:
            await scene.looks()
            assert scene.mirrors.refreshes == 0
            scene.mirrors.partitions = partitions(0, 1)
            scene.mirrors.is_changed = True
            await until(lambda: scene.mirrors.refreshes == 1)
            await scene.looks()
            assert scene.pool.assignor.assignment == (tuple(partitions(0, 1)),)
            scene.context.refresh_needed.set()
            await until(lambda: scene.mirrors.refreshes == 2)
            await scene.looks()
            assert scene.mirrors.refreshes == 2
            assert not scene.context.refresh_needed.is_set()

    asyncio.run(main())


def test_topics_are_refreshed_at_the_configured_interval() -> None:
    async def main() -> None:
        async with watching(0.01) as scene:
            await until(lambda: scene.mirrors.refreshes >= 3)

    asyncio.run(main())


def test_without_an_interval_nothing_is_looked_for_until_there_is_one() -> None:
    async def main() -> None:
        async with watching(None) as scene:
            scene.context.refresh_needed.set()
            await until(lambda: not scene.context.refresh_needed.is_set())
            assert (scene.source.requests, scene.mirrors.refreshes) == (0, 0)
            scene.context.flow = replace(scene.context.flow, refresh_topics_every=0.01)
            scene.context.refresh_needed.set()  # as FlowRunner.change does
            await until(lambda: scene.mirrors.refreshes >= 1)

    asyncio.run(main())


def test_watching_goes_on_after_errors_and_reports_an_outage_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def main() -> None:
        async with watching() as scene:
            scene.source.errors = [Unreachable("a"), Unreachable("b"), Unreachable("a"), ValueError("a mistake")]
            await scene.looks(6)

    asyncio.run(main())
    assert lines_of(caplog, "heliograph.service.topic_watcher") == [
        ("WARNING", "A->B: topics could not be refreshed: a"),
        ("WARNING", "A->B: topics could not be refreshed: b"),
        ("ERROR", "A->B: topics could not be refreshed"),
        ("INFO", "A->B: topics are refreshed again"),
    ]


def test_a_topic_list_that_is_ignored_changes_nothing() -> None:
    async def main() -> None:
        scene = Scene(600.0)
        scene.mirrors.partitions = partitions(0)
        await scene.watcher.refresh()
        scene.context.stats.progress[partitions(0)[0]] = Progress(Position(1, 1), 1)
        scene.mirrors.is_ignored, scene.mirrors.partitions = True, []
        await scene.watcher.refresh()
        assert scene.pool.assignor.assignment == (tuple(partitions(0)),)
        assert scene.context.stats.positions() == {partitions(0)[0]: Position(1, 1)}

    asyncio.run(main())


@pytest.mark.parametrize("problem", [MISSING, TRUNCATED])
def test_a_mirror_that_has_lost_records_is_copied_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, problem: str
) -> None:
    caplog.set_level(logging.INFO)
    lost, moved, whole = partitions(0, 1, 2)

    async def main() -> None:
        scene = Scene(600.0)
        progress = scene.context.stats.progress
        progress |= {partition: Progress(Position(5, 5), 5) for partition in (lost, moved, whole)}

        async def check(_target: object, _positions: object) -> dict[MirrorPartition, str]:
            progress[moved] = Progress(Position(0, 0), 5)  # its lease has noticed meanwhile
            return {lost: problem, moved: problem}

        monkeypatch.setattr(mirror_check, "check_mirrors", check)
        assert not await MirrorChecker(scene.context, scene.pool).check()
        assert progress.keys() == {moved, whole}
        assert scene.context.refresh_needed.is_set() == (problem == MISSING)

    asyncio.run(main())
    ((_level, message),) = lines_of(caplog, mirror_check.__name__)
    assert message.endswith(f"do not hold what was copied: t-0 (mirror {problem})")


def test_mirrors_that_hold_everything_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        scene = Scene(600.0)

        async def check(_target: object, _positions: object) -> dict[MirrorPartition, str]:
            return {}

        monkeypatch.setattr(mirror_check, "check_mirrors", check)
        assert await MirrorChecker(scene.context, scene.pool).check()
        assert scene.commands.sent == []

    asyncio.run(main())
