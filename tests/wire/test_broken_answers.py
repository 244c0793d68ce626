"""What a client makes of answers that are cut off, late, damaged, or errors."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kafka.protocol.admin import ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
)
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from heliograph.wire.append import PartitionBatch, append
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.consumer_groups import Committed, committed_offsets, list_groups
from heliograph.wire.errors import COORDINATOR_LOAD_IN_PROGRESS, BrokerError, Unreachable, WireError
from heliograph.wire.fetch import FetchPartition, FetchSession, Limits
from heliograph.wire.metadata import Topic
from heliograph.wire.offsets import LATEST, list_offsets, log_ends
from heliograph.wire.records import Record, encode
from logs import PATIENCE
from wire.scripted_broker import Answer, Close, RawBytes, ScriptedBroker, ScriptedCluster, Silence, scripted_cluster

_NOT_LEADER_OR_FOLLOWER, _NOT_COORDINATOR, _UNSUPPORTED_VERSION = 6, 16, 35


def _run(test: Callable[[ScriptedCluster, ClusterClient], Awaitable[None]], brokers: int = 1) -> None:
    async def main() -> None:
        async with scripted_cluster(brokers, {"t": [0]}) as cluster, asyncio.timeout(PATIENCE):
            client = ClusterClient(cluster.as_cluster(request_timeout=10 * PATIENCE))
            try:
                await client.connect()
                await test(cluster, client)
            finally:
                client.close()

    asyncio.run(main())


def _offsets(error: int, offset: int = -1) -> Any:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    part = topic.ListOffsetsPartitionResponse
    return ListOffsetsResponse(
        throttle_time_ms=0,
        topics=[
            topic(
                name="t",
                partitions=[part(partition_index=0, error_code=error, timestamp=-1, offset=offset, leader_epoch=0)],
            )
        ],
    )


async def _end(client: ClusterClient) -> int | WireError:
    topics = (await client.metadata(["t"])).topics
    return (await list_offsets(client, topics, [("t", 0)], LATEST, False))["t", 0]


# --- frames -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 6, 20])
def test_a_connection_that_is_cut_within_a_frame_fails_its_requests(length: int) -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        (broker,) = cluster.brokers
        broker.script(
            ListOffsetsRequest, Answer(_offsets(0, 7), cut_after=length, then_close=True), Answer(_offsets(0, 7))
        )
        connection = await client.connection(0)
        error = await _end(client)
        assert isinstance(error, Unreachable)
        assert "closed the connection" in str(error)
        assert connection.closed
        assert await _end(client) == 7, "the next request goes over a new connection"

    _run(test)


@pytest.mark.parametrize("step", [Answer(_offsets(0, 7), cut_after=20), Silence()], ids=["half a frame", "nothing"])
def test_a_broker_that_stops_answering_is_given_up_after_the_request_timeout(step: Any) -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        cluster.brokers[0].script(ListOffsetsRequest, step)
        connection = await client.connection(0)
        connection.timeout = 0.1
        request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[])
        waiting = [asyncio.ensure_future(connection.request(request)) for _ in range(2)]
        for request_task in waiting:
            with pytest.raises(Unreachable, match=r"no answer within 0\.1 s"):
                await request_task
        assert connection.closed
        with pytest.raises(Unreachable, match="connection closed"):
            await connection.request(request)

    _run(test)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">i", 1 << 30 | 1), "not a Kafka broker"),
        (struct.pack(">i", -5), "not a Kafka broker"),
        (struct.pack(">i", 3) + b"abc", "not a Kafka broker"),
        (struct.pack(">ii", 4, 1 << 20), "out of order"),
    ],
    ids=["too long", "negative", "too short", "answer to no request"],
)
def test_bytes_that_are_not_a_frame_close_the_connection(data: bytes, reason: str) -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        cluster.brokers[0].script(ListOffsetsRequest, RawBytes(data))
        connection = await client.connection(0)
        error = await _end(client)
        assert isinstance(error, Unreachable)
        assert reason in str(error)
        assert connection.closed

    _run(test)


def test_an_answer_with_the_correlation_id_of_another_request_closes_the_connection() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        cluster.brokers[0].script(ListOffsetsRequest, Answer(_offsets(0, 7), correlation_shift=1))
        error = await _end(client)
        assert isinstance(error, Unreachable)
        assert "out of order" in str(error)

    _run(test)


def test_an_answer_that_cannot_be_decoded_fails_its_request_only() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        def without_body(request: Any) -> bytes:
            return struct.pack(">ii", 4 + 1, request.header.correlation_id) + b"\0"

        (broker,) = cluster.brokers
        broker.script(ListOffsetsRequest, RawBytes(without_body), Answer(_offsets(0, 7)))
        connection = await client.connection(0)
        error = await _end(client)
        assert "cannot be decoded" in str(error)
        assert await _end(client) == 7
        assert not connection.closed

    _run(test)


# --- versions -----------------------------------------------------------------------------------------------------


def _unsupported() -> Any:
    return ApiVersionsResponse(error_code=_UNSUPPORTED_VERSION, api_keys=[], throttle_time_ms=0)


def test_api_versions_falls_back_to_version_0() -> None:
    async def main() -> None:
        async with scripted_cluster() as cluster, asyncio.timeout(PATIENCE):
            (broker,) = cluster.brokers
            steps = Answer(_unsupported(), version=0), Answer(broker.api_versions)
            broker.script(ApiVersionsRequest, *steps)
            client = ClusterClient(cluster.as_cluster())
            await client.connect()
            client.close()
            assert [request.API_VERSION for request in broker.received(ApiVersionsRequest)] == [3, 0]

    asyncio.run(main())


def test_a_request_that_a_broker_has_no_usable_version_of_is_not_sent() -> None:
    async def main() -> None:
        async with scripted_cluster() as cluster, asyncio.timeout(PATIENCE):
            (broker,) = cluster.brokers
            broker.versions[MetadataRequest.API_KEY] = (0, 3)
            client = ClusterClient(cluster.as_cluster())
            with pytest.raises(WireError, match=r"no usable version of request type 3 \(0\.\.3\)"):
                await client.connect()
            client.close()
            assert not broker.received(MetadataRequest)

    asyncio.run(main())


def test_log_ends_leave_out_brokers_that_do_not_support_the_request() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        topics = (await client.metadata(["t"])).topics
        assert await log_ends(client, topics, [("t", 0)]) == {}

    async def main() -> None:
        async with scripted_cluster(1, {"t": [0]}) as cluster, asyncio.timeout(PATIENCE):
            cluster.brokers[0].versions[23] = (0, 1)  # OffsetForLeaderEpoch
            client = ClusterClient(cluster.as_cluster())
            await test(cluster, client)
            client.close()

    asyncio.run(main())


# --- error codes --------------------------------------------------------------------------------------------------


def test_an_error_of_one_partition_is_returned_for_that_partition() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        cluster.brokers[0].script(ListOffsetsRequest, Answer(_offsets(_NOT_LEADER_OR_FOLLOWER)), Answer(_offsets(0, 7)))
        error = await _end(client)
        assert isinstance(error, BrokerError)
        assert (error.name, error.transient) == ("NOT_LEADER_OR_FOLLOWER", True)
        assert await _end(client) == 7

    _run(test)


def test_a_leader_that_is_silent_does_not_hold_up_the_partitions_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.wire.offsets._ANSWER_TIMEOUT", 2.0)

    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        cluster.leaders = {"t": [0], "u": [1]}
        cluster.brokers[0].script(ListOffsetsRequest, Answer(_offsets(0, 7)))
        cluster.brokers[1].script(ListOffsetsRequest, Silence())
        topics = (await client.metadata(["t", "u"])).topics
        for broker in (0, 1):
            await client.connection(broker)  # so that one request, and not a handshake, has two seconds
        ends = await list_offsets(client, topics, [("t", 0), ("u", 0)], LATEST, False)
        assert ends["t", 0] == 7
        assert "broker 1 does not answer" in str(ends["u", 0])

    _run(test, brokers=2)


def _coordinator(node: int) -> Answer:
    row = FindCoordinatorResponse.Coordinator
    found = row(key="g", node_id=node, host="127.0.0.1", port=1, error_code=0, error_message=None)
    return Answer(FindCoordinatorResponse(throttle_time_ms=0, coordinators=[found]))


def _committed(error: int, offset: int | None = None) -> Answer:
    group = OffsetFetchResponse.OffsetFetchResponseGroup
    topic = group.OffsetFetchResponseTopics
    row = topic.OffsetFetchResponsePartitions
    topics = []
    if offset is not None:
        values = {"committed_offset": offset, "committed_leader_epoch": -1, "metadata": "", "error_code": 0}
        topics = [topic(name="t", partitions=[row(partition_index=0, **values)])]
    return Answer(
        OffsetFetchResponse(throttle_time_ms=0, groups=[group(group_id="g", topics=topics, error_code=error)])
    )


def test_a_coordinator_that_has_moved_is_found_again() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        first, second = cluster.brokers
        for broker in cluster.brokers:
            broker.script(FindCoordinatorRequest, _coordinator(0), _coordinator(1))
        first.script(OffsetFetchRequest, _committed(_NOT_COORDINATOR))
        second.script(OffsetFetchRequest, _committed(0, 5))
        assert await committed_offsets(client, ["g"]) == {"g": {("t", 0): Committed(5)}}
        assert len(first.received(OffsetFetchRequest)) == 1

    _run(test, brokers=2)


def _listed(error: int, *groups: str) -> Answer:
    listed = ListGroupsResponse.ListedGroup
    rows = [listed(group_id=name, protocol_type="", group_state="Empty", group_type="classic") for name in groups]
    return Answer(ListGroupsResponse(throttle_time_ms=0, error_code=error, groups=rows))


def test_groups_that_a_broker_is_loading_are_asked_for_again() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        (broker,) = cluster.brokers
        broker.script(ListGroupsRequest, _listed(COORDINATOR_LOAD_IN_PROGRESS), _listed(0, "g"))
        assert list(await list_groups(client)) == ["g"]

    _run(test)


def test_a_coordinator_that_disconnects_is_the_error_of_its_groups() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        (broker,) = cluster.brokers
        broker.script(FindCoordinatorRequest, _coordinator(0))
        broker.script(OffsetFetchRequest, Close())
        assert isinstance((await committed_offsets(client, ["g"]))["g"], Unreachable)

    _run(test)


# --- throttling ---------------------------------------------------------------------------------------------------


def _produced(throttle: int) -> Any:
    topic = ProduceResponse.TopicProduceResponse
    part = topic.PartitionProduceResponse(
        index=0, error_code=0, base_offset=3, log_append_time_ms=-1, log_start_offset=0, record_errors=[]
    )
    return ProduceResponse(responses=[topic(name="t", partition_responses=[part])], throttle_time_ms=throttle)


def test_throttle_times_are_reported() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        broker: ScriptedBroker = cluster.brokers[0]
        broker.script(ProduceRequest, Answer(_produced(1500)))
        broker.script(
            FetchRequest, Answer(FetchResponse(throttle_time_ms=250, error_code=0, session_id=0, responses=[]))
        )
        connection: Connection = await client.connection(0)
        batch = encode([Record(0, 1, b"k", b"v")])
        (appended,) = await append(connection, [PartitionBatch("t", 0, [batch])], 10.0)
        assert (appended.base_offset, appended.throttled) == (3, 1.5)
        topic: Topic = (await client.metadata(["t"])).topics["t"]
        session = FetchSession(connection)
        assert await session.fetch([FetchPartition("t", topic.id, 0, 0, 1 << 20)], [], Limits(1 << 20)) == []
        assert session.throttled == 0.25

    _run(test)
