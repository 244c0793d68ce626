"""Compiled code joins batches to the same bytes as the codec that it replaces, on random logs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.wire.aborted import AbortedTransactions
from heliograph.wire.batches import Batch, split
from heliograph.wire.joining import PLAIN, Joined, Joiner, JoinRules
from heliograph.wire.kernels import loading
from heliograph.wire.recode import Builder, DecodedRecord, records_of

_STAMPED, _TRANSACTIONAL, _CONTROL = 0x08, 0x10, 0x20
_NO_LIMIT = 1 << 20
_PRODUCERS = st.sampled_from([9, 10, 11])


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    assert loading.load()


def _varint(value: int) -> bytes:
    rest, encoded = (value << 1) ^ (value >> 63), bytearray()
    while rest >= 0x80:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


@dataclass(frozen=True)
class Written:
    """A batch as a broker would hold it."""

    base: int
    last_delta: int
    attributes: int
    base_time: int
    records: tuple[tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]], ...]
    epoch: int = 3
    producer: int = 9

    def encode(self) -> bytes:
        body = b""
        times = [self.base_time + time for _delta, time, *_rest in self.records]
        for delta, time, key, value, headers in self.records:
            record = b"\0" + _varint(time) + _varint(delta) + _sized(key) + _sized(value) + _varint(len(headers))
            record += b"".join(_sized(name.encode()) + _sized(content) for name, content in headers)
            body += _varint(len(record)) + record
        fields = self.attributes.to_bytes(2, "big") + self.last_delta.to_bytes(4, "big")
        fields += self.base_time.to_bytes(8, "big", signed=True)
        fields += max(times, default=-1).to_bytes(8, "big", signed=True)
        fields += self.producer.to_bytes(8, "big") + bytes(2) + (7).to_bytes(4, "big")
        fields += len(self.records).to_bytes(4, "big") + body
        head = self.base.to_bytes(8, "big") + (len(fields) + 9).to_bytes(4, "big")
        return head + self.epoch.to_bytes(4, "big", signed=True) + b"\2" + crc32c(fields).to_bytes(4, "big") + fields


_bytes = st.none() | st.binary(max_size=5) | st.binary(min_size=60, max_size=70) | st.just(b"v" * 9000)
_headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2).map(tuple)
_records = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-5, 70) | st.just(-1) | st.just(1 << 40), _bytes, _bytes, _headers),
    max_size=6,
)
_flags = st.sampled_from([0, 0, 0, 0, _TRANSACTIONAL, _TRANSACTIONAL | _CONTROL, _STAMPED, 0x40, 3])
_times = st.integers(-1, 5) | st.integers(10**12, 10**12 + 1000)


@st.composite
def _logs(draw: st.DrawFn) -> list[Written]:
    log, offset = [], draw(st.integers(0, 1 << 33))
    for _ in range(draw(st.integers(1, 8))):
        base = offset + draw(st.sampled_from([0, 0, 0, 1, 200]))
        delta, records = -1, list[Any]()
        for gap, *rest in draw(_records):
            delta += 1 + (gap if draw(st.booleans()) else 0)
            records.append((delta, *rest))
        last = max(delta + draw(st.sampled_from([0, 0, 1])), 0)
        flags = draw(_flags)
        if flags & _CONTROL and draw(st.booleans()):
            records, last = [(0, 0, draw(st.sampled_from([b"\0\0\0\0", b"\0\0\0\1"])), b"\0" * 6, ())], 0
        written = Written(base, last, flags, draw(_times), tuple(records), draw(st.integers(-1, 9)), draw(_PRODUCERS))
        log.append(written)
        offset = base + last + 1
    return log


def _reason(batch: Batch, done: int) -> bool:
    """Whether it can be sent as it is."""
    return batch.dense and not batch.log_append_time and batch.base_offset >= done


def _join_with_codec(data: bytes, done: int, contiguous: bool, aborted: AbortedTransactions) -> Joined | None:
    """What compiled code must do, with the codec that it replaces."""
    builder, runs, at = Builder(0), list[list[int]](), 0
    taken: list[Batch] = []
    for batch in split(data):
        is_left_out = batch.control or batch.count == 0
        if batch.transactional and batch.count:
            is_left_out = aborted.hides(batch)
        follows = not taken or batch.base_offset == taken[-1].next_offset
        if (
            batch.attributes & 7
            or (contiguous and (is_left_out or not batch.dense or not follows))
            or (not taken and is_left_out)
        ):
            break
        for record in () if is_left_out else records_of(batch):
            if record.offset >= done:
                builder.add(record)
                if runs and sum(runs[-1]) == record.offset:
                    runs[-1][1] += 1
                else:
                    runs.append([record.offset, 1])
        taken.append(batch)
        at += batch.size
    if not runs or (len(taken) == 1 and _reason(taken[0], done)):
        return None
    made = builder.build(runs[0][0], taken[-1].leader_epoch)
    pairs = tuple((first, count) for first, count in runs)
    return Joined(made, pairs, at, taken[-1].next_offset, PLAIN)


@settings(max_examples=400, deadline=None)
@given(_logs(), st.integers(0, 8), st.booleans(), st.lists(st.tuples(_PRODUCERS, st.integers(0, 20)), max_size=4))
def test_compiled_code_makes_the_same_bytes_as_the_codec(
    log: list[Written], done: int, contiguous: bool, transactions: list[tuple[int, int]]
) -> None:
    data = b"".join(batch.encode() for batch in log)
    done += log[0].base
    listed = [(producer, log[0].base + offset) for producer, offset in transactions]
    first, aborted = next(split(data)), AbortedTransactions(listed)
    joiner = Joiner(memoryview(data), JoinRules(_NO_LIMIT, contiguous=contiguous))
    joined = joiner.join(first, 0, done, aborted)
    if first.attributes & 7 or (_reason(first, done) and len(log) == 1):
        return  # not for compiled code
    expected = _join_with_codec(data, done, contiguous, AbortedTransactions(listed))
    assert (joined is None) == (expected is None)
    if joined is None or expected is None:
        return
    assert bytes(joined.batch.records) == bytes(expected.batch.records)
    assert joined.batch._replace(crc=0, data=memoryview(b"")) == expected.batch._replace(crc=0, data=memoryview(b""))
    assert (tuple(joined.runs), joined.end, joined.next_source) == (expected.runs, expected.end, expected.next_source)
    assert list(records_of(joined.batch))  # its own header is valid
    hidden = _hidden(AbortedTransactions(listed), split(data))
    assert _hidden(aborted, split(data[joined.end :])) == {at for at in hidden if at >= joined.next_source}


def _hidden(aborted: AbortedTransactions, batches: Iterator[Batch]) -> set[int]:
    """The offsets of transactional batches that are aborted or markers."""
    return {batch.base_offset for batch in batches if batch.count and batch.transactional and aborted.hides(batch)}


@settings(max_examples=200, deadline=None)
@given(_logs(), st.integers(61, 3000), st.integers(0, 3000))
def test_a_joined_batch_is_never_beyond_the_limit_and_nothing_is_left_out(
    log: list[Written], limit: int, max_batch_bytes: int
) -> None:
    data = memoryview(b"".join(batch.encode() for batch in log))
    joiner = Joiner(data, JoinRules(limit, max_batch_bytes))
    at, records = 0, list[tuple[object, ...]]()
    batches = {batch.base_offset: batch for batch in split(data)}
    starts = dict(zip(_starts(log), batches.values(), strict=True))
    while at < len(data):
        batch = starts[at]
        joined = None if batch.attributes & 7 else joiner.join(batch, at, 0, AbortedTransactions(()))
        if joined is None:
            records += (
                [] if batch.control or batch.attributes & 7 else [tuple(record)[1:] for record in records_of(batch)]
            )
            at += batch.size
            continue
        largest = max_batch_bytes or max(limit, batch.size + batch.size // 4 + 64)
        assert joined.batch.size <= largest
        records += [tuple(record)[1:] for record in records_of(joined.batch)]
        at = joined.end
    visible = [batch for batch in batches.values() if not batch.control and not batch.attributes & 7]
    assert records == [tuple(record)[1:] for batch in visible for record in records_of(batch)]


def _starts(log: list[Written]) -> list[int]:
    starts, at = [], 0
    for batch in log:
        starts.append(at)
        at += len(batch.encode())
    return starts


@settings(max_examples=200, deadline=None)
@given(_logs(), st.data())
def test_damage_ends_a_join_before_it(log: list[Written], data: st.DataObject) -> None:
    good = b"".join(batch.encode() for batch in log)
    at = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[at] ^= data.draw(st.integers(1, 255))
    joined = _raw_join(bytes(bad))
    starts = [*_starts(log), len(good)]
    damaged = max(start for start in starts if start <= at)
    is_checked = at - damaged >= 21 or 17 <= at - damaged < 21
    assert not is_checked or joined <= damaged
    for cut in range(0, len(good), 37):
        assert _raw_join(good[:cut]) in starts


def _raw_join(data: bytes) -> int:
    join = loading.compiled_join()
    assert join is not None
    out, runs = np.empty(2 * len(data) + 100, np.uint8), np.empty(200, np.int64)
    array, aborted = np.frombuffer(data, np.uint8), AbortedTransactions([(9, 0)]).arrays()
    return int(join(array, 0, 0, _NO_LIMIT, _NO_LIMIT, False, *aborted, out, runs)[0])


def test_records_that_are_not_what_the_header_says_end_a_join() -> None:
    """With a good checksum: nothing is read or written outside of the arrays."""
    good = Written(5, 2, 0, 1000, ((0, 0, b"k", b"v" * 50, ()), (1, 1, None, b"w", ()), (2, 2, b"", b"", ())))
    whole = good.encode()
    for at in range(57, len(whole)):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            bad = bytearray(whole)
            bad[at] = value
            bad[17:21] = crc32c(bytes(bad[21:])).to_bytes(4, "big")
            assert _raw_join(whole + bytes(bad)) in (len(whole), len(whole + bad))


def test_a_length_that_wraps_around_ends_a_join() -> None:
    good = Written(5, 0, 0, 1000, ((0, 0, b"k", b"v", ()),)).encode()
    for length in ((1 << 63) - 1, -(1 << 63), (1 << 62), 1 << 31):
        body = _varint(length)
        bad = bytearray(good[:61] + body)
        bad[8:12] = (len(bad) - 12).to_bytes(4, "big")
        bad[17:21] = crc32c(bytes(bad[21:])).to_bytes(4, "big")
        assert _raw_join(good + bytes(bad)) == len(good)


def test_batches_that_overlap_are_not_joined() -> None:
    records = tuple((delta, 0, b"k", b"v", ()) for delta in range(5))
    again = [Written(base, 4, 0, 1000, records).encode() for base in (0, 0, 5)]
    assert _raw_join(b"".join(again)) == len(again[0])


def test_where_nothing_can_be_stored_it_is_compiled_all_the_same(tmp_path: Path) -> None:
    code = (
        "import numba.core.caching as caching\n"
        "for locator in caching.CacheImpl.__subclasses__() + [caching.CacheImpl]:\n"
        "    locator._locator_classes = []\n"
        "from heliograph.wire.kernels import loading\n"
        "assert loading.load()\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=120)
    assert not list(tmp_path.iterdir())


def test_a_processor_without_the_instruction_makes_the_same_checksums(tmp_path: Path) -> None:
    code = (
        "import numpy as np, numba\n"
        "from crc32c import crc32c as expected\n"
        "from heliograph.wire.kernels.joining import INSTRUCTION, crc32c\n"
        "assert INSTRUCTION is None\n"
        "check = numba.njit(lambda data, at, end: crc32c(data, at, end))\n"
        "data = np.frombuffer(bytes(range(256)) * 5, np.uint8)\n"
        "for at in range(9):\n"
        "    for end in range(1000, 1020):\n"
        "        assert check(data, at, end) == expected(data[at:end].tobytes()), (at, end)\n"
    )
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=120)


def test_a_record_survives_in_full() -> None:
    record = (0, 5, b"key", None, (("name", None), ("name", b"content")))
    log = [Written(at, 0, 0, 1000 + at, (record,)) for at in range(3)]
    data = memoryview(b"".join(batch.encode() for batch in log))
    joined = Joiner(data, JoinRules(_NO_LIMIT)).join(next(split(data)), 0, 0, AbortedTransactions(()))
    assert joined is not None
    headers = [("name", None), ("name", b"content")]
    assert list(records_of(joined.batch)) == [
        DecodedRecord(offset, 1005 + offset, b"key", None, headers) for offset in range(3)
    ]
