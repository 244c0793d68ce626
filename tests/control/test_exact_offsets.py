"""Every position of every group, exactly: random logs on real brokers, with everything that makes offsets differ.

Transactions that commit or abort, real compaction and deletion on both sides, leases that end anywhere, a ledger that
is pruned and of which little is kept in memory. Then a reader of the mirror must get first what a reader of the source
with the same position would get first.
"""

import asyncio
import os
import random
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

import heliograph.copy.ledger
import heliograph.model.pages
from copying.lease import copy, only, settled
from heliograph.copy.copier import Copier
from heliograph.model.flow import Flow, Groups, Reading
from heliograph.model.mm2_records import Checkpoint
from heliograph.model.names import NameFilter
from heliograph.service.flow_syncers import FlowSyncers
from heliograph.wire.consumer_groups import Committed, commit_offsets, committed_offsets
from logs import Pair, Record, on

# SCENARIOS=50 and more for a night.
_SCENARIOS = int(os.environ.get("SCENARIOS", "4"))
_COMPACTING = {
    "cleanup_policy": "compact",
    "segment_ms": "100",
    "min_cleanable_dirty_ratio": "0.001",
    "max_compaction_lag_ms": "100",
    "delete_retention_ms": "0",
}


@pytest.fixture(scope="module")
def producers(pair: Pair) -> Iterator[list[Any]]:
    with pair.a.transactional_producers() as made:
        yield made


