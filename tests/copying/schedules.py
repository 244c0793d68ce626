"""Copiers in random schedules: crashes, two at a time, requests that come late or never, brokers that lose their logs'
ends or forget producers, and whatever else happens to two clusters. Without brokers and without real time.

`make schedules` plays more of them than the 1000 of `make test`. A schedule that fails is printed as it was played;
SHRINK=1 in the environment looks for a shorter one that fails too, which can take minutes.
"""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from copying.simulation.batches import Producer
from copying.simulation.clock import BEGINNING
from copying.simulation.network import DELAYED, LOST_AFTER, LOST_BEFORE
from copying.simulation.oracle import History, check_any_time, check_refused, check_settled
from copying.simulation.world import LEDGER, MIRROR, Choices, World
from heliograph.model import columns, pages
from heliograph.model.compression import COMPRESSION_TYPES, Compression
from heliograph.model.flow import CONTINUE, FAIL, Policies
from heliograph.wire.errors import MESSAGE_TOO_LARGE

_SCHEDULES = int(os.environ.get("SCHEDULES", "1000"))
_STEPS = 30

# What happens in some schedules only, as less holds then: at most two of them together.
SOURCE_TRUNCATION, PRODUCER_EXPIRY, FOREIGN_WRITERS = "source truncation", "producer expiry", "foreign writers"
_HAZARDS = [SOURCE_TRUNCATION, PRODUCER_EXPIRY, FOREIGN_WRITERS]

_NOW = int(BEGINNING * 1000)
_OLD = _NOW - 30 * 24 * 3600 * 1000
_NOT_LEADER, _NOT_ENOUGH_REPLICAS = 6, 19
_REFUSALS = [_NOT_LEADER, _NOT_ENOUGH_REPLICAS, MESSAGE_TOO_LARGE]

_sizes = st.lists(st.integers(1, 4), min_size=1, max_size=4)
# Sizes of batches, each plain or a transaction of its own.
_PLAIN, _COMMITTED, _ABORTED = "plain", "committed", "aborted"
_kinds = st.sampled_from([_PLAIN, _PLAIN, _COMMITTED, _ABORTED])
_mixed = st.lists(st.tuples(_kinds, st.integers(1, 3)), min_size=1, max_size=6)
_rounds = st.integers(1, 40) | st.integers(40, 300)
_survivors = st.integers(0, 5)
_delays = st.sampled_from([0.0, 0.0, 0.01, 1.0, 30.0])


