"""How host names become addresses."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from heliograph.model.backoff import Backoff
from heliograph.model.connecting import CANONICAL_BOOTSTRAP_SERVERS, USE_ALL_DNS_IPS, Connecting
from heliograph.model.flow import Cluster
from heliograph.wire.cluster import ClusterClient
from heliograph.wire.connection import Connection
from heliograph.wire.errors import Unreachable
from waiting import PATIENCE
from wire.scripted_broker import ScriptedBroker, scripted_cluster

IN_NO_HURRY = Backoff(PATIENCE, PATIENCE)


class Names:
    """A name server: addresses by host name, and the canonical name of each address."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.addresses: dict[str, list[tuple[str, int]]] = {}
        self.canonical: dict[str, str] = {}
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._getaddrinfo)
        monkeypatch.setattr(socket, "getnameinfo", lambda place, _flags: (self.canonical[place[0]], "0"))

    def _getaddrinfo(self, host: Any, port: Any, *more: Any, **options: Any) -> list[Any]:
        if not str(host).endswith(".example"):
            return self._real(host, port, *more, **options)
        if host not in self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        found = self.addresses[host]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port and own)) for ip, own in found]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


def _run(test: Callable[[list[ScriptedBroker]], Awaitable[None]], brokers: int = 1) -> None:
    async def main() -> None:
        async with scripted_cluster(brokers) as cluster, asyncio.timeout(PATIENCE):
            await test(cluster.brokers)

    asyncio.run(main())


def _client(host: str, **connecting: Any) -> ClusterClient:
    """The port of each address is the name server's."""
    return ClusterClient(Cluster("X", ((host, 1),), connecting=Connecting(**connecting)))


def test_all_addresses_of_a_name_are_tried(names: Names, closed_port: int) -> None:
    async def test(brokers: list[ScriptedBroker]) -> None:
        names.addresses["many.example"] = [("127.0.0.1", closed_port), ("127.0.0.1", brokers[0].port)]
        client = _client("many.example", setup_timeout=IN_NO_HURRY)
        await client.connect()
        client.close()

    _run(test)


def test_after_a_failure_the_next_address_goes_first(names: Names) -> None:
    """The first one accepts connections and answers nothing, as a proxy without a broker behind it."""

    async def test(brokers: list[ScriptedBroker]) -> None:
        brokers[0].is_hung = True
        names.addresses["many.example"] = [("127.0.0.1", broker.port) for broker in brokers]
        hurried = _client("many.example", setup_timeout=Backoff(0.05, 0.05)).cluster
        patient = _client("many.example", setup_timeout=IN_NO_HURRY).cluster
        for failures in (0, 2):
            with pytest.raises(Unreachable, match="did not answer"):
                await Connection.open("many.example", 1, hurried, failures)
            (await Connection.open("many.example", 1, patient, failures + 1)).close()

    _run(test, brokers=2)


def test_bootstrap_servers_are_replaced_by_their_canonical_names(names: Names) -> None:
    names.canonical["127.0.0.1"] = "broker.example"

    async def test(brokers: list[ScriptedBroker]) -> None:
        for name in ("alias.example", "broker.example"):
            names.addresses[name] = [("127.0.0.1", brokers[0].port)]
        for lookup, expected in ((CANONICAL_BOOTSTRAP_SERVERS, "broker.example"), (USE_ALL_DNS_IPS, "alias.example")):
            client = _client("alias.example", setup_timeout=IN_NO_HURRY, dns_lookup=lookup)
            await client.connect()
            assert client._bootstrap is not None
            assert client._bootstrap.address == f"{expected}:1"
            client.close()
            with pytest.raises(Unreachable, match=r"unknown\.example:1: Name or service not known"):
                await _client("unknown.example", dns_lookup=lookup).connect()

    _run(test)