@dataclass
class _Scenario:
    """One topic and its mirror, on their way through random events."""

    pair: Pair
    producers: list[Any]
    topic: str
    rng: random.Random
    offsets: dict[bytes, int] = field(default_factory=dict)  # of every record on the source, by its value
    groups: dict[str, int] = field(default_factory=dict)
    went_back: set[str] = field(default_factory=set)
    numbers: int = 0

    @property
    def mirror(self) -> str:
        return f"A.{self.topic}"

    @property
    def flow(self) -> Flow:
        groups = Groups(NameFilter((f"{self.topic}-g.*",)), 600.0, 60.0, 60.0, 1)
        reading = Reading(max_partition_fetch_bytes=self.rng.choice([700, 5000, 1 << 20]))
        return replace(only(self.pair.flow(), self.topic), groups=groups, reading=reading)

    def write(self) -> None:
        for _ in range(self.rng.randint(2, 6)):
            records = [self._record() for _ in range(self.rng.randint(1, 12))]
            if self.rng.random() < 0.4:
                self.pair.a.write(self.topic, records, per_batch=self.rng.choice([1, 3, 50]))
                continue
            producer = self.rng.choice(self.producers)
            producer.begin_transaction()
            for one in records:
                producer.send(self.topic, one.value, key=one.key, partition=0)
            producer.flush()
            producer.commit_transaction() if self.rng.random() < 0.7 else producer.abort_transaction()
        self.pair.a.write(self.topic, [self._record()])  # so that what was aborted is seen to be
        seen = self.pair.a.read_with_offsets(self.topic)
        self.offsets.update({one.value: offset for offset, one in seen if one.value is not None})

    def _record(self) -> Record:
        self.numbers += 1
        key = self.rng.choice([b"a", b"b", b"c", b"%d" % self.numbers])
        return Record(0, int(time.time() * 1000), key, b"%d" % self.numbers)

    def delete(self) -> None:
        """As retention does, on one side or both."""
        for log, topic in self._sides():
            start, end = log.bounds(topic)
            log.delete_before(topic, 0, self.rng.randint(start, end))

    def compact(self) -> None:
        """The brokers' own cleaner, on one side or both, until it has done something or will not."""
        sides = self._sides()
        before = [len(log.read(topic)) for log, topic in sides]
        for log, topic in sides:
            log.configure(topic, **_COMPACTING)
        time.sleep(0.2)
        self.pair.a.write(self.topic, [self._record()])  # the next segment begins with it
        self.offsets.update({one.value: at for at, one in self.pair.a.read_with_offsets(self.topic) if one.value})
        copy(self.flow)
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline and any(
            len(log.read(topic)) > count for (log, topic), count in zip(sides, before, strict=True)
        ):
            time.sleep(0.1)
        for log, topic in sides:
            log.configure(topic, cleanup_policy="delete")  # or what is compared would go on changing

    def _sides(self) -> list[tuple[Any, str]]:
        both = [(self.pair.a, self.topic), (self.pair.b, self.mirror)]
        return self.rng.choice([both[:1], both[1:], both])

    def copy_some(self) -> None:
        count = self.rng.randint(0, 40)
        copy(self.flow, _copied_more_than(count))

    def commit(self) -> None:
        """New groups anywhere, also at markers, in holes, before the start and behind the end; some groups move."""
        end = self.pair.a.bounds(self.topic)[1]
        for number in range(12):
            self.groups[f"{self.topic}-g{len(self.groups)}"] = self.rng.randint(0, end + 2 if number == 0 else end)
        for group in self.rng.sample(sorted(self.groups), 3):
            at = self.rng.randint(0, end)
            if at < self.groups[group]:
                self.went_back.add(group)
            self.groups[group] = at
        wanted = {group: {(self.topic, 0): Committed(at)} for group, at in self.groups.items()}
        answer = on(self.pair.a, lambda client: commit_offsets(client, wanted))
        assert set(answer.values()) == {None}

    def translate(self) -> None:
        async def main() -> None:
            syncers = FlowSyncers(self.flow)
            try:
                await syncers.prepare()
                await syncers.translate_once()
            finally:
                syncers.close()

        asyncio.run(main())

    def prune(self) -> None:
        async def main() -> None:
            syncers = FlowSyncers(self.flow)
            try:
                await syncers.prepare()
                await syncers.packer.pack()
                await syncers.packer.prune()
            finally:
                syncers.close()

        asyncio.run(main())

    def check(self) -> None:
        start, end = self.pair.b.bounds(self.mirror)
        copied = self.pair.b.read_with_offsets(self.mirror)
        source = self.pair.a.read_with_offsets(self.topic)
        on_both = {one.value for _offset, one in copied} & {one.value for _offset, one in source}
        first = self.pair.a.bounds(self.topic)[0]
        written = [Checkpoint.from_record(*one) for one in self.pair.b.pairs("A.checkpoints.internal")]
        latest = {one.group: one for one in written}
        there = on(self.pair.b, lambda client: committed_offsets(client, list(self.groups)))
        for group, committed in self.groups.items():
            translated, at = latest[group].downstream, max(committed, first)
            if group not in self.went_back:  # on the target, groups only go forward
                assert there[group][self.mirror, 0].offset == translated
            where = f"{group} at {at}, translated to {translated} of {start} to {end}"
            assert start <= translated <= end, where
            read = next((one.value for offset, one in copied if offset >= translated), None)
            expected = next((one.value for _offset, one in copied if self.offsets[one.value or b""] >= at), None)
            assert read == expected, where
            # The same as on the source, unless compaction or deletion has taken it on one side only.
            original = next((one.value for offset, one in source if offset >= at), None)
            assert original == expected or not {original, expected} <= on_both, where
            if expected is None:
                assert translated == end, where


def _copied_more_than(count: int) -> Callable[[Copier], bool]:
    return lambda copier: copier.counts.records > count or settled(copier)


@pytest.mark.parametrize("seed", range(_SCENARIOS))
def test_a_group_reads_first_on_the_mirror_what_it_would_read_first_on_the_source(
    pair: Pair, producers: list[Any], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    one = _Scenario(pair, producers, f"exact-{seed}-{uuid.uuid4().hex[:6]}", rng)
    monkeypatch.setattr(heliograph.model.pages, "PAGE", rng.choice([2, 1000]))
    monkeypatch.setattr(heliograph.copy.ledger, "_AROUND", rng.choice([2, 1000]))
    pair.a.create(one.topic)
    one.write()
    one.copy_some()
    one.commit()
    for _ in range(rng.randint(3, 5)):
        events = rng.sample([one.write, one.delete, one.copy_some, one.translate, one.prune], 3)
        for event in events if rng.random() < 0.6 else [*events, one.compact]:
            event()
        one.commit()
    outcome = copy(one.flow)
    assert outcome.refusals == (), f"seed {seed}: {outcome.refusals}"
    one.translate()
    one.check()
