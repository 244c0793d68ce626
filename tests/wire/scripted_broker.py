"""Brokers that answer from a script: for error codes, delays and broken connections that real brokers do not produce on
demand.

ApiVersions and Metadata have sensible answers by default; every other request needs a script.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol import admin, consumer, metadata, producer
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse

from heliograph.model.flow import Cluster

Request = Any  # a decoded request message of kafka-python
Response = Any


def _is_request(message: Any) -> bool:
    is_message = isinstance(message, type) and issubclass(message, ApiMessage) and message is not ApiMessage
    return is_message and bool(message.is_request())


_MESSAGES: list[Any] = [value for module in (admin, consumer, metadata, producer) for value in vars(module).values()]
_REQUESTS: dict[int, Any] = {message.API_KEY: message for message in _MESSAGES if _is_request(message)}


@dataclass(frozen=True, slots=True)
class Answer:
    """Sends the response, or only the first `cut_after` bytes of its frame; waits for `when` before it does."""

    response: Response | Callable[[Request], Response]
    when: asyncio.Event | None = None
    cut_after: int | None = None
    correlation_shift: int = 0
    then_close: bool = False
    version: int | None = None  # not that of the request


@dataclass(frozen=True, slots=True)
class RawBytes:
    """Sends these bytes, whatever was asked."""

    data: bytes | Callable[[Request], bytes]


class Silence:
    """Sends nothing and leaves the connection open."""


class Close:
    """Closes the connection."""


Step = Answer | RawBytes | Silence | Close


@dataclass(slots=True)
class ScriptedBroker:
    """`requests` are those received so far, ApiVersions and Metadata included."""

    node: int
    cluster: "ScriptedCluster"
    port: int = 0
    is_hung: bool = False  # accepts connections and answers nothing
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)  # by API key, where not kafka-python's own
    requests: list[Request] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)  # of the script itself
    _scripts: dict[int, list[Step]] = field(default_factory=dict)
    _handlers: set[asyncio.Task[None]] = field(default_factory=set)
    _server: asyncio.Server | None = None

    def script(self, request_class: Any, *steps: Step) -> None:
        """One step for each request of this type; the last one also for all later requests."""
        self._scripts[request_class.API_KEY] = list(steps)

    def received(self, request_class: Any) -> list[Request]:
        return [request for request in self.requests if request.API_KEY == request_class.API_KEY]

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers.add(handler)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                await self._handle(await reader.readexactly(size), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client, or the script, has closed the connection
        except asyncio.CancelledError:
            pass  # by stop(); asyncio's streams would log a handler that ends as cancelled
        except Exception as error:
            self.errors.append(error)
        finally:
            self._handlers.discard(handler)
            writer.transport.abort()

    async def _handle(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        api_key, version, correlation = struct.unpack_from(">hhi", frame)
        request = _REQUESTS[api_key].decode(frame, version=version, header=True)
        request.API_VERSION = version
        self.requests.append(request)
        step = Silence() if self.is_hung else self._next_step(request)
        if isinstance(step, Close):
            writer.transport.abort()
        elif isinstance(step, RawBytes):
            writer.write(step.data(request) if callable(step.data) else step.data)
        elif isinstance(step, Answer):
            if step.when is not None:
                await step.when.wait()
            response = step.response(request) if callable(step.response) else step.response
            response._header = None  # of an earlier request, whose version it would check
            response.API_VERSION = version if step.version is None else step.version
            response.with_header(correlation_id=correlation + step.correlation_shift)
            data = bytes(response.encode(framed=True, header=True))
            writer.write(data[: step.cut_after])
            if step.then_close:
                await writer.drain()
                writer.close()

    def _next_step(self, request: Request) -> Step:
        steps = self._scripts.get(request.API_KEY)
        if steps:
            return steps.pop(0) if len(steps) > 1 else steps[0]
        if request.API_KEY == ApiVersionsRequest.API_KEY:
            return Answer(self.api_versions)
        assert request.API_KEY == MetadataRequest.API_KEY, f"broker {self.node} has no script for {request}"
        return Answer(self.cluster.metadata)

    def api_versions(self, _request: Request) -> Response:
        known = {key: (0, request.max_version) for key, request in _REQUESTS.items()} | self.versions
        row = ApiVersionsResponse.ApiVersion
        return ApiVersionsResponse(
            error_code=0,
            api_keys=[row(api_key=key, min_version=low, max_version=high) for key, (low, high) in known.items()],
            throttle_time_ms=0,
        )


@dataclass(slots=True)
class ScriptedCluster:
    """`leaders` has the broker of each partition, by topic."""

    leaders: Mapping[str, Sequence[int]] = field(default_factory=dict)
    brokers: list[ScriptedBroker] = field(default_factory=list)

    def as_cluster(self, request_timeout: float = 30.0) -> Cluster:
        addresses = tuple(("127.0.0.1", broker.port) for broker in self.brokers)
        return Cluster("X", addresses, request_timeout=request_timeout)

    def metadata(self, request: Request) -> Response:
        wanted = self.leaders if request.topics is None else [topic.name for topic in request.topics]
        broker_row, topic_row = MetadataResponse.MetadataResponseBroker, MetadataResponse.MetadataResponseTopic
        return MetadataResponse(
            throttle_time_ms=0,
            brokers=[
                broker_row(node_id=broker.node, host="127.0.0.1", port=broker.port, rack=None)
                for broker in self.brokers
            ],
            cluster_id="scripted",
            controller_id=self.brokers[0].node,
            topics=[
                topic_row(
                    error_code=0 if name in self.leaders else 3,
                    name=name,
                    is_internal=False,
                    partitions=[
                        topic_row.MetadataResponsePartition(
                            error_code=0,
                            partition_index=partition,
                            leader_id=leader,
                            leader_epoch=0,
                            replica_nodes=[leader],
                            isr_nodes=[leader],
                            offline_replicas=[],
                        )
                        for partition, leader in enumerate(self.leaders.get(name, ()))
                    ],
                )
                for name in wanted
            ],
        )


@asynccontextmanager
async def scripted_cluster(
    brokers: int = 1, leaders: Mapping[str, Sequence[int]] | None = None
) -> AsyncIterator[ScriptedCluster]:
    """Brokers 0, 1, ... on ports of their own."""
    cluster = ScriptedCluster(leaders or {})
    cluster.brokers = [ScriptedBroker(node, cluster) for node in range(brokers)]
    started: list[ScriptedBroker] = []
    try:
        for broker in cluster.brokers:
            await broker.start()
            started.append(broker)
        yield cluster
    finally:
        for broker in started:
            await broker.stop()
    for broker in started:
        for error in broker.errors:
            raise error
