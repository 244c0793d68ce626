"""The REST application on a real socket, with connectors of two flows and without brokers and Spark."""

import asyncio
import base64
import http.client
import json
import queue
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import urlsplit

from heliograph.model.flow import Cluster, Flow
from heliograph.model.rest_settings import Listener, RestSettings
from heliograph.model.secret import Secret
from heliograph.rest.app import make_app
from heliograph.rest.gate import App
from heliograph.rest.health import Health
from heliograph.rest.server import RestServer, open_listener
from heliograph.service.connector_states import ConnectorStates
from heliograph.service.connectors import Connectors, Worker
from heliograph.service.events import Events
from heliograph.service.supervisor import Supervisor
from waiting import PATIENCE

SECRET = "a-password-of-a-cluster"
LOOPBACK = (Listener("127.0.0.1", 0),)


class FakeSupervisor:
    """Runs nothing."""

    def __init__(self) -> None:
        self.flows: list[Flow] = []
        self.deployed: dict[str, Any] = {}
        self.ready = asyncio.Event()
        self.ready.set()
        self.spark_is_up = True

    def apply(self, flows: list[Flow], elsewhere: Sequence[Flow] | None = None) -> None:
        self.flows = flows

    def copying(self) -> tuple[Flow, ...]:
        return ()

    copying_anywhere = copying


def config(source: str, target: str, **more: str) -> dict[str, str]:
    """Of a source connector."""
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": source,
        "target.cluster.alias": target,
        "source.cluster.bootstrap.servers": "127.0.0.1:9",
        "target.cluster.bootstrap.servers": "127.0.0.1:9",
        "topics": "t",
        "my.password": SECRET,
    } | {name.replace("_", "."): value for name, value in more.items()}


async def application(settings: RestSettings) -> App:
    """Connector `ab` is of the flow A->B, `cd` of C->D."""
    supervisor = FakeSupervisor()
    connectors = Connectors(cast(Supervisor, supervisor), Worker("127.0.0.1:8083"), allowed=settings.allowed)
    for name in ("ab", "cd"):
        await connectors.create(name, config(*name.upper()))
    cluster = Cluster("B", (("127.0.0.1", 9),))
    health = Health(supervisor, lambda: ())
    return make_app(connectors, ConnectorStates(connectors), Events(), cluster, health, settings)


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    headers: dict[str, str]

    @property
    def body(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Client:
    """`url` is the first address of the server."""

    url: str
    authorization: str = ""
    tls: ssl.SSLContext | None = None

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Headers in Python's spelling: `content_type`."""
        connection = self.connection()
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            if self.authorization:
                sent["Authorization"] = self.authorization
            if body is not None:
                sent.setdefault("content-type", "application/json")
            data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            given = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, response.read().decode(), given)
        finally:
            connection.close()

    def connection(self) -> http.client.HTTPConnection:
        address = urlsplit(self.url)
        assert address.hostname is not None
        if self.tls is not None:
            return http.client.HTTPSConnection(address.hostname, address.port, timeout=PATIENCE, context=self.tls)
        return http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE)

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def as_user(self, name: str, password: str) -> "Client":
        return replace(self, authorization=f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}")

    def with_token(self, token: Secret) -> "Client":
        return replace(self, authorization=f"Bearer {token.reveal()}")


@contextmanager
def serving(settings: RestSettings) -> Iterator[Client]:
    """Serves on a loop of its own, in a thread. Listens on loopback if the settings have no listener."""
    settings = settings if settings.listeners else replace(settings, listeners=LOOPBACK)
    urls: queue.Queue[str] = queue.Queue()
    loop = asyncio.new_event_loop()
    end = asyncio.Event()

    async def main() -> None:
        listeners = [open_listener(listener) for listener in settings.listeners]
        server = RestServer(await application(settings), listeners)
        server.start()
        urls.put(server.urls[0])
        await end.wait()
        await server.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    try:
        yield Client(urls.get(timeout=PATIENCE))
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(PATIENCE)
        loop.close()
