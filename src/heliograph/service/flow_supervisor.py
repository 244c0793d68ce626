"""One flow that is wanted: brought to run, changed while it runs, ended, without touching the others."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress

from heliograph.control.internal_topic_setup import MissingTopics
from heliograph.control.preserve_check import CannotKeepOffsets
from heliograph.control.takeover import StillRunning
from heliograph.copy.ledger import Ledger
from heliograph.engine.spark import SparkFailed
from heliograph.model.flow import SOURCE, Flow
from heliograph.model.ledger_records import NewerFormat
from heliograph.model.partitions import MirrorPartition, Position
from heliograph.service.events import FlowNotRunning, emit, flow_scope
from heliograph.service.flow_runner import FlowRunner, Task, needs_another
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.errors import WireError

log = logging.getLogger(__name__)

MakeRunner = Callable[[Flow, Ledger], FlowRunner]
_TRY_AGAIN = 10.0
_LAST_WORDS = 2.0
# What keeps a flow from running, in words for the operator; anything else is a mistake of ours.
EXPECTED = (WireError, MissingTopics, CannotKeepOffsets, StillRunning, SparkFailed, NewerFormat)


class FlowSupervisor:
    """A flow without parts is paused: nothing of it runs, but it is known where it stands.

    `trouble` is why the flow does not run as it is wanted, empty if it does. It is tried again now and then."""

    def __init__(self, flow: Flow, make_runner: MakeRunner, spark: Callable[[], Awaitable[None]]) -> None:
        self.wanted: Flow | None = flow
        self._name = flow.name
        self.runner: FlowRunner | None = None
        self.keeper: FlowSyncers | None = None
        self.trouble = ""
        self._make_runner = make_runner
        self._spark = spark
        self._ledger: tuple[ClusterClient, Ledger] | None = None  # one for all that this flow does
        self._copying: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._last_positions: Mapping[MirrorPartition, Position] = {}
        self._last_tasks: list[Task] = []
        self.has_kept: frozenset[str] = frozenset()  # parts that run, or have run
        self._changed = asyncio.Event()
        self._again = False
        self._leases_again: set[int] = set()

    def want(self, flow: Flow | None) -> None:
        """None: it is to end."""
        if flow != self.wanted:
            self.wanted = flow
            self._changed.set()

    def again(self, itself: bool, leases: Collection[int]) -> None:
        """Because somebody asks: look at everything anew, have some leases end and begin again."""
        self._again = self._again or itself
        self._leases_again |= set(leases)
        self._changed.set()

    async def live(self) -> None:
        """Bring what runs to what is wanted, whenever that changes; until nothing is wanted."""
        with flow_scope(self._name):
            await self._live()

    async def _live(self) -> None:
        while True:
            self._changed.clear()
            wanted = self.wanted
            try:
                await self._become(wanted)
                self.trouble = ""
            except EXPECTED as error:
                self._complain(wanted, str(error))
            except Exception as error:
                log.exception("%s: not as it is wanted", self._name)
                self.trouble = repr(error)
            if wanted is None and self.wanted is None:
                self.close_ledger()
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_TRY_AGAIN if self.trouble else None):
                    await self._changed.wait()

    def _complain(self, wanted: Flow | None, trouble: str) -> None:
        if wanted is not None and trouble != self.trouble:
            said = trouble.removeprefix(f"{wanted.name}: ")
            emit(log, FlowNotRunning(wanted.name, said))
        self.trouble = trouble

    async def prepare(self, until_caught_up: bool) -> None:
        """The first time, where a failure is to end everything: all but starting."""
        assert self.wanted is not None
        with flow_scope(self._name):
            self.keeper = await self._prepared_keeper(self.wanted)
            if SOURCE in self.wanted.parts:
                self.runner = await self._prepared_runner(self.wanted)
                if until_caught_up:
                    await self.runner.set_goals()

    async def _become(self, flow: Flow | None) -> None:
        again, self._again = self._again or bool(self.trouble), False
        leases, self._leases_again = self._leases_again, set()
        runner, keeper = self.runner, self.keeper
        if runner is not None and (flow is None or SOURCE not in flow.parts or needs_another(runner.flow, flow)):
            await self._end_runner(runner)
        if flow is None or not flow.parts:
            await self._replace_keeper(None)
            return
        if keeper is None or keeper.flow != flow or again:
            await self._replace_keeper(await self._prepared_keeper(flow))
        if SOURCE in flow.parts:
            if self.runner is None:
                self.runner = await self._prepared_runner(flow)
            elif self.runner.flow != flow:
                await self.runner.change(flow)
            elif again:
                await self.runner.look_again()
            await self.runner.begin_anew(leases)
            await self._spark()
        self.start()

    def start(self) -> None:
        """What is prepared and does not run yet."""
        with flow_scope(self._name):
            if self.runner is not None and self._copying is None:
                self._copying = asyncio.create_task(self.runner.run())
            if self.keeper is not None and self._keeping is None:
                self.has_kept |= self.keeper.flow.parts
                self._keeping = asyncio.create_task(self.keeper.run())

    def _ledger_of(self, flow: Flow) -> Ledger:
        if self._ledger is None or self._ledger[0].cluster != flow.target:
            self.close_ledger()
            client = ClusterClient(flow.target)
            self._ledger = client, Ledger(client, flow.source.alias)
        return self._ledger[1]

    def close_ledger(self) -> None:
        if self._ledger is not None:
            self._ledger[0].close()
            self._ledger = None

    async def _prepared_keeper(self, flow: Flow) -> FlowSyncers:
        keeper = FlowSyncers(flow, self.positions, self._ledger_of(flow))
        try:
            await keeper.prepare()
        except BaseException:
            keeper.close()
            raise
        return keeper

    async def _prepared_runner(self, flow: Flow) -> FlowRunner:
        runner = self._make_runner(flow, self._ledger_of(flow))
        try:
            await runner.connect()
            await runner.prepare()
        except BaseException:
            runner.close()
            raise
        return runner

    async def _end_runner(self, runner: FlowRunner) -> None:
        if self._copying is not None:
            await runner.stop()
            await self._copying
            self._copying = None
        self._last_positions = runner.positions()
        self._last_tasks = [Task(one.partitions, False) for one in runner.tasks()]
        self.runner = None
        runner.close()

    async def _replace_keeper(self, keeper: FlowSyncers | None) -> None:
        """The new one begins before the old one has ended: what both do does not pause."""
        old, keeping = self.keeper, self._keeping
        self.keeper = keeper
        self._keeping = asyncio.create_task(keeper.run()) if keeper is not None else None
        if keeper is not None:
            self.has_kept |= keeper.flow.parts
            if old is not None:
                keeper.follow(old)
        if keeping is not None:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        if old is not None:
            if keeper is None or SOURCE not in keeper.flow.parts:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LAST_WORDS):
                        await old.finish()
            old.close()

    def positions(self) -> Mapping[MirrorPartition, Position]:
        """Where copying stands, or stood when it was ended."""
        return self.runner.positions() if self.runner is not None else self._last_positions

    def tasks(self) -> list[Task]:
        """The leases that there should be, or those that there were when copying was ended."""
        return self.runner.tasks() if self.runner is not None else self._last_tasks

    @property
    def copies(self) -> bool:
        return self._copying is not None

    def keeps(self, part: str) -> bool:
        """Whether another part than copying runs."""
        return self._keeping is not None and self.keeper is not None and part in self.keeper.flow.parts

    def check(self) -> None:
        """Raise what made copying end by itself: it never should."""
        for task in (self._copying, self._keeping):
            if task is not None and task.done() and not task.cancelled():
                task.result()

    def running(self) -> list[asyncio.Task[None]]:
        return [self._copying] if self._copying is not None else []

    def cancel_keeping(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
