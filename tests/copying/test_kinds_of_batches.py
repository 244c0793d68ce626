"""Everything that a source can hand over arrives as a plain consumer of the source reads it."""

import dataclasses
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from copying.lease import copy, only, settled
from heliograph.model.flow import CONTINUE, Flow, Policies, Reading, Writing
from logs import Log, Pair, Record, some_records, until


def _same(pair: Pair, topic: str, partition: int = 0, committed: bool = True) -> None:
    read = pair.a.read(topic, partition, committed)
    assert pair.b.read(f"A.{topic}", partition) == read
    start, end = pair.b.bounds(f"A.{topic}", partition)
    assert end - start == len(read)


def _parking(flow: Flow) -> Flow:
    return replace(flow, policies=Policies(refused_record=CONTINUE))


# --- compaction ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_records_around_holes_are_copied_without_the_holes(pair: Pair, topic: str, codec: int) -> None:
    pair.a.create_compacted(topic, lambda n: b"k%d" % (n % 100 if n % 3 else n), codec=codec)
    outcome = copy(only(pair.flow(), topic))
    assert outcome.refusals == ()
    _same(pair, topic)
    assert ["none", "gzip", "snappy", "lz4", "zstd"][codec] in {
        codec for _count, codec in pair.b.boundaries(f"A.{topic}")
    }


def test_empty_batches_left_by_compaction_are_left_out(pair: Pair, topic: str) -> None:
    pair.a.create_compacted(topic, lambda _n: b"same")
    assert copy(only(pair.flow(), topic)).refusals == ()
    _same(pair, topic)


def test_copying_continues_inside_a_batch_that_was_partly_copied(pair: Pair, topic: str) -> None:
    """A large batch is split; the lease ends in the middle of it; the next one finds the place."""
    pair.a.create(topic, max_message_bytes="4000000")
    pair.b.create(f"A.{topic}", max_message_bytes="50000")
    pair.a.write(topic, some_records(2000, size=200), per_batch=2000)
    flow = replace(only(pair.flow(), topic), may_raise_limits=False)
    for _ in range(5):
        copy(flow, lambda copier: copier.counts.records > 100 or settled(copier))
    copy(flow)
    _same(pair, topic)
    assert len(pair.b.boundaries(f"A.{topic}")) > 8


def test_every_lease_finds_its_position_in_a_topic_with_holes(pair: Pair, topic: str) -> None:
    pair.a.create_compacted(topic, lambda n: b"k%d" % (n % 40 if n % 4 else n))
    flow = replace(only(pair.flow(), topic), reading=Reading(max_partition_fetch_bytes=1500))
    for _ in range(8):
        copy(flow, lambda copier: copier.counts.records > 10 or settled(copier))
    assert copy(flow).refusals == ()
    _same(pair, topic)


# --- transactions --------------------------------------------------------------------------------------------------


def test_committed_records_are_copied_without_aborted_ones_and_markers(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(20))
    pair.a.transaction(topic, 35)
    pair.a.transaction(topic, 25, commit=False)
    pair.a.write(topic, some_records(20))
    pair.a.transaction(topic, 5, commit=False)
    outcome = copy(only(pair.flow(), topic))
    assert outcome.refusals == ()
    (progress,) = outcome.progress.values()
    assert progress.position.source == progress.source_end == pair.a.bounds(topic)[1]  # no lag from the last marker
    _same(pair, topic)
    assert len(pair.b.read(f"A.{topic}")) == 75


