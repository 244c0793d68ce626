"""Intervals as columns say the same as a list of intervals, and have the same bytes in the ledger."""

import json
from array import array
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import cramjam
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.copy.classified import OutgoingBatch
from heliograph.copy.write_ahead import plan_of
from heliograph.model import columns
from heliograph.model.columns import Columns, columns_of, from_json, to_json
from heliograph.model.intervals import Interval, Intervals
from heliograph.model.ledger_records import JournalEntry, from_record, to_record
from heliograph.model.pages import cut, page_of, unpack
from heliograph.wire.batches import Batch
from heliograph.wire.joining import Runs

_NO_BATCH = Batch(0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, memoryview(b""))
_counts = st.integers(1, 9) | st.sampled_from([1000, 40_000, 1 << 33])
_runs = st.lists(st.tuples(_counts, _counts), min_size=1, max_size=12)


def _row(target: int, source: int, runs: Sequence[tuple[int, int]], fills_gaps: bool = False) -> list[Interval]:
    row, foreign = [], 3
    for count, gap in runs:
        row.append(Interval(target, source, count, "s", foreign))
        step = gap if fills_gaps else 0
        target, source, foreign = target + count + step, source + count + gap, foreign + step
    return row


@st.composite
def _rows(draw: st.DrawFn) -> list[Interval]:
    """One plan, or one decision."""
    target, source = draw(st.integers(0, 60)), draw(st.integers(0, 100))
    if draw(st.integers(0, 5)) == 0:
        return [Interval(target, source, 0, draw(st.sampled_from("st")), 3, draw(st.booleans()))]
    return _row(target, source, draw(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1)))


@given(st.lists(_rows(), max_size=8), st.integers(1, 4))
def test_columns_are_put_like_lists(rows: list[list[Interval]], page_size: int) -> None:
    by_list, by_columns = Intervals(page_size=page_size), Intervals(page_size=page_size)
    for row in rows:
        by_list.put(row)
        by_columns.put(columns_of(row))
        assert [(interval, interval.decided) for interval in by_columns] == [
            (interval, interval.decided) for interval in by_list
        ]
        assert by_columns.stretch_starts() == by_list.stretch_starts()
        assert all(page.size <= page_size for page in by_columns.packed())
        for interval in row:
            assert by_columns.covering(interval.target) == by_list.covering(interval.target)
            assert by_columns.own_end(interval.end) == by_list.own_end(interval.end)
            assert by_columns.target_of(interval.source, "s", 50) == by_list.target_of(interval.source, "s", 50)
        repacked = Intervals(pages=by_columns.packed(), page_size=page_size)
        assert list(repacked) == list(by_list)


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40), _runs, st.booleans(), st.booleans())
def test_an_entry_has_the_same_bytes_from_columns_and_from_a_list(
    target: int, source: int, runs: list[tuple[int, int]], fills_gaps: bool, fill: bool
) -> None:
    row = _row(target, source, runs, fills_gaps)
    row[0] = replace(row[0], fill=fill)
    entry = JournalEntry(("orders", 1), "m", tuple(row), "filler" if fills_gaps else "", 5)
    record = to_record(replace(entry, intervals=columns_of(row)), "author", 7)
    assert record == to_record(entry, "author", 7)
    assert from_record(*record) == entry
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_MANY", 0)
        read = from_record(*record)
    assert isinstance(read.intervals, Columns)
    assert replace(read, intervals=tuple(read.intervals)) == entry


@given(
    st.lists(st.integers(0, 12_000) | st.integers(-5, 1 << 62), min_size=1) | st.lists(st.integers(0, 9), min_size=1)
)
def test_numbers_are_written_as_the_json_module_writes_them(numbers: list[int]) -> None:
    text = to_json(np.array(numbers, np.int64))
    assert text == json.dumps(numbers, separators=(",", ":")).encode()
    assert from_json(text[1:-1]).tolist() == numbers


def test_a_large_number_among_small_ones_is_written() -> None:
    numbers = [*range(50), 1 << 40, *range(50), 10_000]
    assert json.loads(to_json(np.array(numbers, np.int64))) == numbers


@given(st.integers(0, 99), st.integers(0, 99), _runs, st.booleans(), st.lists(st.booleans(), min_size=12, max_size=12))
def test_a_plan_is_the_same_from_columns_and_from_a_list(
    at: int, source: int, runs: list[tuple[int, int]], is_plain: bool, has_gap: list[bool]
) -> None:
    batches, firsts = [], []
    for (count, gap), keeps_gap in zip(runs, has_gap, strict=False):
        firsts.append((source, count))
        source += count + (gap if keeps_gap else 0)
    for start in range(0, len(firsts), 3):
        part = firsts[start : start + 3]
        pairs: Sequence[tuple[int, int]] = part if is_plain else Runs(np.array(part, np.int64))
        batches.append(OutgoingBatch(_NO_BATCH, pairs, 0, 0))
    expected = plan_of(batches, at, "s", 2)
    assert isinstance(expected, list)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_MANY", 0)
        plan = plan_of(batches, at, "s", 2)
    assert isinstance(plan, Columns)
    assert list(plan) == expected
    assert all(type(number) is int for interval in plan for number in (interval.target, interval.source))
    assert [plan[number] for number in range(len(plan))] == expected
    assert list(plan[1:]) == expected[1:]


def _pack_by_hand(row: Sequence[Interval]) -> bytes:
    """What a page has before it is compressed."""
    pairs = list(pairwise(row))
    widths = [*(after.target - before.target for before, after in pairs), row[-1].count]
    steps = [*(after.source - before.source for before, after in pairs), row[-1].count]
    grown = [*(after.foreign_offsets_before - before.foreign_offsets_before for before, after in pairs), 0]
    gaps = [step - width for step, width in zip(steps, widths, strict=True)]
    rests = [width - interval.count for width, interval in zip(widths, row, strict=True)]
    packed = []
    for numbers in (widths, gaps, rests, grown):
        bits = max((number if number >= 0 else ~number).bit_length() for number in numbers)
        packed.append(array("b" if bits < 8 else "h" if bits < 16 else "i" if bits < 32 else "q", numbers))
    head = json.dumps(["".join(column.typecode for column in packed), len(row)]).encode()
    return head + b"\n" + b"".join(column.tobytes() for column in packed)


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40), _runs, st.booleans())
def test_a_page_has_the_bytes_that_its_format_says(
    target: int, source: int, runs: list[tuple[int, int]], fills_gaps: bool
) -> None:
    row = _row(target, source, runs, fills_gaps)
    page = page_of(columns_of(row))
    assert page == page_of(row)
    assert bytes(cramjam.zstd.decompress(page.data)) == _pack_by_hand(row)
    assert list(unpack(page.data, page.first)) == row


@given(_rows(), _rows(), st.integers(1, 5))
def test_columns_are_cut_where_lists_are(first: list[Interval], second: list[Interval], most: int) -> None:
    alike = [replace(interval, source_id="s", fill=False) for interval in (*first, *second)]
    row = sorted(alike, key=lambda interval: interval.target)
    assert [list(part) for part in cut(columns_of(row), most)] == cut(row, most)
