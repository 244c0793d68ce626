"""How a client connects, according to its settings: sockets, timeouts, backoffs, idle connections, old metadata."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import uvloop
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from fake_clock import FakeClock
from heliograph.model.backoff import Backoff
from heliograph.model.connecting import Connecting
from heliograph.model.secret import Secret
from heliograph.model.security import PLAIN, PasswordLogin, Sasl, Security
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.errors import Unreachable
from waiting import PATIENCE
from wire.scripted_broker import Answer, Close, ScriptedBroker, ScriptedCluster, Silence, scripted_cluster

Test = Callable[[ScriptedCluster, ClusterClient], Awaitable[None]]
AT_ONCE = Backoff(0.0, 0.0)


@pytest.fixture(autouse=True)
def _no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.model.backoff.random", SimpleNamespace(uniform=lambda _low, _high: 1.0))


def _run(test: Test, connecting: Connecting, brokers: int = 1, run: Callable[[Any], Any] = asyncio.run) -> None:
    async def main() -> None:
        async with scripted_cluster(brokers) as cluster, asyncio.timeout(PATIENCE):
            client = ClusterClient(replace(cluster.as_cluster(), connecting=connecting))
            try:
                await test(cluster, client)
            finally:
                client.close()

    run(main())


def _is_open(connection: Connection) -> bool:
    return not connection.closed


# --- sockets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_the_socket_has_the_buffers_that_are_set(run: Callable[[Any], Any]) -> None:
    sizes = {socket.SO_SNDBUF: 30_000, socket.SO_RCVBUF: 40_000}

    async def test(_cluster: ScriptedCluster, client: ClusterClient) -> None:
        await client.connect()
        connection = await client.connection(0)
        assert connection._transport is not None
        used = connection._transport.get_extra_info("socket")
        with socket.socket() as same:  # the system doubles them
            for option, size in sizes.items():
                same.setsockopt(socket.SOL_SOCKET, option, size)
                assert used.getsockopt(socket.SOL_SOCKET, option) == same.getsockopt(socket.SOL_SOCKET, option)
        assert used.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)

    _run(test, Connecting(send_buffer=30_000, receive_buffer=40_000), run=run)


def test_without_sizes_the_system_adapts_the_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed: list[int] = []

    class Recording(socket.socket):
        def setsockopt(self, level: int, option: int, *value: Any) -> None:
            if level == socket.SOL_SOCKET and option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                fixed.append(option)
            super().setsockopt(level, option, *value)

    monkeypatch.setattr(socket, "socket", Recording)

    async def test(_cluster: ScriptedCluster, client: ClusterClient) -> None:
        await client.connect()

    _run(test, Connecting())
    assert fixed == []
    _run(test, Connecting(receive_buffer=40_000))
    assert fixed == [socket.SO_RCVBUF]


# --- timeouts and backoffs --------------------------------------------------------------------------------------------


def test_a_connection_must_be_open_within_the_setup_timeout() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        cluster.brokers[0].script(ApiVersionsRequest, Silence())
        with pytest.raises(Unreachable, match=r"did not answer within 0\.05 s"):
            await client.connect()
        login = Security(sasl=Sasl(PLAIN, PasswordLogin("me", Secret("x"))))
        with pytest.raises(Unreachable, match=r"did not answer within 0\.1 s"):
            await ClusterClient(replace(client.cluster, security=login)).connect()

    _run(test, Connecting(setup_timeout=Backoff(0.05, 0.05)))


def test_the_setup_timeout_grows_with_each_failure_in_a_row() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        (broker,) = cluster.brokers

        async def fail(seconds: str) -> None:
            with pytest.raises(Unreachable, match=f"did not answer within {seconds} s"):
                await client.connect()

        broker.script(ApiVersionsRequest, Silence())
        for seconds in ("0.05", "0.1", "0.15", "0.15"):
            await fail(seconds)
        broker.script(ApiVersionsRequest, Answer(broker.api_versions))
        await _succeed(client.connect)
        client.close()
        broker.script(ApiVersionsRequest, Silence())
        await fail("0.05")

    async def _succeed(connect: Callable[[], Awaitable[None]]) -> None:
        """However slow this machine is."""
        while True:
            try:
                return await connect()
            except Unreachable:
                continue

    _run(test, Connecting(setup_timeout=Backoff(0.05, 0.15), reconnect=AT_ONCE))


def test_no_further_attempt_is_made_before_the_reconnect_backoff_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch, "heliograph.wire.reconnecting")

    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        broker = cluster.brokers[1]
        await client.connect()
        broker.script(ApiVersionsRequest, Close())

        async def fail() -> str:
            with pytest.raises(Unreachable) as raised:
                await client.connection(1)
            return str(raised.value)

        for attempts, backoff in enumerate((0.1, 0.2, 0.3, 0.3), start=1):
            reason = await fail()
            assert len(broker.received(ApiVersionsRequest)) == attempts
            clock.now += backoff - 0.01
            assert await fail() == reason
            assert len(broker.received(ApiVersionsRequest)) == attempts
            clock.now += 0.02
        broker.script(ApiVersionsRequest, Answer(broker.api_versions))
        (await client.connection(1)).close()
        broker.script(ApiVersionsRequest, Close())
        await fail()
        clock.now += 0.11
        broker.script(ApiVersionsRequest, Answer(broker.api_versions))
        await client.connection(1)  # it has begun with the first backoff again

    _run(test, Connecting(reconnect=Backoff(0.1, 0.3)), brokers=2)


def test_a_bootstrap_server_is_tried_again_when_its_backoff_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch, "heliograph.wire.reconnecting")
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 3))
        clock.now += seconds

    monkeypatch.setattr("heliograph.wire.reconnecting.asyncio", SimpleNamespace(sleep=sleep))

    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        cluster.brokers[0].script(ApiVersionsRequest, Close())
        for _ in range(4):
            with pytest.raises(Unreachable):
                await client.connect()

    _run(test, Connecting(reconnect=Backoff(1.0, 3.0)))
    assert slept == [0.0, 1.0, 2.0, 3.0]


def test_a_bootstrap_server_that_has_not_failed_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heliograph.wire.cluster._CONNECT_HEAD_START", PATIENCE)

    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        first, second = cluster.brokers
        first.script(ApiVersionsRequest, Close())
        second.script(MetadataRequest, Close(), Close(), Answer(cluster.metadata))
        for _ in range(2):  # after the second, it would be the first server's turn
            with pytest.raises(Unreachable):
                await client.connect()
        await client.connect()
        assert len(second.received(MetadataRequest)) == 3
        assert len(first.received(ApiVersionsRequest)) == 1

    _run(test, Connecting(reconnect=Backoff(PATIENCE, PATIENCE)), brokers=2)


# --- connections that are not used, and metadata that is old ----------------------------------------------------------


def test_a_connection_without_requests_is_closed_and_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch, "heliograph.wire.connection")

    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        await client.connect()
        connection = await client.connection(0)
        clock.now += 9.0
        await connection.request(MetadataRequest(topics=[]), newest=12)
        clock.now += 9.0
        connection._check_deadlines()
        assert _is_open(connection), "it was used in between"
        clock.now += 2.0
        connection._check_deadlines()
        assert not _is_open(connection)
        assert await client.connection(0) is not connection
        assert not (await client.connection(0)).closed

    _run(test, Connecting(max_idle=10.0))


def test_a_connection_that_waits_for_a_response_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch, "heliograph.wire.connection")

    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        await client.connect()
        connection = await client.connection(0)
        cluster.brokers[0].script(MetadataRequest, Silence())
        waiting = asyncio.ensure_future(connection.request(MetadataRequest(topics=[]), newest=12))
        await asyncio.sleep(0)
        clock.now += 20.0  # less than the request timeout
        connection._check_deadlines()
        assert not connection.closed
        waiting.cancel()

    _run(test, Connecting(max_idle=10.0))


def test_below_zero_an_idle_connection_is_never_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch, "heliograph.wire.connection")

    async def test(_cluster: ScriptedCluster, client: ClusterClient) -> None:
        await client.connect()
        connection = await client.connection(0)
        clock.now += 1e9
        connection._check_deadlines()
        assert not connection.closed

    _run(test, Connecting(max_idle=-0.001))


def test_a_broker_with_a_new_address_is_found_when_metadata_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch, "heliograph.wire.cluster")

    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        await client.connect()
        old, moved = cluster.brokers[1], ScriptedBroker(1, cluster)
        await moved.start()
        try:
            await old.stop()
            cluster.brokers[1] = moved
            clock.now += 99.0
            with pytest.raises(Unreachable):
                await client.connection(1)
            clock.now += 2.0
            assert (await client.connection(1)).address.endswith(f":{moved.port}")
            asked = sum(len(broker.received(MetadataRequest)) for broker in cluster.brokers)
            await client.dedicated_connection(0)
            assert sum(len(broker.received(MetadataRequest)) for broker in cluster.brokers) == asked
            clock.now += 101.0
            await client.dedicated_connection(0)
            assert sum(len(broker.received(MetadataRequest)) for broker in cluster.brokers) == asked + 1
        finally:
            await moved.stop()
            cluster.brokers[1] = old

    _run(test, Connecting(metadata_max_age=100.0), brokers=2)


def test_brokers_are_reached_even_if_old_metadata_cannot_be_refreshed() -> None:
    async def test(cluster: ScriptedCluster, client: ClusterClient) -> None:
        await client.connect()
        for broker in cluster.brokers:
            broker.script(MetadataRequest, Close())
        assert not (await client.connection(1)).closed

    _run(test, Connecting(metadata_max_age=0.0, reconnect=AT_ONCE), brokers=2)
