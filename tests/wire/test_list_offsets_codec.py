"""ListOffsets by hand is what kafka-python makes of the same requests and responses."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from heliograph.wire.errors import BrokerError, WireError
from heliograph.wire.list_offsets_codec import NEWEST, OLDEST, decode, encode
from heliograph.wire.offsets import EARLIEST, LATEST

_EXAMPLES = settings(max_examples=200, derandomize=True, deadline=None, database=None)
_VERSIONS = st.integers(OLDEST, NEWEST)
_NAMES = st.text(max_size=30) | st.just("ü" * 249)
_PARTITIONS = st.integers(0, (1 << 31) - 1)
_ANSWERS = st.tuples(
    st.sampled_from([0, 0, 0, 3, 6, 78, -1]),
    st.integers(-1, (1 << 63) - 1),  # timestamp
    st.integers(-1, (1 << 63) - 1),  # offset
    st.integers(-1, (1 << 31) - 1),  # leader epoch
)
_Answers = dict[str, dict[int, tuple[int, int, int, int]]]


@_EXAMPLES
@given(
    wanted=st.dictionaries(_NAMES, st.lists(_PARTITIONS, unique=True, max_size=20), max_size=5),
    which=st.sampled_from([EARLIEST, LATEST]),
    committed=st.booleans(),
    version=_VERSIONS,
)
def test_requests_are_encoded_as_kafka_python_encodes_them(
    wanted: dict[str, list[int]], which: int, committed: bool, version: int
) -> None:
    topic = ListOffsetsRequest.ListOffsetsTopic
    row = topic.ListOffsetsPartition
    message = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=int(committed),
        topics=[
            topic(
                name=name,
                partitions=[row(partition_index=part, current_leader_epoch=-1, timestamp=which) for part in parts],
            )
            for name, parts in wanted.items()
        ],
    )
    assert encode(wanted, which, committed, version) == bytes(message.encode(version=version))


def _response(answers: _Answers, version: int) -> bytes:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    fields = "error_code", "timestamp", "offset", "leader_epoch"
    message = ListOffsetsResponse(
        throttle_time_ms=1500,
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.ListOffsetsPartitionResponse(partition_index=part, **dict(zip(fields, answer, strict=True)))
                    for part, answer in parts.items()
                ],
            )
            for name, parts in answers.items()
        ],
    )
    return bytes(message.encode(version=version))


def _error_or_offset(offset: int | WireError) -> tuple[int, int]:
    if isinstance(offset, int):
        return 0, offset
    assert isinstance(offset, BrokerError)
    return offset.code, -1


@_EXAMPLES
@given(
    answers=st.dictionaries(_NAMES, st.dictionaries(_PARTITIONS, _ANSWERS, max_size=20), max_size=5), version=_VERSIONS
)
def test_responses_are_decoded_as_kafka_python_decodes_them(answers: _Answers, version: int) -> None:
    frame = _response(answers, version)
    known: Any = ListOffsetsResponse.decode(frame, version=version)
    assert {place: _error_or_offset(offset) for place, offset in decode(memoryview(frame), version).items()} == {
        (topic.name, part.partition_index): (part.error_code, -1 if part.error_code else part.offset)
        for topic in known.topics
        for part in topic.partitions
    }


@pytest.mark.parametrize("version", range(OLDEST, NEWEST + 1))
def test_a_response_that_is_cut_off_is_an_error_and_not_a_short_answer(version: int) -> None:
    answers = {"orders": {0: (0, -1, 5, 0), 1: (0, -1, 6, 0)}, "grün": {7: (0, -1, 8, 0)}}
    frame = _response(answers, version)
    for size in range(len(frame)):
        with pytest.raises(Exception):  # noqa: B017  a connection turns any of them into a WireError
            decode(memoryview(frame)[:size], version)
