"""Metadata by hand is what kafka-python makes of the same responses."""

import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.metadata import MetadataResponse

from heliograph.wire.metadata import BY_HAND, Metadata, decode, from_message

_NUMBERS = st.integers(0, (1 << 31) - 1)
_BROKERS = st.lists(st.integers(0, 200), max_size=5)
_PARTITIONS = st.lists(
    st.tuples(st.integers(-1, 5), st.integers(-1, 9), _BROKERS, _BROKERS, _BROKERS), max_size=20
)  # leader, epoch, replicas, in sync, offline
_TOPICS = st.dictionaries(
    st.text(min_size=1, max_size=30) | st.just("ü" * 249),
    st.tuples(st.sampled_from([0, 0, 3, 5]), st.uuids(), st.booleans(), _PARTITIONS),
    max_size=5,
)
_Topics = dict[str, tuple[int, uuid.UUID, bool, list[tuple[int, int, list[int], list[int], list[int]]]]]


def _response(topics: _Topics, brokers: dict[int, tuple[str, str | None]], cluster: str | None) -> bytes:
    topic_row = MetadataResponse.MetadataResponseTopic
    message = MetadataResponse(
        throttle_time_ms=1500,
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=node, host=host, port=9092, rack=rack)
            for node, (host, rack) in brokers.items()
        ],
        cluster_id=cluster,
        controller_id=7,
        topics=[
            topic_row(
                error_code=error,
                name=name,
                topic_id=topic_id,
                is_internal=internal,
                partitions=[
                    topic_row.MetadataResponsePartition(
                        error_code=0,
                        partition_index=number,
                        leader_id=leader,
                        leader_epoch=epoch,
                        replica_nodes=replicas,
                        isr_nodes=in_sync,
                        offline_replicas=offline,
                    )
                    for number, (leader, epoch, replicas, in_sync, offline) in enumerate(partitions)
                ],
            )
            for name, (error, topic_id, internal, partitions) in topics.items()
        ],
    )
    return bytes(message.encode(version=BY_HAND))


def _decoded(response: bytes) -> Metadata:
    return decode(memoryview(b"\0" + response))  # after the tagged fields of the header


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(
    topics=_TOPICS,
    brokers=st.dictionaries(_NUMBERS, st.tuples(st.text(max_size=20), st.none() | st.text(max_size=9)), max_size=4),
    cluster=st.none() | st.text(max_size=22),
)
def test_responses_are_decoded_as_kafka_python_decodes_them(
    topics: _Topics, brokers: dict[int, tuple[str, str | None]], cluster: str | None
) -> None:
    response = _response(topics, brokers, cluster)
    message: Any = MetadataResponse.decode(response, version=BY_HAND)
    assert _decoded(response) == from_message(message)


def test_a_response_that_is_cut_off_is_an_error_and_not_a_short_answer() -> None:
    partitions = [(1, 0, [1, 2], [1], []), (2, 3, [1, 2], [1, 2], [3])]
    response = _response({"orders": (0, uuid.uuid4(), False, partitions)}, {1: ("host", None)}, "id")
    for size in range(len(response)):
        with pytest.raises(Exception):  # noqa: B017  a connection turns any of them into a WireError
            _decoded(response[:size])


def test_a_length_without_an_end_is_an_error() -> None:
    with pytest.raises(ValueError, match="varint"):
        decode(memoryview(b"\xff" * 100))


def test_a_response_of_another_layout_is_an_error() -> None:
    response = bytearray(_response({"orders": (0, uuid.uuid4(), False, [(1, 0, [1], [1], [])])}, {}, "id"))
    replicas = response.index(b"\x02\0\0\0\x01")
    response[replicas] = 200
    with pytest.raises(ValueError, match="126 replicas"):
        _decoded(bytes(response))
