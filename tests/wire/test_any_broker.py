"""Requests that any broker can answer: a broker that hangs or is gone does not hold them up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
)

from heliograph.wire.acl_requests import READ, may_do
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.coordinators import GROUP, coordinators
from heliograph.wire.errors import Unreachable
from heliograph.wire.topic_requests import describe_configs
from logs import PATIENCE
from waiting import async_until
from wire.scripted_broker import Answer, Close, ScriptedCluster, Silence, scripted_cluster


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test needs a broker to be silent for long; what is silent stays silent."""
    monkeypatch.setattr("heliograph.wire.cluster._ANSWER_HEAD_START", 0.05)
    monkeypatch.setattr("heliograph.wire.cluster._HEAVY_HEAD_START", 0.05)
    monkeypatch.setattr("heliograph.wire.cluster._CONNECT_HEAD_START", 0.05)


def _run(test: Callable[[ScriptedCluster, ClusterClient], Awaitable[None]], brokers: int = 2) -> None:
    async def main() -> None:
        # Far longer than the test may take: whoever waits for a silent broker does not come back in time.
        async with scripted_cluster(brokers, {"t": [0]}) as cluster, asyncio.timeout(PATIENCE):
            client = ClusterClient(cluster.as_cluster(request_timeout=10 * PATIENCE))
            try:
                await test(cluster, client)
            finally:
                client.close()

    asyncio.run(main())


def _coordinator_is(node: int) -> Answer:
    row = FindCoordinatorResponse.Coordinator

    def answer(request: Any) -> Any:
        return FindCoordinatorResponse(
            throttle_time_ms=0,
            coordinators=[
                row(key=key, node_id=node, host="127.0.0.1", port=1, error_code=0, error_message=None)
                for key in request.coordinator_keys
            ],
        )

    return Answer(answer)


_QUESTIONS: list[tuple[Any, Answer, Callable[[ClusterClient], Awaitable[Any]], Any]] = [
    (
        FindCoordinatorRequest,
        _coordinator_is(1),
        lambda client: coordinators(client, ["g"], GROUP),
        {"g": 1},
    ),
    (
        DescribeConfigsRequest,
        Answer(DescribeConfigsResponse(throttle_time_ms=0, results=[])),
        lambda client: describe_configs(client, ["t"]),
        {},
    ),
]


@pytest.mark.parametrize("failure", [Silence(), Close()], ids=["silent", "closing"])
@pytest.mark.parametrize(("request_class", "answer", "ask", "expected"), _QUESTIONS)
def test_the_next_broker_is_asked_when_the_first_fails(
    request_class: Any, answer: Answer, ask: Callable[[ClusterClient], Awaitable[Any]], expected: Any, failure: Any
) -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        first, second = cluster.brokers
        first.script(request_class, failure)
        second.script(request_class, answer)
        await client.connect()
        assert await ask(client) == expected
        asked = len(first.received(request_class))
        assert await ask(client) == expected
        assert len(first.received(request_class)) == asked, "the broker that answered last is asked first"

    _run(test)


def test_a_broker_that_hangs_after_the_start_does_not_stall_metadata() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        for broker in cluster.brokers:
            broker.script(FindCoordinatorRequest, _coordinator_is(1))
        await client.connect()
        await client.connection(0)
        cluster.brokers[0].is_hung = True
        assert set((await client.metadata(["t"])).topics) == {"t"}
        assert await coordinators(client, ["g"], GROUP) == {"g": 1}
        assert set(await may_do(client, READ, ["t"])) == {"t"}

    _run(test)


def test_a_bootstrap_server_that_hangs_does_not_stall_the_start() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        first, second = cluster.brokers
        first.is_hung = True
        asked = asyncio.Event()
        second.script(ApiVersionsRequest, Answer(second.api_versions, when=asked))
        connecting = asyncio.create_task(client.connect())
        await async_until(lambda: first.received(ApiVersionsRequest))
        asked.set()
        await connecting
        assert len(first.received(ApiVersionsRequest)) == 1

    _run(test)


def test_another_bootstrap_server_is_asked_after_one_that_answers_no_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.wire.cluster._CONNECT_HEAD_START", PATIENCE)

    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        cluster.brokers[0].script(MetadataRequest, Close())
        with pytest.raises(Unreachable):
            await client.connect()
        await client.connect()
        assert cluster.brokers[1].received(MetadataRequest)

    _run(test)


def test_the_errors_of_all_brokers_are_reported() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        await client.connect()
        for broker in cluster.brokers:
            broker.script(FindCoordinatorRequest, Close())
        with pytest.raises(Unreachable) as raised:
            await coordinators(client, ["g"], GROUP)
        for broker in cluster.brokers:
            assert f"127.0.0.1:{broker.port}" in str(raised.value)

    _run(test)


def test_an_answer_that_comes_late_still_counts() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        first, second = cluster.brokers
        late = asyncio.Event()
        first.script(FindCoordinatorRequest, Answer(_coordinator_is(0).response, when=late))
        second.script(FindCoordinatorRequest, Silence())
        await client.connect()
        asking = asyncio.create_task(coordinators(client, ["g"], GROUP))
        while not second.received(FindCoordinatorRequest):
            await asyncio.sleep(0.01)
        late.set()
        assert await asking == {"g": 0}

    _run(test)