class Schedules(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world: Any = None
        self.patches = pytest.MonkeyPatch()
        self.is_broken = False

    @initialize(
        seed=st.integers(0, 1 << 16),
        fetch=st.sampled_from([100, 250, 1 << 20]),
        join=st.sampled_from([0, 0, 200, 1 << 17]),
        may_raise=st.booleans(),
        data_loss=st.sampled_from([CONTINUE, CONTINUE, FAIL]),
        foreign=st.sampled_from([FAIL, CONTINUE]),
        batches=_mixed,
        disturbed=st.sampled_from([None, LOST_BEFORE, LOST_AFTER, _NOT_LEADER, _NOT_LEADER]),
        hazards=st.sets(st.sampled_from(_HAZARDS), max_size=2),
    )
    def begin(
        self,
        seed: int,
        fetch: int,
        join: int,
        may_raise: bool,
        data_loss: str,
        foreign: str,
        batches: list[tuple[str, int]],
        disturbed: str | int | None,
        hazards: set[str],
    ) -> None:
        self.hazards = hazards
        policies = Policies(data_loss=data_loss, foreign_writer=foreign)
        rack = "rack" if seed % 3 == 0 else ""
        compression = Compression(COMPRESSION_TYPES[seed // 5 % 5]) if seed % 5 == 0 else None
        by_id = seed % 7 != 0
        self.world = World(Choices(seed, fetch, join, seed % 2 == 0, may_raise, policies, rack, compression, by_id))
        if seed % 4 > 1:  # the ledger works with columns of intervals, however few there are
            self.patches.setattr(columns, "_MANY", 1)
            self.patches.setattr(pages, "PAGE", 3)
        self.history = History()
        self.values = 0
        self.may_land = 0.0  # until when something that a dead copier has sent may land
        self.produce(batches, False)
        if isinstance(disturbed, str):
            self.lose_append(MIRROR, disturbed)
        elif disturbed is not None:
            self.refuse_append(MIRROR, disturbed)

    # --- the source -----------------------------------------------------------------------------------------------

    def _write(self, sizes: list[int], timestamp: int, producer: Producer | None = None) -> None:
        log = self.world.log
        for size in sizes:
            values = []
            for at in range(size):
                self.values += 1
                values.append(b"%d" % self.values)
                self.history.origins[values[-1]] = log.end + at
            log.write([timestamp] * size, values, producer or Producer())

    @rule(batches=_mixed, old=st.booleans())
    def produce(self, batches: list[tuple[str, int]], old: bool) -> None:
        for kind, size in batches:
            if kind == _PLAIN:
                self._write([size], _OLD if old else _NOW)
            else:
                self._write([size], _NOW, Producer(3, 0, 0, transactional=True))
                self.world.log.finish(3, kind == _COMMITTED, _NOW)

    @rule(producer=st.integers(1, 2), sizes=_sizes)
    def produce_in_transaction(self, producer: int, sizes: list[int]) -> None:
        self._write(sizes, _NOW, Producer(producer, 0, 0, transactional=True))

    @rule(producer=st.integers(1, 2), commit=st.booleans())
    def end_transaction(self, producer: int, commit: bool) -> None:
        self.world.log.finish(producer, commit, _NOW)

    @rule(mask=st.integers(0, 0xFFFF), leave_empty=st.booleans())
    def compact_source(self, mask: int, leave_empty: bool) -> None:
        self.world.log.compact(lambda offset: bool(mask >> (offset % 16) & 1), leave_empty)
        self.history.compacted = True

    @rule(part=st.integers(1, 4))
    def delete_records(self, part: int) -> None:
        log = self.world.log
        start = log.start + (log.stable_end - log.start) * part // 4
        self.history.deleted = True
        log.delete_before(start)

    @precondition(lambda self: SOURCE_TRUNCATION in self.hazards and len(self.world.log.batches) > 1)
    @rule(lost=st.integers(1, 3), again=st.booleans(), sizes=_sizes)
    def truncate_source(self, lost: int, again: bool, sizes: list[int]) -> None:
        log = self.world.log
        before = log.visible()
        log.truncate(max(1, len(log.batches) - lost))
        self.history.source_truncated = True
        if again:  # producers send the same once more
            for record in before:
                if record.offset >= log.end:
                    self.history.origins[record.value] = log.end
                    log.write([record.timestamp], [record.value])
        self._write(sizes, _NOW)

    @precondition(lambda self: self.world.choices.rack)
    @rule()
    def replicate(self) -> None:
        self.world.follower.replicate()

    @precondition(lambda self: self.world.choices.rack and self.world.running)
    @rule(sizes=_sizes, seconds=st.sampled_from([0.05, 2.0]))
    def lose_follower(self, sizes: list[int], seconds: float) -> None:
        """For a while: what is written meanwhile is read from the leader, and the follower does not have it later."""
        self.world.network.cut(self.world.follower)
        self._write(sizes, _NOW)
        self.world.run(seconds)

    # --- the target -----------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.mirror.batches)
    @rule(lost=st.integers(1, 3))
    def truncate_mirror(self, lost: int) -> None:
        forgets = PRODUCER_EXPIRY in self.hazards  # a broker that has lost all of a producer's batches
        self.history.expired |= forgets
        kept = 0 if forgets else 1
        self.world.mirror.truncate(max(kept, len(self.world.mirror.batches) - lost))
        self.history.mirror_truncated = True

    # By name, batches that are on their way may land in the new mirror.
    @precondition(lambda self: self.world.choices.appends_by_id or not self._is_something_under_way())
    @rule()
    def recreate_mirror(self) -> None:
        self.world.target.create(MIRROR)

    @precondition(lambda self: PRODUCER_EXPIRY in self.hazards)
    @rule()
    def expire_producers(self) -> None:
        self.world.mirror.expire(_NOW)
        self.history.expired = True

    @precondition(lambda self: FOREIGN_WRITERS in self.hazards)
    @rule(count=st.integers(1, 3))
    def write_to_mirror(self, count: int) -> None:
        self.world.mirror.write([_NOW] * count, [b"theirs"] * count)
        self.history.foreign = True

    @rule(topic=st.sampled_from([MIRROR, MIRROR, LEDGER]), fault=st.sampled_from([LOST_BEFORE, LOST_AFTER, DELAYED]))
    def lose_append(self, topic: str, fault: str) -> None:
        self.world.network.faults.setdefault(topic, []).append(fault)
        if fault == DELAYED:
            self.may_land = self.world.loop.time() + 40.0

    @rule(topic=st.sampled_from([MIRROR, MIRROR, LEDGER]), code=st.sampled_from(_REFUSALS))
    def refuse_append(self, topic: str, code: int) -> None:
        if code == MESSAGE_TOO_LARGE and topic == MIRROR:
            self.world.mirror.largest = 120
            self.history.limited = True
        elif code != MESSAGE_TOO_LARGE:
            self.world.target.refusals.setdefault(topic, []).append(code)

    # --- copiers --------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.world.running) < 2)
    @rule(handed=st.booleans(), positioned=st.booleans())
    def start_copier(self, handed: bool, positioned: bool) -> None:
        self.history.overlapped |= self._is_something_under_way()
        self.world.start(handed, positioned)

    @precondition(lambda self: self.world.running)
    @rule(which=st.integers(0, 1), surviving=_survivors, later=_delays)
    def crash_copier(self, which: int, surviving: int, later: float) -> None:
        running = self.world.running
        if surviving:
            self.may_land = max(self.may_land, self.world.loop.time() + later + 1)
        self.world.crash(running[which % len(running)], surviving, later)

    @precondition(lambda self: len(self.world.running) < 2)
    @rule(handed=st.booleans(), positioned=st.booleans(), rounds=_rounds, surviving=_survivors, later=_delays)
    def copy_until_crash(self, handed: bool, positioned: bool, rounds: int, surviving: int, later: float) -> None:
        self.start_copier(handed, positioned)
        self.world.loop.run_rounds(rounds)
        self.world.collect_ended()
        if self.world.running:
            self.crash_copier(-1, surviving, later)

    @precondition(lambda self: not self.world.running)
    @rule(
        handed=st.booleans(),
        between=st.integers(0, 60),
        rounds=_rounds,
        mask=st.none() | st.integers(0, 0xFFFF),
        slow=st.booleans(),
    )
    def start_two(self, handed: bool, between: int, rounds: int, mask: int | None, slow: bool) -> None:
        """At the same time, or the second a little later, with or without compaction between them; what the first one
        writes down may come late."""
        if slow:
            self.lose_append(LEDGER, DELAYED)
        self.start_copier(handed, False)
        self.world.loop.run_rounds(between)
        if mask is not None:
            self.compact_source(mask, False)
        self.start_copier(handed, False)
        self.world.loop.run_rounds(rounds)

    @precondition(lambda self: self.world.running)
    @rule(which=st.integers(0, 1))
    def end_lease(self, which: int) -> None:
        running = self.world.running
        self.world.end(running[which % len(running)])

    @rule(rounds=_rounds)
    def run_rounds(self, rounds: int) -> None:
        if self.world.running:
            self.world.loop.run_rounds(rounds)

    @rule(milliseconds=st.sampled_from([1, 5, 20, 100, 1000, 30_000]))
    def run(self, milliseconds: int) -> None:
        self.world.run(milliseconds / 1000)

    @rule(rounds=st.none() | st.integers(1, 20), prune=st.booleans())
    def pack(self, rounds: int | None, prune: bool) -> None:
        self.world.pack(rounds, prune)

    def _is_something_under_way(self) -> bool:
        return bool(self.world.running) or self.world.loop.time() < self.may_land

    # --- what must hold -------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_wrong(self) -> None:
        if self.world is not None:
            self.is_broken = True
            self.world.collect_ended()
            check_any_time(self.world, self.history)
            self.is_broken = False

    def teardown(self) -> None:
        if self.world is None:
            return
        try:
            if not self.is_broken:
                self._settle()
        finally:
            self.world.close()
            self.patches.undo()

    def _settle(self) -> None:
        last = self.world.settle()
        (cursor,) = last.copier.cursors
        refusal = cursor.refusal
        self.world.end(last)
        if refusal is not None:
            check_refused(self.world, self.history, refusal.reason)
            check_any_time(self.world, self.history)
            return
        check_settled(self.world, self.history)
        before = self.world.mirror.end
        again = self.world.settle()
        self.world.end(again)
        assert self.world.mirror.end == before, "copied again"


TestSchedules = Schedules.TestCase
TestSchedules.settings = settings(
    max_examples=_SCHEDULES,
    stateful_step_count=_STEPS,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, *([Phase.shrink] if "SHRINK" in os.environ else [])],
    database=None,
    suppress_health_check=list(HealthCheck),
)
