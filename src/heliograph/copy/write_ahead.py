"""Intervals that must be in the ledger, and records that must be parked, before batches after them may be sent."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heliograph.copy.classified import LeftOut, OutgoingBatch
from heliograph.model.columns import are_many, from_copied
from heliograph.model.intervals import Interval, Intervals
from heliograph.wire.joining import all_runs


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """What must be written before batches from mirror offset `target` on may be sent."""

    target: int
    intervals: Sequence[Interval]
    left_out: tuple[LeftOut, ...] = ()
    filler: str = ""  # who fills the gaps between the intervals


class WriteAheadQueue:
    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[Unrecorded] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Unrecorded]:
        return iter(self._waiting)

    def add_left_out(self, target: int, left_out: Sequence[LeftOut]) -> None:
        self._waiting.append(Unrecorded(target, (), tuple(left_out)))

    def add_plan(self, target: int, plan: Sequence[Interval], recorded: Intervals, filler: str = "") -> None:
        """Add a plan unless the ledger has it: intervals that still wait may change what the recorded ones say."""
        has_gaps = len(plan) > 1
        is_new_filler = bool(filler) and has_gaps and recorded.filler != filler
        if plan and (self._waiting or is_new_filler or not recorded.agree(plan)):
            self._waiting.append(Unrecorded(target, plan, filler=filler if has_gaps else ""))

    def blocks(self, append_at: int) -> bool:
        """Whether something must be written before a batch may be appended at this mirror offset."""
        return bool(self._waiting) and append_at >= self._waiting[0].target

    def written(self, count: int) -> None:
        """The first `count` entries are in the ledger."""
        for _ in range(count):
            self._waiting.popleft()

    def clear(self) -> None:
        self._waiting.clear()


def plan_of(
    batches: Sequence[OutgoingBatch], at: int, source_id: str, foreign_offsets_before: int
) -> Sequence[Interval]:
    """The intervals of batches that are appended one after the other from mirror offset `at` on."""
    if are_many(sum(len(batch.runs) for batch in batches)):
        return from_copied(*all_runs([batch.runs for batch in batches]), at, source_id, foreign_offsets_before)
    plan: list[Interval] = []
    first, expected = at, None
    for batch in batches:
        for source, count in batch.runs:
            if source != expected:
                if expected is not None:
                    plan.append(Interval(first, expected - at + first, at - first, source_id, foreign_offsets_before))
                first = at
            at += count
            expected = source + count
    if expected is not None:
        plan.append(Interval(first, expected - at + first, at - first, source_id, foreign_offsets_before))
    return plan
