"""Connections to brokers, and to servers that are not brokers."""

import asyncio
from types import SimpleNamespace

import pytest

from heliograph.model.flow import Cluster
from heliograph.model.secret import Secret
from heliograph.model.security import PLAIN, PasswordLogin, Sasl
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.errors import Unreachable
from heliograph.wire.login import Login
from logs import Pair


def _connect(port: int, timeout: float = 5.0) -> None:
    async def main() -> None:
        client = ClusterClient(Cluster("X", (("127.0.0.1", port),), request_timeout=timeout))
        try:
            await client.connect()
        finally:
            client.close()

    asyncio.run(main())


def test_a_refused_connection_is_reported_with_the_address(closed_port: int) -> None:
    with pytest.raises(Unreachable, match=f"127.0.0.1:{closed_port}"):
        _connect(closed_port)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "not a Kafka broker"), (b"", "did not answer within"), (None, "closed")],
)
def test_a_server_that_is_not_a_broker_is_reported_as_such(answer: bytes | None, expected: str) -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            if answer is None:
                writer.close()
                return
            writer.write(answer)
            await writer.drain()
            await asyncio.sleep(3)

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = ClusterClient(Cluster("X", (("127.0.0.1", port),), request_timeout=0.5 if answer == b"" else 30.0))
        with pytest.raises(Unreachable, match=expected):
            await client.connect()
        server.close()

    asyncio.run(main())


def test_many_requests_on_one_connection_get_their_own_answers(pair: Pair, topic: str) -> None:
    names = [f"{topic}-{number}" for number in range(20)]
    for name in names[:3]:
        pair.a.create(name)

    async def main() -> None:
        client = ClusterClient(pair.a.cluster)
        answers = await asyncio.gather(*(client.metadata([name]) for name in names))
        assert [list(answer.topics) for answer in answers] == [[name] for name in names]
        assert [bool(answer.topics[name].error) for answer, name in zip(answers, names, strict=True)] == (
            [False] * 3 + [True] * 17
        )
        client.close()

    asyncio.run(main())


def test_only_a_broker_that_is_silent_for_the_whole_timeout_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that throttles answers each of several requests late, one after the other."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("heliograph.wire.connection.time", SimpleNamespace(monotonic=lambda: clock.now))

    async def main() -> None:
        may_answer = asyncio.Semaphore(0)

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                size = int.from_bytes(await reader.readexactly(4))
                frame = await reader.readexactly(size)
                await may_answer.acquire()
                correlation = frame[4:8]  # behind API key and version
                writer.write((4).to_bytes(4) + correlation)
                await writer.drain()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connection = Connection(f"127.0.0.1:{port}", Cluster("X", (), "me"))
        await connection._connect("127.0.0.1", port, None)
        answers = [connection.send_parts(3, 0, [b""], bytes) for _ in range(5)]
        for late in answers:
            clock.now += 10.0
            connection._check_deadlines()
            assert not connection.closed
            may_answer.release()
            assert await late == b""
        clock.now += 100.0  # no request is in flight
        silent = connection.send_parts(3, 0, [b""], bytes)
        clock.now += 29.0
        connection._check_deadlines()
        assert not connection.closed
        clock.now += 2.0
        connection._check_deadlines()
        with pytest.raises(Unreachable, match="no answer within 30 s"):
            await silent
        server.close()

    asyncio.run(main())


def test_closing_ends_all_requests_even_if_one_that_waited_for_a_login_was_cancelled() -> None:
    async def main() -> None:
        server = await asyncio.start_server(lambda _reader, _writer: asyncio.sleep(60), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connection = Connection(f"127.0.0.1:{port}", Cluster("X", (), "me"))
        await connection._connect("127.0.0.1", port, None)
        sent = connection.send_parts(3, 0, [b""], bytes)
        login = Login(Sasl(PLAIN, PasswordLogin("me", Secret("x"))), "host", connection._send_at_once, connection.close)
        connection._login = login
        login._is_under_way = True
        waiting = [connection.send_parts(3, 0, [b""], bytes) for _ in range(2)]
        waiting[0].cancel()
        connection.close()
        for answer in (sent, waiting[1]):
            with pytest.raises(Unreachable):
                await answer
        server.close()

    asyncio.run(main())
