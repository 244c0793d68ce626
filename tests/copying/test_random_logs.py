"""Random logs on a real broker: the mirror is what a plain consumer of the source reads, and every offset translates.

Batches of all codecs and sizes, thin ones among them; transactions that commit or abort, between plain records;
holes from real compaction; times from 1970 to the far future, or stamped on arrival; logs that begin anywhere; leases
that end anywhere. With or without the source's own offsets on the mirror, and a compression type for it.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from copying.lease import copy, only, settled
from heliograph.copy.copier import Copier
from heliograph.copy.ledger import Ledger
from heliograph.model.compression import COMPRESSION_TYPES, Compression
from heliograph.model.flow import Flow, KeptOffsets, Reading, Writing
from heliograph.model.names import NameFilter
from heliograph.wire.cluster import ClusterClient
from logs import Pair, Record

_times = st.sampled_from([0, 1, 1_600_000_000_000, 1_700_000_000_123, 4_000_000_000_000])
_value = st.none() | st.binary(max_size=30) | st.integers(0, 3000).map(lambda size: b"x" * size)
_headers = st.lists(st.tuples(st.sampled_from(["", "h", "ü"]), st.none() | st.binary(max_size=5)), max_size=2).map(
    tuple
)
_record = st.builds(Record, st.just(0), _times, st.sampled_from([b"", b"a", b"b", b"c", b"d"]), _value, _headers)


@dataclass(frozen=True)
class Plain:
    records: list[Record]
    codec: int
    per_batch: int


@dataclass(frozen=True)
class Transaction:
    producer: int
    records: list[Record]
    commit: bool


_records = st.lists(_record, min_size=1, max_size=40)
_step = st.builds(Plain, _records, st.integers(0, 4), st.sampled_from([1, 3, 50])) | st.builds(
    Transaction, st.integers(0, 1), _records, st.booleans()
)


@pytest.fixture(scope="module")
def producers(pair: Pair) -> Iterator[list[Any]]:
    with pair.a.transactional_producers() as made:
        yield made


def _play(pair: Pair, topic: str, producers: Any, steps: list[Plain | Transaction]) -> None:
    for step in steps:
        if isinstance(step, Plain):
            pair.a.write(topic, step.records, codec=step.codec, per_batch=step.per_batch)
            continue
        producer = producers[step.producer]
        producer.begin_transaction()
        for record in step.records:
            headers = [(name, value or b"") for name, value in record.headers]  # kafka-python takes no null
            producer.send(
                topic, record.value, key=record.key, headers=headers, partition=0, timestamp_ms=record.timestamp
            )
        producer.flush()
        producer.commit_transaction() if step.commit else producer.abort_transaction()


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(_step, min_size=2, max_size=10),
    compact=st.booleans(),
    on_arrival=st.booleans(),
    fetch=st.sampled_from([700, 5000, 1 << 20]),
    join=st.sampled_from([0, 1000, 1 << 17]),
    compiled=st.booleans(),
    codec=st.none() | st.integers(0, 4),
    stops=st.lists(st.integers(0, 60), max_size=3),
    gone=st.just(0) | st.integers(0, 100),
    keep=st.booleans(),
)
def test_a_mirror_is_what_a_plain_consumer_of_the_source_reads(
    pair: Pair,
    producers: Any,
    steps: list[Plain | Transaction],
    compact: bool,
    on_arrival: bool,
    fetch: int,
    join: int,
    compiled: bool,
    codec: int | None,
    stops: list[int],
    gone: int,
    keep: bool,
) -> None:
    topic = f"random-{uuid.uuid4().hex[:8]}"
    configs = {"message_timestamp_after_max_ms": str(2**63 - 1)}
    if on_arrival:
        configs["message_timestamp_type"] = "LogAppendTime"
    if compact:
        configs |= {"cleanup_policy": "compact", "segment_ms": "100", "min_cleanable_dirty_ratio": "0.001"}
        configs |= {"max_compaction_lag_ms": "100", "delete_retention_ms": "0"}
    pair.a.create(topic, 1, 1, **configs)
    _play(pair, topic, producers, steps)
    if compact:
        time.sleep(0.3)
        pair.a.write(topic, [Record(0, int(time.time() * 1000), b"roll", b"")])
        time.sleep(1.0)
        pair.a.configure(topic, cleanup_policy="delete")  # or what is compared would still change
        time.sleep(0.3)
    if gone:
        pair.a.delete_before(topic, 0, min(gone, pair.a.bounds(topic)[1]))
    flow = replace(
        only(pair.flow(), topic),
        kept_offsets=KeptOffsets(NameFilter((".*",)) if keep else None),
        reading=Reading(max_partition_fetch_bytes=fetch),
        writing=Writing(
            join_up_to=join,
            compiled=compiled,
            compression=None if codec is None else Compression(COMPRESSION_TYPES[codec]),
        ),
    )
    for stop in stops:
        copy(flow, _copied_more_than(stop))
    outcome = copy(flow)
    assert (outcome.refusals, outcome.notices) == ((), ())
    source = pair.a.read_with_offsets(topic)
    mirror = pair.b.read_with_offsets(f"A.{topic}")
    assert [replace(batch, timestamp_type=0) for _offset, batch in source] == [batch for _offset, batch in mirror]
    if keep:
        assert [offset for offset, _one in mirror] == [offset for offset, _one in source]
        assert pair.a.bounds(topic) == pair.b.bounds(f"A.{topic}")
    else:
        assert [offset for offset, _one in mirror] == list(range(len(mirror)))
    translated = asyncio.run(_translated(flow, topic, [offset for offset, _one in mirror]))
    assert translated == [offset for offset, _one in source]


def _copied_more_than(count: int) -> Callable[[Copier], bool]:
    return lambda copier: copier.counts.records > count or settled(copier)


async def _translated(flow: Flow, topic: str, offsets: list[int]) -> list[int]:
    """The source offset of each mirror offset, by what is written down."""
    client = ClusterClient(flow.target)
    try:
        ledger = Ledger(client, flow.source.alias)
        await ledger.catch_up()
        (intervals,) = ledger.all_of((topic, 0)).values()
        found = [(offset, intervals.covering(offset)) for offset in offsets]
        return [interval.source_of(offset) for offset, interval in found if interval is not None]
    finally:
        client.close()
