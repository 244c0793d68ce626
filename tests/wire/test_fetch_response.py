"""Fetch responses of all versions are decoded as kafka-python decodes them, without a copy of the records."""

import uuid
from typing import Any

import pytest
from kafka.protocol.consumer import FetchResponse

from heliograph.wire.fetch_response import Fetched, decode

_TOPIC = FetchResponse.FetchableTopicResponse
_PARTITION = _TOPIC.PartitionData
_IDS = {uuid.UUID(int=5): "orders", uuid.UUID(int=6): "grün"}


def _partition(number: int, records: bytes | None, aborted: list[tuple[int, int]] | None, **fields: Any) -> Any:
    transactions = [_PARTITION.AbortedTransaction(producer_id=id_, first_offset=first) for id_, first in aborted or ()]
    return _PARTITION(
        partition_index=number,
        error_code=fields.pop("error", 0),
        high_watermark=1 << 40,
        last_stable_offset=fields.pop("stable", 90),
        log_start_offset=5,
        aborted_transactions=None if aborted is None else transactions,
        preferred_read_replica=fields.pop("replica", -1),
        records=records,
        **fields,
    )


@pytest.mark.parametrize("version", range(4, 17))
def test_every_version_is_decoded(version: int) -> None:
    diverged = {"diverging_epoch": _PARTITION.EpochEndOffset(epoch=3, end_offset=44)} if version >= 12 else {}
    topics = {
        "orders": [_partition(0, b"a" * 300, [(9, 7), (10, 8)]), _partition(1, b"", None, error=3, stable=-1)],
        "grün": [_partition(7, None, [], replica=2 if version >= 11 else -1, **diverged)],
    }
    message = FetchResponse(
        throttle_time_ms=1500,
        error_code=70 if version >= 7 else 0,
        session_id=77 if version >= 7 else 0,
        responses=[
            _TOPIC(topic=name, topic_id=id_, partitions=topics[name]) for id_, name in _IDS.items() if name in topics
        ],
    )
    frame = (b"\0" if version >= 12 else b"") + message.encode(version=version)
    answer = decode(memoryview(frame), version, _IDS)
    assert (answer.throttled, answer.error, answer.session) == ((1.5, 70, 77) if version >= 7 else (1.5, 0, 0))
    start, size = 5 if version >= 5 else -1, len(frame)
    replica = 2 if version >= 11 else -1
    assert answer.partitions == [
        Fetched("orders", 0, 0, 90, start, memoryview(b"a" * 300), ((9, 7), (10, 8)), None, 1 << 40, size),
        Fetched("orders", 1, 3, 1 << 40, start, memoryview(b""), (), None, 1 << 40, size),
        Fetched("grün", 7, 0, 90, start, memoryview(b""), (), 44 if version >= 12 else None, 1 << 40, size, replica),
    ]
    assert answer.partitions[0].data.obj is frame


@pytest.mark.parametrize("version", [4, 11, 16])
def test_a_response_that_is_cut_off_is_an_error_and_not_a_short_answer(version: int) -> None:
    topics = [_TOPIC(topic="orders", topic_id=uuid.UUID(int=5), partitions=[_partition(0, b"abc", [(1, 2)])])]
    message = FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=topics)
    frame = (b"\0" if version >= 12 else b"") + message.encode(version=version)
    for size in range(len(frame)):
        with pytest.raises(Exception):  # noqa: B017  a connection turns any of them into a WireError
            decode(memoryview(frame)[:size], version, _IDS)
