"""One TCP connection to one broker: requests are pipelined, answers come back in the same order.

A frame larger than the small receive buffer is read straight into memory of its own (recv_into): a fetched megabyte is
copied once by the kernel and once when the message is decoded. Opening includes the negotiation of API versions.
Reconnecting and choosing a broker belong to `cluster.py`.
"""

import asyncio
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from heliograph import __version__
from heliograph.wire.background import in_thread
from heliograph.wire.errors import UNSUPPORTED_VERSION, BrokerError, Unreachable, WireError

_SMALL_BUFFER = 64 * 1024
# A broker that is up answers at once; a dead address must not hold up the others for a whole request timeout.
_CONNECT_TIMEOUT = 5.0
# A longer frame is not Kafka's: an HTTP or TLS port answers with bytes that read as gigabytes.
_LARGEST_FRAME = 1 << 30
_LENGTH = struct.Struct(">i")

Decode = Callable[[memoryview], Any]
Buffer = bytes | bytearray | memoryview


@dataclass(slots=True)
class _Pending:
    correlation: int
    decode: Decode
    answer: asyncio.Future[Any]
    sent: float


class Connection(asyncio.BufferedProtocol):
    """Use `Connection.open`; after `closed` is true every waiting and later request fails with Unreachable."""

    def __init__(self, address: str, client_id: str, timeout: float) -> None:
        self.address = address
        self.client_id = client_id
        self.timeout = timeout
        self.closed = False
        self.versions: dict[int, tuple[int, int]] = {}
        self._transport: asyncio.Transport | None = None
        self._pending: deque[_Pending] = deque()
        self._correlation = 0
        self._small = bytearray(_SMALL_BUFFER)
        self._small_fill = 0
        self._frame: memoryview | None = None
        self._frame_fill = 0
        self._timer: asyncio.TimerHandle | None = None
        self._last_answer = 0.0

    @classmethod
    async def open(cls, host: str, port: int, client_id: str, timeout: float) -> "Connection":
        address = f"{host}:{port}"
        connect_timeout = min(timeout, _CONNECT_TIMEOUT)
        try:
            async with asyncio.timeout(connect_timeout):
                connection = await cls._connect(host, port, lambda: cls(address, client_id, timeout))
                try:
                    await connection._negotiate()
                except BaseException:
                    connection.close()
                    raise
        except TimeoutError as error:
            raise Unreachable(f"{address} did not answer within {connect_timeout:g} s") from error
        except (OSError, UnicodeError) as error:
            raise Unreachable(f"{address}: {getattr(error, 'strerror', None) or error}") from error
        return connection

    @staticmethod
    async def _connect(host: str, port: int, factory: Callable[[], "Connection"]) -> "Connection":
        # Not by asyncio's resolver: its threads are joined when a loop ends, and a name server may take minutes.
        addresses = await in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        problem: OSError = OSError("no address")
        for *_kind, (ip, *_rest) in addresses:
            try:
                transport, connection = await asyncio.get_running_loop().create_connection(factory, str(ip), port)
            except OSError as error:
                problem = error
                continue
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return connection
        raise problem

    async def _negotiate(self) -> None:
        # A broker that does not support our version of ApiVersions answers UNSUPPORTED_VERSION in version 0.
        for version in (3, 0):
            request = ApiVersionsRequest(
                version=version, client_software_name="heliograph", client_software_version=__version__
            )
            frame = await self._transmit(request, version, bytes)
            code = struct.unpack_from(">h", frame, 0)[0]
            if code == UNSUPPORTED_VERSION and version > 0:
                continue
            if code:
                raise BrokerError(code)
            answer = ApiVersionsResponse.decode(frame, version=version)
            self.versions = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
            return
        raise Unreachable(f"{self.address} supports no version of ApiVersions that Heliograph knows")

    def version(self, api_key: int, newest: int, oldest: int = 0) -> int:
        """The newest version of a request that both sides support, within the caller's limits."""
        low, high = self.versions.get(api_key, (1, 0))
        chosen = min(high, newest)
        if chosen < max(low, oldest):
            raise WireError(f"{self.address} has no usable version of request type {api_key} ({low}..{high})")
        return chosen

    @property
    def requests(self) -> int:
        """Requests sent so far."""
        return self._correlation

    def knows(self, api_key: int, version: int = 0) -> bool:
        """Whether the broker supports a request, in this version or a newer one."""
        return api_key in self.versions and self.versions[api_key][1] >= version

    async def request(
        self, message: Any, newest: int | None = None, oldest: int = 0, decode: Decode | None = None
    ) -> Any:
        """Sends one of kafka-python's request messages and returns its response message, or what `decode` makes of the
        frame after its correlation id."""
        known = int(message.max_version)
        version = self.version(message.API_KEY, known if newest is None else min(newest, known), oldest)
        return await self._transmit(message, version, decode)

    def _transmit(self, message: Any, version: int, decode: Decode | None = None) -> asyncio.Future[Any]:
        message.API_VERSION = version
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        message.with_header(correlation_id=self._correlation, client_id=self.client_id)
        if decode is None:
            decode = _decoder(message.header.get_response_class(), version)
        return self._write([message.encode(framed=True, header=True)], decode)

    def send_parts(self, api_key: int, version: int, parts: Sequence[Buffer], decode: Decode) -> asyncio.Future[Any]:
        """Sends a request that the caller has encoded in pieces (header version 1: no tagged fields)."""
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        name = self.client_id.encode()
        head = struct.pack(f">hhih{len(name)}s", api_key, version, self._correlation, len(name), name)
        size = len(head) + sum(map(len, parts))
        return self._write([_LENGTH.pack(size), head, *parts], decode)

    def _write(self, parts: Sequence[Buffer], decode: Decode) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.closed or self._transport is None:
            answer.set_exception(Unreachable(f"{self.address}: connection closed"))
            return answer
        self._pending.append(_Pending(self._correlation, decode, answer, time.monotonic()))
        if len(parts) == 1:
            self._transport.write(parts[0])
        else:
            self._transport.writelines(parts)
        return answer

    def close(self, reason: str = "closed by us") -> None:
        if self.closed:
            return
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        for pending in self._pending:
            if not pending.answer.done():
                pending.answer.set_exception(Unreachable(f"{self.address}: {reason}"))
                pending.answer.exception()  # marks it as retrieved: nobody may be waiting any more
        self._pending.clear()

    # --- called by asyncio --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        # The copier limits the bytes in flight; the transport need not pause it.
        transport.set_write_buffer_limits(high=_LARGEST_FRAME)
        self._check_deadlines()

    def connection_lost(self, error: Exception | None) -> None:
        self.close(str(error) if error else "the broker closed the connection")

    def get_buffer(self, _sizehint: int) -> memoryview:
        if self._frame is not None:
            return self._frame[self._frame_fill :]
        return memoryview(self._small)[self._small_fill :]

    def buffer_updated(self, received: int) -> None:
        if self._frame is not None:
            self._frame_fill += received
            if self._frame_fill == len(self._frame):
                frame, self._frame = self._frame, None
                self._answer(frame)
            return
        self._small_fill += received
        self._split_small()

    def _split_small(self) -> None:
        at, fill, small = 0, self._small_fill, self._small
        while fill - at >= 4:
            size = _LENGTH.unpack_from(small, at)[0]
            if not 4 <= size <= _LARGEST_FRAME:
                self.close("this is not a Kafka broker")
                return
            at += 4
            if fill - at < size:
                self._frame = _uninitialized(size)
                self._frame[: fill - at] = small[at:fill]
                self._frame_fill = fill - at
                self._small_fill = 0
                return
            self._answer(memoryview(small[at : at + size]))
            at += size
        small[: fill - at] = small[at:fill]
        self._small_fill = fill - at

    def _answer(self, frame: memoryview) -> None:
        if self.closed:
            return
        correlation = _LENGTH.unpack_from(frame, 0)[0]
        if not self._pending or self._pending[0].correlation != correlation:
            self.close("the broker answers out of order")
            return
        pending = self._pending.popleft()
        self._last_answer = time.monotonic()
        if pending.answer.done():
            return
        try:
            result = pending.decode(frame[4:])
        except Exception as error:
            pending.answer.set_exception(WireError(f"{self.address}: an answer cannot be decoded: {error}"))
        else:
            pending.answer.set_result(result)

    def _check_deadlines(self) -> None:
        # One timer per connection instead of one per request, of which there are thousands a second. A broker answers
        # in order, and late when it throttles: the timeout counts from the answer before.
        if self._pending and max(self._pending[0].sent, self._last_answer) + self.timeout < time.monotonic():
            self.close(f"no answer within {self.timeout:g} s")
        if not self.closed:
            self._timer = asyncio.get_running_loop().call_later(min(1.0, self.timeout / 4), self._check_deadlines)


def _uninitialized(size: int) -> memoryview:
    """Python itself would write zeros to every byte before it is received."""
    if size < _SMALL_BUFFER:
        return memoryview(bytearray(size))
    import numpy as np  # late: only processes that copy have large frames

    return np.empty(size, np.uint8).data


def _decoder(response: Any, version: int) -> Decode:
    if response.flexible_version_q(version):
        return lambda frame: response.decode(frame[_tags_end(frame) :])
    return lambda frame: response.decode(frame)


def _tags_end(frame: memoryview) -> int:
    """Where the tagged fields of the response header end (almost always one zero byte)."""
    count, at = read_uvarint(frame, 0)
    for _ in range(count):
        _tag, at = read_uvarint(frame, at)
        size, at = read_uvarint(frame, at)
        at += size
    return at


def read_uvarint(data: memoryview, at: int) -> tuple[int, int]:
    """An unsigned varint and the index after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