def test_read_uncommitted_copies_aborted_records_too(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.transaction(topic, 15, commit=False)
    pair.a.transaction(topic, 10)
    copy(replace(only(pair.flow(), topic), reading=Reading(committed_only=False)))
    _same(pair, topic, committed=False)
    assert len(pair.b.read(f"A.{topic}")) == 25


def test_an_open_transaction_is_waited_for_and_does_not_count_as_lag(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(10))
    producer = pair.a.transaction(topic, 20, commit=None)
    pair.a.write(topic, some_records(10))
    flow = only(pair.flow(), topic)
    outcome = copy(flow)
    (progress,) = outcome.progress.values()
    assert (progress.position.source, progress.source_end) == (10, 10)
    assert pair.b.bounds(f"A.{topic}") == (0, 10)
    producer.commit_transaction()
    producer.close()
    until(lambda: len(pair.a.read(topic)) == 40)
    copy(flow)
    _same(pair, topic)


def test_a_marker_alone_is_left_out(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.transaction(topic, 1, commit=False)
    pair.a.delete_before(topic, 0, 1)
    flow = only(pair.flow(), topic)
    outcome = copy(flow)
    (progress,) = outcome.progress.values()
    assert (outcome.refusals, progress.position.source) == ((), 2)
    pair.a.write(topic, some_records(3))
    copy(flow)
    _same(pair, topic)


# --- times ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [0, 3])
def test_a_source_with_log_append_time_keeps_the_times_that_its_consumers_saw(
    pair: Pair, topic: str, codec: int
) -> None:
    pair.a.create(topic, message_timestamp_type="LogAppendTime")
    pair.a.write(
        topic, [dataclasses.replace(record, timestamp=n) for n, record in enumerate(some_records(300))], codec=codec
    )
    copy(only(pair.flow(), topic))
    seen, read = pair.b.read(f"A.{topic}"), pair.a.read(topic)
    assert [replace(record, timestamp_type=0) for record in read] == seen
    assert all(record.timestamp > 1_600_000_000_000 for record in seen)


def test_records_of_the_future_and_of_long_ago_are_copied(pair: Pair, topic: str) -> None:
    pair.a.create(topic, message_timestamp_after_max_ms=str(2**63 - 1))
    future = int(time.time() * 1000) + 10**11
    times = [future, 0, 1, future * 2, 12345]
    pair.a.write(
        topic, [replace(record, timestamp=moment) for record, moment in zip(some_records(5), times, strict=True)]
    )
    assert copy(only(pair.flow(), topic)).refusals == ()
    _same(pair, topic)


# --- thin batches --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_small_batches_are_joined(pair: Pair, topic: str, codec: int) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(400), per_batch=1, codec=codec)
    flow = only(pair.flow(), topic)
    copy(flow)
    _same(pair, topic)
    assert len(pair.b.boundaries(f"A.{topic}")) < 40
    pair.a.write(topic, some_records(1), codec=codec)
    copy(flow)
    _same(pair, topic)


def test_batch_size_limits_how_far_small_batches_are_joined(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.a.write(topic, some_records(200), per_batch=1)
    copy(replace(only(pair.flow(), topic), writing=Writing(join_up_to=1000)))
    _same(pair, topic)
    assert len(pair.b.boundaries(f"A.{topic}")) >= 20


# --- what a mirror does not take -----------------------------------------------------------------------------------


def test_the_mirrors_limit_is_raised_for_a_batch_that_needs_it(pair: Pair, topic: str) -> None:
    pair.a.create(topic, max_message_bytes="3000000")
    pair.b.create(f"A.{topic}", max_message_bytes="50000")
    pair.a.write(topic, [*some_records(10), Record(0, 1, b"big", b"x" * 100_000), *some_records(10)], per_batch=1000)
    outcome = copy(only(pair.flow(), topic))
    assert outcome.refusals == ()
    assert [notice.kind for notice in outcome.notices] == ["limit-raised"]
    _same(pair, topic)
    assert len(pair.b.boundaries(f"A.{topic}")) == 1


@pytest.mark.skipif(os.environ.get("COMPILED") == "off", reason="Python joins batches up to 1 KB only")
def test_the_mirrors_limit_is_not_raised_for_batches_that_are_joined(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    pair.b.create(f"A.{topic}", max_message_bytes="50000")
    pair.a.write(topic, some_records(3000, size=100), per_batch=100)
    outcome = copy(only(pair.flow(), topic))
    assert (outcome.refusals, outcome.notices) == ((), ())
    _same(pair, topic)
    assert 6 < len(pair.b.boundaries(f"A.{topic}")) < 30
    pair.a.write(topic, some_records(1000, size=100), per_batch=1000)
    assert [notice.kind for notice in copy(only(pair.flow(), topic)).notices] == ["limit-raised"]
    _same(pair, topic)


@pytest.mark.parametrize("codec", [0, 3])
def test_a_batch_is_split_if_the_limit_may_not_be_raised(pair: Pair, topic: str, codec: int) -> None:
    pair.a.create(topic, max_message_bytes="3000000")
    pair.b.create(f"A.{topic}", max_message_bytes="20000")
    pair.a.write(topic, some_records(1000), per_batch=1000, codec=codec)
    assert copy(replace(only(pair.flow(), topic), may_raise_limits=False)).refusals == ()
    _same(pair, topic)
    assert len(pair.b.boundaries(f"A.{topic}")) >= 2


def _large_between_small(log: Log, topic: str) -> None:
    log.create(topic, partitions=2, max_message_bytes="3000000")
    log.write(topic, [*some_records(10), Record(0, 1, b"big", b"x" * 100_000, (("h", b"v"),)), *some_records(10)])
    log.write(topic, some_records(10), partition=1)


def test_a_record_that_is_too_large_stops_only_its_partition(pair: Pair, topic: str) -> None:
    _large_between_small(pair.a, topic)
    pair.b.create(f"A.{topic}", partitions=2, max_message_bytes="50000")
    outcome = copy(replace(only(pair.flow(), topic), may_raise_limits=False))
    (refusal,) = outcome.refusals
    assert (refusal.reason, refusal.source_offset, refusal.target_offset) == ("too-large", 10, 10)
    assert pair.b.bounds(f"A.{topic}") == (0, 10)
    _same(pair, topic, 1)


def _letters(log: Log, topic: str) -> list[Any]:
    return [
        record
        for record in log.read("heliograph-dead-letters.A.internal")
        if ("heliograph.topic", topic.encode()) in record.headers
    ]


def test_a_record_that_is_too_large_is_parked_with_its_origin(pair: Pair, topic: str) -> None:
    _large_between_small(pair.a, topic)
    pair.b.create(f"A.{topic}", partitions=2, max_message_bytes="50000")
    outcome = copy(replace(_parking(only(pair.flow(), topic)), may_raise_limits=False))
    assert outcome.refusals == ()
    assert [(notice.kind, notice.source_offset) for notice in outcome.notices] == [("parked", 10)]
    read = pair.a.read(topic)
    assert pair.b.read(f"A.{topic}") == read[:10] + read[11:]
    (letter,) = _letters(pair.b, topic)
    headers = dict(letter.headers)
    assert (letter.key, letter.value, headers["h"]) == (b"big", b"x" * 100_000, b"v")
    assert (headers["heliograph.partition"], headers["heliograph.offset"]) == (b"0", b"10")
    assert b"50000" in headers["heliograph.reason"]


def _null_keys(pair: Pair, topic: str) -> None:
    pair.a.create(topic)
    records = [replace(record, key=None) if n in (3, 17) else record for n, record in enumerate(some_records(30))]
    pair.a.write(topic, records, per_batch=10)
    pair.b.create(f"A.{topic}", cleanup_policy="compact")


def _too_late(pair: Pair, topic: str) -> None:
    pair.a.create(topic, message_timestamp_after_max_ms=str(2**63 - 1))
    late = int(time.time() * 1000) + 10**10
    records = [replace(record, timestamp=late) if n in (3, 17) else record for n, record in enumerate(some_records(30))]
    pair.a.write(topic, records, per_batch=10)
    pair.b.create(f"A.{topic}", message_timestamp_after_max_ms="3600000")


@pytest.mark.parametrize(("make", "word"), [(_null_keys, "INVALID_RECORD"), (_too_late, "INVALID_TIMESTAMP")])
def test_refused_records_stop_the_partition_or_are_parked(
    pair: Pair, topic: str, make: Callable[[Pair, str], None], word: str
) -> None:
    make(pair, topic)
    flow = only(pair.flow(), topic)
    (refusal,) = copy(flow).refusals
    assert (refusal.reason, refusal.source_offset) == ("refused-by-target", 0)
    assert word in refusal.text
    outcome = copy(_parking(flow))
    assert outcome.refusals == ()
    assert [notice.source_offset for notice in outcome.notices] == [3, 17]
    read = pair.a.read(topic)
    assert pair.b.read(f"A.{topic}") == [record for n, record in enumerate(read) if n not in (3, 17)]
    assert [dict(letter.headers)["heliograph.offset"] for letter in _letters(pair.b, topic)] == [b"3", b"17"]
    pair.a.write(topic, some_records(5))
    assert copy(flow).records == 5
